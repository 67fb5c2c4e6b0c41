//! Keys in paths: whatever a key contains, its URL leads to its record.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use crate::support::TestServer;

const SCHEMA: &str = r#"
    [collection.item]
    key = "item:{id}"
    fields = { id = "text" }
    history = { versions = 5 }

    [collection.pair]
    key = "pair:{a}:{b}"
    fields = { a = "text", b = "text" }

    [collection.arn]
    key = "{arn raw}"
    area = "arns"
    fields = { arn = "text" }
"#;

const HOSTILE: &[&str] = &[
    "/",
    "a/b",
    "//",
    "%",
    "%2F",
    "%252F",
    "%zz",
    "a%",
    "\0",
    "\u{1}\u{7f}",
    ".",
    "..",
    "../../v1/schema",
    "?",
    "a?b=c#d",
    "+",
    "a b",
    ":",
    "a:b",
    "-",
    "ünïcödé",
    "\u{1f9f5}\u{200d}\u{202e}",
    "\"\\'<script>",
    "history",
    "increment",
];

/// Writes by `POST`, and reads at `Location`.
fn round_trip(server: &TestServer, collection: &str, record: &Value) -> Result<(), String> {
    let all = format!("/v1/collections/{collection}/records");
    let inserted = server.json("POST", &all, record);
    if inserted.status != 201 {
        return Err(format!("{record}: {}", String::from_utf8_lossy(&inserted.body)));
    }
    let location = inserted.header("location").ok_or("no Location")?.to_owned();
    let read = server.get(&location);
    let same = read.status == 200
        && read.value() == *record
        && read.body == inserted.body
        && read.header("etag") == inserted.header("etag");
    let entries = server.get(&format!("{location}/entries"));
    let same = same && entries.status == 200;
    match same && server.send("DELETE", &location, &[], "").status == 204 {
        true => Ok(()),
        false => Err(format!("{record} at {location}: {read:?}, {entries:?}")),
    }
}

#[test]
fn hostile_keys_lead_to_their_records() {
    let server = TestServer::start(SCHEMA);
    for key in HOSTILE {
        round_trip(&server, "item", &json!({ "id": key, "x": 1 })).unwrap();
        round_trip(&server, "pair", &json!({ "a": key, "b": key })).unwrap();
    }
    for arn in ["arn:aws:states:eu-west-1:1:execution:m:e", "a/b%2F:c", ".", ".."] {
        round_trip(&server, "arn", &json!({ "arn": arn })).unwrap();
    }
    let long = "x".repeat(800);
    round_trip(&server, "item", &json!({ "id": long })).unwrap();
}

#[test]
fn the_empty_key_has_a_path_of_its_own() {
    let server = TestServer::start(SCHEMA);
    let all = "/v1/collections/item/records";
    let inserted = server.json("POST", all, &json!({ "id": "" }));
    inserted.expect(201);
    let one = format!("{all}/");
    assert_eq!(inserted.header("location"), Some(one.as_str()));
    assert_eq!(server.get(&one).expect(200), json!({ "id": "" }));
    assert_eq!(server.get(&format!("{one}/history")).expect(200)["versions"][0]["key"], "");
    assert_eq!(server.get(&format!("{one}/entries")).expect(200)["keys"][0]["key"], "item:");
    assert_eq!(
        server.json("PATCH", &one, &json!({ "x": 1 })).expect(200),
        json!({ "id": "", "x": 1 })
    );
    server.json("PUT", &one, &json!({})).expect(200);
    let page = server.get(&format!("{all}?scan=true")).expect(200);
    assert_eq!(page["records"][0]["key"], "");
    server.send("DELETE", &one, &[], "").expect(204);
    server.get(&one).expect(404);
}

#[test]
fn a_slash_divides_and_an_escaped_one_does_not() {
    let server = TestServer::start(SCHEMA);
    server.json("POST", "/v1/collections/item/records", &json!({ "id": "a/b" })).expect(201);
    server.get("/v1/collections/item/records/a%2Fb").expect(200);
    server.get("/v1/collections/item/records/a%2fb").expect(200);
    server.get("/v1/collections/item/records/a/b").expect(404);
    // A name is a piece of a key, and keys write a slash as it is.
    let twice = server.get("/v1/collections/item/records/a%252Fb").expect(400);
    assert_eq!(twice["type"], "/problems/invalid-key");
    server.get("/v1/collections/item/records/../records/a%2Fb").expect(404);
}

#[test]
fn broken_escapes_and_bytes_that_are_no_text_are_refused() {
    let server = TestServer::start(SCHEMA);
    for part in ["%", "%2", "%zz", "a%", "%ff", "%c3%28", "%ed%a0%80"] {
        let problem = server.get(&format!("/v1/collections/item/records/{part}")).expect(400);
        assert_eq!(problem["type"], "/problems/invalid-request", "{part}");
    }
}

/// A parameter is never read as another text than was sent.
#[test]
fn broken_escapes_in_parameters_are_refused_too() {
    let server = TestServer::start(SCHEMA);
    let item = json!({ "id": "\u{fffd}" });
    server.json("POST", "/v1/collections/item/records", &item).expect(201);
    for value in ["%ff", "%C3%28", "%", "%2", "%zz", "a%00%ff"] {
        for path in [
            format!("/v1/collections/item/records?where.id={value}"),
            format!("/v1/collections/item/records?where.{value}=x"),
            format!("/v1/kv?prefix={value}"),
            format!("/v1/changes?prefix={value}"),
        ] {
            let problem = server.get(&path).expect(400);
            assert_eq!(problem["type"], "/problems/invalid-request", "{path}");
        }
    }
    for value in ["%EF%BF%BD", "\u{fffd}"] {
        let page = server.get(&format!("/v1/collections/item/records?where.id={value}"));
        assert_eq!(page.expect(200)["records"].as_array().unwrap().len(), 1, "{value}");
    }
}

#[test]
fn keys_that_are_too_long_are_refused_before_anything_is_written() {
    let server = TestServer::start(SCHEMA);
    let long = "x".repeat(2_000);
    let all = "/v1/collections/item/records";
    let problem = server.json("POST", all, &json!({ "id": long }));
    assert!([400, 413, 422].contains(&problem.status), "{problem:?}");
    let read = server.get(&format!("{all}/{long}"));
    assert!([400, 404, 413].contains(&read.status), "{read:?}");
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite, and no -0", |n| n.is_finite() && *n != 0.0)
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,6}", inner), 0..4)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

#[test]
fn whatever_is_posted_is_read_back_at_its_location() {
    let server = TestServer::start(SCHEMA);
    let config = Config { cases: 150, failure_persistence: None, ..Config::default() };
    let key = prop_oneof!["\\PC{1,12}", "[%/.:?#\\x00-\\x20a]{1,8}", any::<String>()]
        .prop_filter("not empty, and not too long", |key| !key.is_empty() && key.len() < 200);
    TestRunner::new(config)
        .run(&(key, json_values()), |(key, value)| {
            round_trip(&server, "item", &json!({ "id": key, "value": value }))
                .map_err(TestCaseError::fail)
        })
        .unwrap();
}
