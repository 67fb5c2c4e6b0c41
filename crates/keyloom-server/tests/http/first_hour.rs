//! What somebody asks who has just begun: what there is, everything of a collection, keys as
//! people write them, and parameters that almost exist.

use serde_json::{Value, json};

use crate::people::{Guarded, jwt};
use crate::support::{Answer, TestServer};

const SCHEMA: &str = r#"
    [log]

    [collection.issue]
    key = "issue:{number}"
    [collection.issue.fields]
    number = { type = "integer", digits = 8 }
    project = "text"
    state = { type = "enum", values = ["open", "shut"] }
    uid = "uuid"
    at = "timestamp"
    day = "datetime"
    "labels.*" = "text"
    [collection.issue.index.project]
    key = "issue:project:{project}:{number}"
    [collection.issue.index.open]
    key = "issue:open:{at}:{number}"
    where = { state = "open" }
    [collection.issue.unique.uid]
    key = "issue:uid:{uid}"
    [collection.issue.count.by_state]
    group = ["state"]

    [collection.comment]
    key = "issue:{number}:comment:{comment}"
    fields = { number = { type = "integer", digits = 8 }, comment = "integer" }
"#;

const UID: &str = "0f8fad5bd9cb469fa16570867728950e";

/// Issues 1 to 9 of the project web, each with thirty comments that lie among them.
fn filled() -> TestServer {
    let server = TestServer::start(SCHEMA);
    for number in 1..10 {
        let issue = json!({ "number": number, "project": "web", "state": "open", "at": number });
        insert(&server, "issue", &issue);
        for comment in 0..30 {
            insert(&server, "comment", &json!({ "number": number, "comment": comment }));
        }
    }
    server
}

fn insert(server: &TestServer, collection: &str, record: &Value) {
    let path = format!("/v1/collections/{collection}/records");
    let headers = [("content-type", "application/json")];
    server.send("POST", &path, &headers, record.to_string()).expect(201);
}

fn issues(server: &TestServer, rest: &str) -> Answer {
    server.get(&format!("/v1/collections/issue{rest}"))
}

#[test]
fn v1_and_its_collections_say_what_there_is() {
    let server = TestServer::start(SCHEMA);
    let there = server.get("/v1").expect(200);
    assert_eq!(there["space"], "main");
    assert_eq!(server.get("/v1/").expect(200), there, "as `keyloom serve` prints it");
    for (name, path) in there.as_object().unwrap() {
        if !["keyloom", "space"].contains(&name.as_str()) {
            let path = path.as_str().unwrap();
            assert_ne!(server.get(path).status, 404, "{name}: {path}");
        }
    }
    assert!(there.get("changes").is_some() && there.get("kv").is_some(), "{there}");
    let all = server.get("/v1/collections").expect(200);
    let names: Vec<&str> = all["collections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["comment", "issue"]);
    let issue = issues(&server, "").expect(200);
    assert_eq!(issue, all["collections"][1]);
    assert_eq!(issue["key"], "issue:{number}");
    assert_eq!(issue["records"], "/v1/collections/issue/records");
    assert_eq!(issue["fields"]["at"], json!({ "type": "timestamp" }));
    let index = |name: &str| {
        let indexes = issue["indexes"].as_array().unwrap();
        indexes.iter().find(|it| it["name"] == name).unwrap().clone()
    };
    assert_eq!(
        index("open"),
        json!({ "name": "open", "kind": "index", "key": "issue:open:{at}:{number}",
            "where": "state = \"open\"", "state": "ready",
            "url": "/v1/collections/issue/records?index=open" })
    );
    assert_eq!(index("uid")["url"], "/v1/collections/issue/unique/uid");
    let count = &issue["aggregates"][0];
    assert_eq!((&count["name"], &count["group"]), (&json!("by_state"), &json!(["state"])));
    server.get(count["url"].as_str().unwrap()).expect(200);
    server.get(index("open")["url"].as_str().unwrap()).expect(200);
    let missing = server.get("/v1/collections/nothing").expect(404);
    assert_eq!(missing, server.get("/v1/collections/nothing/records/x").expect(404));
    server.get("/v1/collections?x=1").expect(400);
}

#[test]
fn another_space_names_its_own_paths() {
    let server = TestServer::start(SCHEMA);
    assert_eq!(server.get("/s/other/v1").expect(200)["collections"], "/s/other/v1/collections");
    assert_eq!(server.get("/s/other/v1/collections").expect(200)["collections"], json!([]));
}

#[test]
fn what_there_is_ends_where_the_token_ends() {
    let people = Guarded::start();
    let names = |token: &str| -> Vec<String> {
        let all = people.get(token, "/v1/collections").expect(200);
        let all = all["collections"].as_array().unwrap().clone();
        all.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&people.admin), ["config", "note", "post", "ticket"]);
    assert_eq!(names(&people.bot), ["note", "ticket"]);
    assert_eq!(names(&people.reader), ["ticket"]);
    assert_eq!(
        people.get(&people.reader, "/v1/collections/note").expect(404),
        people.get(&people.reader, "/v1/collections/nothing").expect(404),
    );
    let there = people.get(&people.reader, "/v1").expect(200);
    assert_eq!((there.get("kv"), there.get("changes")), (None, None));
    assert!(people.get(&people.admin, "/v1").expect(200).get("kv").is_some());
    people.server.get("/v1").expect(401);
    people.get(&people.tenant, "/v1/collections").expect(404);
    // A user is told of the same collections, and lists what is theirs.
    let ana = jwt("ana");
    assert_eq!(names(&ana), ["config", "note", "post", "ticket"]);
    people.put(&people.admin, "/v1/collections/note/records/ana:notes:n1", json!({}));
    people.put(&people.admin, "/v1/collections/note/records/ben:notes:n1", json!({}));
    let mine = people.get(&ana, "/v1/collections/note/records?limit=2").expect(200);
    assert_eq!(mine["records"].as_array().unwrap().len(), 1, "{mine}");
    assert_eq!(people.get(&ana, "/v1/collections/note/count").expect(200)["count"], 1);
}

#[test]
fn a_page_without_conditions_is_read_in_the_order_of_the_keys() {
    let server = filled();
    let first = issues(&server, "/records?limit=2").expect(200);
    let number = |page: &Value, place: usize| page["records"][place]["record"]["number"].clone();
    assert_eq!((number(&first, 0), number(&first, 1)), (json!(1), json!(2)));
    assert_eq!(first["read"], 2);
    let cursor = first["next"].as_str().unwrap();
    let second = issues(&server, &format!("/records?limit=2&cursor={cursor}")).expect(200);
    assert_eq!(number(&second, 0), 3);
    let plan = issues(&server, "/explain?limit=2").expect(200);
    assert!(plan["plan"].as_str().unwrap().starts_with("records of issue: "), "{plan}");
    assert_eq!(issues(&server, "/count").expect(200)["count"], 9);
    let more = issues(&server, "/count?limit=5").expect(413);
    assert_eq!(more["context"]["at_least"], "5");
    assert_eq!(
        issues(&server, "/records?filter.state=open").expect(409)["type"],
        "/problems/no-index"
    );
}

#[test]
fn values_stand_for_pieces_of_keys() {
    let server = filled();
    for name in ["5", "00000005"] {
        assert_eq!(issues(&server, &format!("/records/{name}")).expect(200)["number"], 5);
    }
    let comment = server.get("/v1/collections/comment/records/5:comment:7").expect(200);
    assert_eq!(comment, json!({ "number": 5, "comment": 7 }));
    let path = "/v1/collections/issue/records/12";
    let json = [("content-type", "application/json")];
    let made = server.send("PUT", path, &json, r#"{"project":"app"}"#);
    assert_eq!(made.expect(201)["number"], 12);
    server
        .send("PATCH", path, &[("content-type", "application/merge-patch+json")], r#"{"at":3}"#)
        .expect(200);
    let moved = issues(&server, "/records/00000012").expect(200);
    assert_eq!((&moved["at"], &moved["project"]), (&json!(3), &json!("app")));
    assert!(issues(&server, "/records/12/entries").expect(200)["keys"].is_array());
    let batch = json!({ "operations": [{ "op": "delete", "collection": "issue", "key": "12" }] });
    server.send("POST", "/v1/transaction", &json, batch.to_string()).expect(200);
    issues(&server, "/records/12").expect(404);
    let refused = issues(&server, "/records/five").expect(400);
    assert_eq!(refused["type"], "/problems/invalid-key", "{refused}");
}

/// A value that its field cannot have is the same mistake, whatever its type.
#[test]
fn what_no_field_can_have_is_a_bad_request_for_every_type() {
    let server = filled();
    for condition in [
        "number=five",
        "number=123456789",
        "uid=x",
        "state=opened",
        "at=yesterday",
        "at=99999999999999",
        "day=today",
    ] {
        let refused = issues(&server, &format!("/records?where.{condition}")).expect(400);
        assert_eq!(refused["type"], "/problems/invalid-request", "{refused}");
        let field = condition.split('=').next().unwrap();
        assert_eq!(refused["parameter"], format!("where.{field}"));
    }
    issues(&server, "/unique/uid/x").expect(400);
    issues(&server, &format!("/unique/uid/{UID}")).expect(404);
}

#[test]
fn parameters_that_almost_exist_are_named() {
    let server = filled();
    for (asked, meant) in [
        ("project=web", "where.project"),
        ("at.gte=5", "where.at.gte"),
        ("projct=web", "where.project"),
        ("limt=5", "limit"),
        ("labels.*=bug", "where.labels.*"),
    ] {
        let refused = issues(&server, &format!("/records?{asked}")).expect(400);
        assert_eq!(refused["did_you_mean"], meant, "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains(meant), "{refused}");
    }
    let refused = issues(&server, "/records?zzz=1").expect(400);
    assert!(refused["detail"].as_str().unwrap().contains("keys_only"), "{refused}");
    assert_eq!(issues(&server, "/count?state=open").expect(400)["did_you_mean"], "where.state");
    assert_eq!(server.get("/v1/changes?form=1").expect(400)["did_you_mean"], "from");
}
