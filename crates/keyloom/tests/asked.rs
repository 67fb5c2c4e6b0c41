//! What a question says: which partial indexes it leads to, and which slips it is refused for,
//! whatever would have answered it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use keyloom::{Collection, Error, ErrorKind, Near, Order, Query, Record, Schema, Store, Test};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const JOBS: &str = r#"
[collection.job]
key = "job:{id}"
[collection.job.fields]
id       = "text"
queue    = "text"
state    = { type = "enum", values = ["open", "held", "done"] }
prio     = { type = "integer", digits = 2 }
uid      = "uuid"
due      = "timestamp"
made     = "datetime"
steps    = "map"
place    = "point"
"labels.*"   = "text"
"steps.*.at" = "timestamp"
[collection.job.body.properties]
quueue = {}
[collection.job.index.open]
key   = "job:open:{queue}:{prio desc}:{id}"
where = { state = "open" }
[collection.job.index.urgent]
key   = "job:urgent:{queue}:{id}"
where = { state = ["open", "held"], prio = { gte = 5 } }
[collection.job.index.uid]
key = "job:uid:{uid}:{id}"
[collection.job.index.prio]
key = "job:prio:{prio}:{id}"
[collection.job.index.label]
key = "job:label:{labels.*}:{id}"
[collection.job.geo.place]
key   = "job:place:{place geohash 5}:{id}"
where = { state = ["open", "held"] }
[collection.job.count.by_queue]
group = ["queue"]
where = { prio = { gte = 5 } }
"#;

async fn jobs() -> Collection<Value> {
    let store = Store::open("memory:").await.unwrap();
    store.apply(&Schema::from_toml(JOBS).unwrap()).await.unwrap();
    let jobs = store.documents("job").await.unwrap();
    for (id, state, prio) in
        [("a", "open", 6), ("b", "held", 7), ("c", "done", 8), ("d", "open", 1)]
    {
        let place = json!({ "lat": 48.85, "lon": 2.35 });
        let job = json!({ "id": id, "queue": "q", "state": state, "prio": prio, "place": place });
        jobs.insert(&job).await.unwrap();
    }
    jobs
}

async fn ids(jobs: &Collection<Value>, query: &Query) -> Vec<String> {
    let page = jobs.page(query).await.unwrap();
    page.records.iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn what_a_condition_pins_needs_no_segment() {
    let jobs = jobs().await;
    let query =
        Query::new().equal("queue", "q").equal("state", "open").order("prio", Order::Descending);
    let plan = jobs.explain(&query).await.unwrap();
    let begin = "index job.open: job:open:{queue}:{prio desc}:{id}\n  where: state = \"open\"\n";
    assert!(plan.starts_with(begin), "{plan}");
    assert!(plan.ends_with("direction: forward"), "nothing is left to filter: {plan}");
    assert_eq!(ids(&jobs, &query).await, ["a", "d"]);
    assert_eq!(jobs.keys(&query).await.unwrap().records, ["job:a", "job:d"]);
    assert_eq!(jobs.count(&query).await.unwrap(), 2);
    // A filter says the same, and is not tested again.
    let said = Query::new().equal("queue", "q").filter("state", Test::Equals(json!("open")));
    assert_eq!(jobs.keys(&said).await.unwrap().records, ["job:a", "job:d"]);
    let open = Query::new().equal("queue", "q").equal("state", "open");
    assert_eq!(jobs.max(&open, "prio").await.unwrap(), Some(json!(6)));
}

#[tokio::test]
async fn what_a_condition_pins_in_part_is_filtered() {
    let jobs = jobs().await;
    let held = Query::new().equal("queue", "q").equal("state", "held").range("prio", 7..);
    let plan = jobs.explain(&held).await.unwrap();
    assert!(plan.starts_with("index job.urgent: "), "{plan}");
    assert!(plan.ends_with("\nfilter: state = \"held\"\nfilter: prio >= 7"), "{plan}");
    assert_eq!(ids(&jobs, &held).await, ["b"]);
    assert_eq!(jobs.count(&held).await.unwrap(), 1);
    let error = jobs.keys(&held).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidQuery);
    assert_eq!(error.context_value("filter"), Some("state = \"held\""));

    // Each side of a union has a filter of its own.
    let either = Query::new()
        .equal("queue", "q")
        .any("state", "open")
        .any("state", "held")
        .range("prio", 5..);
    let plan = jobs.explain(&either).await.unwrap();
    for side in ["  filter: state = \"open\"\n", "  filter: state = \"held\"\n"] {
        assert!(plan.contains(side), "{plan}");
    }
    assert_eq!(ids(&jobs, &either).await, ["a", "b"]);
    assert_eq!(jobs.count(&either).await.unwrap(), 2);

    // The declared count has exactly these.
    let high = Query::new().equal("queue", "q").range("prio", 5..);
    assert_eq!(jobs.count(&high).await.unwrap(), 3);
    let plan = jobs.explain(&high).await.unwrap();
    assert!(plan.ends_with("count: the aggregate by_queue, one round trip"), "{plan}");
}

#[tokio::test]
async fn a_refusal_tells_conditions_and_what_is_lacking() {
    let jobs = jobs().await;
    let query = Query::new().equal("queue", "q").order("prio", Order::Descending);
    let error = jobs.page(&query).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoIndex);
    let told = error.to_string();
    let there = "job:open:{queue}:{prio desc}:{id} where state = \"open\" (open, ready)";
    assert!(told.contains(there), "{told}");
    let nearly = "open serves records whose state = \"open\"; ask for that, or name the index";
    assert_eq!(error.context_value("nearly"), Some(nearly));
    // Who names it has asked for what it has.
    assert_eq!(ids(&jobs, &query.index("open")).await, ["a", "d"]);
}

#[tokio::test]
async fn a_search_by_place_keeps_the_promise_of_partial_indexes() {
    let jobs = jobs().await;
    let near = || Near::new(48.85, 2.35);
    let error = jobs.near(&near()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidQuery);
    assert_eq!(error.context_value("there is"), Some("place where state in [\"open\",\"held\"]"));
    let found = async |near: Near| -> Vec<String> {
        let page = jobs.near(&near).await.unwrap();
        page.records.iter().map(|job| job.record["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(found(near().equal("state", "held")).await, ["b"]);
    assert_eq!(found(near().equal("state", "open")).await, ["a", "d"]);
    assert_eq!(found(near().index("place")).await, ["a", "b", "d"]);
    assert!(jobs.near(&near().equal("state", "done")).await.is_err());
}

/// The questions by which a value can be asked for: by an index, by a scan, as a filter, as a side
/// of a union.
fn ways(field: &str, value: &Value) -> Vec<Query> {
    let filtered = |test: Test| Query::new().equal("id", "a").filter(field, test);
    vec![
        Query::new().equal(field, value.clone()),
        Query::new().equal(field, value.clone()).scan(),
        Query::new().any(field, value.clone()).any("id", "a"),
        Query::new().range::<Value>(field, value.clone()..).scan(),
        filtered(Test::Equals(value.clone())),
        filtered(Test::OneOf(vec![value.clone()])),
        filtered(Test::Greater(value.clone())),
        filtered(Test::AtMost(value.clone())),
    ]
}

async fn refusals(jobs: &Collection<Value>, query: &Query) -> Vec<Error> {
    vec![
        jobs.page(query).await.unwrap_err(),
        jobs.keys(query).await.unwrap_err(),
        jobs.count(query).await.unwrap_err(),
        jobs.count_entries(query).await.unwrap_err(),
        jobs.explain(query).await.unwrap_err(),
    ]
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_refused_alike_whatever_answers() {
    let jobs = jobs().await;
    let integer = "an integer here is a whole number from -100 to 99 (digits = 2)";
    let timestamp =
        "a timestamp is a whole number of milliseconds since 1970, from 0 to 9999999999999";
    for (field, value, reason) in [
        ("prio", json!("high"), integer),
        ("prio", json!(1.5), integer),
        ("prio", json!(100), integer),
        ("due", json!(1.5), timestamp),
        ("due", json!("soon"), timestamp),
        ("steps.first.at", json!("soon"), timestamp),
        ("state", json!("opne"), "the allowed values are open, held, done"),
        ("queue", json!(7), "a text is a string"),
        ("labels.*", json!(7), "a text is a string"),
        ("uid", json!("x"), "a UUID is 32 lower-case hex digits, but this has 1 character"),
        (
            "made",
            json!("2024-01-31"),
            "a date-time is written exactly as 2024-01-31T23:59:59.999Z, but this has 10 \
             characters; a date has no time, and its first moment is 2024-01-31T00:00:00.000Z",
        ),
    ] {
        for query in ways(field, &value) {
            for error in refusals(&jobs, &query).await {
                assert_eq!(error.kind(), ErrorKind::InvalidQuery, "{query:?}: {error}");
                assert_eq!(error.message(), "a value that is asked for does not fit its field");
                assert_eq!(error.context_value("field"), Some(field), "{error}");
                assert_eq!(error.context_value("reason"), Some(reason), "{error}");
            }
        }
        let near = Near::new(0.0, 0.0).index("place").equal(field, value);
        assert_eq!(jobs.near(&near).await.unwrap_err().kind(), ErrorKind::InvalidQuery);
    }
    let error = jobs.page(&Query::new().equal("state", "opne")).await.unwrap_err();
    assert_eq!(error.context_value("did you mean"), Some("open"));
}

#[tokio::test]
async fn a_slip_in_a_name_is_told_and_another_name_is_asked_for() {
    let jobs = jobs().await;
    for (field, meant) in [
        ("labels", "labels.*"),
        ("labels.0", "labels.*"),
        ("lables.*", "labels.*"),
        ("Queue", "queue"),
        ("queeue", "queue"),
    ] {
        for query in ways(field, &json!("x")) {
            let error = jobs.page(&query).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidQuery, "{query:?}: {error}");
            assert_eq!(error.context_value("did you mean"), Some(meant), "{error}");
        }
    }
    for field in ["queue.*", "queue.first", "prio.x"] {
        let query = Query::new().equal(field, "x").scan();
        let error = jobs.page(&query).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidQuery, "{error}");
        assert!(error.context_value("reason").unwrap().contains("one value"), "{error}");
    }
    // Undeclared names, names that the body has, members of maps and of places.
    let free = ["note", "stage", "quueue", "steps.first.by", "steps", "place.lat", "labels"];
    for field in free {
        let present = Query::new().filter(field, Test::Present).scan();
        assert!(jobs.page(&present).await.is_ok(), "{field}");
    }
    let whole = Query::new().equal("labels", json!(["x"])).scan();
    assert!(ids(&jobs, &whole).await.is_empty());
}

#[tokio::test]
async fn a_range_in_which_nothing_can_lie_is_refused() {
    let jobs = jobs().await;
    let between = |low: Value, high: Value| Query::new().range("free", low..high).scan();
    for query in [
        between(json!("a"), json!(4)),
        between(json!([1]), json!([2])),
        Query::new().equal("free", Value::Null).scan(),
        Query::new().equal("queue", Value::Null).scan(),
        Query::new().range::<Value>("place", ..).scan(),
        Query::new().range::<Value>("steps", ..).scan(),
        Query::new().equal("steps", 1).scan(),
        Query::new().starts_with("prio", "1"),
    ] {
        let error = jobs.page(&query).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidQuery, "{query:?}: {error}");
    }
    assert!(jobs.page(&between(json!(1), json!(4.5))).await.is_ok());
}

/// An index with every record of a queue, and one with the open ones only.
#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "task:{id}")]
#[index(all = "task-all:{queue}:{id}")]
#[index(open = "task-open:{queue}:{id}", where(done = false))]
struct Task {
    id: String,
    queue: String,
    done: bool,
    /// Almost the name of a declared field.
    queeue: Option<String>,
}

#[tokio::test]
async fn the_sides_of_a_typed_union_go_by_their_own_indexes() {
    let store = Store::open("memory:").await.unwrap();
    let tasks = store.collection::<Task>().await.unwrap();
    for (id, queue, done) in [("1", "q", false), ("2", "q", true), ("3", "r", false)] {
        let (id, queue) = (id.to_owned(), queue.to_owned());
        tasks.insert(&Task { id, queue, done, queeue: None }).await.unwrap();
    }
    let open = tasks.by_open("q").or(tasks.by_open("r"));
    let page = open.page(10).await.unwrap();
    let ids: Vec<&str> = page.records.iter().map(|task| task.value.id.as_str()).collect();
    assert_eq!(ids, ["1", "3"], "{}", open.explain().await.unwrap());
    assert_eq!(open.count().await.unwrap(), 2);
    // What the type has is no slip, and what nothing has is one.
    let odd = tasks.by_all("q").filter("queeue", Test::Present);
    assert_eq!(odd.count().await.unwrap(), 0);
    let slip = tasks.by_all("q").filter("queuee", Test::Present);
    assert_eq!(slip.count().await.unwrap_err().kind(), ErrorKind::InvalidQuery);
}
