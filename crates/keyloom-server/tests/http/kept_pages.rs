//! Pages are kept as long as they are true, and shown to those who may see them.

use std::sync::Barrier;

use keyloom_server::{Authority, Config, Limits, new_token};
use serde_json::{Value, json};

use crate::support::{Answer, TestServer};

const SCHEMA: &str = r#"
[collection.task]
key = "task:{id}"

[collection.task.fields]
id = "text"
by = "text"
at = "timestamp"

[collection.task.index.by]
key = "task-by:{by}:{at desc}:{id}"

[collection.note]
key = "note:{owner}:{id}"
access = "owned"
owner = "owner"

[collection.note.fields]
owner = "text"
id = "text"
"#;

const LIST: &str = "/v1/collections/task/records?where.by=ada&order=-at&limit=3";

fn task(id: &str, by: &str, at: u64, text: &str) -> Value {
    json!({ "id": id, "by": by, "at": at, "text": text })
}

/// A server on a folder: only there does the library know how long a page is true.
fn on_folder(config: Config) -> (tempfile::TempDir, TestServer) {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::on(&format!("file:{}", folder.path().display()), SCHEMA, config);
    (folder, server)
}

fn texts(answer: &Answer) -> Vec<String> {
    let page = answer.expect(200);
    let records = page["records"].as_array().unwrap().iter();
    records.map(|it| it["record"]["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_first_page_after_a_write_shows_it_whatever_the_write() {
    let (_folder, server) = on_folder(Config::default());
    let at = |id: &str| format!("/v1/collections/task/records/{id}");
    let list = || texts(&server.get(LIST));
    let shows = |expected: &[&str]| {
        // The second and the third are kept ones.
        for _ in 0..3 {
            assert_eq!(list(), expected);
        }
    };
    shows(&[]);
    let insert = |task: &Value| {
        drop(server.json("POST", "/v1/collections/task/records", task).expect(201));
    };
    insert(&task("a", "ada", 1, "one"));
    shows(&["one"]);
    insert(&task("b", "ada", 2, "two"));
    shows(&["two", "one"]);
    insert(&task("x", "bob", 9, "of somebody else"));
    shows(&["two", "one"]);
    drop(server.json("PUT", &at("a"), &task("a", "ada", 3, "moved")).expect(200));
    shows(&["moved", "two"]);
    drop(server.json("PATCH", &at("b"), &json!({ "text": "changed in its place" })).expect(200));
    shows(&["moved", "changed in its place"]);
    let operations = json!({ "operations": [
        { "op": "patch", "collection": "task", "key": "x", "patch": { "by": "ada", "text": "new" } },
        { "op": "delete", "collection": "task", "key": "a" },
    ]});
    drop(server.json("POST", "/v1/transaction", &operations).expect(200));
    shows(&["new", "changed in its place"]);
    assert_eq!(server.send("DELETE", &at("b"), &[], "").status, 204);
    shows(&["new"]);
    let raw = task("x", "ada", 9, "raw").to_string();
    assert_eq!(server.send("PUT", "/v1/kv/task:x", &[], raw).status, 204);
    shows(&["raw"]);
}

#[test]
fn writers_at_once_always_find_their_own_writes() {
    let (_folder, server) = on_folder(Config::default());
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (server, start) = (&server, &start);
            scope.spawn(move || {
                start.wait();
                let path = format!("/v1/collections/task/records/{writer}");
                for round in 0..100_u64 {
                    let text = format!("{writer} {round}");
                    let written = task(&writer.to_string(), "ada", round / 3, &text);
                    let status = server.json("PUT", &path, &written).status;
                    assert!(status == 200 || status == 201, "{status}");
                    let list = LIST.replace("limit=3", "limit=10");
                    assert!(texts(&server.get(&list)).contains(&text), "{text}");
                }
            });
        }
    });
}

#[test]
fn a_kept_page_is_shown_to_nobody_else() {
    let (admin, reader, writer) = (new_token(), new_token(), new_token());
    let service = "role = \"service\"\ncollections = [\"*\"]";
    let file = format!(
        "[[token]]\nname = \"admin\"\nsha256 = \"{}\"\nrole = \"admin\"\n\
         [[token]]\nname = \"reader\"\nsha256 = \"{}\"\n{service}\nverbs = [\"read\"]\nact_as = true\n\
         [[token]]\nname = \"writer\"\nsha256 = \"{}\"\n{service}\nverbs = [\"write\"]\n",
        admin.1, reader.1, writer.1
    );
    let authority = Authority::from_toml(&file).unwrap();
    let (_folder, server) = on_folder(Config { authority, ..Config::default() });
    let ask = |token: &str, user: Option<&str>, path: &str| {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(user.map(|user| ("keyloom-act-as", user)));
        server.send("GET", path, &headers, "")
    };
    let bearer = format!("Bearer {}", admin.0);
    for (owner, text) in [("ada", "of ada"), ("bob", "of bob")] {
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let note = json!({ "owner": owner, "id": "1", "text": text }).to_string();
        let path = "/v1/collections/note/records";
        drop(server.send("POST", path, &headers, note).expect(201));
    }
    let notes = "/v1/collections/note/records?scan=true";
    for _ in 0..2 {
        assert_eq!(texts(&ask(&admin.0, None, notes)), ["of ada", "of bob"]);
        // At once, while the administrator's page is still kept.
        assert_eq!(ask(&reader.0, None, notes).status, 403, "names no user");
        assert_eq!(ask(&writer.0, None, notes).status, 403);
        assert_eq!(ask("klm_unknown", None, notes).status, 401);
        for (user, text) in [("ada", "of ada"), ("bob", "of bob")] {
            let page = ask(&reader.0, Some(user), notes);
            assert_eq!(texts(&page), [text]);
        }
    }
}

#[test]
fn a_server_that_keeps_nothing_answers_the_same() {
    let limits = Limits { kept_pages_bytes_max: 0, ..Limits::default() };
    let (_folder, server) = on_folder(Config { limits, ..Config::default() });
    for at in 1..4 {
        let task = task(&at.to_string(), "ada", at, &at.to_string());
        drop(server.json("POST", "/v1/collections/task/records", &task).expect(201));
        assert_eq!(texts(&server.get(LIST)).len() as u64, at);
    }
}
