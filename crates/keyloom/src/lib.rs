#![doc = include_str!("lib.md")]

mod backup;
mod due;
mod error;
mod index;
mod json;
mod key;
mod keyspace;
mod log;
mod own;
mod query;
#[cfg(doctest)]
mod readme;
mod record;
mod schema;
mod side;
mod space;
mod store;
mod write;

pub mod blocking;
pub mod engine;
pub mod typed;

#[doc = include_str!("typed/choice.md")]
pub use keyloom_derive::Choice;
#[doc = include_str!("typed/record.md")]
pub use keyloom_derive::Record;

pub use backup::{BackupCheck, BackupInfo};
pub use due::{
    Due, DueItem, Lease, MaintainOptions, Maintained, Maintainer, MaintainerReport, SweepOptions,
    Swept, SweptCollection,
};
pub use engine::{LogBounds, Position};
pub use error::{Error, ErrorKind, Fate, Result};
pub use index::{
    Built, JobProgress, JobResult, NotReady, Repair, RepairOptions, RepairProgress, Verification,
    VerifiedChunk, Verifier, VerifyOptions, Work,
};
pub use json::{read_json, same_value};
pub use keyspace::{KeyPattern, keyspace_markdown};
pub use log::Trimmed;
pub use query::{
    Counted, Cursor, Freshness, Group, GroupPage, GroupQuery, GroupTotal, HistoryEntry, IntoCursor,
    Near, Nearby, Order, Page, Problem, ProblemKind, Query, Stopped, TopGroups,
};
pub use record::{Document, Key, Version};
pub use schema::{
    Access, AggregateDeclaration, Change, Class, CollectionDeclaration, Comparison,
    CounterDeclaration, FieldDeclaration, FieldType, HistoryDeclaration, IdempotencyDeclaration,
    Illegal, IndexDeclaration, IndexState, LogDeclaration, PointOf, Schema, SchemaDeclaration,
    Test, TestDeclaration, Warning, nearest as did_you_mean,
};
pub use side::{Difference, Finding, FindingCounts, FindingKind, HistoryKind};
pub use space::{Applied, Clock, Misfit, Misfits, Pace, PurgeOptions, Purged, Retry};
pub use store::{
    Amount, Backup, Became, Branch, BranchOptions, Branches, Changes, Collection, CollectionStats,
    Distribution, IndexShare, IndexStats, Job, JobOptions, KeyFields, Leased, Listed, Listing,
    Load, Logged, LoggedChange, OwnedKey, OwnedKind, PagedRecords, Pages, Plain, RawKey, RawKeys,
    RawKind, RawList, RawPage, Replayed, Restorer, Started, StatsOptions, Store, StoreStats,
    Stored, StoredSchema, TransactionCollection, Unloaded, Watch, WatchOptions, Written,
};
pub use typed::{Choice, DateTime, Id, Point, Record, Timestamp, Uuid};
pub use write::{Counters, Effect, Increment, Transaction};

/// Entrances for the fuzz targets; not part of the API.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use key::fuzzing;
