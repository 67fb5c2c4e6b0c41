//! What single writes promise, on both engines.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::sync::Arc;

use keyloom::engine::{
    Address, Area, Direction, Embedded, EmbeddedOptions, Engine, Memory, Range, Space,
};
use keyloom::{Collection, Effect, ErrorKind, Fate, FindingKind, Query, Schema, Store};
use serde_json::{Value, json};

const SCHEMA: &str = r#"
[collection.user]
key = "user:{userId}"
[collection.user.fields]
userId = "text"
email  = "text"
plan   = { type = "enum", values = ["free", "paid"] }
[collection.user.unique.email]
key = "index:email:{email}"
[collection.user.index.paying]
key   = "index:paying:{userId}"
where = { plan = "paid" }

[collection.post]
key = "user:{userId}:posts:{postId}"
[collection.post.fields]
userId = "text"
postId = "text"
at     = "timestamp"
"tags.*" = "text"
[collection.post.index.recent]
key    = "shared:posts:recent:{at}:{postId}"
holds  = "{postId, userId}"
claims = true
[collection.post.index.by_tag]
key    = "shared:posts:by_tag:{tags.*}:{postId}"
holds  = "{postId, userId}"
claims = true
max    = 4

[collection.execution]
key  = "{arn raw}"
area = "executions"
[collection.execution.fields]
arn    = "text"
status = { type = "enum", values = ["RUNNING", "SUCCEEDED", "FAILED"], transitions = { RUNNING = ["SUCCEEDED", "FAILED"] }, illegal = "ignore" }
start  = "datetime"
[collection.execution.index.status]
key  = "execution:status:{status}:{start}:{arn}"
area = "execution-indexes"
"#;

/// A store, and the engine underneath to look at keys.
struct Subject {
    store: Store,
    engine: Arc<dyn Engine>,
    _folder: Option<tempfile::TempDir>,
}

impl Subject {
    async fn all() -> Vec<Subject> {
        let folder = tempfile::tempdir().unwrap();
        let embedded = Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap();
        vec![
            Subject::on(Arc::new(Memory::new()), None).await,
            Subject::on(Arc::new(embedded), Some(folder)).await,
        ]
    }

    async fn on(engine: Arc<dyn Engine>, folder: Option<tempfile::TempDir>) -> Subject {
        let store = Store::on(engine.clone());
        store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
        Subject { store, engine, _folder: folder }
    }

    async fn collection(&self, name: &str) -> Collection<Value> {
        self.store.documents(name).await.unwrap()
    }

    /// Every key and value of an area, as text.
    async fn keys_in(&self, area: &str) -> Vec<(String, String)> {
        let range = Range::all(Area::new(area).unwrap());
        let found =
            self.engine.scan(&Space::main(), &[range], 1_000, Direction::Forward).await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        found[0].rows.iter().map(|row| (text(&row.key), text(row.cell.bytes().unwrap()))).collect()
    }

    async fn keys(&self) -> Vec<String> {
        self.keys_in("").await.into_iter().map(|(key, _)| key).collect()
    }
}

#[tokio::test]
async fn an_insert_writes_every_key_and_a_delete_removes_them_all() {
    for it in Subject::all().await {
        let posts = it.collection("post").await;
        let post = json!({"userId": "ana", "postId": "p1", "at": 1_700_000_000_000_u64, "tags": ["x", "y", "x"]});
        posts.insert(&post).await.unwrap();
        let held = r#"{"postId":"p1","userId":"ana"}"#;
        assert_eq!(
            it.keys_in("").await,
            [
                ("shared:posts:by_tag:x:p1".to_owned(), held.to_owned()),
                ("shared:posts:by_tag:y:p1".to_owned(), held.to_owned()),
                ("shared:posts:recent:1700000000000:p1".to_owned(), held.to_owned()),
                ("user:ana:posts:p1".to_owned(), post.to_string()),
            ]
        );
        assert!(posts.delete(("ana", "p1")).await.unwrap().is_some());
        assert!(it.keys().await.is_empty());
        assert!(posts.delete(("ana", "p1")).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_replacement_moves_only_what_changed() {
    for it in Subject::all().await {
        let users = it.collection("user").await;
        let first =
            users.insert(&json!({"userId": "ana", "email": "a@x", "plan": "free"})).await.unwrap();
        assert_eq!(it.keys().await, ["index:email:a@x", "user:ana"]);
        let moved =
            users.replace(&json!({"userId": "ana", "email": "b@x", "plan": "paid"})).await.unwrap();
        assert_eq!(moved.effect, Effect::Replaced);
        assert_eq!(moved.version.revision(), first.version.revision() + 1);
        assert_eq!(it.keys().await, ["index:email:b@x", "index:paying:ana", "user:ana"]);
        // The condition of the partial index no longer holds.
        users.replace(&json!({"userId": "ana", "email": "b@x", "plan": "free"})).await.unwrap();
        assert_eq!(it.keys().await, ["index:email:b@x", "user:ana"]);
        // A missing or null field has no entry.
        users.replace(&json!({"userId": "ana", "email": null})).await.unwrap();
        assert_eq!(it.keys().await, ["user:ana"]);
    }
}

#[tokio::test]
async fn a_unique_conflict_names_index_value_and_holder_and_changes_nothing() {
    for it in Subject::all().await {
        let users = it.collection("user").await;
        users.insert(&json!({"userId": "ana", "email": "a@x"})).await.unwrap();
        let before = it.keys_in("").await;
        for error in [
            users.insert(&json!({"userId": "ben", "email": "a@x"})).await.unwrap_err(),
            users.upsert(&json!({"userId": "ben", "email": "a@x"})).await.unwrap_err(),
        ] {
            assert_eq!(
                (error.kind(), error.fate()),
                (ErrorKind::UniqueConflict, Fate::DidNotHappen)
            );
            assert_eq!(error.context_value("index"), Some("email"));
            assert_eq!(error.context_value("value"), Some("\"a@x\""));
            assert_eq!(error.context_value("held by"), Some("user:ana"));
        }
        assert_eq!(it.keys_in("").await, before);
        // Two users' posts with the same id never overwrite each other's shared entry.
        let posts = it.collection("post").await;
        posts.insert(&json!({"userId": "ana", "postId": "p", "at": 5})).await.unwrap();
        let clash =
            posts.insert(&json!({"userId": "ben", "postId": "p", "at": 5})).await.unwrap_err();
        assert_eq!(clash.kind(), ErrorKind::UniqueConflict);
        assert_eq!(clash.context_value("held by"), Some("user:ana:posts:p"));
    }
}

#[tokio::test]
async fn an_old_version_never_fits_a_record_that_was_created_again() {
    for it in Subject::all().await {
        let users = it.collection("user").await;
        let ana = json!({"userId": "ana"});
        let first = users.insert(&ana).await.unwrap().version;
        users.delete("ana").await.unwrap();
        let second = users.insert(&ana).await.unwrap().version;
        assert_eq!(first.revision(), second.revision());
        assert_ne!(first, second);
        let error = users.replace_if(&json!({"userId": "ana", "n": 1}), first).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::VersionConflict);
        assert_eq!(
            users.delete_if("ana", first).await.unwrap_err().kind(),
            ErrorKind::VersionConflict
        );
        users.delete_if("ana", second).await.unwrap();
        assert_eq!(users.delete_if("ana", second).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn insert_replace_and_upsert_differ_in_what_they_expect() {
    for it in Subject::all().await {
        let users = it.collection("user").await;
        let ana = json!({"userId": "ana"});
        assert_eq!(users.replace(&ana).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(users.upsert(&ana).await.unwrap().effect, Effect::Created);
        assert_eq!(users.upsert(&ana).await.unwrap().effect, Effect::Unchanged);
        assert_eq!(
            users.upsert(&json!({"userId": "ana", "n": 1})).await.unwrap().effect,
            Effect::Replaced
        );
        assert_eq!(users.insert(&ana).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    }
}

#[tokio::test]
async fn json_text_is_inserted_as_it_is_meant_or_not_at_all() {
    for subject in Subject::all().await {
        let users = subject.collection("user").await;
        let text = r#" {"userId": "ana", "email": "a@x", "n": 18446744073709551615} "#;
        let inserted = users.insert_json(text).await.unwrap();
        let kept = r#"{"userId":"ana","email":"a@x","n":18446744073709551615}"#;
        assert_eq!(inserted.text(), kept.as_bytes());
        assert_eq!(inserted.into_document(), users.get_document("ana").await.unwrap().unwrap());
        let again = users.insert_json(text).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
        let keys = subject.keys().await;
        for (refused, kind) in [
            (r#"{"userId": "bo", "userId": "bo"}"#, ErrorKind::InvalidArgument),
            (r#"{"userId": "bo", "n": 18446744073709551616}"#, ErrorKind::InvalidArgument),
            (r#"{"userId": "bo""#, ErrorKind::InvalidArgument),
            ("", ErrorKind::InvalidArgument),
            ("[]", ErrorKind::InvalidRecord),
            (r#"{"userId": 5}"#, ErrorKind::InvalidRecord),
        ] {
            let error = users.insert_json(refused).await.unwrap_err();
            assert_eq!((error.kind(), error.fate()), (kind, Fate::DidNotHappen), "{refused}");
        }
        assert_eq!(subject.keys().await, keys);
        let keyed = users.with_idempotency_key("once").unwrap();
        let first = keyed.insert_json(r#"{"userId": "bo"}"#).await.unwrap();
        assert_eq!(keyed.insert_json(r#"{ "userId": "bo" }"#).await.unwrap(), first);
        // The same write, however it is given.
        assert_eq!(keyed.insert(&json!({ "userId": "bo" })).await.unwrap(), first);
        let other = keyed.insert_json(r#"{"userId": "cy"}"#).await.unwrap_err();
        assert_eq!(other.kind(), ErrorKind::IdempotencyConflict);
    }
}

#[tokio::test]
async fn a_late_event_is_ignored_and_moves_nothing() {
    for it in Subject::all().await {
        let executions = it.collection("execution").await;
        let arn = "arn:aws:states:eu-west-1:1:execution:agent:run-1";
        let event = |status: &str| json!({"arn": arn, "status": status, "start": "2024-05-06T07:08:09.010Z"});
        executions.upsert(&event("RUNNING")).await.unwrap();
        executions.upsert(&event("SUCCEEDED")).await.unwrap();
        let late = executions.upsert(&event("RUNNING")).await.unwrap();
        assert_eq!(late.effect, Effect::Ignored);
        assert_eq!(executions.get(arn).await.unwrap().unwrap().value["status"], "SUCCEEDED");
        assert_eq!(
            it.keys_in("executions").await,
            [(arn.to_owned(), event("SUCCEEDED").to_string())]
        );
        let entry = format!(
            "execution:status:SUCCEEDED:2024-05-06T07:08:09.010Z:{}",
            arn.replace(':', "%3A")
        );
        assert_eq!(it.keys_in("execution-indexes").await, [(entry, format!("{arn:?}"))]);
    }
}

#[tokio::test]
async fn records_that_break_their_schema_are_refused_before_anything_is_written() {
    for it in Subject::all().await {
        let users = it.collection("user").await;
        let posts = it.collection("post").await;
        let long = "x".repeat(900);
        let refusals = [
            (users.insert(&json!("ana")).await, ErrorKind::InvalidRecord, None),
            (users.insert(&json!({"email": "a"})).await, ErrorKind::InvalidRecord, Some("userId")),
            (users.insert(&json!({"userId": 7})).await, ErrorKind::InvalidRecord, Some("userId")),
            (
                users.insert(&json!({"userId": "a", "plan": "gold"})).await,
                ErrorKind::InvalidRecord,
                Some("plan"),
            ),
            (
                users.insert(&json!({"userId": "a", "email": long})).await,
                ErrorKind::LimitExceeded,
                Some("email"),
            ),
            (
                posts.insert(&json!({"userId": "a", "postId": "p", "at": -1})).await,
                ErrorKind::InvalidRecord,
                Some("at"),
            ),
            (
                posts
                    .insert(&json!({"userId": "a", "postId": "p", "at": 10_000_000_000_000_u64}))
                    .await,
                ErrorKind::InvalidRecord,
                Some("at"),
            ),
            (
                posts
                    .insert(
                        &json!({"userId": "a", "postId": "p", "tags": ["1", "2", "3", "4", "5"]}),
                    )
                    .await,
                ErrorKind::LimitExceeded,
                None,
            ),
            (
                posts.insert(&json!({"userId": "a", "postId": "p", "tags": "x"})).await,
                ErrorKind::InvalidRecord,
                Some("tags"),
            ),
            (
                users.insert(&json!({"userId": "a", "text": "x".repeat(400_000)})).await,
                ErrorKind::LimitExceeded,
                None,
            ),
        ];
        for (refused, kind, field) in refusals {
            let error = refused.unwrap_err();
            assert_eq!((error.kind(), error.fate()), (kind, Fate::DidNotHappen), "{error}");
            assert!(error.context_value("collection").is_some(), "{error}");
            if field.is_some() {
                assert_eq!(error.context_value("field"), field, "{error}");
            }
        }
        assert!(it.keys().await.is_empty());
    }
}

#[tokio::test]
async fn concurrent_creators_of_different_records_never_retry() {
    for it in Subject::all().await {
        let metered = Arc::new(keyloom::engine::Metered::new(it.engine.clone()));
        let store = Store::on(metered.clone());
        let users = store.documents("user").await.unwrap();
        metered.take();
        let creators = (0..400).map(|n| {
            let users = users.clone();
            tokio::spawn(async move {
                users.insert(&json!({"userId": format!("u{n}"), "email": format!("u{n}@x"), "plan": "paid"})).await
            })
        });
        for creator in creators.collect::<Vec<_>>() {
            creator.await.unwrap().unwrap();
        }
        let usage = metered.take();
        assert_eq!((usage.commits, usage.gets, usage.scans, usage.follows), (400, 0, 0, 0));
    }
}

#[tokio::test]
async fn a_drawn_code_that_is_taken_is_drawn_again() {
    const CODES: &str = r#"
        [collection.ticket]
        key = "ticket:{n}"
        [collection.ticket.fields]
        n    = "integer"
        code = { type = "code", pattern = "T-*", generate = true }
        [collection.ticket.unique.code]
        key = "ticket-code:{code}"
    "#;
    let mut redrawn = 0;
    for _ in 0..5 {
        let meter = Arc::new(keyloom::engine::Metered::new(Arc::new(Memory::new())));
        let store = Store::on(meter.clone());
        store.apply(&Schema::from_toml(CODES).unwrap()).await.unwrap();
        let tickets = store.documents("ticket").await.unwrap();
        meter.take();
        // 16 of 32 codes: that no draw meets a code that is taken has a chance of one in a hundred.
        // Whichever way a record is created, its code is drawn again.
        for n in (0..16).step_by(4) {
            let ticket = |add: usize| json!({ "n": n + add });
            tickets.insert(&ticket(0)).await.unwrap();
            tickets.upsert(&ticket(1)).await.unwrap();
            tickets.upsert_with(&ticket(2), |_| panic!("it is new")).await.unwrap();
            let created = store.transaction(|tx| {
                let ticket = ticket(3);
                async move {
                    let tickets = tx.documents("ticket")?;
                    let mut drawn = tickets.insert(&ticket).await?.value()?;
                    drawn["note"] = json!("written twice");
                    tickets.replace(&drawn).await
                }
            });
            created.await.unwrap();
        }
        redrawn += meter.take().commits - 16;
        assert_eq!(tickets.page(&Query::new().index("code")).await.unwrap().records.len(), 16);
    }
    assert!(redrawn > 0);
}

#[tokio::test]
async fn of_many_writers_with_one_unique_value_exactly_one_wins() {
    for it in Subject::all().await {
        let users = it.collection("user").await;
        let rivals = (0..32).map(|n| {
            let users = users.clone();
            tokio::spawn(async move {
                users.insert(&json!({"userId": format!("u{n}"), "email": "one@x"})).await
            })
        });
        let mut won = 0;
        for rival in rivals.collect::<Vec<_>>() {
            match rival.await.unwrap() {
                Ok(_) => won += 1,
                Err(error) => assert_eq!(error.kind(), ErrorKind::UniqueConflict),
            }
        }
        assert_eq!(won, 1);
        assert_eq!(it.keys().await.len(), 2);
    }
}

#[tokio::test]
async fn interleaved_templates_do_not_see_each_other() {
    for it in Subject::all().await {
        let (users, posts) = (it.collection("user").await, it.collection("post").await);
        for user in ["a", "a:posts:p0", "ab", "b", "%", "\u{0}"] {
            users.insert(&json!({"userId": user})).await.unwrap();
            for n in 0..30 {
                let post = json!({"userId": user, "postId": format!("{user}{n:02}"), "at": n});
                posts.insert(&post).await.unwrap();
            }
        }
        let everyone = users.page(&Query::new().scan().take(4)).await.unwrap();
        assert_eq!(everyone.records.len(), 4);
        let rest = users
            .page(&Query::new().scan().take(4).from_cursor(everyone.next.unwrap()))
            .await
            .unwrap();
        assert_eq!((rest.records.len(), rest.next.is_none()), (2, true));
        for user in ["a", "a:posts:p0", "b", "\u{0}"] {
            let own = posts.page(&Query::new().equal("userId", user).take(100)).await.unwrap();
            assert_eq!(own.records.len(), 30);
            assert!(own.records.iter().all(|post| post.value["userId"] == user));
        }
    }
}

/// A schema may be declared over keys that something else wrote, and not all of them are records.
#[tokio::test]
async fn keys_of_no_template_are_not_taken_for_records() {
    let store = Store::open("memory:").await.unwrap();
    let plain = store.plain();
    for key in [&b"note:1"[..], b"note:2", b"note:2:part", b"note:%41", b"note:\0", b"note:\xff"] {
        plain.put(key, r#"{"id":"1"}"#).await.unwrap();
    }
    let schema = "[collection.note]\nkey = \"note:{id}\"\nfields = { id = \"text\" }\n";
    store.apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
    let notes = store.documents("note").await.unwrap();
    let all = Query::new().scan();
    assert_eq!(notes.keys(&all).await.unwrap().records, ["note:1", "note:2"]);
    assert_eq!(notes.count(&all).await.unwrap(), 2);
    let page = notes.page(&all.clone().take(1)).await.unwrap();
    let next = notes.page(&all.clone().take(1).from_cursor(page.next.unwrap())).await.unwrap();
    assert_eq!((&*next.records[0].key, next.next.is_none()), ("note:2", true));
    let back = notes.page(&all.from_cursor(next.previous.unwrap())).await.unwrap();
    assert_eq!(back.records.len(), 1);
    assert_eq!(store.verify().await.unwrap().counts.of(FindingKind::Unknown), 4);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_does_not_hide_the_others() {
    for it in Subject::all().await {
        let posts = it.collection("post").await;
        for n in 0..5 {
            posts
                .insert(&json!({"userId": "ana", "postId": format!("p{n}"), "at": n}))
                .await
                .unwrap();
        }
        let at = |key: &str| Address::new(Area::default_area(), key.to_owned());
        let mut batch = keyloom::engine::Batch::new(Space::main());
        let stamp = keyloom::engine::Stamp([9; 24]);
        let garbage = keyloom::engine::Effect::Put { stamp, bytes: "{\"userId\": oops".into() };
        batch.push(at("user:ana:posts:p1"), None, Some(garbage));
        batch.push(at("user:ana:posts:p3"), None, Some(keyloom::engine::Effect::Delete));
        it.engine.commit(batch).await.unwrap();
        let page = posts.page(&Query::new().range("at", 0..)).await.unwrap();
        let ids: Vec<&Value> = page.records.iter().map(|post| &post.value["postId"]).collect();
        assert_eq!(ids, ["p0", "p2", "p4"]);
        let keys: Vec<&str> = page.problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(keys, ["shared:posts:recent:0000000000003:p3", "user:ana:posts:p1"]);
    }
}
