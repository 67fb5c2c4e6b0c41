//! The server's activity: rates and latencies of the last minutes.

use maud::{Markup, html};
use serde::Serialize;

use crate::app::App;
use crate::console::draw::{duration, line};
use crate::metrics::STEPS_US;

/// The last minutes in steps, oldest first.
#[derive(Serialize)]
pub(super) struct Pulse {
    pub(super) uptime_s: u64,
    requests_per_second: Vec<f64>,
    errors_per_second: Vec<f64>,
    /// The median latency in microseconds, estimated from a histogram; `None` without requests.
    p50_us: Vec<Option<u64>>,
    /// The 99th percentile of the latency.
    p99_us: Vec<Option<u64>>,
}

impl Pulse {
    /// The metrics of the server.
    pub(super) fn of(app: &App) -> Self {
        let moments = app.metrics().moments();
        Pulse {
            uptime_s: app.metrics().uptime().as_secs(),
            requests_per_second: moments.iter().map(|it| it.requests_per_second).collect(),
            errors_per_second: moments.iter().map(|it| it.errors_per_second).collect(),
            p50_us: moments.iter().map(|it| it.p50_us).collect(),
            p99_us: moments.iter().map(|it| it.p99_us).collect(),
        }
    }

    /// Tiles with plots.
    pub(super) fn view(&self) -> Markup {
        // Without requests there is no latency; the line then keeps its level.
        let level = |values: &[Option<u64>]| -> Vec<f64> {
            let mut last = 0;
            let mut carry = |value: &Option<u64>| {
                last = value.unwrap_or(last);
                last as f64
            };
            values.iter().map(&mut carry).collect()
        };
        html! {
            div.tile { span.name { "Up for" } strong { (duration(self.uptime_s)) } }
            (plotted("Requests a second", over(&self.requests_per_second), rate))
            (plotted("Latency, median", &level(&self.p50_us), micros))
            (plotted("Latency, 99th percentile", &level(&self.p99_us), micros))
            (plotted("Server errors a second", over(&self.errors_per_second), rate))
        }
    }
}

/// The steps that are over. The last one is still running, and its rate would be too low.
fn over(values: &[f64]) -> &[f64] {
    values.split_last().map_or(values, |(_, over)| over)
}

/// A plot, with its newest and its largest value in words.
fn plotted(name: &str, values: &[f64], told: fn(f64) -> String) -> Markup {
    let newest = values.last().copied().unwrap_or_default();
    let largest = values.iter().copied().fold(0.0, f64::max);
    let label = match largest > 0.0 {
        true => {
            format!("{name}, last five minutes: now {}, at most {}", told(newest), told(largest))
        }
        false => format!("{name}, last five minutes: none"),
    };
    html! {
        div.tile {
            span.name { (name) }
            strong { (told(newest)) }
            (line(values, &label))
            @if largest > 0.0 { span.muted { "at most " (told(largest)) " in 5 min" } }
            @else { span.muted { "none in 5 min" } }
        }
    }
}

fn rate(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 10.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// A latency. It is estimated within a step of a histogram, so it has only two significant digits,
/// and no value beyond the last step.
fn micros(value: f64) -> String {
    const LAST_STEP: f64 = STEPS_US[STEPS_US.len() - 1] as f64;
    match value {
        0.0 => "–".to_owned(),
        value if value < 995.0 => format!("about {:.0} µs", (value / 10.0).round() * 10.0),
        value if value < 10_000.0 => format!("about {:.1} ms", value / 1_000.0),
        value if value < 1_000_000.0 => format!("about {:.0} ms", value / 1_000.0),
        value if value < LAST_STEP => format!("about {:.1} s", value / 1_000_000.0),
        _ => "10 s or more".to_owned(),
    }
}
