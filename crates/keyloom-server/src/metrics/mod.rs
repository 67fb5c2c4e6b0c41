//! What the server did, counted for Prometheus and the console, and whether it is well.

mod histogram;
mod measure;
mod probes;
mod text;
mod window;

pub(crate) use measure::measure;
pub(crate) use probes::routes;
pub(crate) use window::Moment;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use histogram::Histogram;
use window::Window;

use crate::auth::Verb;

/// Everything that is counted. Counting is a few additions; only the first request of a kind
/// takes a lock that others wait for.
#[derive(Debug)]
pub(crate) struct Metrics {
    started: Instant,
    routes: RwLock<BTreeMap<RouteLabel, Arc<Route>>>,
    operations: RwLock<BTreeMap<String, Arc<Operations>>>,
    in_flight: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
    connections_accepted: AtomicU64,
    bytes_received: Arc<AtomicU64>,
    bytes_sent: Arc<AtomicU64>,
    window: Window,
}

/// A route and a method. There are as many as the router has, and no caller can make more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RouteLabel {
    path: String,
    method: &'static str,
}

/// The requests of one route.
#[derive(Debug, Default)]
struct Route {
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

/// One more of something, until it is dropped.
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
    /// Counts a connection, as open until the answer is dropped.
    pub(crate) fn connection(&self) -> Present {
        self.connections_accepted.fetch_add(1, Ordering::Relaxed);
        Present::new(&self.connections)
    }

    /// Counts an operation on a collection, which must be one of the schema.
    pub(crate) fn operation(&self, collection: &str, verb: Verb) {
        let operations = known(&self.operations, collection, str::to_owned);
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

    /// How long the server has been there.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    fn answered(&self, label: RouteLabel, status: u16, took: Duration) {
        let route = known(&self.routes, &label, RouteLabel::clone);
        if let Some(count) = route.by_class.get(usize::from(status / 100)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        route.took.add(took);
        self.window.add(self.uptime(), took, status >= 500);
    }
}

/// What is counted under this name; begins at nothing.
fn known<K, B, V>(map: &RwLock<BTreeMap<K, Arc<V>>>, name: &B, own: impl Fn(&B) -> K) -> Arc<V>
where
    K: Ord + Borrow<B>,
    B: Ord + ?Sized,
    V: Default,
{
    let found = map.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    found.unwrap_or_else(|| {
        let mut map = map.write().unwrap_or_else(PoisonError::into_inner);
        map.entry(own(name)).or_default().clone()
    })
}
