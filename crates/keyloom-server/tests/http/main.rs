//! The server as its callers see it: a real one on a free port, asked over sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod owners;
mod pages;
mod paths;
mod problems;
mod records;
mod schemas;
mod support;
mod systems;
