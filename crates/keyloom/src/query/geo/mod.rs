//! What is near a place: within a radius, nearest first, exact.

mod cover;
mod near;
mod sphere;

pub(crate) use near::near;
pub use near::{Near, Nearby};
