//! Which index answers a question, where several could, or none does it rightly.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use keyloom::{Collection, ErrorKind, Order, Query, Schema, Store, Test};
use serde_json::{Value, json};

const SCHEMA: &str = r#"
[collection.task]
key = "task:{id}"
[collection.task.fields]
id       = "text"
owner    = "text"
team     = { type = "text", required = true }
due      = "timestamp"
"tags.*" = "text"
place    = "point"
[collection.task.index.a_tagged]
key = "a:{owner}:{tags.*}:{id}"
[collection.task.index.b_due]
key = "b:{owner}:{due}:{id}"
[collection.task.index.c_team]
key = "c:{owner}:{team}:{id}"
[collection.task.index.d_team_due]
key   = "d:{team}:{due}:{id}"
holds = "record"
[collection.task.index.e_tag]
key = "e:{tags.*}:{id}"
[collection.task.geo.place]
key = "p:{place geohash 5}:{id}"
"#;

/// One task with everything, one with nothing that may be missing.
async fn filled() -> (Store, Collection<Value>) {
    let store = Store::open("memory:").await.unwrap();
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let tasks = store.documents("task").await.unwrap();
    let place = json!({ "lat": 48.8584, "lon": 2.2945 });
    let full = json!({ "id": "full", "owner": "ana", "team": "red", "due": 5, "tags": ["x", "y"], "place": place });
    tasks.insert(&full).await.unwrap();
    tasks.insert(&json!({ "id": "bare", "owner": "ana", "team": "red" })).await.unwrap();
    (store, tasks)
}

async fn ids(tasks: &Collection<Value>, query: &Query) -> Vec<String> {
    let page = tasks.page(query).await.unwrap();
    page.records.iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

async fn refusal(tasks: &Collection<Value>, query: &Query) -> keyloom::Error {
    tasks.page(query).await.unwrap_err()
}

#[tokio::test]
async fn an_index_that_has_every_record_goes_before_those_that_miss_some() {
    let (_, tasks) = filled().await;
    let owned = Query::new().equal("owner", "ana");
    assert!(tasks.explain(&owned).await.unwrap().starts_with("index task.c_team"));
    assert_eq!(ids(&tasks, &owned).await, ["bare", "full"]);
    assert_eq!(tasks.count(&owned).await.unwrap(), 2);
}

#[tokio::test]
async fn a_plan_tells_which_records_its_index_does_not_have() {
    let (_, tasks) = filled().await;
    let plan = tasks.explain(&Query::new().equal("team", "red")).await.unwrap();
    assert!(plan.contains("\n  only records that have: due\n"), "{plan}");
    // Who asks for a field asks for the records that have it.
    let query = Query::new().equal("team", "red").order("due", Order::Ascending);
    let plan = tasks.explain(&query).await.unwrap();
    assert!(!plan.contains("only records"), "{plan}");
}

#[tokio::test]
async fn an_index_over_elements_answers_questions_about_elements_only() {
    let (_, tasks) = filled().await;
    assert_eq!(ids(&tasks, &Query::new().equal("tags.*", "x")).await, ["full"]);
    // It is there for who names it, with a record once for each of its elements.
    let named = Query::new().index("a_tagged").equal("owner", "ana");
    assert_eq!(ids(&tasks, &named).await, ["full", "full"]);
    let (store, _) = filled().await;
    let only = Schema::from_toml(
        r#"
        [collection.note]
        key = "note:{id}"
        [collection.note.fields]
        id       = "text"
        owner    = "text"
        "tags.*" = "text"
        [collection.note.index.tagged]
        key = "note-tag:{owner}:{tags.*}:{id}"
        "#,
    );
    store.apply(&only.unwrap()).await.unwrap();
    let notes = store.documents("note").await.unwrap();
    let error = refusal(&notes, &Query::new().equal("owner", "ana")).await;
    assert_eq!(error.kind(), ErrorKind::NoIndex);
}

#[tokio::test]
async fn a_cursor_of_an_index_is_not_taken_for_one_of_a_scan() {
    let (store, tasks) = filled().await;
    let query = Query::new().equal("owner", "ana").scan().take(1);
    let next = tasks.page(&query).await.unwrap().next.unwrap();
    for index in ["b_due", "c_team"] {
        store.disable("task", index).await.unwrap();
    }
    let error = refusal(&tasks, &query.clone().from_cursor(next)).await;
    assert_eq!(error.kind(), ErrorKind::InvalidCursor);
    assert_eq!(ids(&tasks, &query.take(9)).await, ["bare", "full"]);
}

#[tokio::test]
async fn a_cell_is_not_taken_for_a_place() {
    let (_, tasks) = filled().await;
    let beside = json!({ "lat": 48.8585, "lon": 2.2946 });
    for query in [
        Query::new().index("place").equal("place", beside.clone()),
        Query::new().index("place").range("place", beside..),
    ] {
        assert_eq!(refusal(&tasks, &query).await.kind(), ErrorKind::InvalidQuery);
    }
    let cell = Query::new().index("place").starts_with("place", "u09t");
    assert_eq!(ids(&tasks, &cell).await, ["full"]);
}

#[tokio::test]
async fn a_refusal_advises_only_what_would_help() {
    let (_, tasks) = filled().await;
    for (query, advice) in [
        (Query::new().equal("tame", "red"), "ask for a scan of the whole collection"),
        (Query::new().any("team", "red").any("tame", "red"), "ask each alternative by itself"),
        (
            Query::new().any("team", "red").any("tame", "red").scan(),
            "ask each alternative by itself",
        ),
        (Query::new().index("b_due").equal("team", "red"), "do not insist on an index"),
        (Query::new().index("b_due").equal("team", "red").scan(), "do not insist on an index"),
    ] {
        let error = refusal(&tasks, &query).await;
        assert_eq!(error.kind(), ErrorKind::NoIndex, "{error}");
        assert_eq!(error.context_value("or"), Some(advice), "{error}");
    }
    // A scan has no other order than that of the keys, and does not look at beginnings.
    for query in [
        Query::new().order("tame", Order::Ascending),
        Query::new().equal("due", 5).starts_with("owner", "a"),
    ] {
        assert_eq!(refusal(&tasks, &query).await.context_value("or"), None);
        assert_eq!(refusal(&tasks, &query.scan()).await.kind(), ErrorKind::InvalidQuery);
    }
    let filtered = Query::new().filter("team", Test::Present).scan();
    assert_eq!(ids(&tasks, &filtered).await, ["bare", "full"]);
    let error = refusal(&tasks, &Query::new().equal("team", "red").limit(0)).await;
    assert_eq!(error.context_value("limit"), Some("0"));
}

/// Whoever declares the index that a refusal names is answered.
#[tokio::test]
async fn what_a_refusal_says_would_serve_does() {
    let (_, tasks) = filled().await;
    for query in [
        Query::new().equal("due", 5),
        Query::new().range("due", 1..),
        Query::new().order("due", Order::Descending),
        Query::new().range("owner", "a"..),
        Query::new().equal("due", 5).starts_with("owner", "a"),
        Query::new().order("team", Order::Descending),
        Query::new().equal("due", 5).range("owner", "a"..).order("owner", Order::Descending),
        Query::new().starts_with("owner", "a").order("owner", Order::Descending),
        Query::new().range("tags.*", "a".."z"),
    ] {
        let error = refusal(&tasks, &query).await;
        assert_eq!(error.kind(), ErrorKind::NoIndex, "{error}");
        let key = error.context_value("would serve").unwrap();
        let schema = format!("{SCHEMA}\n[collection.task.index.advised]\nkey = {key:?}\n");
        let advised = Store::open("memory:").await.unwrap();
        advised.apply(&Schema::from_toml(&schema).unwrap()).await.unwrap();
        let plan = advised.documents("task").await.unwrap().explain(&query).await.unwrap();
        assert!(plan.starts_with("index task.advised"), "{key}: {plan}");
    }
}

const ELEMENTS: &str = r#"
[collection.post]
key = "post:{id}"
[collection.post.fields]
id       = "text"
author   = "text"
editor   = "text"
"tags.*" = "text"
"at.*"   = "timestamp"
[collection.post.index.tag]
key = "tag:{tags.* sorted}:{id}"
[collection.post.index.plain_tag]
key = "plain:{tags.*}:{id}"
[collection.post.index.author]
key = "author:{author}:{at.*}:{id}"
[collection.post.index.editor]
key = "editor:{editor}:{at.*}:{id}"
"#;

/// A record has several entries in such an index. What a page gives, `keys` gives and `count`
/// counts; and a union gives no record twice.
#[tokio::test]
async fn elements_are_told_alike_and_a_union_repeats_nothing() {
    let store = Store::open("memory:").await.unwrap();
    store.apply(&Schema::from_toml(ELEMENTS).unwrap()).await.unwrap();
    let posts = store.documents("post").await.unwrap();
    for (id, tags) in [("1", ["a", "b", "c"]), ("2", ["b", "c", "d"]), ("3", ["x", "y", "z"])] {
        let post =
            json!({ "id": id, "author": "ana", "editor": "ana", "tags": tags, "at": [1, 2] });
        posts.insert(&post).await.unwrap();
    }
    let b_to_c = Query::new().range("tags.*", "b"..="c");
    let by_pages = async |query: &Query| {
        let (mut all, mut page) = (Vec::new(), posts.page(query).await.unwrap());
        loop {
            all.extend(page.records.iter().map(|post| post["id"].as_str().unwrap().to_owned()));
            let Some(next) = page.next else { return all };
            page = posts.page(&query.clone().from_cursor(next)).await.unwrap();
        }
    };
    assert_eq!(by_pages(&b_to_c.clone().take(1)).await, ["1", "2", "1", "2"]);
    assert_eq!(posts.keys(&b_to_c).await.unwrap().records.len(), 4);
    assert_eq!(posts.count(&b_to_c).await.unwrap(), 4);

    for index in ["tag", "plain_tag"] {
        let b_or_c = Query::new().index(index).any("tags.*", "b").any("tags.*", "c");
        assert_eq!(by_pages(&b_or_c.clone().take(1)).await, ["1", "2"], "{index}");
        assert_eq!(posts.keys(&b_or_c).await.unwrap().records.len(), 2);
        assert_eq!(posts.count(&b_or_c).await.unwrap(), 2);
    }

    let mine = Query::new().any("author", "ana").any("editor", "ana").range("at.*", 0..);
    let error = refusal(&posts, &mine).await;
    assert_eq!(error.kind(), ErrorKind::NoIndex);
    assert!(error.context_value("note").unwrap().contains("each record once"), "{error}");
    assert_eq!(posts.count(&mine).await.unwrap_err().kind(), ErrorKind::NoIndex);
}

/// A scan gives the records that an index would, each once.
#[tokio::test]
async fn a_scan_for_a_range_wants_one_element_within_it() {
    let schema = "[collection.post]\nkey = \"post:{id}\"\nfields = { id = \"text\" }\n";
    let store = Store::open("memory:").await.unwrap();
    store.apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
    let posts = store.documents("post").await.unwrap();
    for (id, marks) in [("1", json!([1, 9])), ("2", json!([1, 4, 9])), ("3", json!(null))] {
        posts.insert(&json!({ "id": id, "marks": marks })).await.unwrap();
    }
    let within = Query::new().range("marks.*", 3..=5).scan();
    assert_eq!(ids(&posts, &within).await, ["2"]);
    assert_eq!(ids(&posts, &Query::new().range::<i64>("marks.*", ..).scan()).await, ["1", "2"]);
    let plan = posts.explain(&within).await.unwrap();
    assert!(plan.ends_with("filter: marks.* >= 3 and <= 5"), "{plan}");

    // Keys alone cannot tell, whoever asks for the filter.
    let error = posts.keys(&within).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidQuery);
    assert_eq!(posts.count(&within).await.unwrap(), 1);
    assert_eq!(posts.keys(&Query::new().scan()).await.unwrap().records.len(), 3);
}
