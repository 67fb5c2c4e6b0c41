//! Keys as regular expressions, from the templates that make them.

use keyloom::{CollectionDeclaration, FieldType};

/// What text in a key is, before `%`, control characters and its separator are escaped.
const RAW: &str = "[^\\x00-\\x1f\\x7f]+";

/// One part of a template.
enum Part<'t> {
    Literal(&'t str),
    /// `{path modifiers}`.
    Segment {
        path: &'t str,
        modifiers: Vec<&'t str>,
    },
}

/// The fields that a template names, in order.
pub(super) fn fields(template: &str) -> Vec<String> {
    let paths = parts(template).into_iter().filter_map(|part| match part {
        Part::Literal(_) => None,
        Part::Segment { path, .. } => Some(path.to_owned()),
    });
    paths.collect()
}

/// What the key of a record in a URL looks like: everything after the first literal.
pub(super) fn record_pattern(collection: &CollectionDeclaration) -> String {
    let mut parts = parts(&collection.key);
    let mut before = None;
    if let Some(Part::Literal(literal)) = parts.first() {
        before = literal.chars().last();
        parts.remove(0);
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
                    _ => before,
                };
                let kind = collection.fields.get(*path).map(|field| &field.field_type);
                pattern.push_str(&segment(kind, modifiers, separator));
            }
        }
    }
    pattern + "$"
}

/// The text of one value that has a fixed form.
pub(super) fn value_pattern(kind: &FieldType) -> String {
    match kind {
        FieldType::Uuid { version: Some(version) } => {
            format!("[0-9a-f]{{12}}{version}[0-9a-f]{{3}}[89ab][0-9a-f]{{15}}")
        }
        FieldType::Uuid { version: None } => "[0-9a-f]{16}[89ab][0-9a-f]{15}".to_owned(),
        FieldType::Id => "[0-9A-Za-z]{26}".to_owned(),
        FieldType::Code { pattern } => pattern
            .chars()
            .map(|place| match place {
                '*' => "[2-9A-HJ-NP-Z]".to_owned(),
                other => quoted(&other.to_string()),
            })
            .collect(),
        FieldType::Datetime => "(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])\
             T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\\.[0-9]{3}Z"
            .to_owned(),
        _ => RAW.to_owned(),
    }
}

/// One segment of a key. Where a type has more forms than a regular expression tells well, this
/// is the most common one.
fn segment(kind: Option<&FieldType>, modifiers: &[&str], separator: Option<char>) -> String {
    let Some(kind) = kind.filter(|_| !modifiers.contains(&"raw")) else { return RAW.to_owned() };
    match kind {
        FieldType::Text if modifiers.contains(&"sorted") => "[^\\x00-\\x25\\x7f]*!".to_owned(),
        FieldType::Text => {
            let ends = separator.map(|end| quoted(&end.to_string())).unwrap_or_default();
            format!("[^\\x00-\\x1f\\x7f%{ends}]+")
        }
        FieldType::Timestamp => "[0-9]{13}".to_owned(),
        FieldType::Boolean => "(true|false)".to_owned(),
        FieldType::Enum { values, .. } => {
            let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
            format!("({})", values.join("|"))
        }
        FieldType::Integer { digits } => format!("[1-9][0-9]{{0,{}}}", digits.saturating_sub(1)),
        other => value_pattern(other),
    }
}

fn parts(template: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let (literal, placeholder) = rest.split_at(open);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        // A schema that was loaded has a `}` for each `{`.
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

/// Text as a regular expression that stands for itself.
fn quoted(text: &str) -> String {
    let quote = |letter: char| match letter {
        letter if letter.is_ascii_punctuation() && letter != '_' => format!("\\{letter}"),
        letter => letter.to_string(),
    };
    text.chars().map(quote).collect()
}
