//! Records as Rust types: the same schemas as the files, and queries whose steps are types.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod typed_support;

use std::collections::BTreeMap;

use keyloom::{
    Choice, Collection, DateTime, ErrorKind, Id, Point, Query, Record, Schema, Store, Test,
    Timestamp, Uuid,
};
use serde::{Deserialize, Serialize};
use typed_support::approvals::{Approval, Status};
use typed_support::reputation::Vote;
use typed_support::{executions, flows, patterns, reputation};

fn from_file(system: &str) -> Schema {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schemas/systems");
    Schema::from_file(format!("{folder}/{system}.toml")).unwrap()
}

fn merged(schemas: impl IntoIterator<Item = keyloom::Result<Schema>>) -> Schema {
    schemas
        .into_iter()
        .map(|schema| schema.unwrap_or_else(|error| panic!("{error}")))
        .reduce(|all, next| all.merge(&next).unwrap())
        .unwrap()
}

async fn store() -> Store {
    Store::open("memory:").await.unwrap()
}

/// 20 approvals: ana's and ben's in turns, all to be decided by ana, one millisecond apart.
async fn approvals() -> Collection<Approval> {
    let approvals = store().await.collection::<Approval>().await.unwrap();
    for n in 0..20 {
        let requester = if n % 2 == 0 { "ana" } else { "ben" };
        approvals.insert(&Approval::new(requester, "ana", 1_000 + n)).await.unwrap();
    }
    approvals
}

fn times<'a>(records: impl IntoIterator<Item = &'a keyloom::Stored<Approval>>) -> Vec<i64> {
    records.into_iter().map(|record| record.created_at.millis()).collect()
}

#[test]
fn types_and_files_declare_the_same_schemas() {
    let systems = [
        ("approvals", merged([Approval::schema()])),
        (
            "reputation",
            merged([
                reputation::User::schema(),
                reputation::Tag::schema(),
                reputation::Reputation::schema(),
                Vote::schema(),
            ]),
        ),
        ("executions", merged([executions::Execution::schema()])),
        ("flows", merged([flows::Run::schema(), flows::Flow::schema()])),
        (
            "patterns",
            merged([
                patterns::User::schema(),
                patterns::Note::schema(),
                patterns::Preferences::schema(),
                patterns::Session::schema(),
                patterns::Template::schema(),
                patterns::Config::schema(),
                patterns::Stats::schema(),
                patterns::Post::schema(),
                patterns::Place::schema(),
            ]),
        ),
    ];
    for (system, schema) in systems {
        let json = |schema: &Schema| serde_json::to_string_pretty(&schema.declaration()).unwrap();
        assert_eq!(json(&schema), json(&from_file(system)), "{system}");
        assert_eq!(schema, from_file(system), "{system}");
    }
}

/// A record that uses whatever an attribute can say.
#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(
    key = "task:{tenant}:{number}",
    area = "tasks",
    body = r#"{"type": "object", "required": ["tenant"]}"#
)]
#[field(path = "data.kind", values = ["bug", "wish"])]
#[field(path = "data.owner", type = "uuid")]
#[index(
    open = "task-open:{tenant}:{priority desc}:{number}",
    where(done = false, priority = { gte = 3, lt = 10 }, data.kind = ["bug", "wish"]),
    sparse = false,
    holds = "record"
)]
#[index(title = "task-title:{title sorted}:{tenant}:{number}", where("data.owner" = { present = true }))]
#[index(weight = "task-weight:{weights.*}:{tenant}:{number}:{weights.*key}", max = 4)]
#[index(count = "task-count:{tenant}:{count}:{number}", area = "elsewhere")]
#[unique(reference = "task-reference:{tenant}:{type}", claims)]
struct Task {
    tenant: String,
    #[field(digits = 6, required)]
    number: u32,
    priority: i8,
    title: Option<String>,
    done: bool,
    weights: BTreeMap<String, f64>,
    count: i64,
    r#type: String,
    data: serde_json::Value,
    #[serde(skip)]
    scratch: usize,
}

#[test]
fn every_option_is_that_of_a_file() {
    let file = r#"
        [collection.task]
        key  = "task:{tenant}:{number}"
        area = "tasks"
        body = '{"type": "object", "required": ["tenant"]}'

        [collection.task.fields]
        tenant = "text"
        number = { type = "integer", digits = 6, required = true }
        priority = "integer"
        title = "text"
        done = "boolean"
        weights = "map"
        "weights.*" = "float"
        count = "integer"
        type = "text"
        "data.kind" = { type = "enum", values = ["bug", "wish"] }
        "data.owner" = "uuid"

        [collection.task.index.open]
        key = "task-open:{tenant}:{priority desc}:{number}"
        where = { done = false, priority = { gte = 3, lt = 10 }, "data.kind" = ["bug", "wish"] }
        sparse = false
        holds = "record"

        [collection.task.index.title]
        key = "task-title:{title sorted}:{tenant}:{number}"
        where = { "data.owner" = { present = true } }

        [collection.task.index.weight]
        key = "task-weight:{weights.*}:{tenant}:{number}:{weights.*key}"
        max = 4

        [collection.task.index.count]
        key = "task-count:{tenant}:{count}:{number}"
        area = "elsewhere"

        [collection.task.unique.reference]
        key = "task-reference:{tenant}:{type}"
        claims = true
    "#;
    let file = Schema::from_toml(file).unwrap_or_else(|error| panic!("{error}"));
    let task = Task::schema().unwrap_or_else(|error| panic!("{error}"));
    let json = |schema: &Schema| serde_json::to_string_pretty(&schema.declaration()).unwrap();
    assert_eq!(json(&task), json(&file));
    assert_eq!(task, file);
}

#[tokio::test]
async fn a_list_goes_along_its_index() {
    let approvals = approvals().await;
    let mine = approvals.by_requester("ana");
    let page = mine.newest().page(4).await.unwrap();
    assert_eq!(times(&page.records), [1_018, 1_016, 1_014, 1_012]);
    let page = mine.newest().page(4).after(page.next.unwrap()).await.unwrap();
    assert_eq!(times(&page.records), [1_010, 1_008, 1_006, 1_004]);
    let text = page.previous.unwrap().to_string();
    let page = mine.newest().page(4).after(Some(text)).await.unwrap();
    assert_eq!(times(&page.records), [1_018, 1_016, 1_014, 1_012]);
    let none: Option<String> = None;
    assert_eq!(
        mine.oldest().page(1).after(none).await.unwrap().records[0].created_at,
        1_000.into()
    );
    // Without an order, records come as the index has them.
    assert_eq!(times(&mine.page(2).await.unwrap().records), [1_018, 1_016]);
}

#[tokio::test]
async fn ranges_have_every_form() {
    let approvals = approvals().await;
    let mine = || approvals.by_requester("ana");
    let (a, b) = (Timestamp::from(1_004), Timestamp::from(1_008));
    assert_eq!(mine().created_at(a..).count().await.unwrap(), 8);
    assert_eq!(mine().created_at(..b).count().await.unwrap(), 4);
    assert_eq!(mine().created_at(..=b).count().await.unwrap(), 5);
    assert_eq!(mine().created_at(..).count().await.unwrap(), 10);
    assert_eq!(mine().created_at(1_004..1_008).count().await.unwrap(), 2);
    let page = mine().created_at(a..=b).oldest().page(9).await.unwrap();
    assert_eq!(times(&page.records), [1_004, 1_006, 1_008]);
    assert_eq!(mine().range(a..=b).count().await.unwrap(), 3);
    let exact = mine().created_at(a).first().await.unwrap().unwrap();
    assert_eq!(exact.created_at, a);
    assert_eq!(mine().created_at(a).id(exact.id).count().await.unwrap(), 1);
    assert_eq!(mine().created_at(a).id(Id::new()).count().await.unwrap(), 0);
    assert!(mine().created_at(Timestamp::from(-1)..).count().await.is_err());
}

#[tokio::test]
async fn filters_limits_keys_documents_and_plans() {
    let approvals = approvals().await;
    let mine = approvals.by_approver("ana");
    let bens = mine.newest().filter("requester_id", Test::Equals("ben".into()));
    let page = bens.limit(5).page(10).await.unwrap();
    assert_eq!((page.records.len(), page.read), (3, 5));
    let keys = mine.oldest().keys(2).await.unwrap().records;
    let documents = mine.oldest().documents(2).await.unwrap().records;
    assert_eq!(keys, documents.iter().map(|found| found.key.clone()).collect::<Vec<_>>());
    assert!(keys[0].starts_with("approval:record:"));
    let plan = mine.newest().explain().await.unwrap();
    assert!(plan.starts_with("index approval.approver: "), "{plan}");
    assert_eq!(approvals.scan().page(100).await.unwrap().records.len(), 20);
}

#[tokio::test]
async fn a_union_has_every_record_once() {
    let approvals = approvals().await;
    let ours = approvals.by_requester("ana").or(approvals.by_approver("ana"));
    let page = ours.newest().page(30).await.unwrap();
    assert_eq!(times(&page.records), (1_000..1_020).rev().collect::<Vec<_>>());
    let page = ours.range(Timestamp::from(1_017)..).oldest().page(30).await.unwrap();
    assert_eq!(times(&page.records), [1_017, 1_018, 1_019]);
    let three = approvals.by_requester("ana").or(approvals.by_requester("ben"));
    assert_eq!(three.or(approvals.by_approver("cyd")).count().await.unwrap(), 20);
    let since = |n: i64| Timestamp::from(n)..;
    let bounded = |n: i64| approvals.by_approver("ana").created_at(since(n));
    let ana = approvals.by_requester("ana").created_at(since(1_015));
    assert_eq!(ana.or(bounded(1_015)).count().await.unwrap(), 5);
    let error = ana.or(bounded(1_016)).count().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidQuery);
    assert_eq!(error.message(), "the sides of a union must have the same range");
    // What both sides fix alike is asked of both.
    let at = |n: i64| approvals.by_approver("ana").created_at(n);
    assert_eq!(
        approvals.by_requester("ana").created_at(1_004).or(at(1_004)).count().await.unwrap(),
        1
    );
    assert_eq!(
        approvals.by_requester("ben").created_at(1_004).or(at(1_004)).count().await.unwrap(),
        1
    );
    assert_eq!(approvals.by_requester("ana").created_at(999).or(at(999)).count().await.unwrap(), 0);
    let (newest, oldest) = (approvals.by_requester("ana").newest(), bounded(0).oldest());
    assert_eq!(newest.or(oldest).count().await.unwrap_err().kind(), ErrorKind::InvalidQuery);
    let different =
        approvals.by_requester("ana").created_at(5).or(approvals.by_approver("ben").created_at(6));
    let error = different.count().await.unwrap_err();
    assert_eq!(error.message(), "the sides of a union must differ in one field each");
}

#[tokio::test]
async fn a_unique_value_leads_to_its_record() {
    let approvals = approvals().await;
    let approval = approvals.by_requester("ana").first().await.unwrap().unwrap();
    let code = approval.code.clone().unwrap();
    let found = approvals.by_code(&code).get().await.unwrap().unwrap();
    assert_eq!(found, approval);
    let document = approvals.by_code(&code).document().await.unwrap().unwrap();
    assert_eq!(document.key, approval.key);
    assert_eq!(approvals.by_code("A-222222").get().await.unwrap(), None);
    assert_eq!(approvals.get(approval.id).await.unwrap().unwrap(), approval);
    assert_eq!(approvals.get(&approval.id).await.unwrap().unwrap(), approval);
}

#[tokio::test]
async fn a_choice_guards_its_transitions() {
    let approvals = approvals().await;
    let mut approval = approvals.by_requester("ana").first().await.unwrap().unwrap().into_value();
    approval.status = Status::Approved;
    approvals.replace(&approval).await.unwrap();
    approval.status = Status::Denied;
    let error = approvals.replace(&approval).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IllegalTransition);
}

#[tokio::test]
async fn typed_and_untyped_collections_share_a_store() {
    let store = store().await;
    let approvals = store.collection::<Approval>().await.unwrap();
    let approval = Approval::new("ana", "ben", 1_000);
    approvals.insert(&approval).await.unwrap();
    let documents = store.documents("approval").await.unwrap();
    let query = Query::new().equal("approver_id", "ben").equal("created_at", approval.created_at);
    let found = documents.page(&query).await.unwrap();
    assert_eq!(found.records[0].value["status"], "pending");
    assert_eq!(found.records[0].value["id"], approval.id.as_str());
}

#[tokio::test]
async fn records_are_listed_by_the_first_parts_of_their_key() {
    let store = store().await;
    let votes = store.collection::<Vote>().await.unwrap();
    let [user, tag, target] = [Uuid::new(), Uuid::new(), Uuid::new()];
    let vote = Vote { id: Uuid::new(), user, tag, target };
    votes.insert(&vote).await.unwrap();
    votes.insert(&Vote { id: Uuid::new(), target: user, ..vote.clone() }).await.unwrap();
    assert_eq!(votes.by_key(user).tag(tag).count().await.unwrap(), 2);
    assert_eq!(votes.by_key(user).tag(user).count().await.unwrap(), 0);
    let for_target = votes.by_target(target).tag(tag.as_str()).page(9).await.unwrap();
    assert_eq!(for_target.records.len(), 1);
    assert_eq!(for_target.records[0].value, vote);
    assert_eq!(votes.get((user, tag, target, vote.id)).await.unwrap().unwrap().value, vote);
    let error = votes.by_target("b068e9ee1422edf7878440ab8b6").count().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidQuery);
}

#[tokio::test]
async fn executions_by_agent_status_and_time() {
    let executions = store().await.collection::<executions::Execution>().await.unwrap();
    let started = |day: i64| DateTime::try_from(Timestamp::from(day * 86_400_000)).unwrap();
    for day in 0..6 {
        let execution = executions::Execution {
            execution_arn: format!("arn:aws:states:eu:1:execution:m:{day}"),
            agent_name: "agent".to_owned(),
            start_date: started(day),
            stop_date: None,
            duration_seconds: None,
            status: executions::Status::Running,
            indexed_at: None,
        };
        executions.insert(&execution).await.unwrap();
    }
    let of_agent = executions.by_agent("agent").start_date(started(1)..started(4));
    assert_eq!(of_agent.newest().page(9).await.unwrap().records[0].start_date, started(3));
    let running = executions.by_status(executions::Status::Running);
    assert_eq!(running.start_date("1970-01-03T00:00:00.000Z").count().await.unwrap(), 1);
    let succeeded = executions.by_status(&executions::Status::Succeeded);
    assert_eq!(succeeded.oldest().count().await.unwrap(), 0);
}

#[tokio::test]
async fn entries_of_maps_and_arrays() {
    let store = store().await;
    let runs = store.collection::<flows::Run>().await.unwrap();
    let awaiting = |at: i64| flows::Awaiting { timeout_at: at.into() };
    let steps = [("pay".to_owned(), awaiting(50)), ("ship".to_owned(), awaiting(70))];
    let run = flows::Run {
        flow: "order".to_owned(),
        run_id: "r1".to_owned(),
        status: flows::Status::Awaiting,
        started_at: 10.into(),
        awaiting_steps: BTreeMap::from(steps),
        emitted_events: [("order.created".to_owned(), 11.into())].into(),
    };
    runs.insert(&run).await.unwrap();
    assert_eq!(runs.by_started("order").newest().page(1).await.unwrap().records[0].value, run);
    let due = runs.by_due().awaiting_steps_timeout_at(..Timestamp::from(60));
    assert_eq!(due.oldest().page(9).await.unwrap().records.len(), 1);
    let at_70 = runs.by_due().awaiting_steps_timeout_at(70).flow("order").run_id("r1");
    assert_eq!(at_70.awaiting_steps_key("ship").count().await.unwrap(), 1);
    assert_eq!(at_70.awaiting_steps_key("pay").count().await.unwrap(), 0);
    assert_eq!(at_70.starts_with("sh").count().await.unwrap(), 1);

    let posts = store.collection::<patterns::Post>().await.unwrap();
    let post = patterns::Post {
        user_id: "ana".to_owned(),
        post_id: "p1".to_owned(),
        timestamp: 5.into(),
        tags: vec!["rust".to_owned(), "keys".to_owned(), "rust".to_owned()],
    };
    posts.insert(&post).await.unwrap();
    assert_eq!(posts.by_tag("rust").page(9).await.unwrap().records.len(), 1);
    assert_eq!(posts.by_recent().newest().first().await.unwrap().unwrap().value, post);
    assert_eq!(posts.by_recent().timestamp(5).post_id("p1").count().await.unwrap(), 1);
}

#[tokio::test]
async fn places_near_a_point() {
    let places = store().await.collection::<patterns::Place>().await.unwrap();
    for (id, lat, lng) in [("far", 10.0, 10.2), ("near", 10.0, 10.001), ("here", 10.0, 10.0)] {
        let place = patterns::Place { id: id.to_owned(), lat, lng };
        places.insert(&place).await.unwrap();
    }
    let here = Point { lat: 10.0, lon: 10.0 };
    let first = places.by_position(here).within(1_000.0).page(1).await.unwrap();
    assert_eq!(first.records[0].record.id, "here");
    let second = places.by_position((10.0, 10.0)).within(1_000.0).after(first.next);
    let second = second.page(5).await.unwrap();
    assert_eq!(second.records.iter().map(|near| &near.record.id).collect::<Vec<_>>(), ["near"]);
}

#[tokio::test]
async fn names_that_a_query_has_itself_get_an_underscore() {
    let tasks = store().await.collection::<Task>().await.unwrap();
    let task = Task {
        tenant: "t".to_owned(),
        number: 7,
        priority: 5,
        title: Some("Zebra".to_owned()),
        done: false,
        weights: [("a".to_owned(), -1.5)].into(),
        count: -3,
        r#type: "x".to_owned(),
        data: serde_json::json!({ "kind": "bug", "owner": Uuid::new() }),
        scratch: 9,
    };
    tasks.insert(&task).await.unwrap();
    assert_eq!(tasks.by_count("t").count_(-5..=-3).count().await.unwrap(), 1);
    assert_eq!(tasks.by_open("t").priority(4..).descending().count().await.unwrap(), 1);
    assert_eq!(tasks.by_title().title("Y"..).ascending().count().await.unwrap(), 1);
    assert_eq!(tasks.by_title().starts_with("Zeb").descending().count().await.unwrap(), 1);
    assert_eq!(tasks.by_title().starts_with("Zec").count().await.unwrap(), 0);
    assert_eq!(tasks.by_weight().weights(-2.0..0.0).count().await.unwrap(), 1);
    let found = tasks.by_reference("t", "x").get().await.unwrap().unwrap();
    // What serde skips is not part of the record.
    assert_eq!(found.scratch, 0);
    assert_eq!(tasks.by_key("t").number(7_u32).count().await.unwrap(), 1);
}

/// JSON would have `null` in its place, and the record could never be read back.
#[tokio::test]
async fn numbers_that_json_has_not_are_refused_by_name_on_every_way() {
    let store = store().await;
    let tasks = store.collection::<Task>().await.unwrap();
    let task = Task {
        tenant: "t".to_owned(),
        number: 7,
        priority: 5,
        title: None,
        done: false,
        weights: [("a".to_owned(), -1.5)].into(),
        count: -3,
        r#type: "x".to_owned(),
        data: serde_json::Value::Null,
        scratch: 9,
    };
    tasks.insert(&task).await.unwrap();
    let odd = Task { weights: [("a".to_owned(), f64::NAN)].into(), ..task.clone() };
    let spoil = |task: &mut Task| {
        task.weights.insert("a".to_owned(), f64::NAN);
        Ok(())
    };
    let in_transaction: keyloom::Result<()> = store
        .transaction(|tx| {
            let odd = odd.clone();
            async move { tx.collection::<Task>()?.upsert(&odd).await.map(drop) }
        })
        .await;
    for refused in [
        tasks.insert(&odd).await.map(drop),
        tasks.upsert(&odd).await.map(drop),
        tasks.replace(&odd).await.map(drop),
        tasks.modify(("t", 7), spoil).await.map(drop),
        tasks.upsert_with(&odd, |_| Ok(())).await.map(drop),
        in_transaction,
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRecord);
        for (name, value) in
            [("collection", "task"), ("index", "weight"), ("field", "weights.*"), ("value", "NaN")]
        {
            assert_eq!(error.context_value(name), Some(value), "{error}");
        }
    }
}

#[tokio::test]
async fn numbers_that_json_has_not_are_named_when_they_are_asked_for() {
    let tasks = store().await.collection::<Task>().await.unwrap();
    for (number, name) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
        for refused in [
            tasks.by_weight().weights(number).count().await,
            tasks.by_weight().weights(number as f32).count().await,
            tasks.by_weight().weights(number..).count().await,
            tasks.by_weight().weights(0.0..=number).count().await,
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidQuery);
            for (what, told) in [("field", "weights.*"), ("value", name)] {
                assert_eq!(error.context_value(what), Some(told), "{error}");
            }
            assert!(error.to_string().contains("JSON has neither NaN nor infinities"), "{error}");
        }
        // Only `null` is left of it, which may have been one too.
        let untyped = Query::new().equal("weights.*", number).index("weight");
        let error = tasks.count(&untyped).await.unwrap_err();
        assert_eq!(error.context_value("value"), Some("null"));
        assert!(error.to_string().contains("NaN and infinities are null in JSON"), "{error}");
    }
}

#[test]
fn a_wrong_schema_says_what_is_wrong() {
    #[derive(Serialize, Deserialize, Record)]
    #[record(key = "a:{id}")]
    #[index(name = "b:{name}")]
    struct Short {
        id: String,
        name: String,
    }
    let error = Short::schema().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidSchema);
    let problem = error.context_value("problem").unwrap();
    assert!(problem.starts_with("collection.short.index.name.key: lacks `id`"), "{problem}");
}

#[derive(Clone, Copy, Serialize, Deserialize, Choice)]
#[serde(rename_all = "lowercase")]
enum Light {
    Red,
    Green,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "lamp:{light}")]
#[count(by_light = ["light"])]
struct Lamp {
    light: Light,
}

#[tokio::test]
async fn a_choice_is_a_value_of_a_key_and_of_a_group() {
    let store = Store::open("memory:").await.unwrap();
    let lamps = store.collection::<Lamp>().await.unwrap();
    lamps.insert(&Lamp { light: Light::Red }).await.unwrap();
    assert!(lamps.get(Light::Red).await.unwrap().is_some());
    assert!(lamps.get(Light::Green).await.unwrap().is_none());
    assert_eq!(lamps.counted("by_light", Light::Red).await.unwrap(), 1);
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "block:{height}")]
#[index(size = "block-size:{size}:{height}")]
#[index(shift = "block-shift:{shift desc}:{height}")]
struct Block {
    height: u64,
    size: usize,
    shift: isize,
    /// In no key, so that it may be any number.
    nonce: u64,
}

#[tokio::test]
async fn whole_numbers_of_every_size_are_keys() {
    const TOP: u64 = i64::MAX as u64;
    let store = Store::open("memory:").await.unwrap();
    let blocks = store.collection::<Block>().await.unwrap();
    let heights = [0, 9, 10, 1 << 32, TOP - 1, TOP];
    for height in heights {
        let shift = -(height.trailing_zeros() as isize);
        let block = Block { height, size: height as usize, shift, nonce: u64::MAX };
        blocks.insert(&block).await.unwrap();
        assert_eq!(blocks.get(height).await.unwrap().unwrap().value, block);
        assert_eq!(blocks.get(height as usize).await.unwrap().unwrap().value, block);
    }
    let of = |page: keyloom::Page<keyloom::Stored<Block>>| -> Vec<u64> {
        page.records.iter().map(|block| block.height).collect()
    };
    // A value and a bound may be of any type of whole numbers, and a bare literal is one.
    assert_eq!(of(blocks.by_size().size(9).page(9).await.unwrap()), [9]);
    assert_eq!(of(blocks.by_size().size(9_u8).page(9).await.unwrap()), [9]);
    assert_eq!(of(blocks.by_size().size(heights.len()..).page(9).await.unwrap()), heights[1..]);
    assert_eq!(of(blocks.by_size().size(..=TOP - 1).page(9).await.unwrap()), heights[..5]);
    assert_eq!(of(blocks.by_size().size(-5..10).page(9).await.unwrap()), heights[..2]);
    assert_eq!(of(blocks.by_shift().descending().page(1).await.unwrap()), [9]);
    assert_eq!(blocks.by_shift().shift(..-60).count().await.unwrap(), 1);
}

#[tokio::test]
async fn a_number_that_no_key_can_hold_is_refused_with_its_field() {
    let store = Store::open("memory:").await.unwrap();
    let blocks = store.collection::<Block>().await.unwrap();
    let block = |height, size| Block { height, size, shift: 0, nonce: u64::MAX };
    let beyond = i64::MAX as u64 + 1;
    let told = |error: keyloom::Error, kinds: &[ErrorKind], field: &str, value: u64| {
        assert!(kinds.contains(&error.kind()), "{error}");
        let shown = error.to_string();
        assert!(shown.contains(field) && shown.contains(&value.to_string()), "{shown}");
        assert!(shown.contains(&i64::MAX.to_string()), "it says what fits: {shown}");
    };
    let of_record = [ErrorKind::InvalidKey, ErrorKind::InvalidRecord];
    for beyond in [beyond, u64::MAX] {
        let error = blocks.insert(&block(beyond, 1)).await.unwrap_err();
        told(error, &of_record, "height", beyond);
        let error = blocks.insert(&block(1, beyond as usize)).await.unwrap_err();
        told(error, &of_record, "size", beyond);
        let error = blocks.get(beyond).await.unwrap_err();
        told(error, &of_record, "height", beyond);
        let error = blocks.by_size().size(beyond).count().await.unwrap_err();
        told(error, &[ErrorKind::InvalidQuery], "size", beyond);
    }
    assert_eq!(blocks.scan().count().await.unwrap(), 0);
}
