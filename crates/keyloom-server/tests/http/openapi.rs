//! The description of the API says what the server does: every route, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use keyloom::Schema;
use keyloom_server::{Authority, Config, new_token};
use serde_json::{Value, json};

use crate::people::{Guarded, jwt};
use crate::support::{Answer, TestServer};

/// A schema with a bit of everything, so that every path is described.
const EVERYTHING: &str = r#"
    [log]

    [collection.thing]
    key = "user:{owner}:things:{id}"
    access = "hybrid"
    owner = "owner"
    fields = { owner = "text", id = "text", name = "text", place = { type = "point", lat = "lat", lon = "lon" }, state = { type = "enum", values = ["new", "old"] } }
    counters = { "stats.*" = {}, views = {} }
    [collection.thing.index.state]
    key = "things:{state}:{owner}:{id}"
    [collection.thing.unique.name]
    key = "names:{name}"
    [collection.thing.geo.near]
    key = "places:{place geohash 6}:{owner}:{id}"
    [collection.thing.count.by_state]
    group = ["state"]
    [collection.thing.history]
    versions = 5
"#;

/// Routes that are not described, and why.
const UNTOLD: &[(&str, &str)] = &[
    ("/v1/collections/{collection}/records/", "the record with the empty name"),
    ("/v1/collections/{collection}/records//increment", "the record with the empty name"),
    ("/v1/collections/{collection}/records//history", "the record with the empty name"),
    ("/v1/collections/{collection}/records//entries", "the record with the empty name"),
    ("/v1/collections/{collection}/owners/{owner}/records/", "the record with the empty name"),
    ("/v1/collections/{collection}/unique/{index}/", "the empty value"),
    ("/v1/", "the same as without the slash"),
    ("/s/{space}/openapi.json", "the description of another space"),
];

/// The paths of a document, each with its methods in upper case.
fn told(document: &Value) -> Vec<(String, BTreeSet<String>)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let methods =
        |item: &Value| item.as_object().unwrap().keys().map(|it| it.to_uppercase()).collect();
    paths.map(|(path, item)| (path.clone(), methods(item))).collect()
}

/// A path with something in the place of its parameters.
fn filled(path: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { "x".to_owned() } else { part.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Whether the router found nothing for a request.
fn is_unrouted(answer: &Answer) -> bool {
    let detail = answer.body.windows(29).any(|text| text == b"there is nothing at this path");
    answer.status == 405 || (answer.status == 404 && detail)
}

#[test]
fn every_path_and_method_of_the_description_is_answered_and_no_other_method() {
    let server = TestServer::start(EVERYTHING);
    let schema = Schema::from_toml(EVERYTHING).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(server.store.space("other").unwrap().apply(&schema)).unwrap();
    for base in ["", "/s/other"] {
        let document = server.get(&format!("{base}/openapi.json")).expect(200);
        let told = told(&document);
        assert!(told.len() > 25, "{}", told.len());
        for (path, methods) in told {
            let path = format!("{base}{}", filled(&path));
            for method in &methods {
                let answer = server.send(method, &path, &[], "");
                assert!(!is_unrouted(&answer), "{method} {path}: {answer:?}");
            }
            let answer = server.send("LINK", &path, &[], "");
            assert_eq!(answer.status, 405, "{path}");
            let allowed = answer.header("allow").unwrap().split(',').map(|it| it.trim().to_owned());
            let allowed: BTreeSet<String> = allowed.filter(|method| method != "HEAD").collect();
            assert_eq!(allowed, methods, "{path}");
        }
    }
}

/// Every route of the sources that is no page for people, as its file names it.
fn routes() -> Vec<(String, String)> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![sources.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&sources).unwrap().display().to_string();
            let is_for_people = ["console", "problem/pages.rs", "auth/session.rs"]
                .iter()
                .any(|it| name.starts_with(it));
            if path.is_dir() {
                folders.push(path);
            } else if !is_for_people && !name.ends_with("tests.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let routes = text.split(".route(\"").skip(1);
                found.extend(
                    routes.map(|rest| (name.clone(), rest.split('"').next().unwrap().to_owned())),
                );
            }
        }
    }
    found
}

/// Where the routes of a file are nested.
fn beginning(file: &str) -> &'static str {
    let of_collections = ["records", "unique", "near", "count", "history", "owned"];
    match file.strip_prefix("api/") {
        None => "",
        Some(rest) if rest.starts_with("admin/") => "/v1/admin",
        Some(rest) if of_collections.contains(&rest.trim_end_matches(".rs")) => {
            "/v1/collections/{collection}"
        }
        Some(_) => "/v1",
    }
}

/// Whether a described path is one of a route. A described path may name what a route leaves open.
fn is_of(path: &str, route: &str) -> bool {
    let (path, route): (Vec<&str>, Vec<&str>) =
        (path.split('/').collect(), route.split('/').collect());
    path.len() == route.len()
        && path.iter().zip(&route).all(|(part, open)| open.starts_with('{') || part == open)
}

#[test]
fn every_route_is_described() {
    let server = TestServer::start(EVERYTHING);
    let told = told(&server.get("/openapi.json").expect(200));
    let routes = routes();
    assert!(routes.len() > 30, "{routes:?}");
    for (file, route) in routes {
        let route = format!("{}{route}", beginning(&file));
        let is_untold = UNTOLD.iter().any(|(untold, _)| *untold == route);
        let is_told = told.iter().any(|(path, _)| is_of(path, &route));
        assert!(is_told != is_untold, "{file}: {route}");
    }
}

#[test]
fn references_lead_somewhere_and_operations_have_names_of_their_own() {
    let server = TestServer::start(EVERYTHING);
    let document = server.get("/openapi.json").expect(200);
    let mut names = BTreeSet::new();
    let mut left = vec![&document];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(members) => {
                left.extend(members.values());
                if let Some(Value::String(reference)) = members.get("$ref") {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                if members.contains_key("responses")
                    && let Some(Value::String(name)) = members.get("operationId")
                {
                    assert!(names.insert(name.as_str()), "{name} stands twice");
                    assert!(members["responses"].get("default").is_some(), "{name}");
                }
            }
            Value::Array(values) => left.extend(values),
            _ => {}
        }
    }
    assert!(names.contains("thing.insert") && names.contains("admin.verify"), "{names:?}");
}

/// The headers that a described operation takes, by their names.
fn headers(document: &Value, operation: &Value) -> Vec<String> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let named = parameters.filter_map(|parameter| parameter["$ref"].as_str());
    let found = named.map(|reference| document.pointer(reference.strip_prefix('#').unwrap()));
    found.map(|header| header.unwrap()["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn operations_name_the_headers_that_they_take() {
    let server = TestServer::start(EVERYTHING);
    let document = server.get("/openapi.json").expect(200);
    let records = "/v1/collections/thing/records";
    let one = format!("{records}/{{key}}");
    for (path, method, wanted) in [
        (records, "post", &["Idempotency-Key"][..]),
        (records, "get", &[]),
        (&one, "get", &["If-None-Match"]),
        (&one, "put", &["If-Match", "If-None-Match", "Idempotency-Key"]),
        (&one, "patch", &["If-Match", "Idempotency-Key"]),
        (&one, "delete", &["If-Match", "Idempotency-Key"]),
        (&format!("{one}/increment"), "post", &["Idempotency-Key"]),
        ("/v1/collections/thing/owners/{owner}/records/{key}", "get", &["If-None-Match"]),
        ("/v1/collections/thing/unique/name/{name}", "get", &["If-None-Match"]),
        ("/v1/transaction", "post", &["Idempotency-Key"]),
        ("/v1/batch", "post", &["Idempotency-Key"]),
        ("/v1/kv/{key}", "put", &["Idempotency-Key"]),
        ("/v1/kv/{key}", "delete", &["Idempotency-Key"]),
        ("/v1/admin/import", "post", &["Idempotency-Key"]),
    ] {
        let operation = &document["paths"][path][method];
        assert!(operation.is_object(), "{method} {path}");
        assert_eq!(headers(&document, operation), wanted, "{method} {path}");
    }
    let operations = document["components"]["schemas"]["Operation"]["anyOf"].as_array().unwrap();
    let named = |operation: &Value| {
        let pointer = operation["$ref"].as_str().unwrap().trim_start_matches('#');
        document.pointer(pointer).unwrap().clone()
    };
    let operations: Vec<Value> = operations.iter().map(named).collect();
    let takes = |op: &str, member: &str| {
        let of_op = operations.iter().filter(|it| it["properties"]["op"]["const"] == op);
        of_op.into_iter().any(|it| it["properties"].get(member).is_some())
    };
    for (op, member) in [
        ("put", "if_match"),
        ("put", "if_absent"),
        ("patch", "if_match"),
        ("patch", "if"),
        ("delete", "if_match"),
        ("check", "exists"),
        ("check", "if_match"),
        ("check", "if"),
    ] {
        assert!(takes(op, member), "{op} {member}");
    }
}

/// Whoever may only write is told of answers without a body, which are those that they get.
#[test]
fn answers_are_described_as_the_caller_gets_them() {
    let tokens = [(); 2].map(|()| new_token());
    let entry = |name: &str, hash: &str, verbs: &str| {
        format!(
            "[[token]]\nname = \"{name}\"\nrole = \"service\"\nsha256 = \"{hash}\"\n\
             collections = [\"thing\"]\nverbs = [{verbs}]\n"
        )
    };
    let file = entry("clerk", &tokens[0].1, "\"read\", \"write\"")
        + &entry("till", &tokens[1].1, "\"write\"");
    let authority = Authority::from_toml(&file).unwrap();
    let server = TestServer::with(EVERYTHING, Config { authority, ..Config::default() });
    let statuses = |token: &str, path: &str, method: &str| -> Vec<String> {
        let bearer = format!("Bearer {token}");
        let document = server.send("GET", "/openapi.json", &[("authorization", &bearer)], "");
        let responses = document.expect(200)["paths"][path][method]["responses"].clone();
        let good = |(status, answer): (&String, &Value)| {
            let has_body = answer.get("content").is_some();
            status.starts_with('2').then(|| format!("{status} {has_body}"))
        };
        let mut good: Vec<String> =
            responses.as_object().unwrap().iter().filter_map(good).collect();
        good.sort();
        good
    };
    let one = "/v1/collections/thing/records/{key}";
    let [clerk, till] = tokens.map(|(token, _)| token);
    assert_eq!(statuses(&clerk, one, "put"), ["200 true", "201 true"]);
    assert_eq!(statuses(&till, one, "put"), ["201 false", "204 false"]);
    assert_eq!(statuses(&clerk, one, "patch"), ["200 true"]);
    assert_eq!(statuses(&till, one, "patch"), ["204 false"]);
    assert_eq!(statuses(&till, "/v1/collections/thing/records", "post"), ["201 false"]);
    assert_eq!(statuses(&till, &format!("{one}/increment"), "post"), ["204 false"]);
}

#[test]
fn patches_are_described_as_they_are_taken() {
    let server = TestServer::start(
        r#"
        [collection.thing]
        key = "thing:{id}"
        [collection.thing.fields]
        id = "text"
        "inner.size" = "integer"
        labels = "map"
        tags = "map"
        "tags.*" = "text"
        "parts.*.code" = "text"
        "#,
    );
    server.json("PUT", "/v1/collections/thing/records/a", &json!({})).expect(201);
    let document = server.get("/openapi.json").expect(200);
    let schema = json!({
        "$ref": "#/components/schemas/thing.patch",
        "components": document["components"],
    });
    let described = jsonschema::validator_for(&schema).unwrap();
    let nested = |name: &str| json!({ name: { "x": 1 } });
    let dotted = json!({ "a.b": 1 });
    for (patch, is_good) in [
        (dotted.clone(), false),
        (json!({ "": 1, "ab": { "c": 1 } }), true),
        (json!({ "free": dotted }), false),
        (json!({ "free": { "deep": dotted } }), false),
        (json!({ "free": [dotted, { "deep": dotted }] }), true),
        (json!({ "inner": { "size": 1, "a.b": 1 } }), false),
        (json!({ "inner": { "size": 1, "other": dotted } }), false),
        (json!({ "labels": dotted }), true),
        (json!({ "labels": nested("a.b") }), true),
        (json!({ "labels": { "a.b": dotted } }), false),
        (json!({ "tags": { "a.b": "text" } }), true),
        (json!({ "parts": [{ "code": "text", "a.b": 1 }] }), true),
        (json!({ "parts": { "one": { "code": "text", "a.b": 1 } } }), false),
        (json!({ "parts": { "a.b": { "code": "text" } } }), false),
        (json!({ "parts": { "one": { "code": "text" } } }), true),
    ] {
        assert_eq!(described.is_valid(&patch), is_good, "{patch} as described");
        let merge_patch = [("content-type", "application/merge-patch+json")];
        let path = "/v1/collections/thing/records/a";
        let answer = server.send("PATCH", path, &merge_patch, patch.to_string());
        answer.expect(if is_good { 200 } else { 422 });
    }
}

#[test]
fn nobody_reads_of_what_they_may_not_see() {
    let guarded = Guarded::start();
    let document = |token: &str| guarded.get(token, "/openapi.json").expect(200);
    guarded.server.get("/openapi.json").expect(401);
    let collections = |document: &Value| -> BTreeSet<String> {
        let paths = document["paths"].as_object().unwrap().keys();
        let names =
            paths.filter_map(|path| path.strip_prefix("/v1/collections/")?.split('/').next());
        names.filter(|name| !name.starts_with('{')).map(str::to_owned).collect()
    };
    let has = |document: &Value, path: &str| document["paths"].get(path).is_some();
    let whole = document(&guarded.admin);
    assert_eq!(collections(&whole).len(), 4);
    assert!(has(&whole, "/v1/admin/stats") && has(&whole, "/v1/kv/{key}"));
    assert_eq!(whole["security"], json!([{ "bearer": [] }]));
    let part = document(&guarded.reader);
    assert_eq!(collections(&part), BTreeSet::from(["ticket".to_owned()]));
    for (name, word) in [("note", "noteId"), ("post", "postId"), ("config", "shared:")] {
        let text = part.to_string();
        assert!(!text.contains(&format!("/{name}/")) && !text.contains(word), "{name}");
    }
    assert!(!has(&part, "/v1/admin/stats") && !has(&part, "/v1/kv/{key}"), "{part:#}");
    guarded.get(&guarded.tenant, "/openapi.json").expect(404);
    let other = guarded.get(&guarded.tenant, "/s/other/openapi.json").expect(200);
    assert_eq!(other["servers"][0]["url"], "/s/other");
    assert!(!has(&other, "/health"));
}

#[test]
fn acting_users_are_told_the_names_that_they_use() {
    let guarded = Guarded::start();
    let key = |document: &Value, collection: &str| -> Value {
        let path = format!("/v1/collections/{collection}/records/{{key}}");
        document["paths"][&path]["get"]["parameters"][0]["schema"]["pattern"].clone()
    };
    let program = guarded.get(&guarded.admin, "/openapi.json").expect(200);
    let user = guarded.get(&jwt("ana"), "/openapi.json").expect(200);
    assert_eq!(key(&program, "note"), r"^[^\x00-\x1f\x7f%\:]*\:notes\:[^\x00-\x1f\x7f%\:]*$");
    assert_eq!(key(&user, "note"), r"^[^\x00-\x1f\x7f%\:]*$");
    assert_eq!(key(&user, "config"), key(&program, "config"));
    let required = |document: &Value| document["components"]["schemas"]["note"]["required"].clone();
    assert_eq!(required(&program), json!(["noteId", "userId"]));
    assert_eq!(required(&user), json!(["noteId"]));
    let config = &user["paths"]["/v1/collections/config/records/{key}"];
    assert!(
        config.get("put").is_none()
            && program["paths"]["/v1/collections/config/records/{key}"].get("put").is_some()
    );
}
