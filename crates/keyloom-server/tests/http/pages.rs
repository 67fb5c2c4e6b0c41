//! Pages, counts, groups, unique look-ups and places.

use keyloom_server::{Config, Limits};
use serde_json::{Value, json};

use crate::schemas::APPROVALS;
use crate::support::TestServer;

const ALL: &str = "/v1/collections/approval";

/// Approvals 1 to `count`: asked by ana, decided by bob; every third the other way round.
fn approvals(count: u64) -> TestServer {
    let server = TestServer::start(APPROVALS);
    for number in 1..=count {
        let (requester, approver) = if number % 3 == 0 { ("bob", "ana") } else { ("ana", "bob") };
        let status = if number % 2 == 0 { "approved" } else { "pending" };
        let body = json!({ "requester_id": requester, "approver_id": approver,
            "created_at": number * 1_000, "status": status, "number": number });
        server.json("POST", &format!("{ALL}/records"), &body).expect(201);
    }
    server
}

fn numbers(page: &Value) -> Vec<u64> {
    let records = page["records"].as_array().unwrap().iter();
    records.map(|item| item["record"]["number"].as_u64().unwrap()).collect()
}

#[test]
fn a_page_has_records_cursors_and_the_reason_why_it_ended() {
    let server = approvals(7);
    let asked = format!("{ALL}/records?where.requester_id=ana&order=-created_at&limit=2");
    let first = server.get(&asked).expect(200);
    assert_eq!(numbers(&first), [7, 5]);
    assert_eq!(
        (&first["stopped"], &first["read"], &first["problems"]),
        (&json!("take"), &json!(2), &json!([]))
    );
    assert_eq!(first.get("previous"), None);
    let item = &first["records"][0];
    let id = item["record"]["id"].as_str().unwrap();
    assert_eq!(item["key"], id);
    assert_eq!(item["stored_at"], format!("approval:record:{id}"));
    let one = server.get(&format!("{ALL}/records/{id}"));
    assert_eq!(
        one.header("etag"),
        Some(format!("\"{}\"", item["version"].as_str().unwrap()).as_str())
    );
    assert_eq!(one.value(), item["record"]);
    let next = first["next"].as_str().unwrap();
    let second = server.get(&format!("{asked}&cursor={next}")).expect(200);
    assert_eq!(numbers(&second), [4, 2]);
    let last =
        server.get(&format!("{asked}&cursor={}", second["next"].as_str().unwrap())).expect(200);
    assert_eq!((numbers(&last), &last["stopped"]), (vec![1], &json!("end")));
    assert_eq!(last.get("next"), None);
    let back = server.get(&format!("{asked}&cursor={}", second["previous"].as_str().unwrap()));
    assert_eq!(numbers(&back.expect(200)), [7, 5]);
    for (query, why) in [
        (format!("where.requester_id=bob&order=-created_at&cursor={next}"), "another query"),
        (format!("where.requester_id=ana&order=-created_at&cursor={next}x"), "altered"),
        ("where.requester_id=ana&cursor=".to_owned(), "empty"),
    ] {
        let problem = server.get(&format!("{ALL}/records?{query}")).expect(409);
        assert_eq!(problem["type"], "/problems/invalid-cursor", "{why}");
    }
}

#[test]
fn ranges_unions_filters_and_orders_are_answered() {
    let server = approvals(9);
    let ask = |query: &str| server.get(&format!("{ALL}/records?{query}")).expect(200);
    let ana = "where.requester_id=ana";
    assert_eq!(
        numbers(&ask(&format!("{ana}&where.created_at.gte=4000&where.created_at.lt=8000"))),
        [7, 5, 4]
    );
    assert_eq!(
        numbers(&ask(&format!("{ana}&where.created_at.gt=1970-01-01T00:00:04Z&order=created_at"))),
        [5, 7, 8]
    );
    assert_eq!(
        numbers(&ask("any.requester_id=bob&any.approver_id=bob&order=-created_at&limit=4")),
        [9, 8, 7, 6]
    );
    let filtered = ask(&format!("{ana}&filter.status=pending"));
    assert_eq!(numbers(&filtered), [7, 5, 1]);
    assert_eq!(filtered["read"], 6);
    let bounded = ask(&format!("{ana}&filter.status=pending&read=3"));
    assert_eq!((numbers(&bounded), &bounded["stopped"]), (vec![7, 5], &json!("limit")));
    assert_eq!(numbers(&ask(&format!("{ana}&filter.number.lte=2"))), [2, 1]);
    assert_eq!(ask("scan=true")["records"].as_array().unwrap().len(), 9);
    let keys = ask(&format!("{ana}&keys_only=true"));
    assert_eq!(keys["records"].as_array().unwrap().len(), 6);
    assert_eq!(keys["records"][0].as_object().unwrap().len(), 2, "{keys}");
    let plan = server.get(&format!("{ALL}/explain?{ana}&index=requester")).expect(200);
    assert!(plan["plan"].as_str().unwrap().contains("requester"), "{plan}");
    let refused = server.get(&format!("{ALL}/records?where.number=1")).expect(409);
    assert_eq!(refused["type"], "/problems/no-index");
}

#[test]
fn the_limits_of_the_server_hold() {
    let limits = Limits { page_max: 5, read_max: 50, ..Limits::default() };
    let server = TestServer::with(APPROVALS, Config { limits, ..Config::default() });
    server.get(&format!("{ALL}/records?scan=true&limit=5")).expect(200);
    server.get(&format!("{ALL}/records?scan=true")).expect(200);
    for query in [
        "records?scan=true&limit=6",
        "records?scan=true&read=51",
        "count?scan=true&limit=51",
        "near?lat=0&lon=0&limit=6",
        "groups/by_status?limit=6",
        "groups/by_status?top=6",
    ] {
        let problem = server.get(&format!("{ALL}/{query}")).expect(400);
        assert!(
            problem["detail"].as_str().unwrap().contains("on this server"),
            "{query}: {problem}"
        );
    }
}

#[test]
fn a_record_that_is_no_json_is_a_problem_of_the_page() {
    let server = approvals(3);
    let page = server.get(&format!("{ALL}/records?where.requester_id=ana")).expect(200);
    let stored_at = page["records"][0]["stored_at"].as_str().unwrap().to_owned();
    let key = page["records"][0]["key"].as_str().unwrap();
    break_record(&server, &stored_at);
    let page = server.get(&format!("{ALL}/records?where.requester_id=ana")).expect(200);
    assert_eq!(numbers(&page), [1]);
    assert_eq!(page["problems"][0]["kind"], "unreadable", "{page}");
    assert_eq!(page["problems"][0]["key"], stored_at.as_str());
    let problem = server.get(&format!("{ALL}/records/{key}")).expect(500);
    assert_eq!(problem["type"], "/problems/corrupt");
}

/// Writes past the library, as another program might.
fn break_record(server: &TestServer, key: &str) {
    use keyloom::engine::{Address, Area, Batch, Effect, Space, Stamp};
    let address = Address::new(Area::default_area(), key.to_owned());
    let mut batch = Batch::new(Space::main());
    let put = Effect::Put { stamp: Stamp([7; 24]), bytes: "{\"broken\": ".into() };
    batch.push(address, None, Some(put));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(server.store.engine().commit(batch)).unwrap();
}

#[test]
fn unique_values_lead_to_records() {
    let server = approvals(1);
    let record = server.get(&format!("{ALL}/records?scan=true")).expect(200)["records"][0].clone();
    let code = record["record"]["code"].as_str().unwrap();
    let found = server.get(&format!("{ALL}/unique/code/{code}"));
    assert_eq!(found.expect(200), record["record"]);
    let own = format!("{ALL}/records/{}", record["key"].as_str().unwrap());
    assert_eq!(found.header("content-location"), Some(own.as_str()));
    let etag = found.header("etag").unwrap();
    let again =
        server.send("GET", &format!("{ALL}/unique/code/{code}"), &[("if-none-match", etag)], "");
    assert_eq!(again.status, 304);
    server.get(&format!("{ALL}/unique/code/A-222222")).expect(404);
    server.get(&format!("{ALL}/unique/code/a")).expect(400);
    server.get(&format!("{ALL}/unique/code/A-222222/x")).expect(400);
    server.get(&format!("{ALL}/unique/none/x")).expect(400);
    server.get(&format!("{ALL}/unique/requester/x")).expect(409);
}

#[test]
fn unique_values_may_contain_anything() {
    let server = TestServer::start(
        r#"
        [collection.file]
        key = "file:{id}"
        fields = { id = "text", folder = "text", size = "integer" }
        [collection.file.unique.place]
        key = "place:{folder}:{size}"
        "#,
    );
    for (id, folder) in ["a/b", "%2F", "", "..", "ü:"].into_iter().enumerate() {
        let record = json!({ "id": id.to_string(), "folder": folder, "size": 7 });
        server.json("POST", "/v1/collections/file/records", &record).expect(201);
        let part: String = folder.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let found = server.get(&format!("/v1/collections/file/unique/place/{part}/7"));
        assert_eq!(found.expect(200), record);
    }
    server.get("/v1/collections/file/unique/place/a/b/7").expect(400);
    server.get("/v1/collections/file/unique/place/x/seven").expect(400);
}

#[test]
fn counts_are_read_from_aggregates_or_counted_within_a_budget() {
    let server = approvals(9);
    let count = |query: &str| server.get(&format!("{ALL}/count?{query}"));
    assert_eq!(count("where.status=pending").expect(200), json!({ "count": 5 }));
    assert_eq!(count("where.status=pending&limit=1").expect(200), json!({ "count": 5 }));
    assert_eq!(count("where.requester_id=ana").expect(200), json!({ "count": 6 }));
    assert_eq!(count("where.requester_id=ana&keys_only=true").expect(200), json!({ "count": 6 }));
    let refused = count("where.requester_id=ana&limit=5").expect(413);
    assert_eq!(refused["type"], "/problems/limit-exceeded");
    count("order=created_at").expect(400);
    let groups = |query: &str| server.get(&format!("{ALL}/groups/by_status?{query}"));
    let all = groups("").expect(200);
    let mut counts: Vec<(String, u64)> = all["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            (group["values"][0].as_str().unwrap().to_owned(), group["count"].as_u64().unwrap())
        })
        .collect();
    counts.sort();
    assert_eq!(counts, [("approved".to_owned(), 4), ("pending".to_owned(), 5)]);
    let pending = json!([{ "values": ["pending"], "count": 5 }]);
    assert_eq!(groups("within.status=pending").expect(200)["groups"], pending);
    assert_eq!(groups("top=1").expect(200)["groups"], pending);
    let one = groups("limit=1").expect(200);
    let next = one["next"].as_str().unwrap();
    assert_eq!(
        groups(&format!("limit=1&cursor={next}")).expect(200)["groups"].as_array().unwrap().len(),
        1
    );
    groups("within.code=x").expect(400);
    groups("top=1&cursor=x").expect(400);
    server.get(&format!("{ALL}/groups/none")).expect(400);
}

#[test]
fn expired_records_are_swept_until_a_moment() {
    let server = TestServer::start(
        r#"
        [collection.session]
        key = "session:{id}"
        expires_at = "ends"
        fields = { id = "text", ends = "timestamp" }
        "#,
    );
    let all = "/v1/collections/session";
    server
        .json(
            "POST",
            &format!("{all}/records"),
            &json!({ "id": "a", "ends": 9_999_999_999_999_u64 }),
        )
        .expect(201);
    let keys = server.get(&format!("{all}/records?scan=true&keys_only=true")).expect(200);
    assert!(keys["swept_until"].as_u64().unwrap() > 0, "{keys}");
    let counted = server.get(&format!("{all}/count?scan=true&keys_only=true")).expect(200);
    assert!(counted["count"] == 1 && counted["swept_until"].as_u64().unwrap() > 0, "{counted}");
}

#[test]
fn places_come_nearest_first_with_their_distance() {
    let server = TestServer::start(crate::schemas::PATTERNS);
    let all = "/v1/collections/location";
    for (id, lng) in [("far", 2.0), ("near", 0.001), ("here", 0.0)] {
        let body = json!({ "id": id, "position": { "lat": 0.0, "lng": lng } });
        server.json("POST", &format!("{all}/records"), &body).expect(201);
    }
    let near = server.get(&format!("{all}/near?lat=0&lon=0&radius_m=1000&limit=1")).expect(200);
    assert_eq!(near["records"][0]["key"], "here");
    assert_eq!(near["records"][0]["distance_m"], 0.0);
    let next = near["next"].as_str().unwrap();
    let rest =
        server.get(&format!("{all}/near?lat=0&lon=0&radius_m=1000&cursor={next}")).expect(200);
    assert_eq!(rest["records"].as_array().unwrap().len(), 1);
    let distance = rest["records"][0]["distance_m"].as_f64().unwrap();
    assert!((111.0..112.0).contains(&distance), "{rest}");
    for query in [
        "lat=0",
        "lat=0&lon=x",
        "lat=91&lon=0",
        "lat=0&lon=NaN",
        "lat=0&lon=0&radius_m=inf",
        "lat=0&lon=0&radius_m=-1",
        "lat=0&lon=0&radius=5",
    ] {
        server.get(&format!("{all}/near?{query}")).expect(400);
    }
    server.get("/v1/collections/note/near?lat=0&lon=0").expect(409);
}
