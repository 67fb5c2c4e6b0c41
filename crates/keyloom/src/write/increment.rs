//! Adds to counters: one batch, without a read, that conflicts with nothing.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;

use serde_json::Value;

use super::operations::{commit_counting, read};
use crate::engine::{Address, Integers};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Key, key_of_values, shown_counters};
use crate::side::{Addend, Counting, Fetched, Refused, Work, fetch_one};
use crate::space::Loaded;
use crate::space::Session;

/// What is to be added to the counters of one record.
///
/// ```
/// use keyloom::Increment;
/// let finished = Increment::of("flow", "mail").add("stats.running", -1).add("stats.success", 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "nothing is added until it is given to `increment_many`"]
pub struct Increment {
    pub(crate) collection: String,
    pub(crate) key: Vec<Value>,
    pub(crate) deltas: Vec<(String, i64)>,
}

/// All counters of a record right after an addition. It derefs to them, by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// The record's key.
    pub key: Key,
    /// The counters, each by its name.
    pub values: BTreeMap<String, i64>,
}

impl Counters {
    fn of(addend: &Addend, counted: Option<&Integers>) -> Self {
        let values = shown_counters(&addend.collection.counters, counted);
        Counters { key: Key::new(addend.key.clone()), values }
    }
}

impl Deref for Counters {
    type Target = BTreeMap<String, i64>;

    fn deref(&self) -> &Self::Target {
        &self.values
    }
}

/// Adds to the counters of records, all or nothing. Gives, in the order of what was asked, all
/// counters of each record right after.
pub(crate) async fn increment(session: &Session, asked: &[Increment]) -> Result<Vec<Counters>> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let mut attempts = session.live.writes();
    loop {
        let loaded = session.live.loaded().await?;
        let Gathered { addends, places } = gather(session, &loaded, asked)?;
        refuse_expired(session, &addends).await?;
        let counting = Counting { addends, moved: None };
        let work = Work { counting: &counting, ..Work::of(&[]) };
        let attempt = commit_counting(session, &loaded, work).await;
        let Some(counted) = attempts.settle(attempt).await? else { continue };
        match counted {
            Ok(sums) => {
                let shown = |place: usize| Counters::of(&counting.addends[place], sums.get(place));
                return Ok(places.into_iter().map(shown).collect());
            }
            Err(
                Refused::Changed(error)
                | Refused::Counted(error, _)
                | Refused::Taken(_, _, error)
                | Refused::Final(error),
            ) => return Err(error),
        }
    }
}

/// What is asked, each record once.
struct Gathered {
    addends: Vec<Addend>,
    /// The addend of each part of what was asked.
    places: Vec<usize>,
}

/// All counters of each record, as they are now.
pub(crate) async fn counters(session: &Session, asked: &[Increment]) -> Result<Vec<Counters>> {
    let loaded = session.live.loaded().await?;
    let Gathered { addends, places } = gather(session, &loaded, asked)?;
    let mut all = Vec::new();
    for addend in &addends {
        let Fetched { counted, .. } = fetch_one(session, &addend.collection, &addend.key).await?;
        all.push(Counters::of(addend, counted.as_ref().map(|counted| &counted.values)));
    }
    Ok(places.into_iter().map(|place| all[place].clone()).collect())
}

/// A record that has expired is not there. Whether it has, only the record tells, so that where
/// records expire an addition reads them.
async fn refuse_expired(session: &Session, addends: &[Addend]) -> Result<()> {
    for addend in addends.iter().filter(|addend| addend.collection.expiry.is_some()) {
        if read(session, &addend.collection, &addend.key).await?.is_none() {
            return Err(addend.not_found());
        }
    }
    Ok(())
}

fn gather(session: &Session, loaded: &Loaded, asked: &[Increment]) -> Result<Gathered> {
    let mut known: HashMap<Address, usize> = HashMap::new();
    let mut gathered = Gathered { addends: Vec::new(), places: Vec::new() };
    for Increment { collection, key, deltas } in asked {
        let collection = loaded.schema.collection(collection)?;
        let values = session.imply_owner(collection, &collection.key, key);
        let key = key_of_values(collection, &values.iter().collect::<Vec<_>>())?;
        let addend = Addend::new(collection, key);
        if !session.may_read(collection, &addend.key) {
            return Err(addend.not_found());
        }
        let place = *known.entry(addend.record_address()).or_insert(gathered.addends.len());
        if place == gathered.addends.len() {
            gathered.addends.push(addend);
        }
        add_all(&mut gathered.addends[place], deltas)?;
        gathered.places.push(place);
    }
    Ok(gathered)
}

/// Adds to counters of one record. At least one has to be named.
pub(super) fn add_all(addend: &mut Addend, deltas: &[(String, i64)]) -> Result<()> {
    if deltas.is_empty() {
        let message = "an increment names at least one counter";
        return Err(Error::new(ErrorKind::InvalidArgument, message)
            .with("collection", &addend.collection.name));
    }
    deltas.iter().try_for_each(|(name, delta)| addend.add(name, *delta))
}
