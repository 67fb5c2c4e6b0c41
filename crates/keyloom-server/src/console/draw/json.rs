//! Shows JSON to people: indented, coloured, and without characters that hide or reverse text.

use maud::{Markup, html};
use serde_json::Value;

/// A value on several lines, with spans that a stylesheet colours.
pub(in crate::console) fn json(value: &Value) -> Markup {
    html! { pre.json tabindex="0" { code { (at_depth(value, 0)) } } }
}

/// A value in one line of at most this many characters.
pub(in crate::console) fn json_line(value: &Value, chars_max: usize) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    shortened(&visible(&text), chars_max)
}

/// A text that begins with a capital letter.
pub(in crate::console) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The beginning of a text, with an ellipsis if something is left out.
fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// A text with only visible characters: those that control, hide, or change the direction are
/// escaped as in JSON.
pub(in crate::console) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match is_unseen(character) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => shown.push(character),
        }
    }
    shown
}

fn is_unseen(character: char) -> bool {
    let is_format = matches!(u32::from(character),
        0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff
        | 0xfff9..=0xfffb);
    (character.is_control() && character != '\n') || is_format
}

fn at_depth(value: &Value, depth: usize) -> Markup {
    match value {
        Value::Object(members) if members.is_empty() => html! { span.p { "{}" } },
        Value::Array(elements) if elements.is_empty() => html! { span.p { "[]" } },
        Value::Object(members) => html! {
            span.p { "{" }
            @for (at, (name, value)) in members.iter().enumerate() {
                (new_line(depth + 1))
                span.n { (quoted(name)) } span.p { ": " }
                (at_depth(value, depth + 1))
                @if at + 1 < members.len() { span.p { "," } }
            }
            (new_line(depth)) span.p { "}" }
        },
        Value::Array(elements) => html! {
            span.p { "[" }
            @for (at, value) in elements.iter().enumerate() {
                (new_line(depth + 1))
                (at_depth(value, depth + 1))
                @if at + 1 < elements.len() { span.p { "," } }
            }
            (new_line(depth)) span.p { "]" }
        },
        Value::String(text) => html! { span.s { (quoted(text)) } },
        Value::Number(number) => html! { span.d { (number) } },
        Value::Bool(truth) => html! { span.b { (truth) } },
        Value::Null => html! { span.b { "null" } },
    }
}

fn new_line(depth: usize) -> String {
    format!("\n{}", "  ".repeat(depth))
}

fn quoted(text: &str) -> String {
    visible(&Value::from(text).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json as value;

    use super::*;

    #[test]
    fn no_value_becomes_markup_and_no_character_hides() {
        let hostile =
            value!({ "<b>": "</pre><script>alert(1)</script>", "\u{202e}x": "a\u{200b}" });
        let drawn = json(&hostile).into_string();
        assert!(!drawn.contains("<script") && !drawn.contains("<b>"), "{drawn}");
        assert!(drawn.contains("&lt;/pre&gt;&lt;script&gt;"), "{drawn}");
        assert!(drawn.contains("\\u202ex") && drawn.contains("a\\u200b"), "{drawn}");
    }

    #[test]
    fn what_is_drawn_reads_as_the_same_value() {
        let original =
            value!({ "a": [1, 2.5, -0.0, true, null, []], "b": { "c": "\"\\\n", "d": {} } });
        let drawn = json(&original).into_string();
        let mut text = String::new();
        let mut in_tag = false;
        for character in drawn.chars() {
            match character {
                '<' => in_tag = true,
                '>' => in_tag = false,
                other if !in_tag => text.push(other),
                _ => {}
            }
        }
        let text = text.replace("&quot;", "\"").replace("&amp;", "&");
        assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(original), "{text}");
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        assert_eq!(json_line(&value!("äöüß"), 2), "äö…");
        assert_eq!(json_line(&value!({ "a": 1 }), 20), r#"{"a":1}"#);
    }
}
