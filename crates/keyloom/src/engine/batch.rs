//! Batches, the only way to write: conditions and effects, applied completely or not at all.

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

/// A condition on an address. The batch is applied only if it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The cell is absent.
    Absent,
    /// There is a cell, of either kind.
    Present,
    /// There is a cell, and it still has this stamp.
    Unchanged(Stamp),
}

/// The effect of a batch on an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Sets the cell to these bytes, whatever it was before.
    Put {
        /// The new stamp.
        stamp: Stamp,
        /// The new bytes, at most [`VALUE_BYTES_MAX`].
        bytes: Bytes,
    },
    /// Deletes the cell. Deleting an absent cell succeeds.
    Delete,
    /// Adds to named integers. An absent cell or name counts as zero. Names that are not mentioned
    /// keep their values. If the cell holds bytes, the batch is rejected.
    Add {
        /// The new stamp.
        stamp: Stamp,
        /// The additions: at least one, each name once.
        additions: Vec<Addition>,
    },
}

/// One addition to one named integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// The counter, 1 to 255 bytes.
    pub name: String,
    /// The number to add; negative to subtract.
    pub delta: i64,
    /// A sum below this rejects the batch.
    pub min: Option<i64>,
    /// A sum above this rejects the batch.
    pub max: Option<i64>,
}

/// A batch's part for one address: a condition, an effect, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The address.
    pub address: Address,
    /// The condition, if any.
    pub condition: Option<Condition>,
    /// The effect, if any.
    pub effect: Option<Effect>,
}

impl Entry {
    /// The bytes of the key and of the data that is put or added.
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

/// A cell that must still have its stamp, or no batch of the space is applied. It is the catalog,
/// whose stamp is the schema's epoch. It is separate from the entries, since engines fence in
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
    /// The fence of the whole batch, if any.
    pub fence: Option<Fence>,
    /// The entries, in the order in which failed conditions are reported.
    pub entries: Vec<Entry>,
    /// The bytes to append to the log of the space, if any: at most
    /// [`LOG_ENTRY_BYTES_MAX`](super::LOG_ENTRY_BYTES_MAX) bytes, and only on an engine that keeps
    /// a log.
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

    /// The bytes of all keys and values and of the log entry, as the limits of an engine count
    /// them.
    pub fn weight(&self) -> usize {
        let appended = self.append.as_ref().map_or(0, Bytes::len);
        self.entries.iter().map(Entry::weight).sum::<usize>() + appended
    }

    /// Refuses a batch that is invalid on every engine, or exceeds the limits of this one. Every
    /// engine calls this first in `commit`, so that all engines refuse the same batches, before
    /// anything is written.
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

    /// All addresses, the fence's first.
    fn addresses(&self) -> impl Iterator<Item = &Address> {
        let fence = self.fence.iter().map(|fence| &fence.address);
        fence.chain(self.entries.iter().map(|entry| &entry.address))
    }

    /// An address that occurs twice.
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
        // Not every store can have a cell without integers: in Redis, a hash without fields is
        // absent.
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

/// The answer to a commit without an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All conditions held and all effects are applied.
    Committed(Committed),
    /// A condition did not hold, and nothing was applied.
    Rejected(Rejection),
}

/// The results of a committed batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// For each `Add`, in the order of the entries, all integers of the cell right after it.
    pub integers: Vec<Integers>,
    /// The position of the log entry; `None` if the batch appended nothing.
    pub position: Option<Position>,
}

/// Why a batch was rejected. The fence is checked first, then the entries in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The check that failed.
    pub cause: Cause,
    /// The current cell, as the check saw it.
    pub found: Option<Cell>,
}

/// The check that failed in a rejected batch. It names an entry by its place in [`Batch::entries`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The fence's cell does not have the required stamp.
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
    /// A sum would exceed its bounds.
    Bound {
        /// The place of the entry.
        entry: usize,
        /// The counter.
        name: String,
    },
    /// The cell of an addition holds bytes.
    NotIntegers {
        /// The place of the entry.
        entry: usize,
    },
    /// A cell of integers would exceed the limit of a value.
    TooLarge {
        /// The place of the entry.
        entry: usize,
    },
}

impl Cause {
    /// The place of the entry that failed; `None` if the fence failed.
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
