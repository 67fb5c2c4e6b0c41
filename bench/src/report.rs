//! Figures as Markdown, with the ratios that the targets are stated in.

use std::time::Duration;

use crate::harness::Measured;
use crate::rivals::Hits;

/// Which parts of all latencies are printed. A median hides half of the users.
const PARTS: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// One workload with what each rival came to.
pub struct Row {
    pub workload: String,
    /// How many records each sample stands for.
    pub records_per_sample: u64,
    pub rounds: usize,
    pub names: Vec<&'static str>,
    pub measured: Vec<Measured>,
}

/// Prints the head of a table of rows.
pub fn head() {
    println!(
        "| workload | rival | mean | p50 | p90 | p99 | p99.9 | per second | processor | notes |"
    );
    println!("| --- | --- |{}", " --- |".repeat(8));
}

impl Row {
    /// Prints a line for each rival, and for each but the first what the first one takes of its
    /// times: below 1 the first is faster.
    pub fn print(&self) {
        let figures: Vec<_> = self.measured.iter().map(|measured| self.figures(measured)).collect();
        for ((name, measured), figures) in self.names.iter().zip(&self.measured).zip(&figures) {
            println!("| {} | {name} |{} |", self.workload, self.cells(measured, figures));
        }
        let Some((ours, others)) = figures.split_first() else { return };
        for (name, theirs) in self.names.iter().skip(1).zip(others) {
            let ratios = ours.iter().zip(theirs).map(|(our, their)| {
                format!(" {:.2} |", our.as_secs_f64() / their.as_secs_f64().max(f64::MIN_POSITIVE))
            });
            println!("| | of {name}'s time |{} |", ratios.collect::<String>());
        }
    }

    /// The times of one sample (mean and quantiles), of one record with all workers together, and
    /// of one record on the processors.
    fn figures(&self, measured: &Measured) -> Vec<Duration> {
        let mut figures = vec![measured.latencies.mean()];
        figures.extend(measured.latencies.quantiles(PARTS));
        figures.push(self.each(measured, measured.elapsed));
        figures.push(self.each(measured, measured.processor));
        figures
    }

    fn cells(&self, measured: &Measured, figures: &[Duration]) -> String {
        let throughput = figures.len() - 2;
        let cell = |(place, &figure): (usize, &Duration)| match place == throughput {
            true => format!(" {} |", grouped(1.0 / figure.as_secs_f64())),
            false => format!(" {} |", time(figure)),
        };
        let mut notes: Vec<String> = measured.hits.iter().map(Hits::to_string).collect();
        if measured.writes_beside > 0.0 {
            let rate = measured.writes_beside / self.rounds as f64;
            notes.push(format!("beside {} writes a second", grouped(rate)));
        }
        format!("{} {}", figures.iter().enumerate().map(cell).collect::<String>(), notes.join("; "))
    }

    /// The part of one record in a time of all.
    fn each(&self, measured: &Measured, time: Duration) -> Duration {
        let count = measured.latencies.count() as u64 * self.records_per_sample;
        Duration::from_secs_f64(time.as_secs_f64() / count.max(1) as f64)
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
