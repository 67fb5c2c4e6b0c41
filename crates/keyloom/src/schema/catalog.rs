//! The catalog: the document in the store that every process obeys.
//!
//! | member | meaning | example |
//! | --- | --- | --- |
//! | `format` | the version of this document | `1` |
//! | `epoch` | counts the changes; every commit is fenced by it | `7` |
//! | `cursor_secret` | 32 bytes that sign cursors, in hex | `"9f86d0…"` |
//! | `schema` | the declaration, spelt as in a schema file | `{"collection": {…}}` |
//! | `history_since` | by collection, since when its history is kept by its present bounds | `{"note": 1700000000000}` |
//! | `states` | the state of each index and aggregate, by collection and name | `{"approval": {"code": {"state": "ready"}}}` |
//! | `buildings` | how often each index began to be built, by collection and name | `{"approval": {"code": 1}}` |
//! | `generations` | which cells each aggregate has, unless it is the first generation, of one cell for each group | `{"approval": {"by_status": {"current": {"number": 2, "cells": 1}, "last": 2}}}` |
//!
//! While a space is being restored from a backup, a mark with the backup's id takes the catalog's
//! place: `{"format":1,"restoring":"5f2c…"}`. Meanwhile nobody can read or write the space.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::declaration::SchemaDeclaration;
use super::model::Schema;
use crate::error::{Error, ErrorKind, Result};

/// The only format so far.
const FORMAT: u64 = 1;

/// The member that distinguishes a mark from a catalog.
const RESTORING: &str = "restoring";

/// The stored schema and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Catalog {
    format: u64,
    pub(crate) epoch: u64,
    pub(crate) cursor_secret: CursorSecret,
    pub(crate) schema: SchemaDeclaration,
    pub(crate) states: BTreeMap<String, BTreeMap<String, IndexState>>,
    /// For each collection, since when its history is kept with its current bounds, in
    /// milliseconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) history_since: BTreeMap<String, u64>,
    /// How often the build of each index and aggregate began. As long as a number is the same,
    /// every writer has maintained the index since that build began.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    buildings: BTreeMap<String, BTreeMap<String, u64>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) generations: BTreeMap<String, BTreeMap<String, Generations>>,
}

/// One complete set of an aggregate's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Generation {
    pub(crate) number: u32,
    /// How many cells each group is spread over. The number stays the same, even on another engine.
    pub(crate) cells: u16,
}

/// The generations of an aggregate. No number is ever used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Generations {
    /// The generation that the aggregate's state refers to.
    pub(crate) current: Generation,
    /// A generation that is being counted beside it, and will replace it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<Generation>,
    /// The highest number that was ever used.
    pub(crate) last: u32,
}

impl Generations {
    /// The generations of a new aggregate.
    pub(crate) fn first(cells: u16) -> Self {
        Generations { current: Generation { number: 1, cells }, next: None, last: 1 }
    }

    /// A generation that was never used.
    pub(crate) fn fresh(&self, cells: u16) -> Generation {
        Generation { number: self.last.saturating_add(1), cells }
    }
}

/// Whether an index may be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase", deny_unknown_fields)]
pub enum IndexState {
    /// Every write maintains it, but it is not complete yet.
    Building,
    /// Complete.
    Ready,
    /// Neither maintained nor read.
    Disabled,
    /// The build found records that the index cannot hold.
    Failed {
        /// What it found.
        reason: String,
    },
}

/// The secret that signs cursors. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CursorSecret(pub(crate) [u8; 32]);

impl Catalog {
    /// The first catalog of a store, without collections.
    pub(crate) fn new(cursor_secret: CursorSecret) -> Self {
        Catalog {
            format: FORMAT,
            epoch: 0,
            cursor_secret,
            schema: SchemaDeclaration::default(),
            states: BTreeMap::new(),
            history_since: BTreeMap::new(),
            buildings: BTreeMap::new(),
            generations: BTreeMap::new(),
        }
    }

    /// The bytes for the store. Equal catalogs give equal bytes.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|source| {
            Error::new(ErrorKind::Internal, "the catalog cannot be written as JSON")
                .with_source(source)
        })
    }

    /// Reads the bytes from the store. A newer format is refused before anything else is read,
    /// since its members may have another meaning.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let document: Value = serde_json::from_slice(bytes).map_err(corrupt)?;
        match document.get("format").and_then(Value::as_u64) {
            Some(FORMAT) if document.get(RESTORING).is_some() => Err(being_restored()),
            Some(FORMAT) => serde_json::from_value(document).map_err(corrupt),
            Some(format) => Err(Error::new(
                ErrorKind::UnknownFormat,
                "the store's catalog has a format that this version does not know",
            )
            .with("format", format)
            .with("known", FORMAT)),
            None => Err(Error::new(ErrorKind::Corrupt, "the store's catalog has no format")),
        }
    }

    /// The schema in the store, ready for use.
    pub(crate) fn compile(&self) -> Result<Schema> {
        Schema::from_declaration(self.schema.clone()).map_err(corrupt)
    }

    /// The state of an index. An index without a state was never built.
    pub(crate) fn state(&self, collection: &str, index: &str) -> &IndexState {
        self.states
            .get(collection)
            .and_then(|states| states.get(index))
            .unwrap_or(&IndexState::Building)
    }

    /// The indexes and aggregates that are building: collection and name.
    pub(crate) fn building(&self) -> Vec<(String, String)> {
        self.states
            .iter()
            .flat_map(|(collection, states)| states.iter().map(move |state| (collection, state)))
            .filter(|(_, (_, state))| **state == IndexState::Building)
            .map(|(collection, (index, _))| (collection.clone(), index.clone()))
            .collect()
    }

    /// Sets the state of an index, and numbers the build if one begins.
    pub(crate) fn set_state(&mut self, collection: &str, index: &str, state: IndexState) {
        let begins = state == IndexState::Building;
        let states = self.states.entry(collection.to_owned()).or_default();
        let before = states.insert(index.to_owned(), state);
        if begins && before != Some(IndexState::Building) {
            let numbers = self.buildings.entry(collection.to_owned()).or_default();
            *numbers.entry(index.to_owned()).or_default() += 1;
        }
    }

    /// The number of the index's last build, from 1 on.
    pub(crate) fn building_number(&self, collection: &str, index: &str) -> u64 {
        let numbers = self.buildings.get(collection).and_then(|numbers| numbers.get(index));
        numbers.copied().unwrap_or_default()
    }

    /// The generations of an aggregate.
    pub(crate) fn generations(&self, collection: &str, aggregate: &str) -> Generations {
        let of_collection = self.generations.get(collection);
        let known = of_collection.and_then(|all| all.get(aggregate));
        known.copied().unwrap_or_else(|| Generations::first(1))
    }

    /// Sets the generations of an aggregate.
    pub(crate) fn set_generations(
        &mut self,
        collection: &str,
        aggregate: &str,
        generations: Generations,
    ) {
        let of_collection = self.generations.entry(collection.to_owned()).or_default();
        of_collection.insert(aggregate.to_owned(), generations);
    }
}

impl fmt::Display for IndexState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IndexState::Building => "building",
            IndexState::Ready => "ready",
            IndexState::Disabled => "disabled",
            IndexState::Failed { .. } => "failed",
        })
    }
}

/// The mark that takes the catalog's place while a space is being restored from this backup.
pub(crate) fn restoring_mark(backup: &str) -> Vec<u8> {
    json!({ "format": FORMAT, RESTORING: backup }).to_string().into_bytes()
}

/// The backup that a space is being restored from; `None` if this is a catalog and not a mark.
pub(crate) fn restored_backup(bytes: &[u8]) -> Option<String> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    Some(document.get(RESTORING)?.as_str()?.to_owned())
}

fn being_restored() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "this space is being restored from a backup, and cannot be used before all of it is there",
    )
    .with("advice", "if the restore broke off, restore the same backup again: it goes on")
}

fn corrupt(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Corrupt, "the store's catalog cannot be understood")
        .with("reason", &source)
        .with_source(source)
}

impl fmt::Debug for CursorSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CursorSecret(hidden)")
    }
}

impl Serialize for CursorSecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&hex)
    }
}

impl<'de> Deserialize<'de> for CursorSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = String::deserialize(deserializer)?;
        from_hex(&hex)
            .map(CursorSecret)
            .ok_or_else(|| serde::de::Error::custom("the cursor secret is not 64 hex digits"))
    }
}

fn from_hex(hex: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> =
        hex.chars().map(|digit| digit.to_digit(16)?.try_into().ok()).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks(2)
        .map(|pair| Some(pair.first()? << 4 | pair.get(1)?))
        .collect::<Option<_>>()?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn catalog() -> Catalog {
        let mut secret = [0x1f; 32];
        secret[0] = 0xf0;
        let mut catalog = Catalog::new(CursorSecret(secret));
        catalog.epoch = 7;
        catalog.set_state("approval", "code", IndexState::Ready);
        let reason = "two records have the code A-X7K9Q2".to_owned();
        catalog.set_state("approval", "requester", IndexState::Failed { reason });
        catalog
    }

    #[test]
    fn a_catalog_is_read_as_it_was_written() {
        let bytes = catalog().to_bytes().unwrap();
        assert_eq!(
            String::from_utf8(bytes.clone()).unwrap(),
            format!(
                "{{\"format\":1,\"epoch\":7,\"cursor_secret\":\"f0{}\",\
                 \"schema\":{{\"collection\":{{}}}},\"states\":{{\"approval\":{{\
                 \"code\":{{\"state\":\"ready\"}},\"requester\":{{\"state\":\"failed\",\
                 \"reason\":\"two records have the code A-X7K9Q2\"}}}}}}}}",
                "1f".repeat(31)
            )
        );
        assert_eq!(Catalog::from_bytes(&bytes).unwrap(), catalog());
    }

    #[test]
    fn a_newer_format_is_refused_whatever_else_it_holds() {
        let error = Catalog::from_bytes(br#"{"format": 2, "shards": []}"#).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownFormat);
        assert_eq!(error.context_value("format"), Some("2"));
    }

    #[test]
    fn a_mark_is_no_catalog_and_says_what_to_do() {
        let mark = restoring_mark("5f2c");
        assert_eq!(String::from_utf8(mark.clone()).unwrap(), r#"{"format":1,"restoring":"5f2c"}"#);
        assert_eq!(restored_backup(&mark).as_deref(), Some("5f2c"));
        assert_eq!(restored_backup(&catalog().to_bytes().unwrap()), None);
        let error = Catalog::from_bytes(&mark).unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unavailable, true));
    }

    #[test]
    fn what_is_no_catalog_is_corrupt() {
        let mut short = serde_json::to_value(catalog()).unwrap();
        short["cursor_secret"] = "f0".into();
        let mut odd = serde_json::to_value(catalog()).unwrap();
        odd["cursor_secret"] = "0".repeat(63).into();
        let mut misspelt = serde_json::to_value(catalog()).unwrap();
        misspelt["schema"]["collections"] = Value::Null;
        for document in [short, odd, misspelt, Value::Null] {
            let error = Catalog::from_bytes(document.to_string().as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{document}");
        }
        assert_eq!(Catalog::from_bytes(b"{").unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn the_secret_is_never_shown() {
        assert!(!format!("{:?}", catalog()).contains("1f1f"));
    }
}
