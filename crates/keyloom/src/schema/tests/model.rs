//! What compilation makes of a declaration.

use serde_json::json;

use super::{SYSTEMS, compiled, problems};
use crate::engine::{Capabilities, Reading};
use crate::error::ErrorKind;
use crate::key::{Kind, Path};
use crate::schema::{
    CollectionDeclaration, FieldKind, FieldType, Holds, IndexDeclaration, IndexKind, Schema,
    SchemaDeclaration, Verdict,
};

fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

#[test]
fn approvals_are_typed() {
    let schema = compiled(SYSTEMS[0]);
    let approval = schema.collection("approval").unwrap();
    assert_eq!(approval.area.name(), "");
    assert_eq!(approval.key_paths, [path("id")]);
    let id = &approval.fields[&path("id")];
    assert!(id.generate && id.required);
    assert!(!approval.fields[&path("requester_id")].required);
    let status = approval.fields[&path("status")].transitions.as_ref().unwrap();
    assert_eq!(status.check("pending", Some("denied")), Verdict::Allowed);
    assert_eq!(status.check("denied", Some("pending")), Verdict::Illegal);
    let code = approval.index("code").unwrap();
    assert_eq!(code.kind, IndexKind::Unique);
    assert_eq!(code.holds, Holds::Field(path("id")));
    assert!(code.claims && code.sparse);
    assert!(!approval.index("requester").unwrap().claims);
}

#[test]
fn entries_of_longer_keys_hold_the_key_unless_told_otherwise() {
    let flows = compiled(SYSTEMS[3]);
    let run = flows.collection("run").unwrap();
    assert_eq!(run.index("started").unwrap().holds, Holds::Key);
    let due = run.index("due").unwrap();
    assert_eq!((due.star.clone(), due.max), (Some(path("awaitingSteps")), 32));
    assert_eq!(run.fields[&path("awaitingSteps.*key")].kind, FieldKind::Key(Kind::Text));
    let patterns = compiled(SYSTEMS[4]);
    let tag = patterns.collection("post").unwrap().index("tag").unwrap();
    assert_eq!(tag.holds, Holds::Object(vec![path("postId"), path("userId")]));
}

#[test]
fn entries_are_in_the_area_of_the_collection_unless_told_otherwise() {
    let reputation = compiled(SYSTEMS[1]);
    assert_eq!(reputation.collection("reputation").unwrap().area.name(), "reputation");
    let executions = compiled(SYSTEMS[2]);
    let execution = executions.collection("execution").unwrap();
    assert_eq!(execution.area.name(), "executions");
    assert_eq!(execution.index("agent").unwrap().area.name(), "executions-index");
    let approvals = compiled(SYSTEMS[0]);
    assert_eq!(approvals.collection("approval").unwrap().index("code").unwrap().area.name(), "");
}

#[test]
fn a_point_of_the_record_is_missing_when_both_members_are() {
    let schema = compiled(SYSTEMS[4]);
    let location = schema.collection("location").unwrap();
    let value = |record: &serde_json::Value| location.value(&path("position"), record).cloned();
    let here = json!({ "id": "x", "lat": 57.64911, "lng": 10.40744 });
    assert_eq!(value(&here), Some(here.clone()));
    assert_eq!(value(&json!({ "id": "x", "lat": null })), None);
    // Half a place is a mistake, which the codec tells.
    assert!(value(&json!({ "id": "x", "lat": 1.5 })).is_some());
    let geo = location.index("position").unwrap();
    let key = geo.key.encode(&[&here, &json!("x")]).unwrap();
    assert_eq!(&key[..], b"index:geo:u4pruy:x".as_slice(), "{key:?}");
}

#[test]
fn an_entry_of_a_covering_index_may_hold_anything_that_leads_back() {
    let schema = compiled(
        r#"
        [collection.post]
        key = "post:{user}:{id}"
        [collection.post.fields]
        user = "text"
        id = "text"
        slug = "text"
        [collection.post.index.whole]
        key = "whole:{slug}:{id}:{user}"
        holds = "record"
        [collection.post.index.title]
        key = "title:{slug}:{id}:{user}"
        holds = "title"
        [collection.post.unique.slug]
        key = "slug:{user}:{slug}"
        holds = "{id, title, stats.likes}"
        "#,
    );
    let post = schema.collection("post").unwrap();
    assert_eq!(post.index("whole").unwrap().holds, Holds::Record);
    assert_eq!(post.index("title").unwrap().holds, Holds::Field(path("title")));
    let held = vec![path("id"), path("title"), path("stats.likes")];
    assert_eq!(post.index("slug").unwrap().holds, Holds::Object(held));
}

#[test]
fn conditions_choose_records() {
    let schema = compiled(
        r#"
        [collection.job]
        key = "job:{id}"
        [collection.job.fields]
        id = "text"
        rank = "integer"
        status = { type = "enum", values = ["open", "closed", "lost"] }
        [collection.job.index.urgent]
        key = "urgent:{rank desc}:{id}"
        where = { status = ["open", "lost"], rank = { gte = 3, lt = 10 }, owner = { present = false }, kind = "x" }
        "#,
    );
    let urgent = schema.collection("job").unwrap().index("urgent").unwrap();
    let holds = |record| urgent.condition.as_ref().unwrap().holds(&record);
    assert!(holds(json!({ "status": "open", "rank": 3, "kind": "x" })));
    assert!(holds(json!({ "status": "lost", "rank": 9, "kind": "x", "owner": null })));
    assert!(!holds(json!({ "status": "closed", "rank": 3, "kind": "x" })));
    assert!(!holds(json!({ "status": "open", "rank": 10, "kind": "x" })));
    assert!(!holds(json!({ "status": "open", "rank": 3, "kind": "x", "owner": "ana" })));
    assert!(!holds(json!({ "status": "open", "rank": 3 })));
}

#[test]
fn the_worst_batch_is_counted_and_compared_with_the_engine() {
    let schema = compiled(SYSTEMS[4]);
    let post = schema.collection("post").unwrap();
    // The record at both keys, the idempotency key, both sides of `recent` and of ten tags.
    assert_eq!(post.batch_entries_worst(), 3 + 2 + 20);
    let mut capabilities = Capabilities {
        engine: "test",
        reading: Reading::Snapshot,
        batch_entries_max: 25,
        batch_bytes_max: 1 << 20,
        keeps_log: false,
        pins: false,
        adds_spread: 1,
        is_shared: false,
        persistent: false,
    };
    schema.check_against(&capabilities).unwrap();
    capabilities.batch_entries_max = 24;
    let error = schema.check_against(&capabilities).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidSchema);
    assert_eq!(
        problems(&error),
        ["collection.post: writing one record can change 25 entries; \
          lower `max` on the indexes that walk over an array or a map"]
    );
}

#[test]
fn a_program_may_declare_what_a_file_would() {
    let mut note = CollectionDeclaration::new("note:{id}")
        .field("id", crate::schema::FieldDeclaration::from(FieldType::Id).generated())
        .field("title", FieldType::Text);
    note.index.insert("title".into(), IndexDeclaration::new("title:{title}:{id}"));
    let declaration =
        SchemaDeclaration { collections: [("note".into(), note)].into(), ..Default::default() };
    let declared = Schema::from_declaration(declaration).unwrap();
    let written = Schema::from_json(
        r#"{ "collection": { "note": {
            "key": "note:{id}",
            "fields": { "id": { "type": "id", "generate": true }, "title": "text" },
            "index": { "title": { "key": "title:{title}:{id}" } }
        } } }"#,
    )
    .unwrap();
    assert_eq!(declared, written);
}

#[test]
fn equal_schemas_have_equal_bytes_whatever_the_order_of_their_text() {
    let bytes = |text: &str| {
        serde_json::to_string(&Schema::from_json(text).unwrap().declaration()).unwrap()
    };
    let one = r#"{ "collection": {
        "a": { "key": "a:{x}", "fields": { "x": "text", "y": "id" },
               "body": { "required": ["x"], "properties": { "y": {}, "x": { "type": "string" } } } },
        "b": { "key": "b" }
    } }"#;
    let two = r#"{ "collection": {
        "b": { "key": "b" },
        "a": { "body": { "properties": { "x": { "type": "string" }, "y": {} }, "required": ["x"] },
               "fields": { "y": { "type": "id" }, "x": { "type": "text" } }, "key": "a:{x}" }
    } }"#;
    assert_eq!(bytes(one), bytes(two));
}

#[test]
fn a_program_is_told_what_is_wrong_without_a_place() {
    let declaration = SchemaDeclaration {
        collections: [("note".into(), CollectionDeclaration::new("note:{id}"))].into(),
        ..Default::default()
    };
    let error = Schema::from_declaration(declaration).unwrap_err();
    assert_eq!(
        problems(&error),
        ["collection.note.key: `{id}` is not a declared field; declare its type under `fields`"]
    );
}

#[test]
fn json_that_is_none_is_told_with_its_place() {
    for (text, problem) in [
        ("{\n  \"collection\": }", "line 2, column 17: not JSON: expected value"),
        ("{}\n{}", "line 2, column 1: not JSON: trailing characters"),
        (
            "{\"collection\": {\"a\": {}, \"a\": {}}}",
            "line 1, column 28: not JSON: duplicate key \"a\"",
        ),
        ("\n []", "line 2, column 2: must be a table, not a list"),
        ("{\"collection\": {\"a\": {}}}", "line 1, column 17: collection.a: lacks `key`"),
    ] {
        let error = Schema::from_json(text).unwrap_err();
        assert_eq!(problems(&error), [problem]);
    }
}

/// The same mistakes have the same names and values at fault as in TOML.
#[test]
fn what_json_declares_wrongly_is_told_with_its_place() {
    let text = r#"{ "log": {"days": -1},
  "collection": {
    "näme \"x\"": {"key": "x"},
    "note": {"key": "note:{id}", "extra": [1, {"a": "}"}, "]"],
      "fields" : { "id":"id",
        "text": "strin",
        "st": {"type": "enum", "values": ["a"], "transitions": {"b": ["a"]}}}
} } }"#;
    let error = Schema::from_json(text).unwrap_err();
    let told: Vec<String> = problems(&error)
        .iter()
        .map(|problem| problem.split(": ").take(2).collect::<Vec<_>>().join(": "))
        .collect();
    assert_eq!(
        told,
        [
            "line 1, column 19: log.days",
            "line 3, column 5: collection.\"näme \\\"x\\\"\"",
            "line 4, column 34: collection.note.extra",
            "line 6, column 17: collection.note.fields.text.type",
            "line 7, column 65: collection.note.fields.st.transitions.b",
        ]
    );
}

#[test]
fn schemas_merge_unless_they_contradict() {
    let (approvals, flows) = (compiled(SYSTEMS[0]), compiled(SYSTEMS[3]));
    let both = approvals.merge(&flows).unwrap();
    assert_eq!(both.collection_names().collect::<Vec<_>>(), ["approval", "flow", "run"]);
    assert_eq!(both.merge(&flows).unwrap(), both);
    let other = compiled(&SYSTEMS[3].replace("max = 32", "max = 33"));
    let error = both.merge(&other).unwrap_err();
    assert_eq!(problems(&error), ["collection.run: is declared differently in two schemas"]);
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let schema = compiled(SYSTEMS[3]);
    let error = schema.collection("runs").unwrap_err();
    assert_eq!(error.context_value("known"), Some("flow, run"));
    let error = schema.collection("run").unwrap().index("start").unwrap_err();
    assert_eq!(error.context_value("known"), Some("due, started"));
}

#[test]
fn aggregates_count_in_the_worst_batch() {
    let counted = format!("{}\n[collection.post.count.all]\ngroup = []\n", SYSTEMS[4]);
    let post = compiled(&counted).collection("post").unwrap().batch_entries_worst();
    let before = compiled(SYSTEMS[4]).collection("post").unwrap().batch_entries_worst();
    // Both sides of both generations, and a mark for each key.
    assert_eq!(post, before + 6);
    let counters = "[collection.post.counters]\n\"stats.*\" = {}\n";
    let both = compiled(&format!("{counted}{counters}"));
    // The counters at both keys.
    assert_eq!(both.collection("post").unwrap().batch_entries_worst(), post + 2);
}

#[test]
fn a_program_is_told_of_an_aggregate_in_the_wrong_place() {
    let mut note = CollectionDeclaration::new("note:{id}").field("id", FieldType::Text);
    note.count.insert("a".into(), crate::schema::AggregateDeclaration::sum("id", ["id"]));
    note.sum.insert("b".into(), crate::schema::AggregateDeclaration::count(["id"]));
    let declaration = SchemaDeclaration {
        collections: [("note".into(), note)].into(),
        ..SchemaDeclaration::default()
    };
    let error = Schema::from_declaration(declaration).unwrap_err();
    assert_eq!(
        problems(&error),
        [
            "collection.note.count.a: a count has no `field`; declare this under `sum` instead of \
             `count`",
            "collection.note.count.a.field: only integers are summed; declare `id` with type \
             integer",
            "collection.note.sum.b: lacks `field`",
        ]
    );
}
