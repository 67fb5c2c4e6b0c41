//! Who is asking, and of which space. Everything that reads or writes records is given one.

use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::record::now_ms;
use crate::schema::{Collection, Live, Warning, lookalikes};

/// The longest name of an acting user, in bytes. It has to leave room in a key.
const ACTOR_BYTES_MAX: usize = 255;

/// A space with its schema, as one caller sees it. It derefs to the space.
#[derive(Clone)]
pub(crate) struct Session {
    live: Arc<Live>,
    actor: Option<Arc<str>>,
    clock: Clock,
    /// Who hears of warnings, if anybody does.
    listener: Option<Arc<Listener>>,
}

impl Session {
    /// The program itself, which acts for nobody in particular.
    pub(crate) fn new(live: Arc<Live>) -> Self {
        Session { live, actor: None, clock: Clock::default(), listener: None }
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

    /// Milliseconds since 1970, by the store's clock.
    #[expect(dead_code, reason = "what depends on time comes next")]
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The acting user, if the caller named one.
    #[expect(dead_code, reason = "what depends on the acting user comes next")]
    pub(crate) fn actor(&self) -> Option<&str> {
        self.actor.as_deref()
    }

    /// The same caller, who hears of warnings.
    pub(crate) fn warning(&self, hear: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        let listener = Listener { hear: Box::new(hear), told: Mutex::default() };
        Session { listener: Some(Arc::new(listener)), ..self.clone() }
    }

    /// Warns of what a record that is written probably does not mean. Costs nothing when nobody
    /// listens.
    pub(crate) fn warn_of(&self, collection: &Collection, record: &Value) {
        if let Some(listener) = &self.listener {
            lookalikes(collection, record).iter().for_each(|warning| listener.tell(warning));
        }
    }

    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.live
    }
}

/// How many different warnings are told. The names in records may be without end.
const WARNINGS_MAX: usize = 1_000;

/// Hears of each warning once.
struct Listener {
    hear: Box<dyn Fn(&Warning) + Send + Sync>,
    told: Mutex<HashSet<(String, String)>>,
}

impl Listener {
    fn tell(&self, warning: &Warning) {
        let is_new = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.len() < WARNINGS_MAX
                && told.insert((warning.collection.clone(), warning.field.clone()))
        };
        if is_new {
            (self.hear)(warning);
        }
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
