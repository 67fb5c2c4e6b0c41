//! Forms that are sent twice: by a double click, or by a browser that sends its request again.

use serde_json::json;

use super::fixture::{self, block_on, records, stored};
use super::pages::{PAGES, html, post, submit, tags, twin};
use crate::support::{Answer, TestServer};

/// The key of the form on a page.
fn key_on(page: &str) -> String {
    let field = page.split("name=\"once\" value=\"").nth(1).expect("a form with a key");
    field.split('"').next().unwrap().to_owned()
}

fn text(answer: Answer) -> String {
    String::from_utf8(answer.body).unwrap()
}

/// Sends the same form twice at one time. Both lead to the same page, which is given.
#[track_caller]
fn sent_twice(server: &TestServer, path: &str, fields: &[(&str, &str)]) -> String {
    let answers = std::thread::scope(|scope| {
        let sent = [0, 1].map(|_| scope.spawn(|| submit(server, path, fields)));
        sent.map(|it| it.join().unwrap())
    });
    let [first, second] = answers.map(|it| it.header("location").map(str::to_owned));
    assert_eq!(first, second);
    first.unwrap_or_else(|| panic!("{path} leads nowhere"))
}

#[test]
fn every_form_that_changes_something_has_a_key() {
    let server = fixture::server();
    let more = ["/console/verify", "/console/collections/flow/record?key=orders"];
    for path in PAGES.map(|(path, _)| path).into_iter().chain(more) {
        let page = html(&server, path);
        let forms = tags(&page).filter(|(tag, rest)| *tag == "form" && rest.contains("post"));
        assert_eq!(forms.count(), page.matches("name=\"once\"").count(), "{path}");
        if page.contains("name=\"once\"") {
            assert_ne!(key_on(&page), key_on(&html(&server, path)), "{path}");
        }
    }
}

#[test]
fn an_insert_that_is_sent_twice_makes_one_record() {
    let server = fixture::server();
    let path = "/console/collections/place/new";
    let before = records(&server.store, "place");
    let key = key_on(&html(&server, path));
    let fields = [("text", r#"{"name": "Orsay", "city": "Paris"}"#), ("once", &key)];
    let made = sent_twice(&server, path, &fields);
    assert!(html(&server, &made).contains("The record was made."));
    assert_eq!(sent_twice(&server, path, &fields), made);
    assert_eq!(records(&server.store, "place"), before + 1);
    // The same from a fresh form is meant.
    let other = key_on(&html(&server, path));
    assert_ne!(sent_twice(&server, path, &[fields[0], ("once", &other)]), made);
    assert_eq!(records(&server.store, "place"), before + 2);
}

#[test]
fn counters_grow_once() {
    let server = fixture::server();
    let page = html(&server, "/console/collections/flow/record?key=orders");
    let fields = [("add.visits", "4"), ("once", &key_on(&page))];
    let path = "/console/collections/flow/record/increment?key=orders";
    for _ in 0..2 {
        let page = html(&server, &sent_twice(&server, path, &fields));
        assert!(page.contains("The counters were changed."), "{page}");
    }
    assert_eq!(stored(&server.store, "flow", "orders").unwrap()["visits"], 7);
}

#[test]
fn a_second_click_on_save_or_delete_is_no_conflict() {
    let server = fixture::server();
    let path = "/console/collections/approval/record/edit?key=r002";
    let (page, edit) = (html(&server, path), twin(&server, path));
    let version = edit["version"].as_str().unwrap();
    let fields = [("text", r#"{"status": "denied"}"#), ("version", version)];
    let key = key_on(&page);
    let saved = sent_twice(&server, path, &[fields[0], fields[1], ("once", &key)]);
    assert!(html(&server, &saved).contains("The record was saved."));
    let now = twin(&server, "/console/collections/approval/record?key=r002");
    assert_eq!(now["found"]["revision"], 2);

    let path = "/console/collections/approval/record/delete?key=r002";
    let (page, asked) = (html(&server, path), twin(&server, path));
    let key = key_on(&page);
    let version = asked["version"].as_str().unwrap();
    let gone = sent_twice(&server, path, &[("version", version), ("once", &key)]);
    assert!(html(&server, &gone).contains("The record was deleted."));
    assert_eq!(stored(&server.store, "approval", "r002"), None);
}

#[test]
fn a_verification_that_is_asked_for_twice_is_one_job() {
    let server = fixture::server();
    let key = key_on(&html(&server, "/console/verify"));
    let job = sent_twice(&server, "/console/verify", &[("once", &key)]);
    while twin(&server, &job)["job"]["state"] == "running" {}
    assert_eq!(sent_twice(&server, "/console/verify", &[("once", &key)]), job);
    assert_eq!(twin(&server, "/console/verify")["jobs"].as_array().unwrap().len(), 1);
    // The API's header does the same.
    let ask = || server.send("POST", "/v1/admin/verify", &[("idempotency-key", "v")], "");
    let first = ask().expect(202);
    assert_eq!(ask().expect(202)["id"], first["id"]);
}

#[test]
fn a_form_that_said_something_else_before_is_told_and_gets_a_fresh_key() {
    let server = fixture::server();
    let path = "/console/collections/place/new";
    let before = records(&server.store, "place");
    let key = key_on(&html(&server, path));
    post(&server, path, &[("text", r#"{"name": "one"}"#), ("once", &key)]);
    let again = submit(&server, path, &[("text", r#"{"name": "two"}"#), ("once", &key)]);
    assert_eq!(again.status, 422);
    let page = text(again);
    assert!(page.contains("This form was sent before") && page.contains("&quot;two&quot;"));
    assert_eq!(records(&server.store, "place"), before + 1);
    let fresh = key_on(&page);
    assert_ne!(fresh, key);
    let made = post(&server, path, &[("text", r#"{"name": "two"}"#), ("once", &fresh)]);
    assert!(text(made).contains("The record was made."));
}

#[test]
fn a_refused_form_keeps_its_key_and_what_was_typed() {
    let server = fixture::server();
    let refused = |path: &str, fields: &[(&str, &str)]| {
        let answer = submit(&server, path, fields);
        assert!(answer.status >= 400, "{path}");
        let page = text(answer);
        assert_eq!(key_on(&page), "mine", "{path}");
        page
    };
    refused("/console/collections/place/new", &[("text", "{"), ("once", "mine")]);
    refused("/console/collections/flow/record/edit?key=orders", &[("text", "{"), ("once", "mine")]);
    let path = "/console/collections/flow/record/increment?key=orders";
    for (name, value, reason) in [
        ("add.visits", "many", "must be a whole number"),
        ("add.stats.failed", "-5", "would leave its declared bounds"),
        ("name", "stats.x", "Say how much to add to stats.x"),
        ("amount", "3", "Say which counter the amount is added to"),
    ] {
        let page = refused(path, &[(name, value), ("once", "mine")]);
        assert!(page.contains(reason), "{name}={value}: {page}");
        assert!(page.contains(&format!("value=\"{value}\"")), "{name}={value}");
        assert!(page.contains("Every key that it owns"), "the record is still shown");
    }
    let counted = post(&server, path, &[("add.visits", "1"), ("once", "mine")]);
    assert!(text(counted).contains("The counters were changed."));
}

#[test]
fn a_record_that_changed_is_not_deleted_and_shown_as_it_is_now() {
    let server = fixture::server();
    let path = "/console/collections/approval/record/delete?key=r003";
    let version = twin(&server, path)["version"].as_str().unwrap().to_owned();
    let approvals = block_on(server.store.documents("approval")).unwrap();
    block_on(approvals.update_with_retry("r003", &json!({ "reason": "changed" }))).unwrap();
    let answer = submit(&server, path, &[("version", &version)]);
    assert_eq!(answer.status, 409);
    let page = text(answer);
    assert!(page.contains("Nothing was deleted.") && page.contains("changed"), "{page}");
    assert!(stored(&server.store, "approval", "r003").is_some());
}
