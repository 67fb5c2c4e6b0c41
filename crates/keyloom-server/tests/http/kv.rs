//! Plain keys and values.

use serde_json::{Value, json};

use crate::support::TestServer;
use crate::transaction::{SCHEMA, account, id};

fn key(text: &str) -> String {
    let encoded: String = text
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    format!("/v1/kv/{encoded}")
}

#[test]
fn bytes_come_back_as_they_were_put() {
    let server = TestServer::start(SCHEMA);
    let value: Vec<u8> = (0..=255).collect();
    for name in ["plain", "with/slash", "a b", "%", "..", "\u{1}", "ümlaut", "a:b:c"] {
        assert_eq!(server.get(&key(name)).status, 404, "{name}");
        server.send("PUT", &key(name), &[], value.clone()).expect(204);
        let answer = server.get(&key(name));
        assert_eq!((answer.status, &answer.body), (200, &value), "{name}");
        let etag = answer.header("etag").unwrap().to_owned();
        for known in [etag.clone(), format!("W/{etag}"), format!("\"x\", {etag}"), "*".into()] {
            let known = server.send("GET", &key(name), &[("if-none-match", &known)], "");
            assert_eq!((known.status, known.body.len()), (304, 0));
        }
        server.send("PUT", &key(name), &[], "other").expect(204);
        assert_ne!(server.get(&key(name)).header("etag").unwrap(), etag);
        server.send("DELETE", &key(name), &[], "").expect(204);
        server.send("DELETE", &key(name), &[], "").expect(404);
    }
}

#[test]
fn keys_that_are_no_text_are_reached_in_base64() {
    let server = TestServer::start(SCHEMA);
    let path = "/v1/kv?key_base64=_wD-"; // FF 00 FE
    server.send("PUT", path, &[], vec![0xFF]).expect(204);
    assert_eq!(server.get(path).body, [0xFF]);
    let listed = server.get("/v1/kv?prefix_base64=_w").expect(200);
    assert_eq!(listed["keys"], json!([{"key_base64": "_wD-", "value_base64": "/w=="}]));
    server.send("DELETE", path, &[], "").expect(204);
    for wrong in ["/v1/kv?key_base64=*", "/v1/kv/a?key_base64=_w"] {
        server.get(wrong).expect(400);
    }
    server.send("PUT", "/v1/kv", &[], "x").expect(400);
    server.get("/v1/kv/%FF").expect(400);
}

#[test]
fn listings_are_paged_within_prefix_and_area() {
    let server = TestServer::start(SCHEMA);
    for number in 0..25 {
        server.send("PUT", &key(&format!("list:{number:02}")), &[], number.to_string()).expect(204);
    }
    server.send("PUT", &format!("{}?area=side", key("list:99")), &[], "aside").expect(204);
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/v1/kv?prefix=list:&limit=10{cursor}")).expect(200);
        found.extend(page["keys"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => {
                assert_eq!(page["stopped"], "take");
                cursor = format!("&cursor={next}");
            }
            None => {
                assert_eq!(page["stopped"], "end");
                break;
            }
        }
    }
    let wanted: Vec<Value> = (0..25)
        .map(|number| json!({"key": format!("list:{number:02}"), "value": number.to_string()}))
        .collect();
    assert_eq!(found, wanted);
    let aside = server.get("/v1/kv?prefix=list:&area=side").expect(200);
    assert_eq!(aside["keys"], json!([{"key": "list:99", "value": "aside"}]));
    let tampered = format!("/v1/kv?prefix=other:&limit=10{cursor}");
    assert_eq!(server.get(&tampered).expect(409)["type"], "/problems/invalid-cursor");
    for wrong in ["limit=0", "limit=1001", "limit=-1", "colour=red", "prefix=a&prefix=b", "area=~"]
    {
        assert_eq!(server.get(&format!("/v1/kv?{wrong}")).status, 400, "{wrong}");
    }
}

#[test]
fn records_go_through_their_collection_and_entries_are_refused() {
    let server = TestServer::start(SCHEMA);
    let record = account(1, 5);
    let path = key(&format!("account:{}", id(1)));
    server.send("PUT", &path, &[], record.to_string()).expect(204);
    assert_eq!(server.get(&path).value(), record);
    // It is indexed: its code is taken.
    assert_eq!(server.get(&key("account:code:c1")).status, 200);
    let problem = server.send("PUT", &key("account:code:c1"), &[], "\"x\"").expect(409);
    assert_eq!(problem["type"], "/problems/belongs-to-index");
    assert_eq!(problem["context"]["index"], "code");
    server.send("DELETE", &key("account:code:c1"), &[], "").expect(409);
    server.send("PUT", &path, &[], "not json").expect(422);
    server.send("PUT", &path, &[], account(2, 5).to_string()).expect(422);
    server.send("PUT", &key("account:stray"), &[], "x").expect(400);
    server.send("PUT", &path, &[("if-match", "\"x\"")], record.to_string()).expect(400);
    server.send("DELETE", &path, &[], "").expect(204);
    assert_eq!(server.get(&key("account:code:c1")).status, 404);
}

#[test]
fn users_see_what_is_theirs_and_put_once() {
    let server = TestServer::start(SCHEMA);
    let note = |user: &str| key(&format!("user:{user}:notes:n1"));
    let body = json!({"userId": "ana", "noteId": "n1"}).to_string();
    let ana = [("keyloom-act-as", "ana"), ("idempotency-key", "k")];
    for _ in 0..3 {
        server.send("PUT", &note("ana"), &ana, body.clone()).expect(204);
    }
    server.send("PUT", &note("ana"), &ana, body.replace('}', ",\"x\":1}")).expect(422);
    assert_eq!(server.send("GET", &note("ana"), &ana[..1], "").status, 200);
    let ben = [("keyloom-act-as", "ben")];
    server.send("GET", &note("ana"), &ben, "").expect(404);
    assert_ne!(server.send("PUT", &note("ana"), &ben, body).status, 204);
    assert_ne!(server.send("DELETE", &note("ana"), &ben, "").status, 204);
    server.send("GET", &key("free"), &ben, "").expect(403);
    let listed = server.send("GET", "/v1/kv?prefix=user:", &ben, "").expect(200);
    assert_eq!(listed["keys"], json!([]));
}
