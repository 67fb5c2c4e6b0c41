//! Cells of counters: each belongs to a record that is there, and has declared names only.
//!
//! | at the counters' key | the record | verdict |
//! | --- | --- | --- |
//! | nothing | either | sound |
//! | integers of declared names | is there | sound |
//! | integers, some of names that are not declared | is there | wrong: these are taken away |
//! | bytes | is there | wrong: they are deleted |
//! | anything | is not there, or declares no counters | dangling: it is deleted |
//!
//! A name cannot be taken out of a cell, since a writer may add to the others meanwhile. It is
//! brought to zero instead, and zero under a name that is not declared is sound.

use std::sync::Arc;

use bytes::Bytes;

use super::finding::{Finding, FindingKind};
use super::mend::{Hand, Mended, Mender, condition, stamp_of};
use crate::engine::{Addition, Address, Area, Cell, Content, Effect, ShowKey};
use crate::own::own_address;
use crate::record::Version;
use crate::schema::{Collection, counted_record};
use crate::schema::{Keyspace, Place};
use crate::space::Under;
use crate::write::Retry;

/// The counters at one key of Keyloom's own area, and the record that they should belong to.
#[derive(Clone, Debug)]
pub(super) struct CounterCell {
    pub(super) key: Bytes,
    record: Option<Address>,
    /// The collection of the record, if it declares counters.
    collection: Option<Arc<Collection>>,
}

/// What is wrong, and what puts it right.
struct Fault {
    kind: FindingKind,
    reason: String,
    effect: Effect,
}

impl CounterCell {
    pub(super) fn new(keyspace: &Keyspace, key: Bytes) -> Self {
        let record = counted_record(&key);
        let place = record.as_ref().map(|record| keyspace.place(&record.area, &record.key));
        let collection = match place {
            Some(Place::Record(collection)) if !collection.counters.is_empty() => {
                Some(collection.clone())
            }
            _ => None,
        };
        CounterCell { key, record, collection }
    }

    /// The counters, and the record where one is named.
    pub(super) fn addresses(&self) -> Vec<Address> {
        let own = own_address(self.key.clone());
        std::iter::once(own).chain(self.record.clone()).collect()
    }

    /// What is wrong, given what is at the addresses.
    pub(super) fn judge(&self, cells: &[Option<Cell>]) -> Option<Finding> {
        let fault = self.fault(cells)?;
        Some(Finding {
            kind: fault.kind,
            collection: self.collection.as_ref().map(|collection| collection.name.clone()),
            index: None,
            area: Area::own().name().to_owned(),
            key: ShowKey(&self.key).to_string(),
            key_bytes: self.key.clone(),
            record: self.record.as_ref().map(|record| ShowKey(&record.key).to_string()),
            reason: fault.reason,
        })
    }

    fn fault(&self, cells: &[Option<Cell>]) -> Option<Fault> {
        let counters = cells.first()?.as_ref()?;
        let dangling = |reason: String| {
            Some(Fault { kind: FindingKind::Dangling, reason, effect: Effect::Delete })
        };
        let (Some(record), Some(collection)) = (&self.record, &self.collection) else {
            return dangling("it names no record of a collection with counters".to_owned());
        };
        if cells.get(1).is_none_or(Option::is_none) {
            return dangling(format!("its record {} is not there", ShowKey(&record.key)));
        }
        let wrong = |reason, effect| Some(Fault { kind: FindingKind::Wrong, reason, effect });
        let Content::Integers(values) = &counters.content else {
            return wrong("it holds bytes, not counters".to_owned(), Effect::Delete);
        };
        let undeclared: Vec<(&String, &i64)> = values
            .iter()
            .filter(|(name, value)| **value != 0 && !collection.counters.has(name))
            .collect();
        let names: Vec<&str> = undeclared.iter().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() {
            return None;
        }
        let reason = format!("the collection declares no counters {}", names.join(", "));
        if names.len() == values.len() {
            return wrong(reason, Effect::Delete);
        }
        let to_zero = |(name, value): &(&String, &i64)| Addition {
            name: (*name).clone(),
            // The lowest number has no opposite; it comes as near to zero as one step goes, and
            // the next repair takes the rest.
            delta: value.checked_neg().unwrap_or(i64::MAX),
            min: None,
            max: None,
        };
        let additions = undeclared.iter().map(to_zero).collect();
        wrong(reason, Effect::Add { stamp: Version::first().stamp(), additions })
    }

    /// Puts the counters right, whatever is wrong with them now.
    pub(super) async fn mend(&self, mender: &Mender<'_>, hand: Hand) -> Under<Mended> {
        let retry = Retry::eager();
        let addresses = self.addresses();
        let mut made = 0;
        loop {
            let cells = mender.live.get(&addresses).await?;
            let Some(Fault { effect, .. }) = self.fault(&cells) else { return Ok(Mended::Sound) };
            let mended = match effect {
                Effect::Delete => Mended::Removed,
                _ => Mended::Rewritten,
            };
            let mut batch = mender.batch();
            let effects = [(hand == Hand::Real).then_some(effect), None];
            for ((address, cell), effect) in addresses.iter().zip(&cells).zip(effects) {
                let seen = condition(stamp_of(cell.as_ref()));
                batch.push(address.clone(), Some(seen), effect);
            }
            made += 1;
            if mender.commit(batch).await? {
                return Ok(mended);
            }
            if !retry.pause(made).await {
                return Ok(Mended::Contended);
            }
        }
    }
}
