//! Every page and its JSON twin, over sockets.

use serde_json::{Value, json};

use super::fixture::{self, block_on, stored};
use crate::support::{Answer, TestServer};

/// What the browser sends with a form, and the page that this leads to.
pub fn post(server: &TestServer, path: &str, fields: &[(&str, &str)]) -> Answer {
    follow(server, submit(server, path, fields))
}

/// What the browser sends with a form.
pub fn submit(server: &TestServer, path: &str, fields: &[(&str, &str)]) -> Answer {
    let body = form(fields);
    let origin = format!("http://{}", server.address);
    let headers =
        [("content-type", "application/x-www-form-urlencoded"), ("origin", origin.as_str())];
    server.send("POST", path, &headers, body)
}

/// The page that an answer leads to, as a browser follows it.
pub fn follow(server: &TestServer, answer: Answer) -> Answer {
    match answer.header("location") {
        Some(next) => server.get(next),
        None => answer,
    }
}

fn form(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

pub fn html(server: &TestServer, path: &str) -> String {
    let answer = server.get(path);
    let text = String::from_utf8(answer.body.clone()).unwrap();
    assert_eq!(answer.status, 200, "{path}: {text}");
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
    text
}

pub fn twin(server: &TestServer, path: &str) -> Value {
    let joint = if path.contains('?') { '&' } else { '?' };
    let by_parameter = server.get(&format!("{path}{joint}format=json")).expect(200);
    let by_header = server.send("GET", path, &[("accept", "application/json")], "").expect(200);
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&by_parameter), names(&by_header), "{path}");
    by_parameter
}

pub const PAGES: [(&str, &str); 14] = [
    ("/console/", "collections"),
    ("/console/schema", "keyspace"),
    ("/console/keys", "branches"),
    ("/console/keys?prefix=approval:record:r001", "key"),
    ("/console/changes", "log"),
    ("/console/collections/approval/", "answer"),
    ("/console/collections/approval/new", "text"),
    ("/console/collections/approval/record?key=r001", "history"),
    ("/console/collections/approval/record/edit?key=r001", "version"),
    ("/console/collections/approval/record/delete?key=r001", "keys"),
    ("/console/collections/place/?index=around&lat=48.8&lon=2.3", "answer"),
    ("/console/collections/place/indexes/around", "toml"),
    ("/console/collections/approval/indexes/requester", "inside"),
    ("/console/collections/approval/indexes/by_status", "inside"),
];

#[test]
fn every_page_has_a_url_a_twin_and_a_strict_policy() {
    let server = fixture::server();
    for (path, member) in PAGES {
        let answer = server.get(path);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self'"));
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        let page = html(&server, path);
        assert!(page.starts_with("<!DOCTYPE html>"), "{path}");
        for forbidden in
            ["style=\"", "<style", " onclick", " onload", "javascript:", "http://", "https://"]
        {
            assert!(!page.contains(forbidden), "{path} has {forbidden}");
        }
        assert_eq!(page.matches("<script").count(), 1, "{path}");
        assert_eq!(page.matches("<h1").count(), 1, "{path}");
        let model = twin(&server, path);
        assert!(model.get(member).is_some_and(|it| !it.is_null()), "{path}: {model}");
    }
}

#[test]
fn every_input_has_a_label_and_no_heading_is_skipped() {
    let server = fixture::server();
    for (path, _) in PAGES {
        let page = html(&server, path);
        for (tag, rest) in tags(&page) {
            let is_input = matches!(tag, "input" | "select" | "textarea");
            if !is_input || rest.contains("type=\"hidden\"") || rest.contains("type=\"checkbox\"") {
                continue;
            }
            let id = rest.split("id=\"").nth(1).and_then(|it| it.split('"').next());
            let id = id.unwrap_or_else(|| panic!("{path}: <{tag}{rest}> has no id"));
            assert!(page.contains(&format!("for=\"{id}\"")), "{path}: {id} has no label");
        }
        let main = page.split("<main").nth(1).unwrap();
        let levels = tags(main).filter_map(|(tag, _)| tag.strip_prefix('h')?.parse::<u8>().ok());
        levels.fold(0, |before, level| {
            assert!(level <= before + 1, "{path}: h{level} after h{before}");
            level
        });
        let ids: Vec<&str> =
            page.split(" id=\"").skip(1).filter_map(|it| it.split('"').next()).collect();
        let mut once = ids.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), ids.len(), "{path}: an id comes twice: {ids:?}");
    }
}

/// The opening tags of a page: each name, and what stands behind it.
pub fn tags(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split('<').skip(1).filter_map(|tag| {
        let tag = tag.split('>').next()?;
        let end = tag.find(|it: char| !it.is_ascii_alphanumeric()).unwrap_or(tag.len());
        Some(tag.split_at(end)).filter(|(name, _)| !name.is_empty())
    })
}

#[test]
fn the_overview_begins_with_the_collections() {
    let server = fixture::server();
    let page = html(&server, "/console/");
    let main = page.split("<main").nth(1).unwrap();
    let headings: Vec<&str> =
        main.split("<h2").skip(1).filter_map(|it| it.split(['>', '<']).nth(1)).collect();
    assert_eq!(headings, ["Collections", "Requests", "Engine", "Another space"]);
    assert!(!page.contains("at most –"), "{page}");
}

#[test]
fn the_root_leads_to_the_console_and_assets_are_kept_for_good() {
    let server = fixture::server();
    for path in ["/", "/console"] {
        assert_eq!(server.get(path).header("location"), Some("/console/"));
    }
    let page = html(&server, "/console/");
    let style = page.split("href=\"/console/assets/style-").nth(1).unwrap();
    let style = format!("/console/assets/style-{}", style.split('"').next().unwrap());
    let answer = server.get(&style);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/css; charset=utf-8"));
    assert_eq!(answer.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(server.get("/console/assets/style-0000000000000000.css").status, 404);
    assert_eq!(server.get("/console/assets/..%2Fmod.rs").status, 404);
}

#[test]
fn a_collection_is_browsed_by_an_index_and_page_by_page() {
    let server = fixture::server();
    let path = "/console/collections/approval/?index=status&where.status=pending&limit=5";
    let mut seen = Vec::new();
    let mut model = twin(&server, path);
    assert!(model["plan"].as_str().unwrap().starts_with("index approval.status"), "{model}");
    loop {
        let rows = model["answer"]["rows"].as_array().unwrap();
        seen.extend(rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()));
        let Some(next) = model["answer"]["next"].as_str() else { break };
        model = twin(&server, &format!("{path}&cursor={next}"));
    }
    assert!(seen.len() > 10 && seen.is_sorted_by(|a, b| a > b), "{seen:?}");
    let back = model["answer"]["previous"].as_str().unwrap();
    let before = twin(&server, &format!("{path}&cursor={back}"));
    let names = before["answer"]["rows"].as_array().unwrap().iter().map(|row| &row["name"]);
    let all = seen.len();
    let expected = &seen[all.div_ceil(5) * 5 - 10..all.div_ceil(5) * 5 - 5];
    assert!(names.eq(expected.iter()), "{before}");

    let keys = twin(&server, &format!("{path}&keys_only=true"));
    assert!(keys["answer"]["rows"][0].get("record").is_none());
    let filtered =
        twin(&server, &format!("{path}&add_field=amount.value&add_comparison=gt&add_value=400"));
    let rows = filtered["answer"]["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    assert!(rows.iter().all(|row| row["record"]["amount"]["value"].as_u64() > Some(400)));
    let ranged = twin(
        &server,
        "/console/collections/approval/?index=requester&where.requester_id=ana&where.created_at.gte=2025-10-11T00:00:00.000Z&order=created_at",
    );
    let times: Vec<u64> = ranged["answer"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["record"]["created_at"].as_u64().unwrap())
        .collect();
    assert!(times.len() > 1 && times.is_sorted() && times[0] >= 1_760_140_800_000, "{times:?}");
}

#[test]
fn a_question_that_cannot_be_answered_keeps_the_form() {
    let server = fixture::server();
    let path = "/console/collections/approval/?where.approver_id=ana";
    let answer = server.get(path);
    let page = String::from_utf8(answer.body).unwrap();
    assert_eq!(answer.status, 409);
    assert!(
        page.contains("No index serves this query") && page.contains("name=\"index\""),
        "{page}"
    );
    // What is there is a list for people, and the sentence is said once.
    assert!(page.contains("<dt>there is</dt>") && !page.contains("[&quot;approval:"), "{page}");
    assert!(!page.contains("no index serves this query"), "{page}");
    // An index that was only chosen is no mistake yet.
    let chosen = html(&server, "/console/collections/approval/?index=requester");
    assert!(chosen.contains("name=\"where.requester_id\""));
}

#[test]
fn a_record_shows_every_key_that_it_owns() {
    let server = fixture::server();
    let path = "/console/collections/approval/record?key=r005";
    let model = twin(&server, path);
    let keys = model["found"]["keys"].as_array().unwrap();
    let kinds: Vec<&str> = keys.iter().map(|key| key["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["record", "entry", "entry", "entry", "history"]);
    assert!(keys.iter().all(|key| key["is_present"] == true));
    // Those of its history outlive it.
    let asked = twin(&server, "/console/collections/approval/record/delete?key=r005");
    assert_eq!(asked["keys"], 4);
    fixture::damage(&server.store);
    let page = html(&server, path);
    assert!(page.contains("1 of them is not in the store") && page.contains(">missing<"), "{page}");
}

#[test]
fn a_record_is_made_edited_counted_and_deleted() {
    let server = fixture::server();
    let base = "/console/collections/approval";
    let made = post(
        &server,
        &format!("{base}/new"),
        &[("text", r#"{"id": "new/1 ?", "status": "pending"}"#)],
    );
    let made = String::from_utf8(made.body).unwrap();
    assert!(made.contains("The record was made.") && made.contains("new/1 ?"), "{made}");

    let key = "new%2F1%20%3F";
    let edit = twin(&server, &format!("{base}/record/edit?key={key}"));
    let version = edit["version"].as_str().unwrap();
    let text = r#"{"status": "approved"}"#;
    let saved = post(
        &server,
        &format!("{base}/record/edit?key={key}"),
        &[("text", text), ("version", version)],
    );
    assert!(String::from_utf8(saved.body).unwrap().contains("The record was saved."));
    assert_eq!(stored(&server.store, "approval", "new/1 ?").unwrap()["status"], "approved");

    let ask = twin(&server, &format!("{base}/record/delete?key={key}"));
    assert!(stored(&server.store, "approval", "new/1 ?").is_some());
    let gone = post(
        &server,
        &format!("{base}/record/delete?key={key}"),
        &[("version", ask["version"].as_str().unwrap())],
    );
    assert!(String::from_utf8(gone.body).unwrap().contains("The record was deleted."));
    assert_eq!(stored(&server.store, "approval", "new/1 ?"), None);
    // Its history is still told.
    assert!(html(&server, &format!("{base}/record?key={key}")).contains("The record is gone."));

    let counted = post(
        &server,
        "/console/collections/flow/record/increment?key=orders",
        &[("add.visits", "-1"), ("add.stats.failed", ""), ("name", "stats.done"), ("amount", "4")],
    );
    assert!(String::from_utf8(counted.body).unwrap().contains("The counters were changed."));
    let flow = stored(&server.store, "flow", "orders").unwrap();
    assert_eq!((&flow["visits"], &flow["stats"]["done"]), (&json!(2), &json!(4)));
}

#[test]
fn counters_are_no_part_of_what_is_edited() {
    let server = fixture::server();
    let path = "/console/collections/flow/record/edit?key=orders";
    let edit = twin(&server, path);
    let text = edit["text"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(text).unwrap(),
        json!({ "flow": "orders", "title": "Orders" })
    );
    // Somebody counts meanwhile, which is no conflict.
    let flows = block_on(server.store.documents("flow")).unwrap();
    block_on(flows.increment("orders", [("visits", 1)])).unwrap();
    let text = text.replace("Orders", "All orders");
    let saved =
        post(&server, path, &[("text", &text), ("version", edit["version"].as_str().unwrap())]);
    assert!(String::from_utf8(saved.body).unwrap().contains("The record was saved."));
    let flow = stored(&server.store, "flow", "orders").unwrap();
    assert_eq!((&flow["title"], &flow["visits"]), (&json!("All orders"), &json!(4)));
}

#[test]
fn a_conflict_shows_both_sides_and_saves_nothing_until_one_chooses() {
    let server = fixture::server();
    let path = "/console/collections/approval/record/edit?key=r002";
    let edit = twin(&server, path);
    let (base, version) = (edit["text"].as_str().unwrap(), edit["version"].as_str().unwrap());
    let approvals = block_on(server.store.documents("approval")).unwrap();
    block_on(approvals.update_with_retry("r002", &json!({ "reason": "theirs" }))).unwrap();

    let mine = base.replace("\"EUR\"", "\"USD\"");
    let sent = [("text", mine.as_str()), ("version", version), ("base", base)];
    let origin = format!("http://{}", server.address);
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("origin", origin.as_str()),
        ("accept", "application/json"),
    ];
    let refused = server.send("POST", path, &headers, form(&sent));
    let conflict = refused.expect(409);
    assert_eq!(conflict["conflict"]["theirs"]["reason"], "theirs");
    let differing = conflict["conflict"]["differences"].as_array().unwrap();
    let paths: Vec<&Value> = differing.iter().map(|it| &it["path"]).collect();
    assert_eq!(paths, [&json!(["reason"]), &json!(["amount", "currency"])]);
    assert_eq!(stored(&server.store, "approval", "r002").unwrap()["amount"]["currency"], "EUR");
    let page = String::from_utf8(post(&server, path, &sent).body).unwrap();
    assert!(page.contains("Somebody else changed this record while you did."), "{page}");

    let merged = conflict["conflict"]["merged"].as_str().unwrap();
    let current = conflict["version"].as_str().unwrap();
    let both =
        [("text", mine.as_str()), ("version", current), ("choice", "merged"), ("merged", merged)];
    assert!(String::from_utf8(post(&server, path, &both).body).unwrap().contains("was saved"));
    let now = stored(&server.store, "approval", "r002").unwrap();
    assert_eq!((&now["reason"], &now["amount"]["currency"]), (&json!("theirs"), &json!("USD")));
}

#[test]
fn what_cannot_be_saved_comes_back_with_the_reason_and_the_text() {
    let server = fixture::server();
    let path = "/console/collections/approval/record/edit?key=r003";
    let version = twin(&server, path)["version"].as_str().unwrap().to_owned();
    for (text, reason) in [
        ("{", "JSON"),
        (r#"{"a":1,"a":2}"#, "JSON"),
        (r#"{"id": "other"}"#, "part of the record&#39;s key"),
        (r#"{"status": "lost"}"#, "breaks its schema"),
        ("[]", "A record is a JSON object"),
    ] {
        let answer = post(&server, path, &[("text", text), ("version", &version)]);
        let page = String::from_utf8(answer.body).unwrap();
        assert!(answer.status >= 400, "{text}");
        let reason = reason.replace("&#39;", "'");
        assert!(page.contains(&reason) && page.contains("<textarea"), "{text}: {page}");
    }
    assert_eq!(stored(&server.store, "approval", "r003").unwrap()["status"], "approved");
}

#[test]
fn one_sees_what_a_user_sees() {
    let server = fixture::server();
    let notes = "/console/collections/note/";
    let all = twin(&server, notes);
    assert_eq!(all["answer"]["rows"].as_array().unwrap().len(), 2);
    let own = twin(&server, &format!("{notes}?as=ana"));
    let rows = own["answer"]["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["name"]), (1, &json!("n1")));
    let page = html(&server, &format!("{notes}?as=ana"));
    assert!(
        page.contains("key=n1&amp;as=ana") && page.contains("Stop viewing as this user"),
        "{page}"
    );
    assert!(
        html(&server, "/console/collections/note/record?key=n1&as=ana").contains("ana wrote this")
    );
    // Posts of others are read, by their owner's name, and not offered to be changed.
    let posts = twin(&server, "/console/collections/post/?as=ana&index=recent");
    let owners: Vec<&Value> =
        posts["answer"]["rows"].as_array().unwrap().iter().map(|row| &row["owner"]).collect();
    assert!(owners.contains(&&json!("bob")), "{posts}");
    let theirs = html(&server, "/console/collections/post/record?key=p1&owner=bob&as=ana");
    assert!(theirs.contains("hello") && !theirs.contains("record/edit"), "{theirs}");
    // What is for administrators is not for users, nor for administrators in their name.
    for path in ["/console/keys", "/console/changes", "/console/verify"] {
        assert_eq!(server.get(&format!("{path}?as=ana")).status, 403, "{path}");
    }
    assert!(!html(&server, "/console/?as=ana").contains("/console/keys"));
}

#[test]
fn the_schema_is_shown_as_a_file_that_declares_the_same() {
    let server = fixture::server();
    let model = twin(&server, "/console/schema");
    let read = keyloom::Schema::from_toml(model["toml"].as_str().unwrap()).unwrap();
    let declared = keyloom::Schema::from_toml(fixture::SCHEMA).unwrap();
    assert_eq!(read.declaration(), declared.declaration());
    let page = html(&server, "/console/schema");
    assert!(page.contains("[collection.approval.index.requester]"), "{page}");
    let index = html(&server, "/console/collections/place/indexes/in_city");
    assert!(index.contains("[collection.place.geo.in_city]\nkey = "), "{index}");
}

#[test]
fn spaces_have_their_own_pages() {
    let server = fixture::server();
    let other = html(&server, "/console/s/other/");
    assert!(other.contains("This space has no schema yet."), "{other}");
    assert!(other.contains("/console/s/other/keys"), "{other}");
    let opened = follow(&server, server.get("/console/open?space=other"));
    assert!(String::from_utf8(opened.body).unwrap().contains("Space other"));
    assert_eq!(server.get("/console/s/other/collections/approval/").status, 404);
}

#[test]
fn problems_are_pages_too_and_their_twins_are_problems() {
    let server = fixture::server();
    for (path, status) in [
        ("/console/collections/none/", 404),
        ("/console/collections/approval/record?key=none", 404),
        ("/console/collections/approval/record", 400),
        ("/console/collections/approval/indexes/none", 404),
        ("/console/?what=1", 400),
        ("/console/?format=xml", 400),
        ("/console/changes?before=x", 400),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, status, "{path}");
        let page = String::from_utf8(answer.body).unwrap();
        assert!(page.contains("<h1") && page.contains("role=\"alert\""), "{path}: {page}");
        let problem = server.send("GET", path, &[("accept", "application/json")], "");
        let problem = problem.expect(status);
        assert!(problem["type"].as_str().unwrap().starts_with("/problems/"), "{problem}");
    }
}

#[test]
fn forms_of_other_sites_change_nothing() {
    let server = fixture::server();
    let path = "/console/collections/flow/record/increment?key=orders";
    let media = ("content-type", "application/x-www-form-urlencoded");
    for told in
        [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site"), ("origin", "null")]
    {
        let headers = [media, told, ("connection", "close")];
        assert_eq!(server.send("POST", path, &headers, "add.visits=1").status, 403, "{told:?}");
    }
    assert_eq!(stored(&server.store, "flow", "orders").unwrap()["visits"], 3);
}
