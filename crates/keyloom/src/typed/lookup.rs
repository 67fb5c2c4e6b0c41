//! Typed look-ups of the record with a unique value.

use std::sync::Arc;

use serde_json::Value;

use super::answer::Answer;
use super::record::Record;
use crate::blocking::Runtime;
use crate::record::Document;
use crate::store::{Collection, Stored};

/// A look-up by a unique index.
#[must_use = "a look-up does nothing until it is awaited"]
pub struct TypedLookup<T> {
    of: Collection<T>,
    runtime: Option<Arc<Runtime>>,
    index: &'static str,
    values: Vec<Value>,
}

impl<T: Record> TypedLookup<T> {
    pub(super) fn new(
        of: Collection<T>,
        runtime: Option<Arc<Runtime>>,
        index: &'static str,
        values: Vec<Value>,
    ) -> Self {
        TypedLookup { of, runtime, index, values }
    }

    /// The record, if there is one. Two reads.
    pub fn get(self) -> Answer<Option<Stored<T>>> {
        let TypedLookup { of, runtime, index, values } = self;
        Answer::new(runtime, async move { of.get_by(index, values).await })
    }

    /// The record as stored, if there is one. Two reads.
    pub fn document(self) -> Answer<Option<Document>> {
        let TypedLookup { of, runtime, index, values } = self;
        Answer::new(runtime, async move { of.get_document_by(index, values).await })
    }
}
