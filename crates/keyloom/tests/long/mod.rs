//! Counts that `scripts/test --long` multiplies.

/// `n`, times what KEYLOOM_LONG says.
pub fn times(n: u32) -> u32 {
    let factor = std::env::var("KEYLOOM_LONG").ok().and_then(|long| long.parse::<u32>().ok());
    n.saturating_mul(factor.unwrap_or(1).max(1))
}
