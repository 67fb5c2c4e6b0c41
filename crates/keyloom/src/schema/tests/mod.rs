//! Tests of the schema that need more than one module of it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod evolution;
mod leaving_out;
mod model;
mod properties;

use super::Schema;

/// The schemas of the five systems.
const SYSTEMS: [&str; 5] = [
    include_str!("../../../tests/schemas/systems/approvals.toml"),
    include_str!("../../../tests/schemas/systems/reputation.toml"),
    include_str!("../../../tests/schemas/systems/executions.toml"),
    include_str!("../../../tests/schemas/systems/flows.toml"),
    include_str!("../../../tests/schemas/systems/patterns.toml"),
];

fn compiled(text: &str) -> Schema {
    Schema::from_toml(text).unwrap_or_else(|error| panic!("{error}"))
}

fn problems(error: &crate::Error) -> Vec<&str> {
    error.context().filter(|(name, _)| *name == "problem").map(|(_, value)| value).collect()
}
