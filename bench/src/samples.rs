//! Latencies, all of them: a run has few enough to keep and sort.

use std::time::Duration;

/// Latencies in nanoseconds.
#[derive(Clone, Default)]
pub struct Samples(Vec<u64>);

impl Samples {
    pub fn push(&mut self, latency: Duration) {
        self.0.push(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    pub fn append(&mut self, mut other: Samples) {
        self.0.append(&mut other.0);
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The latency that this part of all (0 to 1) did not exceed.
    pub fn quantile(&self, part: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = ((sorted.len() as f64 * part) as usize).min(sorted.len().saturating_sub(1));
        Duration::from_nanos(sorted.get(place).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let mut samples = Samples::default();
        (1..=100).rev().for_each(|n| samples.push(Duration::from_nanos(n)));
        assert_eq!(samples.quantile(0.5).as_nanos(), 51);
        assert_eq!(samples.quantile(0.99).as_nanos(), 100);
        assert_eq!(Samples::default().quantile(0.5), Duration::ZERO);
    }
}
