//! How a collection gets its `by_…` methods.
//!
//! `Collection<Approval>` derefs to `dyn ApprovalQueries`. The derive makes this trait, and defines
//! the `by_…` methods as inherent methods of its trait object. So callers need no import, the
//! methods live in the crate that declares the record, and the collection itself holds all the
//! state that they need.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use super::lookup::TypedLookup;
use super::near::TypedNear;
use super::parts::QueryParts;
use super::query::{Settled, TypedQuery};
use super::record::Record;
use super::values::Point;
use crate::blocking::{self, Runtime};
use crate::store::Collection;

/// The starting points of a collection's `by_…` methods.
pub trait TypedQueries<T: Record>: Send + Sync + 'static {
    #[doc(hidden)]
    fn origin(&self) -> (Collection<T>, Option<Arc<Runtime>>);

    /// A query along an index, or along the record's key.
    fn query(&self, index: Option<&'static str>, paths: &'static [&'static str]) -> QueryParts<T> {
        let (of, runtime) = self.origin();
        QueryParts::new(of, runtime, index, paths)
    }

    /// A look-up by a unique index.
    fn lookup(&self, index: &'static str, values: Vec<Value>) -> TypedLookup<T> {
        let (of, runtime) = self.origin();
        TypedLookup::new(of, runtime, index, values)
    }

    /// A search around a place.
    fn near(&self, index: &'static str, place: Point) -> TypedNear<T> {
        let (of, runtime) = self.origin();
        TypedNear::new(of, runtime, index, place)
    }

    /// All records.
    fn whole(&self) -> TypedQuery<T, Settled> {
        let (of, runtime) = self.origin();
        QueryParts::whole(of, runtime).into()
    }
}

impl<T: Record> TypedQueries<T> for Collection<T> {
    fn origin(&self) -> (Collection<T>, Option<Arc<Runtime>>) {
        (self.clone(), None)
    }
}

impl<T: Record> TypedQueries<T> for blocking::Collection<T> {
    fn origin(&self) -> (Collection<T>, Option<Arc<Runtime>>) {
        (self.as_async().clone(), Some(self.runtime().clone()))
    }
}

impl<T: Record> Deref for Collection<T> {
    type Target = T::Queries;

    fn deref(&self) -> &T::Queries {
        T::queries(self)
    }
}

impl<T: Record> Deref for blocking::Collection<T> {
    type Target = T::Queries;

    fn deref(&self) -> &T::Queries {
        T::queries(self)
    }
}
