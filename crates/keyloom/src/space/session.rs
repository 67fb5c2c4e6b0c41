//! Who is asking, and of which space. Everything that reads or writes records is given one.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::attempt::past_fence;
use super::claim::Claim;
use super::idempotency_key::IdempotencyKey;
use crate::engine::{Batch, Outcome};
use crate::error::{Error, ErrorKind, Result};
use crate::log::{Author, Note};
use crate::record::now_ms;
use crate::schema::{Collection, Schema, Warning, lookalikes};
use crate::space::{Applied, Live, Loaded};

/// The longest name of an acting user, in bytes. It has to leave room in a key.
const ACTOR_BYTES_MAX: usize = 255;

/// A space with its schema, as one caller sees it.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) live: Arc<Live>,
    actor: Option<Arc<str>>,
    clock: Clock,
    /// The key that the next write carries.
    key: Option<IdempotencyKey>,
    /// The attempt that the batch of the write has to settle.
    claim: Option<Arc<Claim>>,
    /// Who hears of warnings, if anybody does.
    listener: Option<Arc<Listener>>,
    /// The names that the program's own type has; `None` where a type does not tell.
    members: Option<&'static [&'static str]>,
}

impl Session {
    /// The program itself, which acts for nobody in particular.
    pub(crate) fn new(live: Arc<Live>) -> Self {
        let clock = Clock::default();
        let members = Some(&[][..]);
        Session { live, actor: None, clock, key: None, claim: None, listener: None, members }
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

    /// The same caller, whose records have members of these names, declared or not.
    pub(crate) fn with_members(&self, members: Option<&'static [&'static str]>) -> Self {
        Session { members, ..self.clone() }
    }

    /// Whether the program's own type has a member of that name, or may have.
    pub(crate) fn has_member(&self, name: &str) -> bool {
        self.members.is_none_or(|members| members.contains(&name))
    }

    /// The key that the next write carries.
    pub(crate) fn key(&self) -> Option<&IdempotencyKey> {
        self.key.as_ref()
    }

    /// The same caller within one attempt at a write with a key.
    pub(crate) fn claiming(&self, claim: Arc<Claim>) -> Self {
        Session { claim: Some(claim), ..self.clone() }
    }

    /// The same caller, for a commit that is no part of the write.
    pub(crate) fn claiming_nothing(&self) -> Self {
        Session { claim: None, ..self.clone() }
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

    /// Who changes something now.
    pub(crate) fn author(&self) -> Author {
        Author { at: self.now(), by: self.actor().map(str::to_owned) }
    }

    /// What the log is told of a commit that changes no record.
    pub(crate) fn note(&self) -> Note {
        Note { author: self.author(), changes: Vec::new() }
    }

    /// Makes the stored schema contain the declared one.
    pub(crate) async fn apply(&self, declared: &Schema) -> Result<Applied> {
        self.program()?.apply(declared, &self.author()).await
    }

    /// Commits a batch that means the same under every schema, and logs it where the space keeps a
    /// log.
    pub(crate) async fn commit_under_any_schema(&self, batch: Batch) -> Result<Outcome> {
        let mut attempts = self.live.writes();
        loop {
            let loaded = self.live.loaded().await?;
            let fenced = Batch { fence: loaded.fence(), ..batch.clone() };
            let outcome = self.live.commit(&loaded, fenced, || self.note()).await?;
            if let Some(outcome) = attempts.settle(past_fence(outcome)).await? {
                return Ok(outcome);
            }
        }
    }

    /// Whether a write was refused by a schema that another process has changed since. A commit is
    /// told by its fence; a refusal makes none, and so asks before it is pronounced.
    pub(crate) async fn is_outdated(&self, known: &Arc<Loaded>, refusal: &Error) -> bool {
        judges_by_schema(refusal)
            && self.live.reload().await.is_ok_and(|latest| !Arc::ptr_eq(&latest, known))
    }

    /// The space as it is, for what only the program itself may do.
    pub(crate) fn program(&self) -> Result<&Arc<Live>> {
        match self.actor {
            None => Ok(&self.live),
            Some(_) => {
                let message = "an acting user may not do this; use the store without one";
                Err(Error::new(ErrorKind::Forbidden, message))
            }
        }
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
}

/// Whether an error may be a judgement by the schema, and not by what is in the store.
fn judges_by_schema(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidArgument
            | ErrorKind::InvalidKey
            | ErrorKind::InvalidRecord
            | ErrorKind::InvalidQuery
            | ErrorKind::IllegalTransition
            | ErrorKind::Forbidden
            | ErrorKind::LimitExceeded
            | ErrorKind::Corrupt
    )
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
