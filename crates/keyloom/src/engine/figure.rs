//! Figures about an engine, for people who operate it.

use serde::Serialize;

/// A figure about an engine. Figures are for people: which ones exist differs between engines and
/// versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// Its name, such as `disk bytes`.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// Its unit.
    pub unit: Unit,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
}

impl Figure {
    /// A figure in bytes.
    pub fn bytes(name: &'static str, value: u64) -> Self {
        Figure { name, value, unit: Unit::Bytes }
    }

    /// A figure that is a number of things.
    pub fn count(name: &'static str, value: u64) -> Self {
        Figure { name, value, unit: Unit::Count }
    }
}
