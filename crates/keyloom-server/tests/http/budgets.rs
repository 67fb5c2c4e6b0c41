//! How much one request may ask for.

use keyloom_server::{Config, Limits};
use serde_json::json;

use crate::people::SCHEMA;
use crate::support::TestServer;

const TICKETS: &str = "/v1/collections/ticket/records";

fn filled(limits: Limits) -> TestServer {
    let server = TestServer::with(SCHEMA, Config { limits, ..Config::default() });
    for number in 10..40 {
        let record = json!({ "id": format!("t{number}"), "state": "open" });
        server.json("PUT", &format!("{TICKETS}/t{number}"), &record).expect(201);
    }
    server
}

#[test]
fn a_page_is_never_larger_than_the_limit() {
    let server = filled(Limits { page_max: 7, ..Limits::default() });
    for query in ["where.state=open&limit=7", "scan=true&limit=7"] {
        let page = server.get(&format!("{TICKETS}?{query}")).expect(200);
        assert_eq!(page["records"].as_array().unwrap().len(), 7, "{query}");
    }
    for limit in ["8", "1000000", "18446744073709551615"] {
        let answer = server.get(&format!("{TICKETS}?where.state=open&limit={limit}"));
        assert!(matches!(answer.status, 400 | 413), "{limit}: {answer:?}");
    }
    for limit in ["0", "-1", "1.5", "x", "", "18446744073709551616"] {
        let answer = server.get(&format!("{TICKETS}?where.state=open&limit={limit}"));
        assert_eq!(answer.status, 400, "{limit}: {answer:?}");
    }
}

#[test]
fn a_filter_reads_no_more_than_the_limit() {
    let server = filled(Limits { read_max: 10, ..Limits::default() });
    let page = server.get(&format!("{TICKETS}?where.state=open&filter.id=t39&limit=5")).expect(200);
    assert!(page["read"].as_u64().unwrap() <= 10, "{page}");
    assert_eq!(page["stopped"], "limit");
    let answer = server.get(&format!("{TICKETS}?where.state=open&filter.id=t39&read=11"));
    assert!(matches!(answer.status, 400 | 413), "{answer:?}");
}

#[test]
fn what_no_index_serves_is_not_scanned_unless_it_is_asked_for() {
    let server = filled(Limits::default());
    let answer = server.get(&format!("{TICKETS}?where.id.gte=t20"));
    assert_eq!(answer.expect(409)["type"], "/problems/no-index");
}
