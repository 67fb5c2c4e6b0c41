//! The server as its callers see it: a real one on a free port, asked over sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod console;
mod access_file;
mod auth;
mod bodies;
mod browsers;
mod budgets;
mod cursors;
mod login;
mod paths;
mod people;
mod records;
mod secrets;
mod shutdown;
mod slow;
mod support;
