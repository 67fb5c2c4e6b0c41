//! Proofs of what the module promises.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod calendar;
mod examples;
mod layouts;
mod properties;

use serde_json::Value;

use super::{Kind, Path, Pattern, Template};

/// How many cases a property runs: `n`, times what KEYLOOM_LONG says.
pub(crate) fn cases(n: u32) -> u32 {
    let factor = std::env::var("KEYLOOM_LONG").ok().and_then(|long| long.parse().ok());
    n.saturating_mul(factor.unwrap_or(1).max(1))
}

/// A template whose fields have these types; all others are text.
fn template(source: &str, kinds: &[(&str, Kind)]) -> Template {
    try_template(source, kinds).unwrap()
}

fn try_template(source: &str, kinds: &[(&str, Kind)]) -> Result<Template, Vec<String>> {
    let kind_of = |path: &Path| {
        let found = kinds.iter().find(|(name, _)| path.to_string() == *name);
        Some(found.map_or(Kind::Text, |(_, kind)| kind.clone()))
    };
    Template::new(&Pattern::parse(source).unwrap(), kind_of)
}

/// The key as text; panics when it is refused.
fn key(template: &Template, values: &[Value]) -> String {
    let refs: Vec<&Value> = values.iter().collect();
    let key = template.encode(&refs).unwrap();
    assert_eq!(template.decode(&key).as_deref(), Some(values), "{}", template.source);
    String::from_utf8(key.to_vec()).unwrap()
}
