//! The layouts of the systems that shaped Keyloom, byte for byte.

use serde_json::json;

use super::{key, template};
use crate::key::{CodePattern, Kind};

const UUID: &str = "0f8fad5bd9cb469fa16570867728950e";

#[test]
fn approvals() {
    let kinds = [
        ("id", Kind::Id),
        ("created_at", Kind::Timestamp),
        ("code", Kind::Code(CodePattern("A-******".into()))),
    ];
    let id = "8fk3n1qzwtbxmrpdyuoj7sgh5e";
    assert_eq!(
        key(&template("approval:record:{id}", &kinds), &[json!(id)]),
        "approval:record:8fk3n1qzwtbxmrpdyuoj7sgh5e"
    );
    assert_eq!(
        key(
            &template("approval:index:requester:{requester_id}:{created_at desc}:{id}", &kinds),
            &[json!("ana"), json!(1674950787234u64), json!(id)]
        ),
        "approval:index:requester:ana:8325049212765:8fk3n1qzwtbxmrpdyuoj7sgh5e"
    );
    assert_eq!(
        key(
            &template("approval:index:approver:{approver_id}:{created_at desc}:{id}", &kinds),
            &[json!("a:na"), json!(0), json!(id)]
        ),
        "approval:index:approver:a%3Ana:9999999999999:8fk3n1qzwtbxmrpdyuoj7sgh5e"
    );
    assert_eq!(
        key(&template("approval:code:{code}", &kinds), &[json!("A-X7K9Q2")]),
        "approval:code:A-X7K9Q2"
    );
}

#[test]
fn reputation() {
    let v4 = Kind::Uuid { version: Some(4) };
    let kinds = [("u", v4.clone()), ("t", v4.clone()), ("r", v4.clone()), ("k", v4)];
    let vote = template("usr_{u}_tag_{t}_tar_{r}_key_{k}", &kinds);
    assert_eq!(
        key(&vote, &[json!(UUID), json!(UUID), json!(UUID), json!(UUID)]),
        format!("usr_{UUID}_tag_{UUID}_tar_{UUID}_key_{UUID}")
    );
    let votes = vote.prefix(&[&json!(UUID), &json!(UUID)]).unwrap();
    assert_eq!(votes, format!("usr_{UUID}_tag_{UUID}_tar_"));

    let refusal = |uuid: &str| {
        let user = template("usr_{u}", &kinds);
        let refusal = user.encode(&[&json!(uuid)]).unwrap_err();
        assert_eq!(refusal.path.unwrap().to_string(), "u");
        refusal.reason
    };
    assert!(refusal("b068e9ee1422edf7878440ab8b6").ends_with("but this has 27 characters"));
    assert!(refusal(&UUID.replace("469f", "169f")).ends_with("but character 13 is '1'"));
    assert!(refusal(&UUID.replace("a165", "c165")).ends_with("but character 17 is 'c'"));
    let upper = refusal(&UUID.to_uppercase());
    assert!(upper.ends_with(&format!("but character 2 is 'F'; this one is {UUID}")), "{upper}");
}

#[test]
fn executions() {
    let statuses = ["RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"];
    let kinds = [
        ("startDate", Kind::DateTime),
        ("status", Kind::Enum { values: statuses.map(String::from).to_vec() }),
    ];
    let arn = "arn:aws:states:eu-central-1:123456789012:execution:pilot:7f3a";
    assert_eq!(key(&template("{executionArn raw}", &kinds), &[json!(arn)]), arn);
    let start = "2024-01-31T23:59:59.999Z";
    assert_eq!(
        key(
            &template("agent:{agentName}:{startDate}:{executionArn raw}", &kinds),
            &[json!("pilot"), json!(start), json!(arn)]
        ),
        format!("agent:pilot:{start}:{arn}")
    );
    assert_eq!(
        key(
            &template("status:{status}:{startDate desc}:{executionArn raw}", &kinds),
            &[json!("TIMED_OUT"), json!(start), json!(arn)]
        ),
        format!("status:TIMED_OUT:7975-98-68T76:40:40.000Z:{arn}")
    );
}

#[test]
fn flow_runs() {
    let kinds = [("startedAt", Kind::Timestamp), ("awaitingSteps.*.timeoutAt", Kind::Timestamp)];
    assert_eq!(
        key(&template("flow:run:{flow}:{run_id}", &kinds), &[json!("order"), json!("r:1")]),
        "flow:run:order:r%3A1"
    );
    assert_eq!(
        key(
            &template("flow:index:started:{flow}:{startedAt desc}:{run_id}", &kinds),
            &[json!("order"), json!(1), json!("r1")]
        ),
        "flow:index:started:order:9999999999998:r1"
    );
    let due = "flow:index:due:{awaitingSteps.*.timeoutAt}:{flow}:{run_id}:{awaitingSteps.*key}";
    assert_eq!(
        key(
            &template(due, &kinds),
            &[json!(1674950787234u64), json!("order"), json!("r1"), json!("step.1")]
        ),
        "flow:index:due:1674950787234:order:r1:step.1"
    );
    assert_eq!(key(&template("flow:stats:{flow}", &kinds), &[json!("order")]), "flow:stats:order");
}

#[test]
fn storage_patterns() {
    let kinds = [
        ("timestamp", Kind::Timestamp),
        ("place", Kind::Point { lat: "lat".into(), lon: "lon".into() }),
    ];
    for (source, values, expected) in [
        ("user:{userId}:notes:{noteId}", vec![json!("ana"), json!("n1")], "user:ana:notes:n1"),
        ("user:{userId}:preferences", vec![json!("ana")], "user:ana:preferences"),
        ("user:{userId}", vec![json!("ana:notes:n1")], "user:ana%3Anotes%3An1"),
        ("shared:templates:{name}", vec![json!("größe 100%")], "shared:templates:größe 100%25"),
        ("shared:config", vec![], "shared:config"),
        (
            "shared:posts:recent:{timestamp}:{postId}",
            vec![json!(7), json!("p")],
            "shared:posts:recent:0000000000007:p",
        ),
        (
            "shared:posts:by_tag:{tags.*}:{postId}",
            vec![json!("rust"), json!("p")],
            "shared:posts:by_tag:rust:p",
        ),
        ("index:email:{email}", vec![json!("ana@example.com")], "index:email:ana@example.com"),
        (
            "index:geo:{place geohash 6}:{id}",
            vec![json!("u4pruy"), json!("l1")],
            "index:geo:u4pruy:l1",
        ),
    ] {
        assert_eq!(key(&template(source, &kinds), &values), expected);
    }
    let geo = template("index:geo:{place geohash 6}:{id}", &kinds);
    let place = json!({"lat": 57.64911, "lon": 10.40744, "name": "Skagen"});
    assert_eq!(geo.encode(&[&place, &json!("l1")]).unwrap(), "index:geo:u4pruy:l1");
}
