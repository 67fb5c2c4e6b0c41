//! A user never reaches another user's records, whatever strings they send.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

#[path = "../long/mod.rs"]
mod long;

mod answers;
mod coverage;
mod examples;
mod hostile;
mod past;
mod typed;
mod worlds;

use std::sync::{Arc, LazyLock};

use keyloom::engine::{Area, Engine, Memory};
use keyloom::{Clock, Schema, Store};

/// Every access, and of owned collections every kind of index: beginning with the owner, and not.
const SCHEMA: &str = r#"
[collection.user]
key    = "user:{userId}"
access = "hybrid"
owner  = "userId"
[collection.user.fields]
userId = "text"
email  = "text"
[collection.user.unique.email]
key = "index:email:{email}"

[collection.note]
key    = "user:{userId}:notes:{noteId}"
access = "owned"
owner  = "userId"
history = { versions = 5 }
counters.hits = {}
count.mine = { group = ["userId"] }
sum.ranks = { field = "rank", group = ["userId"] }
[collection.note.fields]
userId   = "text"
noteId   = "text"
slug     = "text"
rank     = { type = "integer", digits = 4 }
"tags.*" = "text"
place    = { type = "point", lat = "lat", lon = "lng" }
[collection.note.index.rank]
key = "user:{userId}:rank:{rank desc}:{noteId}"
[collection.note.index.tag]
key = "user:{userId}:tags:{tags.*}:{noteId}"
[collection.note.index.full]
key   = "{userId}:{rank}:{noteId}"
area  = "full"
holds = "record"
[collection.note.index.everyone]
key = "index:rank:{rank}:{userId}:{noteId}"
[collection.note.unique.slug]
key = "index:slug:{slug}"
[collection.note.unique.own_rank]
key = "user:{userId}:the:{rank}"
[collection.note.geo.place]
key = "user:{userId}:geo:{place geohash 6}:{noteId}"
[collection.note.geo.map]
key = "index:geo:{place geohash 6}:{userId}:{noteId}"

[collection.preferences]
key    = "user:{userId}:preferences"
access = "owned"
owner  = "userId"
fields = { userId = "text" }

[collection.post]
key    = "user:{userId}:posts:{postId}"
access = "hybrid"
owner  = "userId"
history = { days = 30 }
[collection.post.fields]
userId    = "text"
postId    = "text"
timestamp = "timestamp"
[collection.post.index.recent]
key    = "shared:posts:recent:{timestamp}:{postId}"
holds  = "{postId, userId}"
claims = true

[collection.template]
key    = "shared:templates:{name}"
fields = { name = "text" }

[collection.config]
key    = "shared:config:{name}"
access = "read-only"
fields = { name = "text" }
"#;

/// Every area that the schema uses, and Keyloom's own.
fn areas() -> [Area; 3] {
    [Area::default_area(), Area::new("full").unwrap(), Area::own()]
}

/// Compiled once, for the many stores of a property.
static COMPILED: LazyLock<Schema> = LazyLock::new(|| Schema::from_toml(SCHEMA).unwrap());

async fn store_on(engine: Arc<dyn Engine>) -> Store {
    // Some answers tell when something happened.
    let store = Store::on(engine).with_clock(Clock::new(|| 1_700_000_000_000));
    store.apply(&COMPILED).await.unwrap();
    store
}

async fn memory_store() -> Store {
    store_on(Arc::new(Memory::new())).await
}
