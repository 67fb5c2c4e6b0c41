//! Keys as regular expressions, from the templates that make them.
//!
//! | segment | what it matches |
//! | --- | --- |
//! | text | anything, with `%XX` for the separator, `%` and control characters |
//! | sorted text | the same, with `%XX` for all up to `%`, ended by `!`; descending: hex, ended by `~` |
//! | raw text | one character or more, to the end of the key |
//! | integer | its digits, with a `-` before those of negative ones |
//! | all others | as many characters of their alphabets as they have; mirrored ones are not checked |

use keyloom::{CollectionDeclaration, FieldType};

/// One part of a template.
enum Part<'t> {
    Literal(&'t str),
    /// `{path modifiers}`.
    Segment {
        path: &'t str,
        modifiers: Vec<&'t str>,
    },
}

/// The beginning of a key that the name of a record omits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// The first literal of the template.
    Literal,
    /// The same, the owner, and the literal after it: the caller is the owner, or names one.
    Owner,
}

/// The fields that a template names, in order.
pub(super) fn fields(template: &str) -> Vec<String> {
    let paths = parts(template).into_iter().filter_map(|part| match part {
        Part::Literal(_) => None,
        Part::Segment { path, .. } => Some(path.to_owned()),
    });
    paths.collect()
}

/// Whether the pattern has escapes. In a URL they would be escaped once more, which not every
/// generated client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escapes {
    Shown,
    Hidden,
}

/// The pattern of a record's name.
pub(super) fn record_pattern(
    collection: &CollectionDeclaration,
    beginning: Beginning,
    escapes: Escapes,
) -> String {
    let mut parts = parts(&collection.key);
    let mut before = take_literal(&mut parts);
    if beginning == Beginning::Owner && !parts.is_empty() {
        parts.remove(0);
        before = take_literal(&mut parts).or(before);
    }
    if parts.is_empty() {
        return "^-$".to_owned();
    }
    let mut pattern = "^".to_owned();
    for (place, part) in parts.iter().enumerate() {
        match part {
            Part::Literal(literal) => {
                pattern.push_str(&quoted(literal));
                before = literal.chars().last();
            }
            Part::Segment { path, modifiers } => {
                let separator = match parts.get(place + 1) {
                    Some(Part::Literal(literal)) => literal.chars().next(),
                    _ => before.filter(char::is_ascii_punctuation),
                };
                let kind = collection.fields.get(*path).map(|field| &field.field_type);
                pattern.push_str(&segment(kind, modifiers, separator, escapes));
            }
        }
    }
    pattern + "$"
}

/// The pattern of an owner's name in a URL, outside a key.
pub(super) fn owner_pattern() -> String {
    format!("^{}+$", any_character())
}

/// Takes a literal from the front, and gives its last character.
fn take_literal(parts: &mut Vec<Part<'_>>) -> Option<char> {
    let Some(Part::Literal(literal)) = parts.first() else { return None };
    let last = literal.chars().last();
    parts.remove(0);
    last
}

/// The field that is the whole key, if there is one: it cannot be empty.
pub(super) fn whole_key(template: &str) -> Option<String> {
    match parts(template).as_slice() {
        [Part::Segment { path, .. }] => Some((*path).to_owned()),
        _ => None,
    }
}

/// The text of one value that has a fixed form.
pub(super) fn value_pattern(kind: &FieldType) -> String {
    match kind {
        FieldType::Uuid { version: Some(version) } => {
            format!("[0-9a-f]{{12}}{version}[0-9a-f]{{3}}[89ab][0-9a-f]{{15}}")
        }
        FieldType::Uuid { version: None } => "[0-9a-f]{32}".to_owned(),
        FieldType::Id => "[0-9A-Za-z]{26}".to_owned(),
        FieldType::Code { pattern } => pattern
            .chars()
            .map(|place| match place {
                '*' => "[2-9A-HJ-NP-Z]".to_owned(),
                other => quoted(&other.to_string()),
            })
            .collect(),
        FieldType::Datetime => datetime_pattern(),
        _ => format!("{}+", any_character()),
    }
}

/// The days of the Gregorian calendar, with the leap years' own, and a time in milliseconds.
fn datetime_pattern() -> String {
    let days = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])\
         |(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8])";
    let leap_years = "[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00";
    let time = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\\.[0-9]{3}Z";
    format!("(?:[0-9]{{4}}-(?:{days})|(?:{leap_years})-02-29)T{time}")
}

/// One segment of a key.
fn segment(
    kind: Option<&FieldType>,
    modifiers: &[&str],
    separator: Option<char>,
    escapes: Escapes,
) -> String {
    let has = |modifier: &str| modifiers.contains(&modifier);
    let Some(kind) = kind.filter(|_| !has("raw")) else {
        return format!("{}+", any_character());
    };
    let is_mirrored = has("desc");
    match kind {
        FieldType::Text if has("sorted") && is_mirrored => "(?:[0-9A-F]{2})*~".to_owned(),
        FieldType::Text if has("sorted") => "(?:[^\\x00-\\x25]|%[01][0-9A-F]|%2[0-5])*!".to_owned(),
        FieldType::Text => {
            let separator = separator.map(String::from).unwrap_or_default();
            let itself = format!("[^\\x00-\\x1f\\x7f%{}]", quoted(&separator));
            let escaped: String =
                separator.bytes().map(|separator| format!("|{separator:02X}")).collect();
            match escapes {
                Escapes::Shown => format!("(?:{itself}|%(?:[01][0-9A-F]|25|7F{escaped}))*"),
                Escapes::Hidden => format!("{itself}*"),
            }
        }
        FieldType::Timestamp => "[0-9]{13}".to_owned(),
        FieldType::Boolean => "[01]".to_owned(),
        FieldType::Float => "[0-9a-f]{16}".to_owned(),
        FieldType::Enum { values, .. } if !is_mirrored => {
            let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
            format!("(?:{})", values.join("|"))
        }
        FieldType::Integer { digits } => format!("-?[0-9]{{{digits}}}"),
        FieldType::Datetime | FieldType::Code { .. } | FieldType::Enum { .. } if is_mirrored => {
            format!("{}+", any_character())
        }
        other => value_pattern(other),
    }
}

/// Any character, including line breaks.
fn any_character() -> &'static str {
    "[\\s\\S]"
}

fn parts(template: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let (literal, placeholder) = rest.split_at(open);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        // In a valid schema every `{` has its `}`.
        let (inside, tail) = placeholder[1..].split_once('}').unwrap_or((&placeholder[1..], ""));
        let mut words = inside.split_whitespace();
        parts.push(Part::Segment { path: words.next().unwrap_or(""), modifiers: words.collect() });
        rest = tail;
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest));
    }
    parts
}

/// A regular expression that matches exactly this text.
pub(super) fn quoted(text: &str) -> String {
    let quote = |letter: char| match letter {
        letter if letter.is_ascii_punctuation() && letter != '_' => format!("\\{letter}"),
        letter => letter.to_string(),
    };
    text.chars().map(quote).collect()
}
