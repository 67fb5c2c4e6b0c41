//! The server as its callers see it: a real one on a free port, asked over sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod access_file;
mod alike;
mod auth;
mod backup;
mod batch;
mod bodies;
mod browsers;
mod budgets;
mod changes;
mod conditions;
mod connections;
mod console;
mod cursors;
mod escapes;
mod first_hour;
mod import;
mod jobs;
mod kept_pages;
mod kv;
mod login;
mod metrics;
mod moments;
mod openapi;
mod owners;
mod pages;
mod paths;
mod people;
mod problems;
mod read_only;
mod records;
mod rights;
mod schemas;
mod secrets;
mod shutdown;
mod slow;
mod support;
mod systems;
mod transaction;
mod transfer;
