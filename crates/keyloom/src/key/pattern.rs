//! A key template as a person writes it, before the types of its fields are known.
//!
//! ```text
//! pattern     = { literal | placeholder }
//! literal     = one or more characters, but no control character and none of `{` `}` `%`
//! placeholder = "{" path { modifier } "}"
//! modifier    = "desc" | "sorted" | "raw" | "geohash" 1..12
//! path        = name { "." name } with at most one step `*`, or a last step `*key`
//! ```

use std::fmt;

use super::path::Path;

/// A parsed template, such as `approval:index:requester:{requester_id}:{created_at desc}:{id}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// The text as written.
    pub(crate) source: String,
    /// Literals (never empty, never two in a row) and placeholders.
    pub(crate) parts: Vec<PatternPart>,
}

/// One part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternPart {
    /// Text that stands for itself.
    Literal(String),
    /// `{path modifiers}`.
    Placeholder(Placeholder),
}

/// `{path}`, `{path desc}`, `{path sorted}`, `{path raw}`, `{path geohash 6}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placeholder {
    /// The path of the value in the record.
    pub(crate) path: Path,
    /// `desc`: highest first.
    pub(crate) desc: bool,
    /// `sorted`: text with an order.
    pub(crate) sorted: bool,
    /// `raw`: the rest of the key, never escaped.
    pub(crate) raw: bool,
    /// `geohash n`: a place as `n` characters.
    pub(crate) geohash: Option<u8>,
}

impl Pattern {
    /// Parses a pattern; the error is a sentence that says what is wrong, and where.
    pub(crate) fn parse(source: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = source;
        while !rest.is_empty() {
            let at = source[..source.len() - rest.len()].chars().count() + 1;
            let wrong = |reason: String| format!("template `{source}`, character {at}: {reason}");
            let (part, tail) = match rest.strip_prefix('{') {
                Some(inside) => {
                    let end = inside
                        .find(['{', '}'])
                        .filter(|&end| inside[end..].starts_with('}'))
                        .ok_or_else(|| wrong(String::from("this `{` has no `}`")))?;
                    let placeholder = Placeholder::parse(&inside[..end]).map_err(wrong)?;
                    (PatternPart::Placeholder(placeholder), &inside[end + 1..])
                }
                None => {
                    let (literal, tail) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
                    check_literal(literal).map_err(wrong)?;
                    (PatternPart::Literal(literal.into()), tail)
                }
            };
            parts.push(part);
            rest = tail;
        }
        Ok(Pattern { source: source.into(), parts })
    }

    /// The paths of all placeholders, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().filter_map(|part| match part {
            PatternPart::Literal(_) => None,
            PatternPart::Placeholder(placeholder) => Some(&placeholder.path),
        })
    }
}

fn check_literal(literal: &str) -> Result<(), String> {
    match literal.chars().find(|&c| matches!(c, '}' | '%') || c.is_control()) {
        Some('}') => Err(format!(
            "in `{literal}` a `}}` has no `{{`; braces cannot be part of the text of a key"
        )),
        Some('%') => Err(format!("`{literal}` contains `%`, which is kept for escaping in values")),
        Some(_) => Err(format!("{literal:?} contains a control character")),
        None => Ok(()),
    }
}

impl Placeholder {
    fn parse(inside: &str) -> Result<Self, String> {
        let mut words = inside.split_whitespace();
        let path = words.next().ok_or("a placeholder needs a path: `{field}`")?;
        let mut placeholder = Placeholder {
            path: Path::parse(path)?,
            desc: false,
            sorted: false,
            raw: false,
            geohash: None,
        };
        while let Some(word) = words.next() {
            let twice = match word {
                "desc" => std::mem::replace(&mut placeholder.desc, true),
                "sorted" => std::mem::replace(&mut placeholder.sorted, true),
                "raw" => std::mem::replace(&mut placeholder.raw, true),
                "geohash" => {
                    let chars = words
                        .next()
                        .and_then(|number| number.parse().ok())
                        .filter(|chars| (1..=12).contains(chars))
                        .ok_or("`geohash` needs a number of characters from 1 to 12")?;
                    placeholder.geohash.replace(chars).is_some()
                }
                other => {
                    return Err(format!(
                        "`{other}` is not a modifier; there are `desc`, `sorted`, `raw` and \
                         `geohash 1..12`"
                    ));
                }
            };
            if twice {
                return Err(format!("`{word}` stands twice in `{{{inside}}}`"));
            }
        }
        Ok(placeholder)
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}", self.path)?;
        for (set, word) in [(self.sorted, " sorted"), (self.raw, " raw")] {
            if set {
                f.write_str(word)?;
            }
        }
        if let Some(chars) = self.geohash {
            write!(f, " geohash {chars}")?;
        }
        f.write_str(if self.desc { " desc}" } else { "}" })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn a_pattern_is_taken_apart() {
        let pattern = Pattern::parse("a:{x.y}:{t  desc }{n sorted desc}é{p geohash 6}").unwrap();
        let shown: Vec<String> = pattern
            .parts
            .iter()
            .map(|part| match part {
                PatternPart::Literal(text) => text.clone(),
                PatternPart::Placeholder(placeholder) => placeholder.to_string(),
            })
            .collect();
        assert_eq!(
            shown,
            ["a:", "{x.y}", ":", "{t desc}", "{n sorted desc}", "é", "{p geohash 6}"]
        );
        assert_eq!(pattern.paths().count(), 4);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (source, reason) in [
            ("a:{x", "character 3: this `{` has no `}`"),
            ("é:{x{y}}", "character 3: this `{` has no `}`"),
            ("a}b", "a `}` has no `{`"),
            ("{{x}}", "this `{` has no `}`"),
            ("a%b", "kept for escaping"),
            ("a\nb", "control character"),
            ("{}", "needs a path"),
            ("{ }", "needs a path"),
            ("{a..b}", "a name is empty"),
            ("{a down}", "`down` is not a modifier"),
            ("{a desc desc}", "stands twice"),
            ("{a geohash}", "from 1 to 12"),
            ("{a geohash 13}", "from 1 to 12"),
            ("{a geohash 0}", "from 1 to 12"),
        ] {
            let error = Pattern::parse(source).unwrap_err();
            assert!(error.contains(reason), "{source}: {error}");
        }
    }
}
