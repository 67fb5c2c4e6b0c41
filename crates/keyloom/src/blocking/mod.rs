//! The same stores, collections and transactions for programs without an async runtime.
//!
//! Every method is the one of the async type, and waits for its answer. Typed queries end in
//! `wait()` where they would end in `.await`; streams are iterators. The types can be used from
//! several threads at once.
//!
//! They may also wait on the threads of `tokio::task::spawn_blocking`. Inside an async task they
//! refuse to wait, with an error: there the thread that would wait is the one that has to bring
//! the answer.
//!
//! What pages and leases give is the same here and there. Its async methods are those of the
//! [`Store`]: `store.holds(&freshness)`, `store.extend(&mut lease, duration)`,
//! `store.release(lease)`.
//!
//! `maintain_every` has no twin: a blocking store has no threads of its own. A thread of the program
//! that calls [`maintain`](Store::maintain) does the same.
//!
//! ```
//! use keyloom::blocking::Store;
//! use keyloom::{Query, Schema};
//! use serde_json::json;
//!
//! let store = Store::open("memory:")?;
//! store.apply(&Schema::from_toml(r#"
//!     [collection.note]
//!     key = "note:{owner}:{name}"
//!     fields = { owner = "text", name = "text" }
//! "#)?)?;
//! let notes = store.documents("note")?;
//! notes.insert(&json!({ "owner": "ana", "name": "milk" }))?;
//! let page = notes.page(&Query::new().equal("owner", "ana"))?;
//! assert_eq!(page.records[0].key, "note:ana:milk");
//! # Ok::<(), keyloom::Error>(())
//! ```

mod collection;
mod pages;
mod plain;
mod raw_keys;
mod runtime;
mod store;
mod transaction;
mod verifier;
mod watch;

pub use collection::Collection;
pub use pages::{PagedRecords, Pages};
pub use plain::Plain;
pub use raw_keys::RawKeys;
pub use runtime::Runtime;
pub use store::Store;
pub use transaction::{Transaction, TransactionCollection};
pub use verifier::Verifier;
pub use watch::Watch;

/// Writes methods that wait for the async method of the same name on `self.inner`.
macro_rules! waits {
    ($of:literal: $(
        fn $name:ident(&self $(, $argument:ident: $kind:ty)*) -> $answer:ty;
    )*) => {$(
        #[doc = concat!(
            "As [`", $of, "::", stringify!($name), "`](crate::", $of, "::", stringify!($name), ")."
        )]
        pub fn $name(&self $(, $argument: $kind)*) -> $answer {
            self.runtime.run(self.inner.$name($($argument),*))
        }
    )*};
}

use waits;
