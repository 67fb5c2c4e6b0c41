//! The command as a person or a script uses it: the real binary, in empty folders.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod backup;
mod care;
mod check;
mod damage;
mod demo;
mod first_hour;
mod golden;
mod guide;
mod import;
mod limits;
mod logging;
mod proxy;
mod reading;
mod readme;
mod screens;
mod serve;
mod stopping;
mod support;
mod transfer;
mod watch;
mod wrong_input;
