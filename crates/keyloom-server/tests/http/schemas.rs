//! The schemas of the five systems.

/// Requests that somebody approves or denies.
pub const APPROVALS: &str = r#"
    [collection.approval]
    key = "approval:record:{id}"

    [collection.approval.fields]
    id           = { type = "id", generate = true }
    requester_id = "text"
    approver_id  = "text"
    created_at   = "timestamp"
    code         = { type = "code", pattern = "A-******", generate = true }
    status       = { type = "enum", values = ["pending", "approved", "denied", "canceled"], transitions = { pending = ["approved", "denied", "canceled"] } }

    [collection.approval.index.requester]
    key = "approval:index:requester:{requester_id}:{created_at desc}:{id}"

    [collection.approval.index.approver]
    key = "approval:index:approver:{approver_id}:{created_at desc}:{id}"

    [collection.approval.unique.code]
    key = "approval:code:{code}"

    [collection.approval.count.by_status]
    group = ["status"]

    [collection.approval.history]
    versions = 10
"#;

pub const EXECUTIONS: &str = include_str!("../../../../examples/executions/keyloom.toml");
pub const FLOWS: &str = include_str!("../../../../examples/flows/keyloom.toml");
pub const PATTERNS: &str = include_str!("../../../../examples/patterns/keyloom.toml");
pub const REPUTATION: &str = include_str!("../../../../examples/reputation/keyloom.toml");
