//! Queries near a place: within a radius, nearest first, exact.

mod cover;
mod near;
mod nearest;
mod rank;
mod ring;
mod search;
mod sphere;

pub(crate) use near::near;
pub use near::{Near, Nearby};
