//! Each rule once, in words that a reader can follow.

use std::sync::Arc;
use std::time::Duration;

use keyloom::engine::{Address, Area, Batch, Effect, Engine, Memory, Metered, Space, Torn};
use keyloom::{
    Due, ErrorKind, GroupQuery, JobOptions, MaintainOptions, Position, PurgeOptions, Query,
    RepairOptions, Schema, StatsOptions, Store, SweepOptions, VerifyOptions, WatchOptions, Work,
};
use serde_json::{Value, json};

use crate::answers::Told;
use crate::{COMPILED, memory_store, store_on};

/// Ana has a note, a post and preferences; Ben has nothing.
async fn with_ana() -> Store {
    let store = memory_store().await;
    let ana = store.acting_as("ana").unwrap();
    let note =
        json!({ "noteId": "n1", "rank": 1, "slug": "first", "place": { "lat": 1, "lng": 2 } });
    ana.documents("note").await.unwrap().insert(&note).await.unwrap();
    let post = json!({ "postId": "p1", "timestamp": 5 });
    ana.documents("post").await.unwrap().insert(&post).await.unwrap();
    ana.documents("preferences").await.unwrap().insert(&json!({ "dark": true })).await.unwrap();
    store
}

#[tokio::test]
async fn the_owner_is_filled_in_and_implied() {
    let store = with_ana().await;
    let ana = store.acting_as("ana").unwrap();
    let notes = ana.documents("note").await.unwrap();
    for key in [vec![json!("n1")], vec![json!("ana"), json!("n1")]] {
        let note = notes.get(key).await.unwrap().unwrap();
        assert_eq!(note.key, "user:ana:notes:n1");
        assert_eq!(note.value["userId"], "ana");
    }
    let preferences = ana.documents("preferences").await.unwrap();
    assert_eq!(preferences.get(()).await.unwrap().unwrap().key, "user:ana:preferences");
    assert_eq!(notes.get_by("own_rank", 1).await.unwrap().unwrap().key, "user:ana:notes:n1");
    notes.update_with_retry("n1", &json!({ "text": "x" })).await.unwrap();
    // Without a condition a question is for what is one's own, which is no scan.
    let page = notes.page(&Query::new()).await.unwrap();
    assert_eq!(page.records[0].value["text"], "x");
    // The program itself implies nothing.
    let error = store.documents("note").await.unwrap().get("n1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    // Nor is anything implied where another number of fields is missing.
    let error = notes.get(()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn a_collection_can_be_taken_on_behalf_of_a_user() {
    let store = with_ana().await;
    let notes = store.documents("note").await.unwrap();
    assert!(notes.acting_as("ana").unwrap().get("n1").await.unwrap().is_some());
    assert!(notes.acting_as("ben").unwrap().get(("ana", "n1")).await.unwrap().is_none());
    assert_eq!(notes.acting_as("").err().unwrap().kind(), ErrorKind::InvalidArgument);
    let long = "x".repeat(256);
    assert_eq!(notes.acting_as(&long).err().unwrap().kind(), ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn a_record_of_another_owner_is_refused_as_ones_own_input() {
    let store = with_ana().await;
    let ben = store.acting_as("ben").unwrap();
    for name in ["note", "post"] {
        let of = ben.documents(name).await.unwrap();
        let record = json!({ "userId": "ana", "noteId": "n1", "postId": "p1", "timestamp": 9 });
        let refusals = [
            of.insert(&record).await.unwrap_err(),
            of.upsert(&record).await.unwrap_err(),
            of.replace(&record).await.unwrap_err(),
            of.upsert_with(&record, |_: &mut Value| Ok(())).await.unwrap_err(),
        ];
        for error in refusals {
            assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
            assert_eq!(error.context_value("field"), Some("userId"));
            assert_eq!(error.context_value("value"), Some("\"ana\""));
        }
    }
}

#[tokio::test]
async fn a_foreign_record_is_answered_like_a_missing_one() {
    let store = with_ana().await;
    let notes = store.acting_as("ben").unwrap().documents("note").await.unwrap();
    let patch = json!({ "text": "x" });
    let version = store.documents("note").await.unwrap().get(("ana", "n1")).await.unwrap();
    let version = version.unwrap().version;
    let foreign = ("ana", "n1");
    let missing = ("ana", "n9");
    let same = |there: String, missing: String| {
        assert_eq!(there.replace("n1", "n9"), missing);
    };
    same(notes.get(foreign).await.told(), notes.get(missing).await.told());
    same(
        notes.update(foreign, &patch, version).await.told(),
        notes.update(missing, &patch, version).await.told(),
    );
    same(
        notes.modify(foreign, |_: &mut Value| Ok(())).await.told(),
        notes.modify(missing, |_: &mut Value| Ok(())).await.told(),
    );
    same(
        notes.delete_if(foreign, version).await.told(),
        notes.delete_if(missing, version).await.told(),
    );
    assert!(notes.delete(foreign).await.unwrap().is_none());
    let error = notes.update_with_retry(foreign, &patch).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(store.documents("note").await.unwrap().get(foreign).await.unwrap().is_some());
}

#[tokio::test]
async fn a_conflict_names_its_holder_only_to_one_who_may_read_it() {
    let store = with_ana().await;
    let conflict = |user: &'static str, name: &'static str, record: Value| {
        let acting = store.acting_as(user).unwrap();
        async move { acting.documents(name).await.unwrap().insert(&record).await.unwrap_err() }
    };
    let own = conflict("ana", "note", json!({ "noteId": "n2", "slug": "first" })).await;
    assert_eq!(own.context_value("held by"), Some("user:ana:notes:n1"));
    let foreign = conflict("ben", "note", json!({ "noteId": "n2", "slug": "first" })).await;
    assert_eq!(foreign.kind(), ErrorKind::UniqueConflict);
    assert_eq!(foreign.context_value("value"), Some("\"first\""));
    assert_eq!(foreign.context_value("held by"), None);
    assert!(!foreign.to_string().contains("ana"), "{foreign}");
    let hybrid = conflict("ben", "post", json!({ "postId": "p1", "timestamp": 5 })).await;
    assert_eq!(hybrid.context_value("held by"), Some("user:ana:posts:p1"));
}

#[tokio::test]
async fn hybrid_records_are_read_by_all_and_written_by_their_owner() {
    let store = with_ana().await;
    let ben = store.acting_as("ben").unwrap();
    let posts = ben.documents("post").await.unwrap();
    let page = posts.page(&Query::new().range("timestamp", 0..9)).await.unwrap();
    assert_eq!(page.records[0].key, "user:ana:posts:p1");
    let post = posts.get(("ana", "p1")).await.unwrap().unwrap();
    let patch = json!({ "text": "mine" });
    let refusals = [
        posts.update(("ana", "p1"), &patch, post.version).await.err(),
        posts.update_with_retry(("ana", "p1"), &patch).await.err(),
        posts.delete(("ana", "p1")).await.err(),
        posts
            .rename(("ana", "p1"), |post| {
                post["userId"] = json!("ben");
                Ok(())
            })
            .await
            .err(),
        ben.plain().delete("user:ana:posts:p1").await.err(),
    ];
    for error in refusals.into_iter().map(Option::unwrap) {
        assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
        assert_eq!(error.context_value("key"), Some("user:ana:posts:p1"));
    }
    // Nor may an owner give a record away.
    let posts = store.acting_as("ana").unwrap().documents("post").await.unwrap();
    let given = posts
        .rename("p1", |post| {
            post["userId"] = json!("ben");
            Ok(())
        })
        .await;
    assert_eq!(given.unwrap_err().kind(), ErrorKind::Forbidden);
    posts.delete("p1").await.unwrap().unwrap();
}

#[tokio::test]
async fn read_only_collections_are_written_by_the_program_alone() {
    let store = with_ana().await;
    let config = json!({ "name": "limit", "value": 1 });
    store.documents("config").await.unwrap().insert(&config).await.unwrap();
    let configs = store.acting_as("ana").unwrap().documents("config").await.unwrap();
    assert_eq!(configs.get("limit").await.unwrap().unwrap().value["value"], 1);
    let refusals = [
        configs.insert(&json!({ "name": "other" })).await.err(),
        configs.delete("limit").await.err(),
        configs.update_with_retry("limit", &json!({ "value": 2 })).await.err(),
    ];
    for error in refusals.into_iter().map(Option::unwrap) {
        assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
    }
}

#[tokio::test]
async fn a_cursor_belongs_to_the_user_that_it_was_given_to() {
    let store = with_ana().await;
    let posts = store.documents("post").await.unwrap();
    let ana = posts.acting_as("ana").unwrap();
    ana.insert(&json!({ "postId": "p2", "timestamp": 6 })).await.unwrap();
    let query = Query::new().range("timestamp", 0..9).take(1);
    let next = ana.page(&query).await.unwrap().next.unwrap();
    let onward = query.from_cursor(next);
    assert_eq!(ana.page(&onward).await.unwrap().records.len(), 1);
    for other in [&posts, &posts.acting_as("ben").unwrap()] {
        let error = other.page(&onward).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidCursor);
    }
    let plain = |user: &str| store.acting_as(user).unwrap().plain();
    let next = plain("ana").list("user:", 1, None).await.unwrap().next.unwrap().to_string();
    plain("ana").list("user:", 1, Some(&next)).await.unwrap();
    let error = plain("ben").list("user:", 1, Some(&next)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidCursor);
}

#[tokio::test]
async fn indexes_that_mix_owners_are_for_the_program() {
    let store = with_ana().await;
    let notes = store.documents("note").await.unwrap();
    let by_rank = Query::new().index("everyone").equal("rank", 1);
    assert_eq!(notes.page(&by_rank).await.unwrap().records.len(), 1);
    let ana = notes.acting_as("ana").unwrap();
    assert_eq!(ana.page(&by_rank).await.unwrap_err().kind(), ErrorKind::Forbidden);
    // Not named, it is passed over for one that begins with the owner.
    let plan = ana.explain(&Query::new().equal("rank", 1)).await.unwrap();
    assert!(plan.contains("fixed: userId, rank"), "{plan}");
    // Also where it would be the first of equals.
    store.disable("note", "full").await.unwrap();
    let page = ana.page(&Query::new().equal("rank", 1)).await.unwrap();
    assert_eq!(page.records.len(), 1);
    // A look-up by a unique value is looked at afterwards.
    assert!(ana.get_by("slug", "first").await.unwrap().is_some());
    assert!(notes.acting_as("ben").unwrap().get_by("slug", "first").await.unwrap().is_none());
}

#[tokio::test]
async fn plain_keys_are_those_that_a_user_may_see() {
    let store = with_ana().await;
    let keys = |user: &'static str, prefix: &'static str| {
        let plain = store.acting_as(user).unwrap().plain();
        async move {
            let listing = plain.list(prefix, 100, None).await.unwrap();
            let key = |entry: &keyloom::Listed| String::from_utf8(entry.key.to_vec()).unwrap();
            listing.entries.iter().map(key).collect::<Vec<_>>()
        }
    };
    store.plain().put("nobody's", "x").await.unwrap();
    let shared = ["shared:posts:recent:0000000000005:p1", "user:ana:posts:p1"];
    assert_eq!(keys("ben", "").await, shared);
    assert_eq!(
        keys("ana", "user:ana:").await,
        [
            "user:ana:geo:s01mtw:n1",
            "user:ana:notes:n1",
            "user:ana:posts:p1",
            "user:ana:preferences",
            "user:ana:rank:-9998:n1",
            "user:ana:the:0001",
        ]
    );
    let ben = store.acting_as("ben").unwrap().plain();
    assert_eq!(ben.get("user:ana:notes:n1").await.unwrap(), None);
    assert_eq!(ben.get("index:slug:first").await.unwrap(), None);
    assert_eq!(ben.delete("user:ana:notes:n1").await.unwrap(), None);
    for key in ["nobody's", "user:ana:nothing:n1"] {
        for error in
            [ben.get(key).await.err(), ben.put(key, "x").await.err(), ben.delete(key).await.err()]
        {
            assert_eq!(error.unwrap().kind(), ErrorKind::Forbidden, "{key}");
        }
    }
    assert_eq!(ben.in_area("~").err().unwrap().kind(), ErrorKind::InvalidArgument);
    let put = ben.put("user:ben:notes:n1", r#"{"userId":"ben","noteId":"n1"}"#).await;
    put.unwrap();
    let put = ben.put("user:ana:notes:n1", r#"{"userId":"ana","noteId":"n1"}"#).await;
    assert_eq!(put.unwrap_err().kind(), ErrorKind::Forbidden);
}

/// Where only owned keys lie, a listing of everything reads what is one's own.
#[tokio::test]
async fn a_listing_does_not_read_what_it_may_not_show() {
    let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
    let store = store_on(metered.clone()).await;
    let notes = store.documents("note").await.unwrap();
    for user in 0..50 {
        let note = json!({ "userId": format!("user{user}"), "noteId": "n1", "rank": 1 });
        notes.insert(&note).await.unwrap();
    }
    let plain = store.acting_as("user7").unwrap().plain().in_area("full").unwrap();
    metered.take();
    assert_eq!(plain.list("", 100, None).await.unwrap().entries.len(), 1);
    assert_eq!(metered.take().cells_read, 1);
}

#[tokio::test]
async fn maintenance_is_refused() {
    let store = with_ana().await;
    let ana = store.acting_as("ana").unwrap();
    let notes = ana.documents("note").await.unwrap();
    let (due, minute) = (Due::new("rank"), Duration::from_secs(60));
    let refusals = [
        ana.apply(&COMPILED).await.err(),
        ana.index_state("note", "slug").await.err(),
        ana.stored_schema().await.err(),
        ana.build("note", "slug").await.err(),
        ana.build_with_progress("note", "slug", |_| {}).await.err(),
        ana.disable("note", "slug").await.err(),
        ana.verify().await.err(),
        ana.verify_with(&VerifyOptions::default()).await.err(),
        ana.verifier(&VerifyOptions::default()).await.err(),
        ana.repair(&RepairOptions::default()).await.err(),
        ana.repair_with_progress(&RepairOptions::default(), |_| {}).await.err(),
        ana.recount("note", "mine").await.err(),
        ana.raw_keys().err(),
        ana.stats(&StatsOptions::default()).await.err(),
        ana.distribution("note", "rank", 1, 10).await.err(),
        ana.purge_groups(&PurgeOptions::default()).await.err(),
        notes.counted("mine", "eva").await.err(),
        notes.groups(&GroupQuery::new("mine")).await.err(),
        ana.space("other").unwrap().apply(&COMPILED).await.err(),
        ana.changes(Position::FIRST, 10).await.err(),
        ana.log_bounds().await.err(),
        ana.trim_log().await.err(),
        ana.watch(WatchOptions::from_now()).await.err(),
        ana.replay(&store).await.err(),
        ana.backup().await.err(),
        ana.backup_to(&mut Vec::new()).await.err(),
        ana.restorer().await.err(),
        ana.restore_from(&mut &b""[..]).await.err(),
        ana.replay_until(&store, Position::FIRST).await.err(),
        memory_store().await.replay(&ana).await.err(),
        ana.sweep(&SweepOptions::default()).await.err(),
        ana.maintain(&MaintainOptions::default()).await.err(),
        ana.maintain_every(minute, MaintainOptions::default()).err(),
        ana.start_job(Work::Verify(VerifyOptions::default()), JobOptions::default()).await.err(),
        ana.job_of_this_process(Work::Verify(VerifyOptions::default()), JobOptions::default())
            .err(),
        ana.jobs().await.err(),
        ana.jobs_of_all_spaces().await.err(),
        ana.purge_history(&PurgeOptions::default()).await.err(),
        ana.purge_idempotency_keys(&PurgeOptions::default()).await.err(),
        notes.lease(&due, "worker", minute).await.err(),
        notes.lease_documents(&due, "worker", minute).await.err(),
    ];
    for error in refusals.into_iter().map(Option::unwrap) {
        assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
    }
}

/// Why a unique index could not be built names two records, maybe of others.
#[tokio::test]
async fn a_failed_index_does_not_tell_users_why() {
    let store = memory_store().await;
    let notes = store.documents("note").await.unwrap();
    store.disable("note", "slug").await.unwrap();
    for user in ["ana", "eva"] {
        notes.insert(&json!({ "userId": user, "noteId": "n1", "slug": "x" })).await.unwrap();
    }
    store.build("note", "slug").await.unwrap_err();
    let told = notes.get_by("slug", "x").await.unwrap_err();
    assert!(told.to_string().contains("ana"), "{told}");
    let error = notes.acting_as("ben").unwrap().get_by("slug", "x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IndexNotReady);
    assert!(!error.to_string().contains("ana"), "{error}");
}

/// Only the owner's name is a value of the field, and a name that is none owns nothing.
#[tokio::test]
async fn a_name_that_cannot_own_owns_nothing() {
    let store = Store::on(Arc::new(Memory::new()));
    let schema = r#"
        [collection.doc]
        key    = "usr_{id}"
        access = "owned"
        owner  = "id"
        fields = { id = { type = "uuid", version = 4, generate = true } }
    "#;
    store.apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
    let docs = store.documents("doc").await.unwrap();
    let id = docs.insert(&json!({})).await.unwrap().value().unwrap()["id"].clone();
    let ana = docs.acting_as("ana").unwrap();
    assert!(ana.get(id.clone()).await.unwrap().is_none());
    assert_eq!(ana.insert(&json!({})).await.unwrap_err().kind(), ErrorKind::InvalidRecord);
    assert!(ana.page(&Query::new()).await.is_err());
    let own = docs.acting_as(id.as_str().unwrap()).unwrap();
    assert!(own.get(()).await.unwrap().is_some());
    assert_eq!(own.page(&Query::new()).await.unwrap().records.len(), 1);
}

#[tokio::test]
async fn access_is_narrowed_on_a_live_store_and_never_widened() {
    let declared = |access: &str| {
        let access = access.replace("owned", "owned\"\nowner = \"userId");
        Schema::from_toml(&format!(
            "[collection.note]\nkey = \"user:{{userId}}:notes:{{noteId}}\"\n\
             access = \"{access}\"\nfields = {{ userId = \"text\", noteId = \"text\" }}"
        ))
        .unwrap()
    };
    let engine = Arc::new(Memory::new());
    let store = Store::on(engine.clone());
    store.apply(&declared("shared")).await.unwrap();
    let notes = store.documents("note").await.unwrap();
    let ben = notes.acting_as("ben").unwrap();
    ben.insert(&json!({ "userId": "ana", "noteId": "n1" })).await.unwrap();
    // Another process narrows it. This one has declared that it is shared, and says so.
    Store::on(engine.clone()).apply(&declared("owned")).await.unwrap();
    let error = ben.insert(&json!({ "userId": "ana", "noteId": "n2" })).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IncompatibleSchema);
    let store = Store::on(engine);
    let error = store.apply(&declared("shared")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IncompatibleSchema);
    let ben = store.acting_as("ben").unwrap().documents("note").await.unwrap();
    assert!(ben.get(("ana", "n1")).await.unwrap().is_none());
}

/// An entry that lies about its record, as no write makes it, shows nothing.
#[tokio::test]
async fn an_entry_that_leads_astray_leads_nowhere() {
    for is_torn in [false, true] {
        let memory: Arc<dyn Engine> = Arc::new(Memory::new());
        let engine = if is_torn { Arc::new(Torn::new(memory.clone(), 1)) } else { memory };
        let store = store_on(engine.clone()).await;
        let notes = store.documents("note").await.unwrap();
        let note = json!({ "userId": "ana", "noteId": "n1", "rank": 1 });
        notes.insert(&note).await.unwrap();
        let planted = Address::new(Area::default_area(), "user:ben:the:0001");
        let cells = [Address::new(Area::default_area(), "user:ana:the:0001")];
        let honest = engine.get(&Space::main(), &cells).await.unwrap().pop().unwrap().unwrap();
        assert_eq!(honest.bytes().unwrap(), "\"user:ana:notes:n1\"");
        let mut batch = Batch::new(Space::main());
        let bytes = honest.bytes().unwrap().clone();
        batch.push(planted, None, Some(Effect::Put { stamp: honest.stamp, bytes }));
        engine.commit(batch).await.unwrap();
        let ben = notes.acting_as("ben").unwrap();
        assert!(ben.get_by("own_rank", 1).await.unwrap().is_none());
        let query = Query::new().index("own_rank").equal("rank", 1);
        for told in [ben.page(&query).await.told(), ben.keys(&query).await.told()] {
            assert!(told.contains("user:ben:the:0001") && !told.contains("ana"), "{told}");
        }
    }
}
