//! Keyloom over HTTP: a JSON API for programs and a console for people, on one store.
//!
//! [`App`] answers requests, and [`serve`] accepts them from a socket. The command uses both: it
//! serves an app, or sends its requests to one in its own process.

mod api;
mod app;
mod aside;
mod auth;
mod body;
mod caller;
mod config;
mod console;
mod guard;
mod jobs;
mod memory;
mod metrics;
mod openapi;
mod params;
mod path;
mod problem;
mod refusal;
mod repeats;
mod serve;
mod slots;

pub use app::App;
pub use auth::{Authority, Grant, Role, Verb, new_token};
pub use config::{Config, Limits};
pub use problem::{ProblemType, problem_type, problem_types};
pub use serve::{Server, serve};
