//! What becomes of records that expire: nobody sees them, they stand in nobody's way, and a sweep
//! leaves nothing of them.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod time_support;

use std::sync::Arc;
use std::time::Duration;

use keyloom::engine::{Memory, Metered};
use keyloom::{
    Collection, Counted, Due, Effect, Error, ErrorKind, Near, Order, Query, Record, Stopped, Store,
    SweepOptions, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time_support::{START, Subject, TestClock};

const SCHEMA: &str = r#"
[collection.session]
key        = "session:{id}"
expires_at = "life.ends"

[collection.session.fields]
id          = "text"
user        = "text"
email       = "text"
code        = { type = "code", pattern = "A-**", generate = true }
at          = "timestamp"
"life.ends" = "timestamp"
"tags.*"    = "text"
place       = { type = "point", lat = "lat", lon = "lng" }

[collection.session.unique.email]
key = "index:email:{email}"
[collection.session.unique.code]
key = "index:code:{code}"
[collection.session.index.user]
key = "index:user:{user}:{at desc}:{id}"
[collection.session.index.tag]
key = "index:tag:{tags.*}:{at desc}:{id}"
[collection.session.index.full]
key   = "index:full:{user}:{id}"
holds = "record"
[collection.session.geo.place]
key = "index:geo:{place geohash 6}:{id}"
"#;

/// A session that ends so many milliseconds after the start.
fn session(id: &str, email: &str, ends: u64) -> Value {
    json!({
        "id": id, "user": "ana", "email": email, "at": START, "tags": ["a", id],
        "life": { "ends": START + ends }, "place": { "lat": 1.0, "lng": 2.0 },
    })
}

async fn sessions(subject: &Subject) -> Collection<Value> {
    subject.store.documents("session").await.unwrap()
}

fn by_user() -> Query {
    Query::new().equal("user", "ana").order("at", Order::Descending)
}

/// The ids of a page's records, in order.
async fn ids(sessions: &Collection<Value>, query: &Query) -> Vec<String> {
    let page = sessions.page(query).await.unwrap();
    assert!(page.problems.is_empty(), "{:?}", page.problems);
    page.records.iter().map(|record| record["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn no_read_gives_an_expired_record() {
    for subject in Subject::all(SCHEMA).await {
        let sessions = sessions(&subject).await;
        for (id, ends) in [("a", 10), ("b", 20), ("c", 10)] {
            sessions.insert(&session(id, &format!("{id}@x"), ends)).await.unwrap();
        }
        sessions.insert(&json!({ "id": "d", "user": "ana", "at": START })).await.unwrap();
        let union =
            Query::new().any("user", "ana").any("tags.*", "a").order("at", Order::Descending);
        let near = Near::new(1.0, 2.0);
        subject.clock.pass(9);
        assert_eq!(ids(&sessions, &by_user()).await, ["a", "b", "c", "d"]);
        subject.clock.pass(1);
        assert!(sessions.get("a").await.unwrap().is_none());
        assert!(sessions.get("b").await.unwrap().is_some());
        let many = sessions.get_many(["a", "b", "c", "d"]).await.unwrap();
        assert_eq!(
            many.iter().map(Option::is_some).collect::<Vec<_>>(),
            [false, true, false, true]
        );
        assert!(sessions.get_by("email", "a@x").await.unwrap().is_none());
        assert!(sessions.get_by("email", "b@x").await.unwrap().is_some());
        assert_eq!(ids(&sessions, &by_user()).await, ["b", "d"]);
        assert_eq!(
            ids(&sessions, &by_user().take(1)).await,
            ["b"],
            "the page goes on until it is full"
        );
        assert_eq!(ids(&sessions, &union).await, ["b", "d"]);
        assert_eq!(ids(&sessions, &Query::new().scan()).await, ["b", "d"]);
        assert_eq!(
            ids(&sessions, &Query::new().equal("user", "ana").index("full")).await,
            ["b", "d"]
        );
        let nearby = sessions.near(&near).await.unwrap().records;
        assert_eq!(nearby.len(), 1, "{nearby:?}");
        assert_eq!(sessions.count(&by_user()).await.unwrap(), 2);
        let plain = subject.store.plain();
        assert!(plain.get("session:a").await.unwrap().is_none());
        assert!(plain.get("session:b").await.unwrap().is_some());
        let listed = plain.list("session:", 1, None).await.unwrap();
        assert_eq!(listed.entries.len(), 1);
        assert_eq!(listed.entries[0].key, "session:b");
        let full = plain.list("index:full:", 10, None).await.unwrap().entries;
        assert_eq!(full.len(), 2, "entries that carry the record hide it too");
        let seen = subject.store.transaction(async |transaction| {
            let sessions = transaction.documents("session")?;
            let by_key = sessions.get("a").await?;
            let by_email = sessions.get_by("email", "c@x").await?;
            Ok::<_, Error>(by_key.is_some() || by_email.is_some())
        });
        assert!(!seen.await.unwrap());
        assert!(sessions.delete("a").await.unwrap().is_none());
        subject.assert_sound().await;
    }
}

#[tokio::test]
async fn a_sweep_leaves_nothing_of_expired_records() {
    for subject in Subject::all(SCHEMA).await {
        let sessions = sessions(&subject).await;
        for n in 0..10_u64 {
            let id = format!("s{n}");
            sessions.insert(&session(&id, &format!("{id}@x"), 10 + n)).await.unwrap();
        }
        subject.clock.pass(15);
        let keys = sessions.keys(&by_user()).await.unwrap();
        assert_eq!((keys.records.len(), keys.swept_until), (10, Some(START + 10)));
        let some = SweepOptions { records_max: 2, batch_records: 3 };
        let swept = subject.store.sweep(&some).await.unwrap();
        assert_eq!((swept.records, swept.stopped), (2, Stopped::Limit));
        assert_eq!(swept.collections[0].until, START + 12);
        let swept = subject.store.sweep(&SweepOptions::default()).await.unwrap();
        assert_eq!((swept.records, swept.stopped), (4, Stopped::End));
        assert_eq!(swept.collections[0].until, START + 15);
        let counted = sessions.count_entries(&by_user()).await.unwrap();
        assert_eq!(counted, Counted { records: 4, swept_until: Some(START + 15) });
        subject.assert_sound().await;
        subject.clock.pass(1_000);
        subject
            .store
            .sweep(&SweepOptions { batch_records: 1, ..SweepOptions::default() })
            .await
            .unwrap();
        assert_eq!(subject.keys().await, [""; 0], "{}", subject.name);
    }
}

#[tokio::test]
async fn a_write_that_an_expired_record_rejects_removes_it_in_the_same_batch() {
    for subject in Subject::all(SCHEMA).await {
        let sessions = sessions(&subject).await;
        sessions.insert(&session("old", "ana@x", 10)).await.unwrap();
        sessions.insert(&session("live", "bob@x", 999)).await.unwrap();
        let old = sessions.get("old").await.unwrap().unwrap();
        let code = old["code"].as_str().unwrap().to_owned();
        assert!(sessions.insert(&session("new", "ana@x", 999)).await.is_err());
        subject.clock.pass(10);

        // Its e-mail, without a read more than the rejection needs.
        sessions.insert(&session("new", "ana@x", 999)).await.unwrap();
        assert_eq!(sessions.get_by("email", "ana@x").await.unwrap().unwrap()["id"], "new");
        assert!(subject.keys().await.iter().all(|key| !key.contains("old")), "{}", subject.name);
        // A record that lives is in the way as ever.
        let error = sessions.insert(&session("x", "bob@x", 999)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UniqueConflict);
        let error = sessions.insert(&session("live", "y@x", 999)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        // Its code.
        let mut coded = session("coded", "c@x", 999);
        coded["code"] = json!(code);
        sessions.insert(&coded).await.unwrap();
        subject.assert_sound().await;
    }
}

#[tokio::test]
async fn every_way_to_write_takes_an_expired_record_for_absent() {
    for subject in Subject::all(SCHEMA).await {
        let sessions = sessions(&subject).await;
        let ids =
            ["insert", "upsert", "upsert_with", "replace", "update", "modify", "rename", "delete"];
        let mut versions = std::collections::BTreeMap::new();
        for id in ids {
            let document = sessions.insert(&session(id, &format!("{id}@x"), 10)).await.unwrap();
            versions.insert(id, document.version);
        }
        subject.clock.pass(10);
        let anew = |id: &str| {
            let mut record = session(id, &format!("{id}@x"), 999);
            record["tags"] = json!(["anew"]);
            record
        };
        // Creation: another incarnation, from its first revision.
        let inserted = sessions.insert(&anew("insert")).await.unwrap().version;
        let upserted = sessions.upsert(&anew("upsert")).await.unwrap();
        assert_eq!(upserted.effect, Effect::Created);
        let with =
            sessions.upsert_with(&anew("upsert_with"), |_| panic!("it is absent")).await.unwrap();
        assert_eq!(with.effect, Effect::Created);
        for (id, version) in
            [("insert", inserted), ("upsert", upserted.version), ("upsert_with", with.version)]
        {
            assert_eq!(version.revision(), 1);
            assert_ne!(version, versions[id]);
            assert_eq!(sessions.get(id).await.unwrap().unwrap()["tags"], json!(["anew"]));
        }
        // Changes: there is nothing to change, and nothing to prolong.
        let prolong = json!({ "life": { "ends": START + 999 } });
        let missing = |error: Error| assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        missing(sessions.replace(&anew("replace")).await.unwrap_err());
        missing(sessions.replace_if(&anew("replace"), versions["replace"]).await.unwrap_err());
        missing(sessions.update("update", &prolong, versions["update"]).await.unwrap_err());
        missing(sessions.update_with_retry("update", &prolong).await.unwrap_err());
        missing(sessions.modify("modify", |_| Ok(())).await.unwrap_err());
        missing(sessions.delete_if("delete", versions["delete"]).await.unwrap_err());
        assert!(sessions.delete("delete").await.unwrap().is_none());
        assert_eq!(subject.store.plain().delete("session:delete").await.unwrap(), None);
        // A move to the key, and to the e-mail, of expired records.
        let moved = sessions.rename("insert", |record| {
            record["id"] = json!("rename");
            record["email"] = json!("replace@x");
            Ok(())
        });
        assert_eq!(moved.await.unwrap().effect, Effect::Replaced);
        assert_eq!(sessions.get_by("email", "replace@x").await.unwrap().unwrap()["id"], "rename");
        let raw: Vec<String> = subject.keys().await;
        assert!(
            raw.iter().all(|key| !key.ends_with(":replace") && !key.ends_with("rename@x")),
            "{raw:?}"
        );
        subject.assert_sound().await;
    }
}

#[tokio::test]
async fn several_claims_of_several_expired_records_make_way_together() {
    for subject in Subject::all(SCHEMA).await {
        let sessions = sessions(&subject).await;
        let mut own = session("own", "own@x", 10);
        own["code"] = json!("A-22");
        let mut by_code = session("by-code", "y@x", 10);
        by_code["code"] = json!("A-33");
        let by_email = session("by-email", "ana@x", 10);
        for record in [&own, &by_code, &by_email] {
            sessions.insert(record).await.unwrap();
        }
        subject.clock.pass(10);
        let mut record = session("own", "ana@x", 999);
        record["code"] = json!("A-33");
        sessions.insert(&record).await.unwrap();
        assert_eq!(sessions.get("own").await.unwrap().unwrap()["email"], "ana@x");
        let left = subject.keys().await;
        assert!(left.iter().all(|key| !key.contains("by-") && !key.contains("A-22")), "{left:?}");
        subject.assert_sound().await;
    }
}

#[tokio::test]
async fn transactions_take_expired_records_for_absent() {
    for subject in Subject::all(SCHEMA).await {
        let sessions = sessions(&subject).await;
        for id in ["a", "b", "c", "d"] {
            sessions.insert(&session(id, &format!("{id}@x"), 10)).await.unwrap();
        }
        subject.clock.pass(10);
        let done = subject.store.transaction(async |transaction| {
            let sessions = transaction.documents("session")?;
            assert!(sessions.get("a").await?.is_none());
            assert!(sessions.get_by("email", "b@x").await?.is_none());
            assert_eq!(sessions.delete("c").await?, None);
            // Over one that was seen, by the claim of one that was seen, and of one that was not.
            sessions.insert(&session("a", "b@x", 999)).await?;
            sessions.upsert(&session("e", "d@x", 999)).await?;
            assert!(sessions.get_by("email", "b@x").await?.is_some());
            Ok::<_, Error>(())
        });
        done.await.unwrap();
        let by_user = ids(&sessions, &by_user()).await;
        assert_eq!(by_user, ["a", "e"], "{}", subject.name);
        // One that only looks commits too.
        let looked = subject.store.transaction(async |transaction| {
            Ok::<_, Error>(transaction.documents("session")?.get("c").await?.is_none())
        });
        assert!(looked.await.unwrap());
        subject.assert_sound().await;
        assert_eq!(subject.store.sweep(&SweepOptions::default()).await.unwrap().records, 1);
    }
}

#[tokio::test]
async fn a_record_may_be_written_with_its_end_in_the_past() {
    for subject in Subject::all(SCHEMA).await {
        let sessions = sessions(&subject).await;
        subject.clock.pass(100);
        sessions.insert(&session("a", "a@x", 10)).await.unwrap();
        assert!(sessions.get("a").await.unwrap().is_none());
        sessions.insert(&session("a", "a@x", 200)).await.unwrap();
        let version = sessions.get("a").await.unwrap().unwrap().version;
        sessions.update("a", &json!({ "life": { "ends": START } }), version).await.unwrap();
        assert!(sessions.get("a").await.unwrap().is_none(), "it ended with the update");
        // Prolonging one that lives, and taking its end away.
        sessions.insert(&session("b", "b@x", 200)).await.unwrap();
        sessions.update_with_retry("b", &json!({ "life": { "ends": START + 300 } })).await.unwrap();
        subject.clock.pass(100);
        sessions.update_with_retry("b", &json!({ "life": null })).await.unwrap();
        subject.clock.pass(1_000_000);
        assert!(sessions.get("b").await.unwrap().is_some());
        assert_eq!(subject.store.sweep(&SweepOptions::default()).await.unwrap().records, 1);
        subject.assert_sound().await;
    }
}

#[tokio::test]
async fn a_creation_reads_nothing_unless_it_is_rejected() {
    let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
    let subject = Subject::on("metered", metered.clone(), SCHEMA).await;
    let sessions = sessions(&subject).await;
    metered.take();
    sessions.insert(&session("a", "a@x", 10)).await.unwrap();
    let usage = metered.take();
    assert_eq!((usage.reads(), usage.commits), (0, 1));
    subject.clock.pass(10);
    sessions.insert(&session("a", "a@x", 20)).await.unwrap();
    let usage = metered.take();
    assert_eq!((usage.reads(), usage.commits), (0, 2), "the rejection shows what is in the way");
    subject.clock.pass(10);
    sessions.insert(&session("b", "a@x", 30)).await.unwrap();
    let usage = metered.take();
    assert_eq!((usage.reads(), usage.commits), (1, 2), "the holder of a claim is read");
}

#[tokio::test]
async fn a_key_that_leaves_no_room_for_its_end_is_refused_before_anything_is_written() {
    let subject = Subject::on("memory", Arc::new(Memory::new()), SCHEMA).await;
    let sessions = sessions(&subject).await;
    // `session:` and the id; an entry has `expiry:session:`, 13 digits and `:` before that.
    let longest = 900 - "expiry:session:".len() - 14 - "session:".len();
    let refused = sessions.insert(&session(&"x".repeat(longest + 1), "a@x", 10)).await.unwrap_err();
    assert_eq!(refused.context_value("index"), Some("expires_at"), "{refused}");
    assert_eq!(subject.keys().await, [""; 0]);
    let bare = json!({ "id": "x".repeat(longest), "life": { "ends": START } });
    sessions.insert(&bare).await.unwrap();
    // One that never ends has no such entry.
    sessions.insert(&json!({ "id": "y".repeat(880) })).await.unwrap();
}

#[tokio::test]
async fn records_may_expire_by_a_date_time() {
    let schema = SCHEMA.replace("\"life.ends\" = \"timestamp\"", "\"life.ends\" = \"datetime\"");
    for subject in Subject::all(&schema).await {
        let sessions = sessions(&subject).await;
        // START is 2023-11-14T22:13:20.000Z.
        for (id, ends) in [
            ("a", "2023-11-14T22:13:20.001Z"),
            ("b", "2023-11-14T22:13:20.002Z"),
            ("c", "1969-12-31T23:59:59.999Z"),
            ("d", "9999-12-31T23:59:59.999Z"),
        ] {
            let record = json!({ "id": id, "user": "ana", "at": START, "life": { "ends": ends } });
            sessions.insert(&record).await.unwrap();
        }
        assert_eq!(ids(&sessions, &by_user()).await, ["a", "b", "d"]);
        let keys = sessions.keys(&by_user()).await.unwrap();
        assert_eq!(keys.swept_until, Some(0), "one ended before 1970");
        subject.clock.pass(1);
        assert_eq!(ids(&sessions, &by_user()).await, ["b", "d"]);
        let swept = subject.store.sweep(&SweepOptions::default()).await.unwrap();
        assert_eq!((swept.records, swept.collections[0].until), (2, START + 1));
        assert_eq!(ids(&sessions, &by_user()).await, ["b", "d"]);
        subject.assert_sound().await;
    }
}

#[tokio::test]
async fn no_question_goes_by_the_index_over_the_ends() {
    let subject = Subject::on("memory", Arc::new(Memory::new()), SCHEMA).await;
    let sessions = sessions(&subject).await;
    let soon = Query::new().range("life.ends", ..START + 25);
    let error = sessions.page(&soon).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoIndex);
    assert!(!error.to_string().contains("expiry:"), "{error}");
    let error = sessions.page(&soon.clone().index("expires_at")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidQuery);
    let due = Due::new("expires_at");
    let error = sessions.lease(&due, "w", Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidQuery);
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "ticket:{id}", expires_at = "valid_until")]
#[unique(seat = "ticket-seat:{seat}")]
struct Ticket {
    id: String,
    seat: String,
    valid_until: Option<Timestamp>,
}

#[tokio::test]
async fn a_rust_type_may_expire_too() {
    let clock = TestClock::new();
    let store = Store::open("memory:").await.unwrap().with_clock(clock.clock());
    let tickets = store.collection::<Ticket>().await.unwrap();
    let ticket = |id: &str, after: Option<i64>| Ticket {
        id: id.to_owned(),
        seat: format!("seat of {id}"),
        valid_until: after.map(|after| Timestamp::from(START as i64 + after)),
    };
    tickets.insert(&ticket("a", Some(10))).await.unwrap();
    tickets.insert(&ticket("b", None)).await.unwrap();
    clock.pass(10);
    assert!(tickets.get("a").await.unwrap().is_none());
    assert!(tickets.get_by("seat", "seat of a").await.unwrap().is_none());
    assert!(tickets.get("b").await.unwrap().is_some());
    assert_eq!(store.sweep(&SweepOptions::default()).await.unwrap().records, 1);
}
