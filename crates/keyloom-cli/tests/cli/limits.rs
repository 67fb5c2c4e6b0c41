//! The limits of `keyloom serve`, as its options set them.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use super::support::{SCHEMA, Sandbox, Served};

fn serving(args: &[&str]) -> (Sandbox, Served) {
    let sandbox = Sandbox::empty();
    sandbox.write("keyloom.toml", SCHEMA);
    let served = sandbox.serve(&[&["--store", "memory:"], args].concat());
    (sandbox, served)
}

#[test]
fn a_body_a_page_and_a_question_have_the_sizes_that_were_set() {
    let (sandbox, served) =
        serving(&["--body-bytes-max", "100", "--page-max", "2", "--read-max", "3"]);
    let run = |args: &[&str]| sandbox.run(&[args, &["--server", &served.url]].concat());
    let long = json!({ "text": "x".repeat(100) }).to_string();
    let refused = run(&["put", "flow", "long", &long]).expect(3);
    assert!(refused.err.contains("more than 100 bytes"), "{}", refused.err);
    for key in ["a", "b", "c", "d"] {
        run(&["put", "flow", key, "{}"]).expect(0);
    }
    run(&["query", "flow", "--scan", "--limit", "2"]).expect(0);
    let get = |path: &str| {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let url = format!("{}/v1/collections/flow/{path}", served.url);
        let mut answer = agent.get(url).call().unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    };
    let (status, refused) = get("records?scan=true&limit=3");
    assert!(status == 400 && refused.contains("1 to 2"), "{status} {refused}");
    assert_eq!(get("count?scan=true&limit=3").0, 413);
    let (status, refused) = get("count?scan=true&limit=4");
    assert!(status == 400 && refused.contains("1 to 3"), "{status} {refused}");
}

#[test]
fn a_transaction_has_the_operations_that_were_set() {
    let (_sandbox, served) = serving(&["--operations-max", "1"]);
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let put = json!({ "op": "put", "collection": "flow", "key": "a", "record": {} });
    let send = |operations: serde_json::Value| {
        let request = agent.post(format!("{}/v1/transaction", served.url));
        let body = json!({ "operations": operations }).to_string();
        request.content_type("application/json").send(body).unwrap().status().as_u16()
    };
    assert_eq!(send(json!([put])), 200);
    assert_eq!(send(json!([put, put])), 413);
}

#[test]
fn a_connection_beyond_the_limit_takes_the_place_of_one_that_waits() {
    let (_sandbox, served) = serving(&["--connections-max", "1"]);
    let connect = || TcpStream::connect(served.url.strip_prefix("http://").unwrap()).unwrap();
    let mut first = connect();
    let mut second = connect();
    second.write_all(b"GET /v1/schema HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut status = [0; 12];
    second.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    assert_eq!(first.read(&mut [0; 1]).unwrap(), 0, "it is open beside the second");
}
