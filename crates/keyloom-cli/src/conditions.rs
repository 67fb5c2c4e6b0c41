//! Conditions as people write them: `requester_id=ana`, `created_at>=1700000000000`, `name^=An`.

use keyloom::Version;

use crate::exit::{Failure, USAGE};

/// The operators of conditions, and their names in requests. Longer ones come first.
const OPERATORS: [(&str, &str); 6] =
    [(">=", ".gte"), ("<=", ".lte"), ("^=", ".prefix"), (">", ".gt"), ("<", ".lt"), ("=", "")];

/// A condition as a parameter of a request: `where.created_at.gte` and its value.
pub(crate) fn parameter(group: &str, text: &str) -> Result<(String, String), Failure> {
    let wrong = |message: String| Failure::new(USAGE, message).with_hint(HINT);
    let found = text.char_indices().find_map(|(at, _)| {
        let rest = &text[at..];
        let known = OPERATORS.iter().find(|(spelled, _)| rest.starts_with(spelled))?;
        Some((&text[..at], known.1, &rest[known.0.len()..]))
    });
    let Some((field, suffix, value)) = found else {
        return Err(wrong(format!("{text:?} is no condition")));
    };
    if field.is_empty() {
        return Err(wrong(format!("the condition {text:?} names no field")));
    }
    if field.ends_with('!') && suffix.is_empty() {
        let message = format!("{text:?}: there is no `!=`, since no index could answer it");
        return Err(Failure::new(USAGE, message).with_hint("ask for the ranges on both sides"));
    }
    Ok((format!("{group}.{field}{suffix}"), value.to_owned()))
}

/// Conditions as parameters.
pub(crate) fn parameters(group: &str, texts: &[String]) -> Result<Vec<(String, String)>, Failure> {
    texts.iter().map(|text| parameter(group, text)).collect()
}

/// Splits `FIELD=VALUE` into its two sides.
pub(crate) fn assignment(text: &str) -> Result<(&str, &str), Failure> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name, value)),
        _ => Err(Failure::new(USAGE, format!("{text:?} is not of the form NAME=VALUE"))),
    }
}

/// The version that a record must have, as text.
pub(crate) fn version(text: &str) -> Result<String, String> {
    let version = text.trim_matches('"').parse::<Version>();
    version.map(|version| version.to_string()).map_err(|_| {
        "it takes the version of a record, as `keyloom get` and every write tell it".to_owned()
    })
}

const HINT: &str = "conditions look like status=pending or 'created_at>=1700000000000'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_become_parameters() {
        for (text, name, value) in [
            ("requester_id=ana", "where.requester_id", "ana"),
            ("created_at>=17", "where.created_at.gte", "17"),
            ("created_at<=17", "where.created_at.lte", "17"),
            ("created_at>17", "where.created_at.gt", "17"),
            ("created_at<17", "where.created_at.lt", "17"),
            ("name^=An", "where.name.prefix", "An"),
            ("a^b=c", "where.a^b", "c"),
            ("tags.*=x>=y", "where.tags.*", "x>=y"),
            ("text=", "where.text", ""),
        ] {
            let parameter = parameter("where", text).unwrap_or_default();
            assert_eq!(parameter, (name.to_owned(), value.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in ["", "pending", "=pending", "status!=pending"] {
            assert!(parameter("where", text).is_err(), "{text:?}");
        }
    }
}
