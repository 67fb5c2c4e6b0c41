//! The same for Rust types, and for programs without a runtime.

use keyloom::{ErrorKind, Record, Store, blocking};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "user:{user_id}:notes:{note_id}", access = "owned", owner = "user_id")]
#[index(rank = "user:{user_id}:rank:{rank}:{note_id}")]
struct Note {
    user_id: String,
    note_id: String,
    rank: i64,
}

fn note(user: &str, rank: i64) -> Note {
    Note { user_id: user.to_owned(), note_id: "n1".to_owned(), rank }
}

#[tokio::test]
async fn a_typed_collection_is_confined_too() {
    let store = Store::open("memory:").await.unwrap();
    // An acting user cannot declare anything.
    let early = store.acting_as("ana").unwrap().collection::<Note>().await;
    assert_eq!(early.err().unwrap().kind(), ErrorKind::Forbidden);
    store.collection::<Note>().await.unwrap();
    let ana = store.acting_as("ana").unwrap().collection::<Note>().await.unwrap();
    let ben = store.acting_as("ben").unwrap().collection::<Note>().await.unwrap();
    ana.insert(&note("ana", 1)).await.unwrap();
    ben.insert(&note("ben", 2)).await.unwrap();
    assert_eq!(ana.get("n1").await.unwrap().unwrap().value, note("ana", 1));
    assert_eq!(ana.scan().page(10).await.unwrap().records.len(), 1);
    assert_eq!(ana.by_rank("ana").rank(0..).page(10).await.unwrap().records.len(), 1);
    assert!(ana.by_rank("ben").rank(0..).page(10).await.unwrap().records.is_empty());
    assert!(ana.by_key("ben").page(10).await.unwrap().records.is_empty());
    assert_eq!(ana.insert(&note("ben", 3)).await.unwrap_err().kind(), ErrorKind::Forbidden);
}

#[test]
fn a_blocking_store_acts_for_users_too() {
    let store = blocking::Store::open("memory:").unwrap();
    let notes = store.collection::<Note>().unwrap();
    notes.acting_as("ana").unwrap().insert(&note("ana", 1)).unwrap();
    let ben = store.acting_as("ben").unwrap();
    assert!(ben.documents("note").unwrap().get(("ana", "n1")).unwrap().is_none());
    assert_eq!(ben.verify().unwrap_err().kind(), ErrorKind::Forbidden);
}
