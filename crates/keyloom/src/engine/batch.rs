//! The one write primitive: conditions and effects, applied all or not at all.

use std::collections::HashSet;

use bytes::Bytes;

use super::address::{Address, ShowKey, Space, VALUE_BYTES_MAX};
use super::capabilities::Capabilities;
use super::cell::{Cell, Integers, Stamp};
use super::log::{Position, check_entry};
use super::places::Places;
use crate::error::{Error, ErrorKind, Result};

/// The longest name of a counter within a cell of integers, in bytes.
pub const COUNTER_NAME_BYTES_MAX: usize = 255;

/// What must hold at an address for the batch to be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// There is no cell.
    Absent,
    /// There is a cell of either kind.
    Present,
    /// There is a cell, and it still has this stamp.
    Unchanged(Stamp),
}

/// What a batch does at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Makes the cell hold these bytes, whatever was there.
    Put {
        /// The new stamp.
        stamp: Stamp,
        /// The new bytes, at most [`VALUE_BYTES_MAX`].
        bytes: Bytes,
    },
    /// Removes the cell. Removing an absent cell succeeds.
    Delete,
    /// Adds to named integers. An absent cell, and an absent name, count as zero. Names that are
    /// not mentioned keep their values. A cell of bytes rejects the batch.
    Add {
        /// The new stamp.
        stamp: Stamp,
        /// What to add: at least one, each name once.
        additions: Vec<Addition>,
    },
}

/// One addition to one named integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// The counter, 1 to 255 bytes.
    pub name: String,
    /// What is added; negative to subtract.
    pub delta: i64,
    /// A sum below this rejects the batch.
    pub min: Option<i64>,
    /// A sum above this rejects the batch.
    pub max: Option<i64>,
}

/// What a batch asks of one address: a condition, an effect, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where.
    pub address: Address,
    /// What must hold, if anything.
    pub condition: Option<Condition>,
    /// What is done, if anything.
    pub effect: Option<Effect>,
}

impl Entry {
    /// The bytes of the key and of what is put or added.
    pub fn weight(&self) -> usize {
        let effect = match &self.effect {
            Some(Effect::Put { bytes, .. }) => bytes.len(),
            Some(Effect::Add { additions, .. }) => {
                additions.iter().map(|addition| addition.name.len() + size_of::<i64>()).sum()
            }
            Some(Effect::Delete) | None => 0,
        };
        self.address.key.len() + effect
    }
}

/// A cell that must still have its stamp for any batch of the space to be applied: the catalog,
/// whose stamp is the schema's epoch. It stands apart from the entries, since engines fence in
/// different ways (a condition, a shared lock, a lease).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The cell; no entry of the batch may name it.
    pub address: Address,
    /// The stamp that it must have.
    pub stamp: Stamp,
}

/// Conditions and effects on cells of one space, with at most one entry per address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The space of all addresses.
    pub space: Space,
    /// What fences the whole batch, if anything.
    pub fence: Option<Fence>,
    /// What is asked, in the order in which a failed condition is reported.
    pub entries: Vec<Entry>,
    /// What is appended to the log of the space, if anything: at most
    /// [`LOG_ENTRY_BYTES_MAX`](super::LOG_ENTRY_BYTES_MAX) bytes,
    /// and only on an engine that keeps a log.
    pub append: Option<Bytes>,
}

impl Batch {
    /// An empty batch without a fence. Committing it succeeds and changes nothing.
    pub fn new(space: Space) -> Self {
        Batch { space, fence: None, entries: Vec::new(), append: None }
    }

    /// Adds an entry.
    pub fn push(&mut self, address: Address, condition: Option<Condition>, effect: Option<Effect>) {
        self.entries.push(Entry { address, condition, effect });
    }

    /// The bytes of all keys and values and of what is appended: what the limits of an engine
    /// count.
    pub fn weight(&self) -> usize {
        let appended = self.append.as_ref().map_or(0, Bytes::len);
        self.entries.iter().map(Entry::weight).sum::<usize>() + appended
    }

    /// Refuses what no engine accepts, and what exceeds the given engine. Every engine calls this
    /// first in `commit`, so that all refuse alike and before anything is written.
    pub fn check(&self, capabilities: &Capabilities) -> Result<()> {
        if self.entries.len() > capabilities.batch_entries_max {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                "the batch has too many entries for this engine",
            )
            .with("entries", self.entries.len())
            .with("entries at most", capabilities.batch_entries_max)
            .with("engine", capabilities.engine));
        }
        let weight = self.weight();
        if weight > capabilities.batch_bytes_max {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                "the batch is too large for this engine",
            )
            .with("bytes", weight)
            .with("bytes at most", capabilities.batch_bytes_max)
            .with("engine", capabilities.engine));
        }
        if let Some(append) = &self.append {
            check_entry(capabilities, append)?;
        }
        self.addresses().try_for_each(Address::check)?;
        if let Some(address) = self.repeated() {
            return Err(Error::new(ErrorKind::Internal, "a batch names each address once")
                .with("key", ShowKey(&address.key)));
        }
        self.entries.iter().filter_map(|entry| Some((entry, entry.effect.as_ref()?))).try_for_each(
            |(entry, effect)| {
                check_effect(effect).map_err(|error| error.with("key", ShowKey(&entry.address.key)))
            },
        )
    }

    /// All addresses, that of the fence first.
    fn addresses(&self) -> impl Iterator<Item = &Address> {
        let fence = self.fence.iter().map(|fence| &fence.address);
        fence.chain(self.entries.iter().map(|entry| &entry.address))
    }

    /// An address that is named twice.
    fn repeated(&self) -> Option<&Address> {
        let mut places = Places::with_capacity(self.entries.len());
        for (place, Entry { address, .. }) in self.entries.iter().enumerate() {
            if places.find(&self.entries[..place], address).is_some() {
                return Some(address);
            }
            places.note_last(&self.entries[..=place]);
        }
        let fence = self.fence.as_ref().map(|fence| &fence.address);
        fence.filter(|fence| places.find(&self.entries, fence).is_some())
    }
}

fn check_effect(effect: &Effect) -> Result<()> {
    match effect {
        Effect::Put { bytes, .. } if bytes.len() > VALUE_BYTES_MAX => {
            Err(Error::new(ErrorKind::LimitExceeded, "a value has at most 389120 bytes (380 KiB)")
                .with("bytes", bytes.len()))
        }
        // Not every store can hold a cell of no integers (a Redis hash without fields is absent).
        Effect::Add { additions, .. } if additions.is_empty() => {
            Err(Error::new(ErrorKind::Internal, "an addition names at least one counter"))
        }
        Effect::Add { additions, .. } => {
            let mut names = HashSet::new();
            for addition in additions {
                if addition.name.is_empty() || addition.name.len() > COUNTER_NAME_BYTES_MAX {
                    return Err(Error::new(
                        ErrorKind::LimitExceeded,
                        "a counter's name has 1 to 255 bytes",
                    )
                    .with("bytes", addition.name.len()));
                }
                if !names.insert(addition.name.as_str()) {
                    return Err(Error::new(
                        ErrorKind::Internal,
                        "an addition names each counter once",
                    )
                    .with("counter", &addition.name));
                }
            }
            Ok(())
        }
        Effect::Put { .. } | Effect::Delete => Ok(()),
    }
}

/// The answer to a commit that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All conditions held and all effects are applied.
    Committed(Committed),
    /// Something did not hold, and nothing was applied.
    Rejected(Rejection),
}

/// What a batch that was committed tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// For each `Add` in the order of the entries, every integer of the cell right after it.
    pub integers: Vec<Integers>,
    /// The position of what was appended to the log; `None` when nothing was.
    pub position: Option<Position>,
}

/// Why a batch was rejected: the fence first, then the first entry in order that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// What failed.
    pub cause: Cause,
    /// The cell that is there now, as the check saw it.
    pub found: Option<Cell>,
}

/// What failed in a rejected batch. An entry is named by its place in [`Batch::entries`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The fence's cell does not have the stamp.
    Fence,
    /// The entry's condition does not hold.
    Condition {
        /// The place of the entry.
        entry: usize,
    },
    /// A sum would not fit into 64 bits.
    Overflow {
        /// The place of the entry.
        entry: usize,
        /// The counter.
        name: String,
    },
    /// A sum would leave its bounds.
    Bound {
        /// The place of the entry.
        entry: usize,
        /// The counter.
        name: String,
    },
    /// An addition met a cell of bytes.
    NotIntegers {
        /// The place of the entry.
        entry: usize,
    },
    /// A cell of integers would grow beyond the limit of a value.
    TooLarge {
        /// The place of the entry.
        entry: usize,
    },
}

impl Cause {
    /// The place of the entry that failed; `None` when it was the fence.
    pub fn entry(&self) -> Option<usize> {
        match self {
            Cause::Fence => None,
            Cause::Condition { entry }
            | Cause::Overflow { entry, .. }
            | Cause::Bound { entry, .. }
            | Cause::NotIntegers { entry }
            | Cause::TooLarge { entry } => Some(*entry),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::super::{Area, LOG_ENTRY_BYTES_MAX, Reading};
    use super::*;

    const SMALL: Capabilities = Capabilities {
        engine: "small",
        reading: Reading::Snapshot,
        batch_entries_max: 3,
        batch_bytes_max: 100,
        adds_spread: 1,
        is_shared: false,
        persistent: false,
        keeps_log: true,
        pins: false,
    };

    const STAMP: Stamp = Stamp([7; Stamp::BYTES]);

    fn at(key: &'static str) -> Address {
        Address::new(Area::default_area(), key)
    }

    fn put(bytes: usize) -> Option<Effect> {
        Some(Effect::Put { stamp: STAMP, bytes: vec![b'v'; bytes].into() })
    }

    fn add(names: &[&str]) -> Option<Effect> {
        let addition =
            |name: &&str| Addition { name: (*name).to_owned(), delta: 1, min: None, max: None };
        Some(Effect::Add { stamp: STAMP, additions: names.iter().map(addition).collect() })
    }

    fn batch(effects: impl IntoIterator<Item = (&'static str, Option<Effect>)>) -> Batch {
        let mut batch = Batch::new(Space::main());
        effects.into_iter().for_each(|(key, effect)| batch.push(at(key), None, effect));
        batch
    }

    fn refusal(batch: &Batch) -> Error {
        batch.check(&SMALL).unwrap_err()
    }

    #[test]
    fn a_batch_weighs_its_keys_and_what_they_get() {
        let effects = [("abc", put(10)), ("d", add(&["xy", "z"])), ("e", Some(Effect::Delete))];
        assert_eq!(batch(effects).weight(), (3 + 10) + (1 + 2 + 8 + 1 + 8) + 1);
        assert_eq!(batch([("only asked", None)]).weight(), 10);
    }

    #[test]
    fn the_limits_of_an_engine_are_reached_but_not_exceeded() {
        let keys = ["a", "b", "c", "d"];
        assert!(batch(keys[..3].iter().map(|key| (*key, None))).check(&SMALL).is_ok());
        let error = refusal(&batch(keys.map(|key| (key, None))));
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert_eq!(error.context_value("entries"), Some("4"));
        assert_eq!(error.context_value("entries at most"), Some("3"));
        assert!(batch([("a", put(99))]).check(&SMALL).is_ok());
        let error = refusal(&batch([("a", put(100))]));
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert_eq!(error.context_value("engine"), Some("small"));
    }

    #[test]
    fn an_address_is_named_once_and_the_fence_is_apart() {
        let error = refusal(&batch([("a", put(1)), ("b", None), ("a", None)]));
        assert_eq!((error.kind(), error.context_value("key")), (ErrorKind::Internal, Some("a")));
        let mut fenced = batch([("a", put(1)), ("b", None), ("c", None)]);
        fenced.fence = Some(Fence { address: at("catalog"), stamp: STAMP });
        assert!(fenced.check(&SMALL).is_ok(), "a fence is no entry");
        fenced.fence = Some(Fence { address: at("b"), stamp: STAMP });
        assert_eq!(refusal(&fenced).kind(), ErrorKind::Internal);
        fenced.fence = Some(Fence { address: at(""), stamp: STAMP });
        assert_eq!(refusal(&fenced).kind(), ErrorKind::InvalidKey);
    }

    #[test]
    fn additions_name_some_counters_each_once() {
        for (names, kind) in [
            (&[][..], ErrorKind::Internal),
            (&["x", "y", "x"], ErrorKind::Internal),
            (&["x", ""], ErrorKind::LimitExceeded),
            (&[&*"n".repeat(COUNTER_NAME_BYTES_MAX + 1)], ErrorKind::LimitExceeded),
        ] {
            let large = Capabilities { batch_bytes_max: 1000, ..SMALL };
            let error = batch([("n", add(names))]).check(&large).unwrap_err();
            assert_eq!((error.kind(), error.context_value("key")), (kind, Some("n")), "{names:?}");
        }
        assert!(batch([("n", add(&["x", "y"]))]).check(&SMALL).is_ok());
    }

    #[test]
    fn what_is_appended_weighs_and_has_a_limit_and_needs_a_log() {
        let mut appending = batch([("abc", put(10))]);
        appending.append = Some(vec![7; 20].into());
        assert_eq!(appending.weight(), 3 + 10 + 20);
        assert!(appending.check(&SMALL).is_ok());
        let without = Capabilities { keeps_log: false, ..SMALL };
        let error = appending.check(&without).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(error.context_value("engine"), Some("small"));
        appending.append = Some(vec![7; 88].into());
        assert_eq!(refusal(&appending).kind(), ErrorKind::LimitExceeded);
        let large = Capabilities { batch_bytes_max: usize::MAX, ..SMALL };
        appending.append = Some(vec![7; LOG_ENTRY_BYTES_MAX].into());
        assert!(appending.check(&large).is_ok());
        appending.append = Some(vec![7; LOG_ENTRY_BYTES_MAX + 1].into());
        assert_eq!(appending.check(&large).unwrap_err().kind(), ErrorKind::LimitExceeded);
    }

    #[test]
    fn a_value_has_a_limit_of_its_own() {
        let large = Capabilities { batch_bytes_max: usize::MAX, ..SMALL };
        assert!(batch([("k", put(VALUE_BYTES_MAX))]).check(&large).is_ok());
        let error = batch([("k", put(VALUE_BYTES_MAX + 1))]).check(&large).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert_eq!(error.context_value("bytes"), Some(&*(VALUE_BYTES_MAX + 1).to_string()));
    }
}
