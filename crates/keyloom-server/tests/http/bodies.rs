//! Bodies that are not what they seem. What cannot be kept exactly is refused, each for its own
//! reason, and nothing is changed in silence.

use keyloom_server::{Config, Limits};
use serde_json::Value;

use crate::people::SCHEMA;
use crate::support::{Answer, TestServer};

const TICKET: &str = "/v1/collections/ticket/records/t1";
const JSON: (&str, &str) = ("content-type", "application/json");

fn put(server: &TestServer, body: impl Into<Vec<u8>>) -> Answer {
    server.send("PUT", TICKET, &[JSON], body)
}

/// A record around a value.
fn around(value: &str) -> String {
    format!(r#"{{"id":"t1","state":"open","value":{value}}}"#)
}

#[track_caller]
fn refused(server: &TestServer, body: impl Into<Vec<u8>>, reason: &str) {
    let answer = put(server, body);
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(matches!(answer.status, 400 | 422), "{reason}: {} {text}", answer.status);
    assert!(text.contains(reason), "{reason} is not in {text}");
    assert!(text.contains("did_not_happen"), "{text}");
    server.get(TICKET).expect(404);
}

#[test]
fn depth_is_limited_and_no_stack_overflows() {
    let server = TestServer::start(SCHEMA);
    for depth in [101, 10_000, 500_000] {
        refused(&server, around(&"[".repeat(depth)), "100 levels deep");
        refused(&server, around(&r#"{"a":"#.repeat(depth)), "100 levels deep");
    }
    refused(&server, around(&("[".repeat(10_000) + &"]".repeat(10_000))), "100 levels deep");
    put(&server, around(&("[".repeat(90) + &"]".repeat(90)))).expect(201);
}

#[test]
fn a_body_that_is_empty_is_told_as_such() {
    let server = TestServer::start(SCHEMA);
    for (method, path) in [
        ("PUT", TICKET),
        ("POST", "/v1/collections/ticket/records"),
        ("POST", "/v1/transaction"),
        ("POST", "/v1/admin/repair"),
    ] {
        let problem = server.send(method, path, &[JSON], "").expect(400);
        assert_eq!(problem["detail"], "the body is empty; send JSON", "{method} {path}");
    }
    refused(&server, " \n", "the text is empty");
    refused(&server, "\u{feff}{}", "byte order mark");
}

#[test]
fn names_that_stand_twice_are_refused() {
    let server = TestServer::start(SCHEMA);
    refused(&server, r#"{"id":"t1","id":"t2","state":"open"}"#, "duplicate key");
    refused(&server, r#"{"id":"t1","\u0069d":"t2"}"#, "duplicate key");
    refused(&server, around(r#"{"a":{"b":1,"b":1}}"#), "duplicate key");
}

#[test]
fn numbers_that_would_be_changed_are_refused() {
    let server = TestServer::start(SCHEMA);
    for number in ["18446744073709551616", "-9223372036854775809", "123456789012345678901234567890"]
    {
        refused(&server, around(number), "a whole number has at most 64 bits");
    }
    refused(&server, around("-0"), "negative zero");
    for number in ["9007199254740993.0", "1e-400", "0.1000000000000000055"] {
        refused(&server, around(number), "more digits than are kept");
    }
    refused(&server, around("1e400"), "number out of range");
    for number in ["01", "+1", ".5", "1.", "0x10", "NaN", "Infinity", "-"] {
        refused(&server, around(number), "JSON");
    }
}

#[test]
fn numbers_that_are_taken_come_back_as_they_were() {
    let server = TestServer::start(SCHEMA);
    for number in ["18446744073709551615", "-9223372036854775808", "0", "-0.0", "1.5", "1e300"] {
        let answer = put(&server, around(number));
        assert!(matches!(answer.status, 200 | 201), "{number}: {answer:?}");
        let sent: Value = serde_json::from_str(number).unwrap();
        assert_eq!(server.get(TICKET).expect(200)["value"], sent, "{number}");
    }
}

/// In fields that hold whole numbers alone, there is one way to write each.
#[test]
fn whole_numbers_are_stored_as_such_where_they_are_declared() {
    let server = TestServer::start(
        r#"
        [collection.ticket]
        key = "ticket:{id}"
        fields = { id = "text", count = "integer", at = "timestamp" }
        "#,
    );
    let body = r#"{"id":"t1","count":5.0,"at":1.7e12,"free":5.0}"#;
    let stored = String::from_utf8(put(&server, body).body).unwrap();
    assert_eq!(stored, r#"{"id":"t1","count":5,"at":1700000000000,"free":5.0}"#);
    assert_eq!(server.get(TICKET).body, stored.as_bytes());
}

#[test]
fn text_that_is_no_text_is_refused() {
    let server = TestServer::start(SCHEMA);
    refused(&server, around(r#""\ud800""#), "JSON");
    refused(&server, around(r#""\udc00\ud800""#), "JSON");
    refused(&server, around("\"\u{1}\""), "control character");
    for bytes in [&b"\xff"[..], b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"] {
        let mut body = br#"{"id":"t1","state":""#.to_vec();
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\"}");
        refused(&server, body, "JSON");
    }
    // A mark at the beginning is no part of JSON.
    refused(&server, "\u{feff}{}", "JSON");
    put(&server, around(r#""\ud83d\ude00 \u0000""#)).expect(201);
    assert_eq!(server.get(TICKET).expect(200)["value"], "😀 \u{0}");
}

#[test]
fn bodies_that_are_unfinished_or_go_on_are_refused() {
    let server = TestServer::start(SCHEMA);
    refused(&server, r#"{"id":"t1""#, "EOF");
    refused(&server, r#"{"id":"t1","state":"open"} {}"#, "trailing characters");
    refused(&server, "{\"id\":\"t1\",\"state\":\"open\"}\u{0}", "trailing characters");
    for other in ["[]", "null", "7", "\"text\""] {
        let answer = put(&server, other);
        assert!(matches!(answer.status, 400 | 422), "{other}: {answer:?}");
    }
    server.get(TICKET).expect(404);
}

#[test]
fn a_body_over_the_limit_is_refused_however_it_is_sent() {
    let limits = Limits { body_bytes_max: 1_000, ..Limits::default() };
    let server = TestServer::with(SCHEMA, Config { limits, ..Config::default() });
    let fits = around(&format!("{:?}", "x".repeat(900)));
    put(&server, fits).expect(201);
    let large = around(&format!("{:?}", "y".repeat(1_000)));
    let problem = put(&server, large.clone()).expect(413);
    assert_eq!(problem["type"], "/problems/limit-exceeded");
    assert!(problem["detail"].as_str().unwrap().contains("1000 bytes"), "{problem}");
    let chunked = server.raw(format!(
        "PUT {TICKET} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        large.len(),
    ));
    assert_eq!(chunked.status, 413, "{chunked:?}");
    // What says itself that it is too long is not waited for, nor asked for.
    let announced = server.raw(format!(
        "PUT {TICKET} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Expect: 100-continue\r\nContent-Length: 1001\r\nConnection: close\r\n\r\n",
    ));
    assert_eq!(announced.status, 413, "{announced:?}");
    assert!(!server.get(TICKET).expect(200).to_string().contains("yy"));
}

/// A record has up to 380 KiB. Its text may have more, with escapes and blanks, but not any amount.
#[test]
fn a_body_that_cannot_fit_is_refused_by_its_length() {
    let server = TestServer::start(SCHEMA);
    let blank = " ".repeat(2_500_000);
    put(&server, around(&format!("{blank}\"{}\"", "\\u0041".repeat(50_000)))).expect(201);
    let kept = server.get(TICKET).expect(200);
    assert_eq!(kept["value"], "A".repeat(50_000));
    const RECORDS: &str = "/v1/collections/ticket/records";
    let increment = format!("{TICKET}/increment");
    for (method, path, length) in [
        ("PUT", TICKET, 4 << 20),
        ("PATCH", TICKET, 4 << 20),
        ("POST", RECORDS, 4 << 20),
        ("POST", &increment, 4 << 20),
        ("PUT", "/v1/kv/x", 4 << 20),
        ("POST", "/v1/admin/repair", 20_000),
        ("POST", "/v1/admin/verify", 20_000),
        ("POST", "/console/login", 20_000),
        ("POST", "/v1/batch", 9 << 20),
    ] {
        // Nothing of it is waited for, nor asked for.
        let answer = server.raw(format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Origin: http://localhost\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n",
        ));
        assert_eq!(answer.status, 413, "{method} {path}: {answer:?}");
    }
}

/// Nothing is decompressed, so that a small body never becomes a large one.
#[test]
fn compressed_bodies_are_refused() {
    let server = TestServer::start(SCHEMA);
    for encoding in ["gzip", "deflate", "br", "zstd", "gzip, identity", "identity, gzip", "x"] {
        let headers = [JSON, ("content-encoding", encoding)];
        let answer = server.send("PUT", TICKET, &headers, around("1"));
        assert_eq!(answer.expect(415)["type"], "/problems/unsupported-media-type", "{encoding}");
    }
    let twice = [JSON, ("content-encoding", "identity"), ("content-encoding", "gzip")];
    server.send("PUT", TICKET, &twice, around("1")).expect(415);
    let plain = [JSON, ("content-encoding", "identity")];
    server.send("PUT", TICKET, &plain, around("1")).expect(201);
}

#[test]
fn only_json_is_taken_for_json() {
    let server = TestServer::start(SCHEMA);
    // What forms of other sites can send without asking first.
    for media in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json", ""]
    {
        let answer = server.send("PUT", TICKET, &[("content-type", media)], around("1"));
        answer.expect(415);
    }
    let parameters = [("content-type", "Application/JSON; charset=utf-8")];
    server.send("PUT", TICKET, &parameters, around("1")).expect(201);
}

/// Two ways of saying how long a body is are how requests are smuggled past a proxy.
#[test]
fn requests_that_two_readers_would_split_differently_are_refused() {
    let server = TestServer::start(SCHEMA);
    for headers in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5, 6\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Bad Name: x\r\n",
        "X : y\r\n",
    ] {
        let answer = server.raw(format!(
            "PUT {TICKET} HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\nhello"
        ));
        assert!(matches!(answer.status, 0 | 400), "{headers}: {answer:?}");
    }
}
