//! Stores, collections and transactions for programs without an async runtime.
//!
//! Every method does the same as the async method of that name, and waits for the answer. Typed
//! queries end in `wait()` instead of `.await`; streams are iterators. The types can be used from
//! several threads at once.
//!
//! They may also wait on the threads of `tokio::task::spawn_blocking`. Inside an async task they
//! refuse to wait, with an error: there, the thread that would wait is the one that must make
//! progress.
//!
//! Pages and leases are the same types here as in async code. For their async methods, the
//! [`Store`] has methods that wait: `store.holds(&freshness)`, `store.extend(&mut lease,
//! duration)`, `store.release(lease)`.
//!
//! `maintain_every` is missing here, since a blocking store has no threads of its own. Call
//! [`maintain`](Store::maintain) from a thread of the program instead.
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
mod job;
mod pages;
mod plain;
mod raw_keys;
mod runtime;
mod store;
mod transaction;
mod verifier;
mod watch;

pub use collection::Collection;
pub use job::{Job, Started};
pub use pages::{PagedRecords, Pages};
pub use plain::Plain;
pub use raw_keys::RawKeys;
pub use runtime::Runtime;
pub use store::Store;
pub use transaction::{Transaction, TransactionCollection};
pub use verifier::Verifier;
pub use watch::Watch;

/// Defines methods that wait for the async method of the same name on `self.inner`.
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
