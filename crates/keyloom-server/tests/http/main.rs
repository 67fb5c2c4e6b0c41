//! The server as its callers see it: a real one on a free port, asked over sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod console;
mod records;
mod support;
