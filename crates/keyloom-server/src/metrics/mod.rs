//! Metrics for Prometheus and the console, and health probes.

mod histogram;
mod measure;
mod probes;
mod text;
mod window;

pub(crate) use histogram::STEPS_US;
pub(crate) use measure::{Answered, is_of_collection};
pub(crate) use probes::routes;
pub(crate) use window::Moment;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use histogram::Histogram;
use window::Window;

use crate::auth::Verb;

/// All metrics. Counting takes a few additions; only the first request of a kind takes a lock that
/// others wait for.
#[derive(Debug)]
pub(crate) struct Metrics {
    started: Instant,
    /// One entry for each route of the router. No caller can add more.
    routes: RwLock<BTreeMap<String, Arc<Route>>>,
    operations: RwLock<BTreeMap<String, Arc<Operations>>>,
    in_flight: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
    connections_accepted: AtomicU64,
    bytes_received: Arc<AtomicU64>,
    bytes_sent: Arc<AtomicU64>,
    window: Window,
}

/// The methods with counts of their own; every other method counts as the last.
const METHODS: [&str; 8] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "other"];

/// The requests of one route, by method.
#[derive(Debug, Default)]
struct Route([OfMethod; METHODS.len()]);

/// The requests of one route and one method.
#[derive(Debug, Default)]
struct OfMethod {
    /// By the first digit of the status.
    by_class: [AtomicU64; 6],
    took: Histogram,
}

/// The operations on one collection.
#[derive(Debug, Default)]
struct Operations {
    reads: AtomicU64,
    writes: AtomicU64,
    deletes: AtomicU64,
}

/// Adds one to a number until it is dropped.
pub(crate) struct Present(Arc<AtomicU64>);

impl Present {
    fn new(count: &Arc<AtomicU64>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Present(count.clone())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics {
            started: Instant::now(),
            routes: RwLock::default(),
            operations: RwLock::default(),
            in_flight: Arc::default(),
            connections: Arc::default(),
            connections_accepted: AtomicU64::new(0),
            bytes_received: Arc::default(),
            bytes_sent: Arc::default(),
            window: Window::default(),
        }
    }
}

impl Metrics {
    /// Counts a connection. It counts as open until the result is dropped.
    pub(crate) fn connection(&self) -> Present {
        self.connections_accepted.fetch_add(1, Ordering::Relaxed);
        Present::new(&self.connections)
    }

    /// Counts an operation on a collection of the schema.
    pub(crate) fn operation(&self, collection: &str, verb: Verb) {
        let operations = known(&self.operations, collection);
        let count = match verb {
            Verb::Read => &operations.reads,
            Verb::Write => &operations.writes,
            Verb::Delete => &operations.deletes,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The last five minutes in steps of five seconds, the oldest first.
    pub(crate) fn moments(&self) -> Vec<Moment> {
        self.window.moments(self.uptime())
    }

    /// How long the server has been running.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    fn timed(&self, route: &str, method: usize, status: StatusCode, at: Instant, took: Duration) {
        let route = known(&self.routes, route);
        if let Some(of_method) = route.0.get(method) {
            if let Some(count) = of_method.by_class.get(usize::from(status.as_u16() / 100)) {
                count.fetch_add(1, Ordering::Relaxed);
            }
            of_method.took.add(took);
        }
        self.window.add(at - self.started, took, status.is_server_error());
    }
}

/// The entry with this name, which is created if it is missing.
fn known<V: Default>(map: &RwLock<BTreeMap<String, Arc<V>>>, name: &str) -> Arc<V> {
    let found = map.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    found.unwrap_or_else(|| {
        let mut map = map.write().unwrap_or_else(PoisonError::into_inner);
        map.entry(name.to_owned()).or_default().clone()
    })
}
