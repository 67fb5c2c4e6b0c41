//! Runs checks one after another, and reports which ones failed.

use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;

use tokio::runtime::{Handle, RuntimeFlavor};

use super::super::random::Random;
use super::super::{Capabilities, Engine};
use super::subject::Subject;

/// One check: its name, and its function.
#[derive(Clone)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) run: fn(Subject) -> Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Whether it applies to an engine with these capabilities.
    pub(super) concerns: fn(&Capabilities) -> bool,
}

impl Check {
    /// The same check, only for engines with certain capabilities.
    pub(super) fn only(self, concerns: fn(&Capabilities) -> bool) -> Self {
        Check { concerns, ..self }
    }
}

/// Turns the named functions of the calling module into checks.
macro_rules! checks {
    ($($name:ident),* $(,)?) => {
        vec![$(crate::engine::conformance::runner::Check {
            name: concat!(module_path!(), "::", stringify!($name)),
            run: |subject| Box::pin($name(subject)),
            concerns: |_| true,
        }),*]
    };
}
pub(super) use checks;

/// Runs the checks, each on a fresh engine, and panics with a list of those that failed.
pub(super) async fn run<F, Fut>(engine_name: &str, checks: &[Check], make: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = Arc<dyn Engine>>,
{
    assert!(
        Handle::current().runtime_flavor() != RuntimeFlavor::CurrentThread,
        "the conformance suite needs a runtime with several threads, since it races writers"
    );
    let seed = from_environment("KEYLOOM_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    let scale = from_environment("KEYLOOM_SCALE").unwrap_or(1) as usize;
    let mut failures = Vec::new();
    for check in checks {
        let engine = make().await;
        if !(check.concerns)(engine.capabilities()) {
            continue;
        }
        let subject = Subject { engine: engine.clone(), random: Random::new(seed), scale };
        // Runs in a task of its own, which turns a panic into a value, so that the other checks
        // still run.
        if let Err(failure) = tokio::spawn((check.run)(subject)).await {
            let name = check.name.rsplit_once("conformance::").map_or(check.name, |(_, name)| name);
            let text = failure.try_into_panic().map_or("cancelled".to_owned(), |p| message(&*p));
            failures.push(format!("{name}: {text}"));
        }
        if let Err(error) = engine.close().await {
            failures.push(format!("{}: closing afterwards: {error}", check.name));
        }
    }
    assert!(
        failures.is_empty(),
        "the engine {engine_name:?} fails {} of {} checks (KEYLOOM_SEED={seed}):\n{}",
        failures.len(),
        checks.len(),
        failures.join("\n")
    );
}

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or("no message".into())
}
