//! The paths about the server itself.

use serde_json::{Map, Value, json};

use super::object;
use super::parts::{Operation, answer, json_answer};

/// The paths that monitors and programs ask first.
pub(super) fn paths() -> Map<String, Value> {
    let text = |about: &str| answer(about, "text/plain", json!({ "type": "string" }));
    let health =
        Operation::new("health", "Whether the process answers").answer("200", text("It does"));
    let ready = Operation::new("ready", "Whether the store answers and takes writes")
        .answer("200", text("It does"));
    let metrics = Operation::new("metrics", "What was counted, for Prometheus")
        .answer("200", text("Its text format"));
    let document = Operation::new("openapi", "This document").answer(
        "200",
        json_answer("OpenAPI 3.1", json!({ "type": "object", "additionalProperties": true })),
    );
    object([
        ("/health", json!({ "get": health.build() })),
        ("/ready", json!({ "get": ready.build() })),
        ("/metrics", json!({ "get": metrics.build() })),
        ("/openapi.json", json!({ "get": document.build() })),
    ])
}
