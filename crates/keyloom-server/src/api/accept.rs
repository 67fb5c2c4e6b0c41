//! Decides whether a caller accepts JSON.

use axum::http::{HeaderMap, header};

use crate::metrics::is_of_collection;

/// Whether the route always answers with JSON.
pub(crate) fn is_json_only(route: &str) -> bool {
    is_of_collection(route) || route.ends_with("/v1/schema")
}

/// Whether the caller accepts JSON.
pub(crate) fn takes_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    // Of the ranges that match JSON, the most specific one decides.
    let ranges = values.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
    let best = ranges.filter_map(range_of_json).max_by_key(|(exactness, _)| *exactness);
    best.is_some_and(|(_, is_welcome)| is_welcome)
}

/// How specifically a media range matches JSON, if it does, and whether it accepts it.
fn range_of_json(range: &str) -> Option<(u8, bool)> {
    let mut parts = range.split(';').map(str::trim);
    let exactness = match parts.next()?.to_ascii_lowercase().as_str() {
        "application/json" | "application/problem+json" => 2,
        "application/*" => 1,
        "*/*" | "" => 0,
        _ => return None,
    };
    Some((exactness, weight(parts).is_none_or(|weight| weight > 0.0)))
}

/// The quality of a range, from its parameters; `None` if they do not state it.
pub(super) fn weight<'p>(mut parameters: impl Iterator<Item = &'p str>) -> Option<f32> {
    parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use super::*;

    fn takes(accept: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        takes_json(&headers)
    }

    #[test]
    fn json_is_taken_unless_it_is_left_out() {
        assert!(takes_json(&HeaderMap::new()));
        for accept in [
            "*/*",
            "application/*",
            "Application/JSON",
            "text/html, application/json;q=0.1",
            "text/html, */*;q=0.8",
            "application/json; charset=utf-8",
            "application/json;q=0.5, */*;q=0",
        ] {
            assert!(takes(accept), "{accept}");
        }
    }

    #[test]
    fn what_leaves_json_out_is_told() {
        for accept in [
            "text/html",
            "text/*",
            "application/json;q=0",
            "application/json;q=0, */*",
            "*/*;q=0",
            "application/xml",
        ] {
            assert!(!takes(accept), "{accept}");
        }
    }
}
