//! Converts names between Rust and JSON.
//!
//! | rule | `created_at` (field) | `TimedOut` (variant) |
//! | --- | --- | --- |
//! | `lowercase` | `created_at` | `timedout` |
//! | `UPPERCASE` | `CREATED_AT` | `TIMEDOUT` |
//! | `PascalCase` | `CreatedAt` | `TimedOut` |
//! | `camelCase` | `createdAt` | `timedOut` |
//! | `snake_case` | `created_at` | `timed_out` |
//! | `SCREAMING_SNAKE_CASE` | `CREATED_AT` | `TIMED_OUT` |
//! | `kebab-case` | `created-at` | `timed-out` |
//! | `SCREAMING-KEBAB-CASE` | `CREATED-AT` | `TIMED-OUT` |

use proc_macro2::Span;
use syn::Ident;
use syn::ext::IdentExt;
use syn::parse::Parser;

/// How serde spells the names of fields or variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Rule {
    /// The rule that serde knows by this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "lowercase" => Rule::Lower,
            "UPPERCASE" => Rule::Upper,
            "PascalCase" => Rule::Pascal,
            "camelCase" => Rule::Camel,
            "snake_case" => Rule::Snake,
            "SCREAMING_SNAKE_CASE" => Rule::ScreamingSnake,
            "kebab-case" => Rule::Kebab,
            "SCREAMING-KEBAB-CASE" => Rule::ScreamingKebab,
            _ => return None,
        })
    }

    /// The JSON name of a field, which is `snake_case` in Rust.
    pub(crate) fn of_field(self, name: &str) -> String {
        match self {
            Rule::Lower | Rule::Snake => name.to_owned(),
            Rule::Upper | Rule::ScreamingSnake => name.to_ascii_uppercase(),
            Rule::Pascal => pascal_case(name),
            Rule::Camel => uncapitalized(&pascal_case(name)),
            Rule::Kebab => name.replace('_', "-"),
            Rule::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
        }
    }

    /// The JSON name of a variant, which is `PascalCase` in Rust.
    pub(crate) fn of_variant(self, name: &str) -> String {
        match self {
            Rule::Lower => name.to_ascii_lowercase(),
            Rule::Upper => name.to_ascii_uppercase(),
            Rule::Pascal => name.to_owned(),
            Rule::Camel => uncapitalized(name),
            Rule::Snake => split_at_capitals(name),
            Rule::ScreamingSnake => split_at_capitals(name).to_ascii_uppercase(),
            Rule::Kebab => split_at_capitals(name).replace('_', "-"),
            Rule::ScreamingKebab => split_at_capitals(name).to_ascii_uppercase().replace('_', "-"),
        }
    }
}

/// `created_at` as `CreatedAt`. Characters other than letters and digits separate words.
pub(crate) fn pascal_case(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric());
    words.map(|word| changed_first(word, |c| c.to_ascii_uppercase())).collect()
}

/// `createdAt`, `CreatedAt`, `created-at` and `awaitingSteps.*.timeoutAt` as a Rust name.
pub(crate) fn snake_case(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(split_at_capitals).collect::<Vec<_>>().join("_")
}

/// A snake-case name as a valid identifier.
pub(crate) fn identifier(name: &str, span: Span) -> Ident {
    if syn::parse_str::<Ident>(name).is_ok() {
        return Ident::new(name, span);
    }
    let is_word = Ident::parse_any.parse_str(name).is_ok();
    match name {
        "" => Ident::new("value", span),
        "_" | "self" | "Self" | "super" | "crate" => Ident::new(&format!("{name}_"), span),
        _ if is_word => Ident::new_raw(name, span),
        // A name that begins with a digit, or has characters that Rust does not allow.
        _ => identifier(&format!("value_{}", ascii_only(name)), span),
    }
}

fn ascii_only(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn uncapitalized(name: &str) -> String {
    changed_first(name, |c| c.to_ascii_lowercase())
}

fn changed_first(word: &str, change: impl Fn(char) -> char) -> String {
    let mut characters = word.chars();
    characters.next().map(change).into_iter().chain(characters).collect()
}

/// `TimedOut` as `timed_out`: a word begins at every capital.
fn split_at_capitals(name: &str) -> String {
    let mut split = String::with_capacity(name.len() + 4);
    for (place, character) in name.char_indices() {
        if place > 0 && character.is_uppercase() {
            split.push('_');
        }
        split.push(character.to_ascii_lowercase());
    }
    split
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn the_rules_are_those_of_the_table() {
        for (rule, field, variant) in [
            ("lowercase", "created_at", "timedout"),
            ("UPPERCASE", "CREATED_AT", "TIMEDOUT"),
            ("PascalCase", "CreatedAt", "TimedOut"),
            ("camelCase", "createdAt", "timedOut"),
            ("snake_case", "created_at", "timed_out"),
            ("SCREAMING_SNAKE_CASE", "CREATED_AT", "TIMED_OUT"),
            ("kebab-case", "created-at", "timed-out"),
            ("SCREAMING-KEBAB-CASE", "CREATED-AT", "TIMED-OUT"),
        ] {
            let rule = Rule::parse(rule).unwrap();
            assert_eq!(rule.of_field("created_at"), field);
            assert_eq!(rule.of_variant("TimedOut"), variant);
        }
    }

    #[test]
    fn paths_become_rust_names() {
        for (path, name) in [
            ("created_at", "created_at"),
            ("createdAt", "created_at"),
            ("awaitingSteps.*.timeoutAt", "awaiting_steps_timeout_at"),
            ("awaitingSteps.*key", "awaiting_steps_key"),
            ("tags.*", "tags"),
            ("type", "r#type"),
            ("self", "self_"),
            ("2d", "value_2d"),
        ] {
            let found = identifier(&snake_case(path), Span::call_site());
            assert_eq!(found.to_string(), name);
        }
    }
}
