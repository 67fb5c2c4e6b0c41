//! How much one request may ask for.

use std::sync::Arc;

use keyloom::engine::{Memory, Metered};
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

#[test]
fn a_search_around_a_place_reads_no_more_than_the_limit_and_goes_on() {
    let limits = Limits { read_max: 100, ..Limits::default() };
    let server = TestServer::with(crate::schemas::PATTERNS, Config { limits, ..Config::default() });
    let all = "/v1/collections/location";
    let insert = |id: String, lng: f64| {
        let record = json!({ "id": id, "position": { "lat": 0.0, "lng": lng } });
        server.json("POST", &format!("{all}/records"), &record).expect(201);
    };
    (0..120).for_each(|n| insert(format!("p{n:03}"), f64::from(n)));
    let (mut found, mut stops, mut cursor) = (Vec::new(), Vec::new(), String::new());
    loop {
        let page = server.get(&format!("{all}/near?lat=0&lon=0&limit=500{cursor}")).expect(200);
        assert!(page["read"].as_u64().unwrap() <= 100, "{page}");
        let records = page["records"].as_array().unwrap();
        found.extend(records.iter().map(|record| record["key"].as_str().unwrap().to_owned()));
        stops.push(page["stopped"].as_str().unwrap().to_owned());
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, (0..120).map(|n| format!("p{n:03}")).collect::<Vec<_>>());
    assert!(stops.contains(&"limit".to_owned()) && stops.last().unwrap() == "end", "{stops:?}");
    // Where so few do not tell what is nearest, nothing is told.
    (0..120).for_each(|n| insert(format!("q{n:03}"), 0.0));
    let refused = server.get(&format!("{all}/near?lat=0&lon=0&limit=5")).expect(413);
    assert_eq!(refused["type"], "/problems/limit-exceeded");
    for read in ["0", "101", "x"] {
        let answer = server.get(&format!("{all}/near?lat=0&lon=0&read={read}"));
        assert!(matches!(answer.status, 400 | 413), "{read}: {answer:?}");
    }
}

#[test]
fn the_schema_is_one_read_however_many_indexes_it_has() {
    let metered = Metered::new(Arc::new(Memory::new()));
    let engine = Arc::new(metered.clone());
    let server = TestServer::on_engine(engine, crate::schemas::APPROVALS);
    // Before its first answer the server has looked for jobs of an earlier one.
    assert_eq!(server.get("/health").status, 200);
    metered.take();
    let told = server.get("/v1/schema").expect(200);
    let states = json!({
        "requester": "ready", "approver": "ready", "code": "ready", "by_status": "ready",
    });
    assert_eq!(told["indexes"]["approval"], states);
    let usage = metered.take();
    assert_eq!(usage.round_trips(), 1, "{usage:?}");
}
