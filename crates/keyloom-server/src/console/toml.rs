//! Writes a declaration as a person would write it in a schema file.

use serde_json::{Map, Value};

/// The members of a collection whose own members get tables of their own.
const KINDS: [&str; 5] = ["index", "unique", "geo", "count", "sum"];

/// A whole schema; `None` if it has values that TOML cannot express, such as `null`.
pub(super) fn schema(declaration: &Value) -> Option<String> {
    let mut blocks = Vec::new();
    for (name, section) in declaration.as_object()? {
        match name.as_str() {
            "collection" => {
                for (name, collection) in section.as_object()? {
                    of_collection(&["collection", name], collection.as_object()?, &mut blocks)?;
                }
            }
            name => blocks.push(table(&[name], section)?),
        }
    }
    Some(blocks.join("\n"))
}

/// One table, with each member on one line.
pub(super) fn table(path: &[&str], members: &Value) -> Option<String> {
    block(path, members.as_object()?.iter(), |_, value| inline(value))
}

fn of_collection(
    path: &[&str],
    members: &Map<String, Value>,
    blocks: &mut Vec<String>,
) -> Option<()> {
    let has_own = |name: &str| KINDS.contains(&name) || matches!(name, "fields" | "counters");
    let own = members.iter().filter(|(name, _)| !has_own(name));
    blocks.push(block(path, own, |name, value| match name {
        // A JSON Schema is easier to read as JSON.
        "body" => several_lines(value),
        _ => inline(value),
    })?);
    if let Some(fields) = members.get("fields").and_then(Value::as_object) {
        let path = [path, &["fields"]].concat();
        blocks.push(block(&path, fields.iter(), |_, value| field(value))?);
    }
    if let Some(counters) = members.get("counters") {
        blocks.push(table(&[path, &["counters"]].concat(), counters)?);
    }
    for kind in KINDS {
        for (name, section) in members.get(kind).and_then(Value::as_object).into_iter().flatten() {
            blocks.push(table(&[path, &[kind, name]].concat(), section)?);
        }
    }
    Some(())
}

fn block<'v>(
    path: &[&str],
    members: impl Iterator<Item = (&'v String, &'v Value)>,
    write: impl Fn(&str, &Value) -> Option<String>,
) -> Option<String> {
    let path: Vec<String> = path.iter().map(|step| key(step)).collect();
    let mut text = format!("[{}]\n", path.join("."));
    for (name, value) in members {
        text.push_str(&format!("{} = {}\n", key(name), write(name, value)?));
    }
    Some(text)
}

fn inline(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(string(text)),
        Value::Bool(truth) => Some(truth.to_string()),
        // TOML has no whole numbers beyond signed 64 bits.
        Value::Number(number) if number.is_u64() && !number.is_i64() => None,
        Value::Number(number) => Some(number.to_string()),
        Value::Array(elements) => {
            let elements: Option<Vec<String>> = elements.iter().map(inline).collect();
            Some(format!("[{}]", elements?.join(", ")))
        }
        Value::Object(members) if members.is_empty() => Some("{}".to_owned()),
        Value::Object(members) => {
            let mut pairs = Vec::new();
            for (name, value) in members {
                pairs.push(format!("{} = {}", key(name), inline(value)?));
            }
            Some(format!("{{ {} }}", pairs.join(", ")))
        }
    }
}

/// A field. If it has only a type, the short form is used.
fn field(value: &Value) -> Option<String> {
    let members = value.as_object()?;
    inline(members.get("type").filter(|_| members.len() == 1).unwrap_or(value))
}

/// JSON as a literal string on several lines.
fn several_lines(value: &Value) -> Option<String> {
    let text = serde_json::to_string_pretty(value).ok()?;
    match text.contains("'''") || text.contains('\u{7f}') {
        true => Some(string(&text)),
        false => Some(format!("'''\n{text}\n'''")),
    }
}

fn key(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match !name.is_empty() && name.bytes().all(is_plain) {
        true => name.to_owned(),
        false => string(name),
    }
}

/// JSON escapes everything that TOML wants escaped, except for one character.
fn string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use keyloom::Schema;
    use serde_json::json;

    use super::*;

    const SCHEMA: &str = r#"[log]
entries = 10000

[collection.approval]
key = "approval:{id}"
body = '''
{
  "properties": {
    "reason": {
      "type": [
        "string",
        "null"
      ]
    }
  }
}
'''
history = { versions = 20 }

[collection.approval.fields]
at = "timestamp"
body = "text"
id = { type = "id", generate = true }
note = "text"
place = { type = "point", lat = "lat", lon = "lon" }
status = { type = "enum", values = ["new", "\"odd\"\\"], transitions = { new = ["\"odd\"\\"] } }
"steps.*" = "text"
type = "text"

[collection.approval.counters]
"stats.*" = { min = 0 }
visits = {}

[collection.approval.index.status]
key = "approval:status:{status}:{at desc}:{id}"
where = { type = "x" }

[collection.approval.unique.note]
key = "approval:note:{note}"

[collection.approval.geo.around]
key = "approval:around:{place geohash 6}:{id}"

[collection.approval.count.by_status]
group = ["status"]

[idempotency]
keep = "2 days"
"#;

    #[test]
    fn a_schema_is_written_as_people_write_it_and_reads_as_the_same() {
        let declared = Schema::from_toml(SCHEMA).unwrap().declaration();
        let text = schema(&serde_json::to_value(&declared).unwrap()).unwrap();
        assert_eq!(text, SCHEMA);
        assert_eq!(Schema::from_toml(&text).unwrap().declaration(), declared);
    }

    #[test]
    fn what_toml_cannot_say_is_not_said_wrongly() {
        assert_eq!(table(&["a"], &json!({ "where": { "x": null } })), None);
        assert_eq!(table(&["a"], &json!({ "max": u64::MAX })), None);
        let odd = json!({ "a b": "\u{7f}\n", "": 1.5 });
        assert_eq!(
            table(&["x", "y.z"], &odd).unwrap(),
            "[x.\"y.z\"]\n\"a b\" = \"\\u007f\\n\"\n\"\" = 1.5\n"
        );
        assert_eq!(several_lines(&json!("'''")).unwrap(), r#""\"'''\"""#);
    }

    #[test]
    fn the_examples_read_as_the_same() {
        for text in [
            include_str!("../../../../examples/approvals/keyloom.toml"),
            include_str!("../../../../examples/executions/keyloom.toml"),
            include_str!("../../../../examples/flows/keyloom.toml"),
            include_str!("../../../../examples/patterns/keyloom.toml"),
            include_str!("../../../../examples/reputation/keyloom.toml"),
        ] {
            let declared = Schema::from_toml(text).unwrap().declaration();
            let written = schema(&serde_json::to_value(&declared).unwrap()).unwrap();
            assert_eq!(Schema::from_toml(&written).unwrap().declaration(), declared);
        }
    }
}
