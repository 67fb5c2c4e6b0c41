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

    /// What they are on average.
    pub fn mean(&self) -> Duration {
        let sum: u64 = self.0.iter().sum();
        Duration::from_nanos(sum / (self.0.len() as u64).max(1))
    }

    /// The latencies that these parts of all (0 to 1) did not exceed.
    pub fn quantiles<const N: usize>(&self, parts: [f64; N]) -> [Duration; N] {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        parts.map(|part| {
            let place = ((sorted.len() as f64 * part) as usize).min(sorted.len().saturating_sub(1));
            Duration::from_nanos(sorted.get(place).copied().unwrap_or(0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let mut samples = Samples::default();
        (1..=100).rev().for_each(|n| samples.push(Duration::from_nanos(n)));
        assert_eq!(samples.quantiles([0.5, 0.99]).map(|time| time.as_nanos()), [51, 100]);
        assert_eq!(samples.mean().as_nanos(), 50);
        assert_eq!(Samples::default().quantiles([0.5]), [Duration::ZERO]);
        assert_eq!(Samples::default().mean(), Duration::ZERO);
    }
}
