//! Shows keys and templates with distinguishable parts.

use maud::{Markup, html};

use super::visible;
use crate::console::declared::{Part, parts};

/// The separators in keys that people write.
const SEPARATORS: [char; 5] = [':', '/', '|', '#', '\0'];

/// A stored key: separators recede, numbers and times stand out.
pub(in crate::console) fn key(text: &str) -> Markup {
    let text = visible(text);
    html! {
        span.key {
            @for piece in text.split_inclusive(SEPARATORS) {
                @let segment = piece.trim_end_matches(SEPARATORS);
                @let separator = piece.get(segment.len()..).unwrap_or_default();
                @if is_number(segment) { span.num { (segment) } } @else { (segment) }
                @if !separator.is_empty() { span.sep { (separator) } wbr; }
            }
        }
    }
}

/// Whether the digits are a number or a time. A few digits may as well be part of a date.
fn is_number(segment: &str) -> bool {
    segment.len() >= 4 && segment.bytes().all(|byte| byte.is_ascii_digit())
}

/// A template, with its fields distinguished from its text.
pub(in crate::console) fn template(source: &str) -> Markup {
    let parts = parts(source);
    html! {
        span.key {
            @for part in &parts {
                @match part {
                    Part::Literal(text) => (literal(text)),
                    Part::Field { path, modifiers } => span.field {
                        "{" (path)
                        @if !modifiers.is_empty() { " " span.modifier { (modifiers) } }
                        "}"
                    },
                }
            }
        }
    }
}

fn literal(text: &str) -> Markup {
    html! {
        @for piece in text.split_inclusive(SEPARATORS) {
            @let segment = piece.trim_end_matches(SEPARATORS);
            (segment)
            @if let Some(separator) = piece.get(segment.len()..).filter(|rest| !rest.is_empty()) {
                span.sep { (separator) } wbr;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lose_nothing_and_break_out_of_nothing() {
        let drawn = key("a::<b>:\"'123:").into_string();
        assert!(drawn.contains("&lt;b&gt;") && drawn.contains("&quot;"), "{drawn}");
        assert_eq!(drawn.matches("<b>").count(), 0);
        assert_eq!(drawn.matches(':').count(), 4);
    }
}
