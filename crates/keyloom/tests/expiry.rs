//! What becomes of records that expire: nobody sees them, they stand in nobody's way, and a sweep
//! leaves nothing of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod time_support;

use keyloom::{Collection, Counted, Error, ErrorKind, Near, Order, Query, Stopped, SweepOptions};
use serde_json::{Value, json};
use time_support::{START, Subject};

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
