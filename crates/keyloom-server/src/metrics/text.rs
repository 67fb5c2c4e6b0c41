//! Writes the metrics in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::histogram::STEPS_US;
use super::{METHODS, Metrics, OfMethod, Route};

/// Writes metrics, family by family.
pub(super) struct Text(String);

impl Text {
    pub(super) fn new() -> Self {
        Text(String::new())
    }

    /// Starts a family: what it counts, and of which kind it is.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// One value.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.0, "{name}");
        for (place, (label, text)) in labels.iter().enumerate() {
            let open = if place == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{}\"", escaped(text));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }

    /// A family with one value.
    pub(super) fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// All metrics of the server itself, but only of the collections that the caller may see.
pub(super) fn server(metrics: &Metrics, text: &mut Text, sees: impl Fn(&str) -> bool) {
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let uptime = metrics.uptime().as_secs_f64();
    text.single("keyloom_uptime_seconds", "gauge", "How long the server has been there.", uptime);
    requests(metrics, text);
    for (name, kind, help, count) in [
        (
            "keyloom_requests_in_flight",
            "gauge",
            "Requests without an answer yet.",
            &*metrics.in_flight,
        ),
        ("keyloom_connections_open", "gauge", "Connections that are open.", &*metrics.connections),
        (
            "keyloom_connections_total",
            "counter",
            "Connections that were accepted.",
            &metrics.connections_accepted,
        ),
        (
            "keyloom_received_bytes_total",
            "counter",
            "Bytes of requests' bodies.",
            &*metrics.bytes_received,
        ),
        ("keyloom_sent_bytes_total", "counter", "Bytes of answers' bodies.", &*metrics.bytes_sent),
    ] {
        text.single(name, kind, help, read(count));
    }
    let name = "keyloom_collection_operations_total";
    text.family(name, "counter", "Operations on the records of a collection.");
    for (collection, operations) in list(&metrics.operations) {
        if !sees(&collection) {
            continue;
        }
        for (verb, count) in [
            ("read", &operations.reads),
            ("write", &operations.writes),
            ("delete", &operations.deletes),
        ] {
            text.sample(name, &[("collection", &collection), ("verb", verb)], read(count));
        }
    }
}

fn requests(metrics: &Metrics, text: &mut Text) {
    let routes = list(&metrics.routes);
    let name = "keyloom_requests_total";
    text.family(name, "counter", "Requests by route, method and class of status.");
    for (route, method, requests) in by_method(&routes) {
        for (class, count) in requests.by_class.iter().enumerate() {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let class = format!("{class}xx");
                let labels = [("route", route), ("method", method), ("status", &class)];
                text.sample(name, &labels, count);
            }
        }
    }
    let name = "keyloom_request_duration_seconds";
    text.family(name, "histogram", "How long answers took to begin.");
    for (route, method, requests) in by_method(&routes) {
        let counts = requests.took.read();
        if counts.total() == 0 {
            continue;
        }
        let labels = [("route", route), ("method", method)];
        let mut below = 0;
        let ends = STEPS_US.iter().map(|us| seconds(*us)).chain(["+Inf".to_owned()]);
        for (end, count) in ends.zip(counts.counts) {
            below += count;
            let labels = [labels[0], labels[1], ("le", &*end)];
            text.sample(&format!("{name}_bucket"), &labels, below);
        }
        text.sample(&format!("{name}_sum"), &labels, counts.sum_us as f64 / 1e6);
        text.sample(&format!("{name}_count"), &labels, counts.total());
    }
}

/// All routes with each of their methods.
fn by_method(
    routes: &[(String, Arc<Route>)],
) -> impl Iterator<Item = (&str, &'static str, &OfMethod)> {
    routes.iter().flat_map(|(path, route)| {
        METHODS.iter().zip(&route.0).map(|(method, requests)| (&**path, *method, requests))
    })
}

fn seconds(us: u64) -> String {
    (us as f64 / 1e6).to_string()
}

fn list<K: Clone + Ord, V>(map: &RwLock<BTreeMap<K, Arc<V>>>) -> Vec<(K, Arc<V>)> {
    let map = map.read().unwrap_or_else(PoisonError::into_inner);
    map.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_break_out() {
        let mut text = Text::new();
        text.sample("m", &[("a", "x\"} 1\nm2 2"), ("b", "\\")], 3);
        assert_eq!(text.into_string(), "m{a=\"x\\\"} 1\\nm2 2\",b=\"\\\\\"} 3\n");
    }
}
