//! An aggregate's life: counting records that are there already, and counting anew.

mod build;
mod count;

pub(super) use build::{Purpose, build};
