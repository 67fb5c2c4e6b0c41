//! The five systems' schemas, as their programs use them over HTTP.

use serde_json::json;

use crate::schemas::{APPROVALS, EXECUTIONS, FLOWS, PATTERNS, REPUTATION};
use crate::support::TestServer;

#[test]
fn the_schema_its_keys_and_its_indexes_are_told() {
    for schema in [APPROVALS, EXECUTIONS, FLOWS, PATTERNS, REPUTATION] {
        let server = TestServer::start(schema);
        let told = server.get("/v1/schema").expect(200);
        let collections = told["schema"]["collection"].as_object().unwrap();
        for (name, declared) in collections {
            let templates: Vec<&str> = told["keyspace"]
                .as_array()
                .unwrap()
                .iter()
                .map(|key| key["template"].as_str().unwrap())
                .collect();
            assert!(
                templates.contains(&declared["key"].as_str().unwrap()),
                "{name}: {templates:?}"
            );
            for kind in ["index", "unique", "geo", "count", "sum"] {
                for index in declared[kind].as_object().into_iter().flatten() {
                    assert_eq!(told["indexes"][name][index.0], "ready", "{name} {}", index.0);
                }
            }
        }
        assert!(!collections.is_empty());
        let again = keyloom::Schema::from_json(&told["schema"].to_string()).unwrap();
        assert_eq!(again, keyloom::Schema::from_toml(schema).unwrap());
    }
}

#[test]
fn executions_are_keyed_by_their_arn_and_late_events_change_nothing() {
    let server = TestServer::start(EXECUTIONS);
    let all = "/v1/collections/execution/records";
    let arn = "arn:aws:states:eu-west-1:123:execution:agent-x:run/1";
    let one = format!("{all}/{}", arn.replace(':', "%3A").replace('/', "%2F"));
    let event = |status: &str| json!({ "agentName": "agent-x", "status": status, "startDate": "2024-05-01T10:00:00.000Z" });
    server.json("PUT", &one, &event("RUNNING")).expect(201);
    server.json("PUT", &one, &event("SUCCEEDED")).expect(200);
    assert_eq!(server.json("PUT", &one, &event("RUNNING")).expect(200)["status"], "SUCCEEDED");
    let page = server.get(&format!(
        "{all}?where.agentName=agent-x&where.startDate.gte=2024-05-01T00:00:00.000Z&where.startDate.lt=2024-05-02T00:00:00.000Z&order=-startDate"
    ));
    assert_eq!(page.expect(200)["records"][0]["key"], arn);
    let running = server.get(&format!("{all}?where.status=RUNNING")).expect(200);
    assert_eq!(running["records"], json!([]));
}

#[test]
fn runs_are_found_by_their_steps_and_counted_by_status() {
    let server = TestServer::start(FLOWS);
    let all = "/v1/collections/run";
    for (id, status) in [("r1", "running"), ("r2", "awaiting"), ("r3", "running")] {
        let run = json!({ "flow": "a.b", "run_id": id, "status": status, "startedAt": 1,
            "awaitingSteps": { "step.1": { "timeoutAt": 1_700_000_000_000_u64 } },
            "emittedEvents": { "order.created": 5 } });
        let inserted = server.json("POST", &format!("{all}/records"), &run);
        inserted.expect(201);
        assert_eq!(inserted.header("location"), Some(format!("{all}/records/a.b%3A{id}").as_str()));
    }
    assert_eq!(
        server.get(&format!("{all}/count?where.flow=a.b&where.status=running")).expect(200)["count"],
        2
    );
    let groups = server.get(&format!("{all}/groups/by_status?within.flow=a.b&top=5")).expect(200);
    assert_eq!(groups["groups"][0], json!({ "values": ["a.b", "running"], "count": 2 }));
    server.get(&format!("{all}/groups/by_status?within.status=running")).expect(409);
    let due = server
        .get(&format!("{all}/records?where.awaitingSteps.*.timeoutAt.lte=2024-01-01T00:00:00Z"));
    assert_eq!(due.expect(200)["records"].as_array().unwrap().len(), 3);
    let refused =
        server.json("PATCH", &format!("{all}/records/a.b%3Ar1"), &json!({ "a.b": 1 })).expect(422);
    assert_eq!(refused["type"], "/problems/invalid-record");
}

#[test]
fn votes_are_listed_by_prefix_and_by_target_and_bad_uuids_named() {
    let server = TestServer::start(REPUTATION);
    let uuid = |digit: char| {
        format!(
            "{}4{}8{}",
            digit.to_string().repeat(12),
            digit.to_string().repeat(3),
            digit.to_string().repeat(15)
        )
    };
    let (user, tag, target) = (uuid('a'), uuid('b'), uuid('c'));
    let vote = json!({ "user": user, "tag": tag, "target": target });
    let inserted = server.json("POST", "/v1/collections/vote/records", &vote);
    let key = inserted.expect(201)["key"].as_str().unwrap().to_owned();
    let path = format!("/v1/collections/vote/records/{user}_tag_{tag}_tar_{target}_key_{key}");
    assert_eq!(inserted.header("location"), Some(path.as_str()));
    for query in [
        format!("where.user={user}&where.tag={tag}"),
        format!("where.target={target}&where.tag={tag}"),
    ] {
        let page = server.get(&format!("/v1/collections/vote/records?{query}")).expect(200);
        assert_eq!(page["records"].as_array().unwrap().len(), 1, "{query}");
    }
    let sample = "b068e9ee1422edf7878440ab8b6";
    let wrong = server.get(&format!("/v1/collections/user/records/{sample}")).expect(400);
    assert_eq!(
        (&wrong["type"], &wrong["context"]["field"]),
        (&json!("/problems/invalid-key"), &json!("user"))
    );
    let wrong =
        server.get(&format!("/v1/collections/vote/records?where.user={sample}&where.tag={tag}"));
    assert_eq!(wrong.expect(400)["type"], "/problems/invalid-request");
    server
        .json(
            "PUT",
            &format!("/v1/collections/reputation/records/{user}_tag_{tag}"),
            &json!({ "score": 1 }),
        )
        .expect(201);
    let taken = server.json(
        "POST",
        "/v1/collections/reputation/records",
        &json!({ "user": user, "tag": tag }),
    );
    assert_eq!(taken.expect(409)["type"], "/problems/already-exists");
}

#[test]
fn spaces_are_apart() {
    let server = TestServer::start(APPROVALS);
    let space = server.store.space("other").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let schema = keyloom::Schema::from_toml(PATTERNS).unwrap();
    runtime.block_on(space.apply(&schema)).unwrap();
    let written =
        server.json("POST", "/s/other/v1/collections/template/records", &json!({ "name": "x" }));
    written.expect(201);
    assert_eq!(written.header("location"), Some("/s/other/v1/collections/template/records/x"));
    server.get("/s/other/v1/collections/template/records/x").expect(200);
    server.get("/v1/collections/template/records/x").expect(404);
    assert!(
        server.get("/s/other/v1/schema").expect(200)["schema"]["collection"]["template"]
            .is_object()
    );
}
