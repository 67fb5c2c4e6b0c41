//! The records of the five systems, as Rust types. Their schemas are those of
//! `schemas/systems/*.toml`.

#![allow(dead_code, reason = "each test file uses some of the records")]

pub mod approvals {
    use keyloom::{Choice, Id, Record, Timestamp};
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Choice)]
    #[serde(rename_all = "lowercase")]
    #[transitions(Pending = [Approved, Denied, Canceled])]
    pub enum Status {
        Pending,
        Approved,
        Denied,
        Canceled,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
    #[record(key = "approval:record:{id}")]
    #[index(requester = "approval:index:requester:{requester_id}:{created_at desc}:{id}")]
    #[index(approver = "approval:index:approver:{approver_id}:{created_at desc}:{id}")]
    #[unique(code = "approval:code:{code}")]
    pub struct Approval {
        #[field(generate)]
        pub id: Id,
        pub requester_id: String,
        pub approver_id: String,
        pub created_at: Timestamp,
        #[field(pattern = "A-******", generate)]
        pub code: Option<String>,
        pub status: Status,
        pub reason: Option<String>,
    }

    impl Approval {
        pub fn new(requester: &str, approver: &str, created_at: i64) -> Self {
            Approval {
                id: Id::new(),
                requester_id: requester.to_owned(),
                approver_id: approver.to_owned(),
                created_at: created_at.into(),
                code: None,
                status: Status::Pending,
                reason: None,
            }
        }
    }
}

pub mod reputation {
    use keyloom::{Record, Uuid};
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize, Record)]
    #[record(key = "usr_{id}")]
    pub struct User {
        #[field(version = 4, generate)]
        pub id: Uuid,
    }

    #[derive(Serialize, Deserialize, Record)]
    #[record(key = "usr_{user}_tag_{id}")]
    pub struct Tag {
        #[field(version = 4, generate)]
        pub id: Uuid,
        #[field(version = 4)]
        pub user: Uuid,
    }

    #[derive(Serialize, Deserialize, Record)]
    #[record(key = "usr_{user}_tag_{tag}", area = "reputation")]
    pub struct Reputation {
        #[field(type = "uuid", version = 4)]
        pub user: String,
        #[field(version = 4)]
        pub tag: Uuid,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
    #[record(key = "usr_{user}_tag_{tag}_tar_{target}_key_{id}")]
    #[index(target = "tar_{target}_tag_{tag}_usr_{user}_key_{id}")]
    pub struct Vote {
        #[field(version = 4, generate)]
        pub id: Uuid,
        #[field(version = 4)]
        pub user: Uuid,
        #[field(version = 4)]
        pub tag: Uuid,
        #[field(version = 4)]
        pub target: Uuid,
    }
}

pub mod executions {
    use keyloom::{Choice, DateTime, Record};
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Choice)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    #[transitions(Running = [Succeeded, Failed, TimedOut, Aborted])]
    #[illegal(ignore)]
    pub enum Status {
        Running,
        Succeeded,
        Failed,
        TimedOut,
        Aborted,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
    #[serde(rename_all = "camelCase")]
    #[allow(clippy::duplicated_attributes, reason = "both indexes have these options")]
    #[record(key = "{executionArn raw}", area = "executions")]
    #[index(agent = "agent:{agentName}:{startDate}:{executionArn raw}", area = "executions-index")]
    #[index(status = "status:{status}:{startDate}:{executionArn raw}", area = "executions-index")]
    pub struct Execution {
        pub execution_arn: String,
        pub agent_name: String,
        pub start_date: DateTime,
        #[field]
        pub stop_date: Option<DateTime>,
        #[field]
        pub duration_seconds: Option<f64>,
        pub status: Status,
        pub indexed_at: Option<String>,
    }
}

pub mod flows {
    use std::collections::{BTreeMap, HashMap};

    use keyloom::{Choice, Record, Timestamp};
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Choice)]
    #[serde(rename_all = "lowercase")]
    pub enum Status {
        Running,
        Awaiting,
        Success,
        Failed,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub struct Awaiting {
        pub timeout_at: Timestamp,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
    #[record(key = "flow:run:{flow}:{run_id}")]
    #[field(path = "awaitingSteps.*.timeoutAt", type = "timestamp")]
    #[index(started = "flow:index:started:{flow}:{startedAt desc}:{run_id}")]
    #[index(
        due = "flow:index:due:{awaitingSteps.*.timeoutAt}:{flow}:{run_id}:{awaitingSteps.*key}",
        max = 32
    )]
    pub struct Run {
        pub flow: String,
        pub run_id: String,
        pub status: Status,
        #[serde(rename = "startedAt")]
        pub started_at: Timestamp,
        #[serde(rename = "awaitingSteps", default)]
        pub awaiting_steps: BTreeMap<String, Awaiting>,
        #[field]
        #[serde(rename = "emittedEvents", default)]
        pub emitted_events: HashMap<String, Timestamp>,
    }

    #[derive(Serialize, Deserialize, Record)]
    #[record(key = "flow:stats:{flow}")]
    #[counter("stats.*", min = 0)]
    pub struct Flow {
        pub flow: String,
        #[serde(default)]
        pub stats: BTreeMap<String, i64>,
    }
}

pub mod patterns {
    use keyloom::{Record, Timestamp};
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
    #[serde(rename_all = "camelCase")]
    #[record(key = "user:{userId}")]
    #[unique(email = "index:email:{email}")]
    pub struct User {
        pub user_id: String,
        pub email: String,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
    #[serde(rename_all = "camelCase")]
    #[record(key = "user:{userId}:notes:{noteId}")]
    pub struct Note {
        pub user_id: String,
        pub note_id: String,
    }

    #[derive(Serialize, Deserialize, Record)]
    #[record(key = "user:{userId}:preferences")]
    pub struct Preferences {
        #[serde(rename = "userId")]
        pub user_id: String,
    }

    #[derive(Serialize, Deserialize, Record)]
    #[serde(rename_all = "camelCase")]
    #[record(key = "user:{userId}:sessions:{sessionId}")]
    pub struct Session {
        pub user_id: String,
        pub session_id: String,
    }

    #[derive(Serialize, Deserialize, Record)]
    #[record(key = "shared:templates:{name}")]
    pub struct Template {
        pub name: String,
    }

    #[derive(Serialize, Deserialize, Record)]
    #[record(key = "shared:config:{name}")]
    pub struct Config {
        pub name: String,
    }

    #[derive(Serialize, Deserialize, Record)]
    #[record(key = "shared:stats:{name}")]
    pub struct Stats {
        pub name: String,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
    #[serde(rename_all = "camelCase")]
    #[allow(clippy::duplicated_attributes, reason = "both indexes have these options")]
    #[record(key = "user:{userId}:posts:{postId}")]
    #[index(
        recent = "shared:posts:recent:{timestamp}:{postId}",
        holds = "{postId, userId}",
        claims
    )]
    #[index(
        tag = "shared:posts:by_tag:{tags.*}:{postId}",
        holds = "{postId, userId}",
        claims,
        max = 10
    )]
    pub struct Post {
        pub user_id: String,
        pub post_id: String,
        pub timestamp: Timestamp,
        #[serde(default)]
        pub tags: Vec<String>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
    #[record(key = "locations:{id}", collection = "location")]
    #[field(path = "position", lat = "lat", lon = "lng", of = "record")]
    #[geo(position = "index:geo:{position geohash 6}:{id}")]
    pub struct Place {
        pub id: String,
        pub lat: f64,
        pub lng: f64,
    }
}
