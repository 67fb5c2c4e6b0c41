//! Who is asking, and of which space. Everything that reads or writes records is given one.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::idempotency::{Claim, IdempotencyKey};
use crate::record::now_ms;
use crate::schema::Live;

/// The longest name of an acting user, in bytes. It has to leave room in a key.
const ACTOR_BYTES_MAX: usize = 255;

/// A space with its schema, as one caller sees it. It derefs to the space.
#[derive(Clone)]
pub(crate) struct Session {
    live: Arc<Live>,
    actor: Option<Arc<str>>,
    clock: Clock,
    /// The key that the next write carries.
    key: Option<IdempotencyKey>,
    /// The attempt that the batch of the write has to settle.
    claim: Option<Arc<Claim>>,
}

impl Session {
    /// The program itself, which acts for nobody in particular.
    pub(crate) fn new(live: Arc<Live>) -> Self {
        Session { live, actor: None, clock: Clock::default(), key: None, claim: None }
    }

    /// The same caller in another space.
    pub(crate) fn in_space(&self, live: Arc<Live>) -> Self {
        Session { live, ..self.clone() }
    }

    /// The same space, on behalf of a user.
    pub(crate) fn acting_as(&self, user: &str) -> Result<Self> {
        let refused = |message| Err(Error::new(ErrorKind::InvalidArgument, message));
        if user.is_empty() {
            return refused("an acting user has a name; without one, use the store itself");
        }
        if user.len() > ACTOR_BYTES_MAX {
            return refused("the name of an acting user has at most 255 bytes");
        }
        Ok(Session { actor: Some(user.into()), ..self.clone() })
    }

    /// The same caller, by another clock.
    pub(crate) fn by_clock(&self, clock: Clock) -> Self {
        Session { clock, ..self.clone() }
    }

    /// The same caller, whose next write carries a key.
    pub(crate) fn with_key(&self, key: &str) -> Result<Self> {
        Ok(Session { key: Some(IdempotencyKey::new(key)?), ..self.clone() })
    }

    /// The key that the next write carries.
    pub(crate) fn key(&self) -> Option<&IdempotencyKey> {
        self.key.as_ref()
    }

    /// The same caller within one attempt at a write with a key.
    pub(crate) fn claiming(&self, claim: Arc<Claim>) -> Self {
        Session { claim: Some(claim), ..self.clone() }
    }

    /// The attempt that the batch of the write has to settle.
    pub(crate) fn claim(&self) -> Option<&Arc<Claim>> {
        self.claim.as_ref()
    }

    /// Milliseconds since 1970, by the store's clock.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The acting user, if the caller named one.
    pub(crate) fn actor(&self) -> Option<&str> {
        self.actor.as_deref()
    }

    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.live
    }
}

impl Deref for Session {
    type Target = Live;

    fn deref(&self) -> &Live {
        &self.live
    }
}

/// Tells a store what time it is. Programs leave it alone; tests of what time does to records set
/// their own.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// A clock that asks this function for the milliseconds since 1970.
    pub fn new(now: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Clock(Arc::new(now))
    }

    /// Milliseconds since 1970.
    pub fn now(&self) -> u64 {
        (self.0)()
    }
}

impl Default for Clock {
    /// The clock of the machine.
    fn default() -> Self {
        Clock::new(now_ms)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
