//! Points in time as milliseconds.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::store::KeyFields;

/// A point in time in milliseconds since 1970, a number in JSON. Keys hold 0 to 9999999999999,
/// which is in the year 2286.
///
/// ```
/// use std::time::Duration;
/// use keyloom::Timestamp;
///
/// let made = Timestamp::from(1_674_950_787_234);
/// assert_eq!(made.millis(), 1_674_950_787_234);
/// assert_eq!(made + Duration::from_secs(1) - made, Duration::from_secs(1));
/// assert_eq!("1674950787234".parse::<Timestamp>()?, made);
/// assert!(Timestamp::now() > made);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The current time.
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// Milliseconds since 1970.
    pub fn millis(self) -> i64 {
        self.0
    }
}

impl From<i64> for Timestamp {
    fn from(millis: i64) -> Self {
        Timestamp(millis)
    }
}

impl From<Timestamp> for i64 {
    fn from(timestamp: Timestamp) -> Self {
        timestamp.0
    }
}

/// Times before 1970 have negative milliseconds, which keys refuse.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Timestamp(millis(since)),
            Err(before) => Timestamp(-millis(before.duration())),
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Timestamp(self.0.saturating_add(millis(duration)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Timestamp(self.0.saturating_sub(millis(duration)))
    }
}

/// The time from the other to this one; zero if the other is later.
impl Sub for Timestamp {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        text.parse().map(Timestamp).map_err(|error| {
            Error::new(ErrorKind::InvalidArgument, "a timestamp is a number of milliseconds")
                .with("value", format_args!("{text:?}"))
                .with_source(error)
        })
    }
}

impl From<Timestamp> for Value {
    fn from(timestamp: Timestamp) -> Self {
        timestamp.0.into()
    }
}

impl KeyFields for Timestamp {
    fn into_values(self) -> Vec<Value> {
        vec![self.into()]
    }
}
