//! How a collection comes to its `by_…` methods.
//!
//! `Collection<Approval>` derefs to `dyn ApprovalWays`, a trait object of a trait that the derive
//! makes, and the methods are inherent ones of that trait object. So they are found without an
//! import, they live in the crate that declares the record, and the collection itself is all the
//! state that they need.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use super::around::Around;
use super::asked::{Asked, Settled};
use super::asking::Asking;
use super::one::One;
use super::record::Record;
use super::values::Point;
use crate::blocking::{self, Runtime};
use crate::store::Collection;

/// What the `by_…` methods of a collection begin with.
pub trait Ways<T: Record>: Send + Sync + 'static {
    #[doc(hidden)]
    fn origin(&self) -> (Collection<T>, Option<Arc<Runtime>>);

    /// A query along an index, or along the record's key.
    fn ask(&self, index: Option<&'static str>, paths: &'static [&'static str]) -> Asking<T> {
        let (of, runtime) = self.origin();
        Asking::new(of, runtime, index, paths)
    }

    /// A look-up by a unique index.
    fn one(&self, index: &'static str, values: Vec<Value>) -> One<T> {
        let (of, runtime) = self.origin();
        One::new(of, runtime, index, values)
    }

    /// A search around a place.
    fn around(&self, index: &'static str, place: Point) -> Around<T> {
        let (of, runtime) = self.origin();
        Around::new(of, runtime, index, place)
    }

    /// All records.
    fn whole(&self) -> Asked<T, Settled> {
        let (of, runtime) = self.origin();
        Asking::whole(of, runtime).into()
    }
}

impl<T: Record> Ways<T> for Collection<T> {
    fn origin(&self) -> (Collection<T>, Option<Arc<Runtime>>) {
        (self.clone(), None)
    }
}

impl<T: Record> Ways<T> for blocking::Collection<T> {
    fn origin(&self) -> (Collection<T>, Option<Arc<Runtime>>) {
        (self.as_async().clone(), Some(self.runtime().clone()))
    }
}

impl<T: Record> Deref for Collection<T> {
    type Target = T::Ways;

    fn deref(&self) -> &T::Ways {
        T::ways(self)
    }
}

impl<T: Record> Deref for blocking::Collection<T> {
    type Target = T::Ways;

    fn deref(&self) -> &T::Ways {
        T::ways(self)
    }
}
