//! `If-Match` and `If-None-Match` (RFC 9110, section 13): lists of entity tags, or `*`.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use keyloom::Version;

use super::operation::Versions;
use crate::problem::Problem;

/// The most tags of one header. Each may cost an attempt.
const TAGS_MAX: usize = 20;

/// The content of such a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tags {
    /// `*`: any version.
    Any,
    /// One of these.
    These(Vec<Tag>),
}

/// One entity tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    is_weak: bool,
    /// The text between the quotes.
    text: String,
}

impl Tags {
    /// The versions that a write accepts; `None` for any. Weak tags match nothing (RFC 9110,
    /// section 13.1.1), and neither does a text that is not a version.
    pub(super) fn versions(&self) -> Option<Versions> {
        let Tags::These(tags) = self else { return None };
        let strong = tags.iter().filter(|tag| !tag.is_weak);
        Some(strong.filter_map(|tag| tag.text.parse().ok()).collect())
    }

    /// Whether a write accepts this version.
    pub(super) fn match_strongly(&self, version: Version) -> bool {
        self.versions().is_none_or(|versions| versions.contains(&version))
    }

    /// Whether the caller already has this version.
    pub(super) fn match_weakly(&self, version: Version) -> bool {
        self.name(&version.to_string())
    }

    /// Whether one of the tags, weak or not, has this text between its quotes.
    pub(super) fn name(&self, text: &str) -> bool {
        match self {
            Tags::Any => true,
            Tags::These(tags) => tags.iter().any(|tag| tag.text == text),
        }
    }
}

/// A request without conditions; a request that has some is refused.
pub(super) struct Unconditional;

impl<S: Send + Sync> FromRequestParts<S> for Unconditional {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        if are_there(&parts.headers)? {
            let detail = "an insert has no conditions; use PUT for those";
            return Err(Problem::invalid_request(detail));
        }
        Ok(Unconditional)
    }
}

/// Whether a request has conditions.
pub(super) fn are_there(headers: &HeaderMap) -> Result<bool, Problem> {
    Ok(if_match(headers)?.is_some() || if_none_match(headers)?.is_some())
}

/// Requires one of these versions.
pub(super) fn if_match(headers: &HeaderMap) -> Result<Option<Tags>, Problem> {
    tags(headers, &header::IF_MATCH)
}

/// Requires none of these versions.
pub(super) fn if_none_match(headers: &HeaderMap) -> Result<Option<Tags>, Problem> {
    tags(headers, &header::IF_NONE_MATCH)
}

fn tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Tags>, Problem> {
    if !headers.contains_key(name) {
        return Ok(None);
    }
    let mut text = String::new();
    for value in headers.get_all(name) {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(value.to_str().unwrap_or("?"));
    }
    parse(&text).map(Some).map_err(|reason| {
        let detail = format!("the header {name} is \"version\", a list of such, or *: {reason}");
        Problem::invalid_request(detail)
    })
}

/// Parses `*`, or tags separated by commas.
fn parse(text: &str) -> Result<Tags, String> {
    if text.trim() == "*" {
        return Ok(Tags::Any);
    }
    let (mut tags, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        // Empty elements of lists are allowed (RFC 9110, section 5.6.1.2).
        if let Some(after) = rest.strip_prefix(',') {
            rest = after.trim_start();
            continue;
        }
        let (is_weak, quoted) = match rest.strip_prefix("W/") {
            Some(quoted) => (true, quoted),
            None => (false, rest),
        };
        let inside = quoted.strip_prefix('"').ok_or("a tag stands in double quotes")?;
        let (inside, after) = inside.split_once('"').ok_or("a quote is not closed")?;
        if inside.contains(|c: char| c.is_ascii_control() || c == ' ') {
            return Err("a tag has neither blanks nor control characters".to_owned());
        }
        tags.push(Tag { is_weak, text: inside.to_owned() });
        rest = after.trim_start();
        if !rest.is_empty() && !rest.starts_with(',') {
            return Err("a comma stands between tags".to_owned());
        }
    }
    match tags.len() {
        0 => Err("it is empty".to_owned()),
        1..=TAGS_MAX => Ok(Tags::These(tags)),
        _ => Err(format!("it has more than {TAGS_MAX} tags")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use proptest::prelude::*;

    use super::*;

    const VERSION: &str = "0199c0e2a1b27f3c0000000000000000-3";

    fn version() -> Version {
        VERSION.parse().unwrap()
    }

    #[test]
    fn lists_weak_tags_and_stars_are_read() {
        let other = "0199c0e2a1b27f3c0000000000000000-4";
        for text in [format!("\"{VERSION}\""), format!("\"{other}\" ,, \"a,b\",\"{VERSION}\"")] {
            let tags = parse(&text).unwrap();
            assert!(tags.match_strongly(version()) && tags.match_weakly(version()), "{text}");
        }
        let weak = parse(&format!("W/\"{VERSION}\"")).unwrap();
        assert!(!weak.match_strongly(version()) && weak.match_weakly(version()));
        assert!(parse(" * ").unwrap().match_strongly(version()));
        assert!(!parse("\"something\"").unwrap().match_weakly(version()));
    }

    #[test]
    fn other_texts_are_refused() {
        let many = vec!["\"x\""; TAGS_MAX + 1].join(",");
        for text in ["", ",", "x", "\"x", "\"x\" \"y\"", "*,\"x\"", "w/\"x\"", "\"a b\"", &many] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "[*W/\", a-c]{0,20}|.{0,20}") {
            let _ = parse(&text);
        }
    }
}
