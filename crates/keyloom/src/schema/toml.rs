//! Turns TOML text into the tree of values that the reader understands, with positions in the text.

use std::sync::Arc;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Places, Problems, TextPosition, Trail};

/// Parses a text. If it is not TOML, gives `None` and adds every reason to the problems.
pub(crate) fn parse(
    text: &str,
    source: &Arc<str>,
    problems: &mut Problems,
) -> Option<(Value, Places)> {
    let lines = Lines::new(text);
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        for error in errors {
            let place = error.span().map(|span| lines.place(span.start));
            problems.add_to_text(source, place, format!("not TOML: {}", error.message()));
        }
        return None;
    }
    let mut places = Places::default();
    let start = lines.place(0);
    places.insert(Trail::new(), source, Some((start, start)));
    let mut converter = Converter { lines, source, places, problems };
    let value = converter.table(root.get_ref(), &Trail::new());
    Some((value, converter.places))
}

struct Converter<'a> {
    lines: Lines<'a>,
    source: &'a Arc<str>,
    places: Places,
    problems: &'a mut Problems,
}

impl Converter<'_> {
    fn table(&mut self, table: &DeTable<'_>, trail: &Trail) -> Value {
        let mut members = Map::new();
        for (name, value) in table {
            let mut trail = trail.clone();
            trail.push(name.get_ref().clone().into_owned());
            let at = (self.lines.place(name.span().start), self.lines.place(value.span().start));
            self.places.insert(trail.clone(), self.source, Some(at));
            members.insert(name.get_ref().clone().into_owned(), self.value(value, &trail));
        }
        Value::Object(members)
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, trail: &Trail) -> Value {
        match value.get_ref() {
            DeValue::String(text) => Value::String(text.clone().into_owned()),
            DeValue::Boolean(boolean) => Value::Bool(*boolean),
            DeValue::Integer(integer) => {
                match i64::from_str_radix(integer.as_str(), integer.radix()) {
                    Ok(number) => Value::from(number),
                    Err(_) => self.refuse(trail, "is not a 64-bit whole number"),
                }
            }
            DeValue::Float(float) => match float.as_str().parse().ok().and_then(Number::from_f64) {
                Some(number) => Value::Number(number),
                None => self.refuse(trail, "is not a finite number"),
            },
            DeValue::Datetime(_) => {
                if !may_be_date(trail) {
                    self.problems
                        .add(trail.clone(), "is a date; if text is meant, put it in quotes");
                }
                // The text as written: the parsed form would drop the zeros of `.000`.
                Value::from(self.lines.text.get(value.span()).unwrap_or_default())
            }
            DeValue::Array(elements) => {
                Value::Array(elements.iter().map(|element| self.value(element, trail)).collect())
            }
            DeValue::Table(table) => self.table(table, trail),
        }
    }

    /// Puts 0 in place of a number that JSON cannot have, so that reading continues.
    fn refuse(&mut self, trail: &Trail, message: &str) -> Value {
        self.problems.add(trail.clone(), message);
        Value::from(0)
    }
}

/// Whether a date may appear here: in a comparison with a field, and in a body. In JSON it becomes
/// text, which anywhere else would be taken for a template or a name.
fn may_be_date(trail: &Trail) -> bool {
    let names: Vec<&str> = trail.iter().map(String::as_str).collect();
    matches!(&names[..], ["collection", _, "body", ..] | ["collection", _, _, _, "where", ..])
}

/// Where each line of a text begins.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        let after_breaks = text.match_indices('\n').map(|(offset, _)| offset + 1);
        Lines { text, starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// The line and column of a byte offset, which may lie beyond the end.
    fn place(&self, offset: usize) -> TextPosition {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line - 1];
        let before = self.text.get(start..offset).unwrap_or_default();
        TextPosition { line, column: before.chars().count() + 1 }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_a_value_is_understood() {
        let text = "a = 1_000\nb = 0x1F\nc = +5\nd = -1_0.5e1\n\
                    collection.c.body.e = 2024-01-31T00:00:00.000Z\n\
                    f = '''x'''\ng = [true, {h = -9223372036854775808}]\n";
        let mut problems = Problems::default();
        let (value, _) = parse(text, &"".into(), &mut problems).unwrap();
        assert_eq!(
            value,
            json!({
                "a": 1000, "b": 31, "c": 5, "d": -105.0,
                "collection": { "c": { "body": { "e": "2024-01-31T00:00:00.000Z" } } }, "f": "x", "g": [true, { "h": i64::MIN }],
            })
        );
        assert!(problems.is_empty());
    }

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let lines = Lines::new("a\näé = 1\n");
        assert_eq!(lines.place(0), TextPosition { line: 1, column: 1 });
        assert_eq!(lines.place(2), TextPosition { line: 2, column: 1 });
        assert_eq!(lines.place(6), TextPosition { line: 2, column: 3 });
        assert_eq!(lines.place(11), TextPosition { line: 3, column: 1 });
        assert_eq!(lines.place(99), TextPosition { line: 3, column: 1 });
    }
}
