//! The keyspace as a page that people read.

use std::fmt::Write as _;

use super::KeyPattern;
use crate::schema::Schema;

/// The keyspace of a schema as Markdown: a table for each collection, and one for what belongs to
/// the whole space. See [`Schema::keyspace`].
pub fn keyspace_markdown(schema: &Schema) -> String {
    let patterns = schema.keyspace();
    let mut page = String::from("# Keys\n");
    for name in schema.collection_names() {
        let own = patterns.iter().filter(|pattern| pattern.collection.as_deref() == Some(name));
        table(&mut page, name, own);
    }
    let shared = patterns.iter().filter(|pattern| pattern.collection.is_none());
    table(&mut page, "The space", shared);
    page
}

fn table<'p>(page: &mut String, title: &str, patterns: impl Iterator<Item = &'p KeyPattern>) {
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "\n## {title}\n\n| area | key | what | holds | read by | example |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for pattern in patterns {
        let KeyPattern { area, template, what, holds, read_by, .. } = pattern;
        let area = if area.is_empty() { String::new() } else { code(area) };
        let example = match pattern.example_value.as_str() {
            "" => code(&pattern.example_key),
            value => format!("{} → {}", code(&pattern.example_key), code(value)),
        };
        let cells = [area, code(template), plain(what), plain(holds), plain(read_by), example];
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
}

/// Text in a cell: what Markdown would take for something else stands for itself.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '|' | '*' | '_' | '`' | '<' | '[' | '\\' => out.extend(['\\', letter]),
            '\n' | '\r' => out.push(' '),
            _ => out.push(letter),
        }
    }
    out
}

/// Code in a cell. The fence is longer than every run of backticks in the text.
fn code(text: &str) -> String {
    let text = text.replace('|', "\\|").replace(['\n', '\r'], " ");
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let (fence, pad) = ("`".repeat(longest + 1), if longest > 0 { " " } else { "" });
    format!("{fence}{pad}{text}{pad}{fence}")
}
