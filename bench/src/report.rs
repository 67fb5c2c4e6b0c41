//! Figures as Markdown, with the ratios that the targets are stated in.

use std::time::Duration;

use crate::harness::Measured;

/// What the ratios compare.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// The median latency: what a reader feels.
    Median,
    /// The time per operation of all workers together: the inverse of the throughput.
    Throughput,
}

/// One workload with what each rival came to, in the order of the columns.
pub struct Row {
    pub workload: String,
    pub compare: Compare,
    /// How many records each sample stands for.
    pub records_per_sample: u64,
    pub rounds: usize,
    pub measured: Vec<Measured>,
}

/// Prints the head of a table of rows. Keyloom is the first rival, or the only one.
pub fn head(names: &[&str]) {
    let ratios = names.iter().skip(1).map(|name| format!(" time / {name}'s |"));
    let columns = names.iter().map(|name| format!(" {name}: p50 · p99 · per second · processor |"));
    let all: Vec<String> = columns.chain(ratios).collect();
    println!("| workload |{}", all.concat());
    println!("| --- |{}", " --- |".repeat(all.len()));
}

impl Row {
    pub fn print(&self) {
        let cells = self.measured.iter().map(|measured| self.cell(measured));
        let ours = self.measured.first().map_or(0.0, |measured| self.time(measured));
        let ratios =
            self.measured.iter().skip(1).map(|other| format!(" {:.2} |", ours / self.time(other)));
        println!("| {} |{}", self.workload, cells.chain(ratios).collect::<String>());
    }

    fn cell(&self, measured: &Measured) -> String {
        let beside = match measured.writes_beside {
            0.0 => String::new(),
            rate => format!(" (beside: {} writes)", grouped(rate / self.rounds as f64)),
        };
        format!(
            " {} · {} · {} · {}{beside} |",
            time(measured.latencies.quantile(0.5)),
            time(measured.latencies.quantile(0.99)),
            grouped(1.0 / self.each(measured, measured.elapsed)),
            time(Duration::from_secs_f64(self.each(measured, measured.processor))),
        )
    }

    fn time(&self, measured: &Measured) -> f64 {
        match self.compare {
            Compare::Median => measured.latencies.quantile(0.5).as_secs_f64(),
            Compare::Throughput => self.each(measured, measured.elapsed),
        }
    }

    /// The part of one record in a time of all, in seconds.
    fn each(&self, measured: &Measured, time: Duration) -> f64 {
        let count = measured.latencies.count() as u64 * self.records_per_sample;
        time.as_secs_f64() / count.max(1) as f64
    }
}

/// Prints a table of sizes, one row for each rival.
pub fn sizes(rows: &[(&str, Option<u64>, u64)]) {
    println!("| | memory | disk |\n| --- | --- | --- |");
    for (name, memory_bytes, disk_bytes) in rows {
        let memory = memory_bytes.map_or_else(|| "–".to_owned(), mib);
        println!("| {name} | {memory} | {} |", mib(*disk_bytes));
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

fn time(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    match micros {
        ..100.0 => format!("{micros:.1} µs"),
        ..10_000.0 => format!("{micros:.0} µs"),
        _ => format!("{:.1} ms", micros / 1e3),
    }
}

/// A whole number with commas between thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(grouped(1_234_567.4), "1,234,567");
        assert_eq!(grouped(999.0), "999");
        assert_eq!(time(Duration::from_nanos(12_340)), "12.3 µs");
        assert_eq!(time(Duration::from_millis(12)), "12.0 ms");
        assert_eq!(mib(3 << 20), "3 MiB");
    }
}
