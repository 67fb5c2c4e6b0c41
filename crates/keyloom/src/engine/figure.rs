//! What an engine knows of itself, for people who run it.

use serde::Serialize;

/// One figure that an engine knows of itself. Figures are for people: which there are differs
/// between engines and versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// What it is, such as `disk bytes`.
    pub name: &'static str,
    /// How much.
    pub value: u64,
    /// Of what.
    pub unit: Unit,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Anything else, one by one.
    Count,
}

impl Figure {
    /// A figure in bytes.
    pub fn bytes(name: &'static str, value: u64) -> Self {
        Figure { name, value, unit: Unit::Bytes }
    }

    /// A figure that counts.
    pub fn count(name: &'static str, value: u64) -> Self {
        Figure { name, value, unit: Unit::Count }
    }
}
