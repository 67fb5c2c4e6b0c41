//! Writes of one record, predicted.

use std::fmt;

use keyloom::{Effect, Error, ErrorKind, Fate, Version, Written};
use serde_json::Value;

use super::client::{Client, Known, Slot};

/// One write of one record.
#[derive(Clone)]
pub enum Write {
    Insert(Value),
    Upsert(Value),
    Replace(Value),
    ReplaceIf(Value, Version),
    Delete,
    DeleteIf(Version),
}

/// What a write comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The record is written, or gone.
    Done(Effect),
    Deleted,
    /// There was nothing to delete.
    NothingThere,
    /// One of these errors, and nothing changes.
    Refused(&'static [ErrorKind]),
}

const INVALID: &[ErrorKind] =
    &[ErrorKind::InvalidRecord, ErrorKind::InvalidKey, ErrorKind::LimitExceeded];

impl fmt::Debug for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Write::Insert(record) => write!(f, "insert {record}"),
            Write::Upsert(record) => write!(f, "upsert {record}"),
            Write::Replace(record) => write!(f, "replace {record}"),
            Write::ReplaceIf(record, version) => write!(f, "replace if {version} {record}"),
            Write::Delete => f.write_str("delete"),
            Write::DeleteIf(version) => write!(f, "delete if {version}"),
        }
    }
}

impl Write {
    pub fn record(&self) -> Option<&Value> {
        match self {
            Write::Insert(value)
            | Write::Upsert(value)
            | Write::Replace(value)
            | Write::ReplaceIf(value, _) => Some(value),
            Write::Delete | Write::DeleteIf(_) => None,
        }
    }

    /// What the write comes to if no exclusive value is in the way.
    pub fn predict(&self, collection: &str, present: Option<&Known>, spoiled: bool) -> Verdict {
        if spoiled {
            return Verdict::Refused(INVALID);
        }
        let expected = match self {
            Write::ReplaceIf(_, version) | Write::DeleteIf(version) => Some(*version),
            _ => None,
        };
        match (self, present) {
            (Write::Insert(_) | Write::Upsert(_), None) => Verdict::Done(Effect::Created),
            (Write::Insert(_), Some(_)) => Verdict::Refused(&[ErrorKind::AlreadyExists]),
            (Write::Delete, None) => Verdict::NothingThere,
            (_, None) => Verdict::Refused(&[ErrorKind::NotFound]),
            (_, Some(present)) if expected.is_some_and(|version| version != present.version) => {
                Verdict::Refused(&[ErrorKind::VersionConflict])
            }
            (Write::Delete | Write::DeleteIf(_), Some(_)) => Verdict::Deleted,
            (_, Some(present)) => {
                let value = self.record().unwrap_or(&Value::Null);
                // Texts are compared, not values: the order of members counts, and -0.0 is not 0.0.
                let (new, old) = (value.to_string(), present.value.to_string());
                if new == old {
                    return Verdict::Done(Effect::Unchanged);
                }
                passage(collection, &present.value, value)
            }
        }
    }

    /// The record after the write, if it is there then.
    pub fn outcome<'v>(
        &'v self,
        verdict: &Verdict,
        present: Option<&'v Value>,
    ) -> Option<&'v Value> {
        match verdict {
            Verdict::Done(Effect::Created | Effect::Replaced) => self.record(),
            Verdict::Deleted => None,
            _ => present,
        }
    }
}

/// What the declared transitions say.
fn passage(collection: &str, old: &Value, new: &Value) -> Verdict {
    let (field, verdict) = match collection {
        "item" => ("status", Verdict::Refused(&[ErrorKind::IllegalTransition])),
        "part" => ("state", Verdict::Done(Effect::Ignored)),
        _ => return Verdict::Done(Effect::Replaced),
    };
    let is_final = match old[field].as_str() {
        Some("done" | "FAILED" | "SUCCEEDED") => true,
        Some("new" | "open" | "RUNNING") => new[field].is_null(),
        _ => false,
    };
    if is_final && old[field] != new[field] { verdict } else { Verdict::Done(Effect::Replaced) }
}

impl Client {
    pub async fn write(&mut self, collection: usize, slot: usize) {
        let (write, spoiled) = self.random_write(collection, slot);
        let present = self.slots[collection][slot].known.clone();
        let name = self.shape(collection).name.clone();
        let verdict = write.predict(&name, present.as_ref(), spoiled);
        self.note(|| format!("{name}[{slot}] {write:?} → {verdict:?}"));
        let after = match spoiled {
            true => present.as_ref().map(|known| &known.value),
            // An insert that meets its own record may as well be refused for an exclusive value.
            false if matches!(write, Write::Insert(_)) => write.record(),
            false => write.outcome(&verdict, present.as_ref().map(|known| &known.value)),
        };
        let moves = [self.a_move(collection, slot, after)];
        let begun = self.world.claims().begin(&moves);
        let answer = self.perform(collection, slot, &write).await;
        let happened = match &answer {
            Ok(now) => {
                self.check_success(&verdict, present.as_ref(), &write, now);
                self.slots[collection][slot].set(now.as_ref().map(|(known, _)| known.clone()));
                !matches!(verdict, Verdict::Refused(_))
            }
            Err(error) if self.is_fault(error) => false,
            Err(error) if error.fate() == Fate::MayHaveHappened && self.world.faults => {
                self.settle_write(collection, slot, &write, &verdict).await
            }
            Err(error) if error.kind() == ErrorKind::UniqueConflict => {
                let right = self.world.claims().may_refuse(&moves, &begun);
                assert!(right, "refused though nobody has the value: {error:?}");
                assert!(
                    error.context_value("held by").is_some_and(|key| key != "unknown"),
                    "{error:?}"
                );
                false
            }
            Err(error) => {
                let expected =
                    matches!(&verdict, Verdict::Refused(kinds) if kinds.contains(&error.kind()));
                assert!(expected, "expected {verdict:?}: {error:?}");
                false
            }
        };
        self.world.claims().settle(&moves, happened);
    }

    fn random_write(&mut self, collection: usize, slot: usize) -> (Write, bool) {
        let world = self.world.clone();
        let name = &world.shapes[collection].name;
        let Slot { known, stale, .. } = &self.slots[collection][slot];
        let (known, stale) = (known.clone(), *stale);
        if self.random.percent(2) {
            let record = self.draw().spoiled(name, slot);
            // A ticket without a key would be another record each time.
            return (Write::Insert(record), true);
        }
        let resembled = known.as_ref().map(|known| &known.value);
        let version = match self.random.percent(70) {
            true => known.as_ref().map(|known| known.version).or(stale),
            false => stale,
        };
        let choice = self.random.below(100);
        let mut record = || match (choice % 8, resembled) {
            // Exactly what is there already.
            (0, Some(same)) => same.clone(),
            _ => self.draw().record(name, slot, resembled),
        };
        let write = match (choice, version) {
            (0..25, _) => Write::Insert(record()),
            (25..50, _) => Write::Upsert(record()),
            (50..65, Some(version)) => Write::ReplaceIf(record(), version),
            (50..80, _) => Write::Replace(record()),
            (80..90, Some(version)) => Write::DeleteIf(version),
            _ => Write::Delete,
        };
        (write, false)
    }

    /// The record after the write, with what the write says that it did; `None` when it is gone.
    async fn perform(
        &mut self,
        collection: usize,
        slot: usize,
        write: &Write,
    ) -> Result<Option<(Known, Effect)>, Error> {
        let key = self.key_values(collection, slot);
        let documents = self.maybe_keyed(collection);
        let written = |written: Written<Value>| {
            let effect = written.effect;
            Some((Known::of_written(written), effect))
        };
        Ok(match write {
            Write::Insert(record) => written(documents.insert(record).await?),
            Write::Upsert(record) => written(documents.upsert(record).await?),
            Write::Replace(record) => written(documents.replace(record).await?),
            Write::ReplaceIf(record, version) => {
                written(documents.replace_if(record, *version).await?)
            }
            Write::Delete => {
                let version = documents.delete(key).await?;
                let known = self.slots[collection][slot].known.as_ref();
                assert_eq!(version, known.map(|known| known.version), "what was deleted");
                None
            }
            Write::DeleteIf(version) => {
                documents.delete_if(key, *version).await?;
                None
            }
        })
    }

    fn check_success(
        &self,
        verdict: &Verdict,
        present: Option<&Known>,
        write: &Write,
        now: &Option<(Known, Effect)>,
    ) {
        match (verdict, now) {
            (Verdict::Deleted | Verdict::NothingThere, None) => {}
            (Verdict::Done(expected), Some((known, effect))) if expected == effect => {
                check_written(*effect, present, write.record(), known);
            }
            _ => panic!("expected {verdict:?}, not {now:?}"),
        }
    }

    /// After a write of unknown outcome: whether it happened. It must have, or not have; nothing
    /// else may be there.
    async fn settle_write(
        &mut self,
        collection: usize,
        slot: usize,
        write: &Write,
        verdict: &Verdict,
    ) -> bool {
        let now = self.settled(collection, slot).await;
        let present = self.slots[collection][slot].known.clone();
        if now == present {
            // A delete of what was not there changes nothing either way.
            return false;
        }
        match (verdict, &now) {
            (Verdict::Deleted, None) => {}
            (Verdict::Done(effect), Some(known)) => {
                check_written(*effect, present.as_ref(), write.record(), known);
            }
            _ => panic!("neither before nor after {write:?}: {now:?}"),
        }
        self.slots[collection][slot].set(now);
        true
    }
}

/// Panics unless a write with this effect can have left the record so.
pub fn check_written(effect: Effect, present: Option<&Known>, wanted: Option<&Value>, now: &Known) {
    if matches!(effect, Effect::Unchanged | Effect::Ignored) {
        assert_eq!(Some(now), present, "a write without effect changed the record");
        return;
    }
    let wanted = wanted.and_then(Value::as_object).into_iter().flatten();
    for (name, value) in wanted {
        assert_eq!(&now.value[name], value, "{name} is not as it was written");
    }
    match (effect, present) {
        (Effect::Replaced, Some(present)) => {
            let incarnation = |version: Version| version.to_string()[..32].to_owned();
            assert_eq!(now.version.revision(), present.version.revision() + 1);
            assert_eq!(incarnation(now.version), incarnation(present.version));
        }
        _ => assert_eq!(now.version.revision(), 1, "a new record starts anew"),
    }
}
