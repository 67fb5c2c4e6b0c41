//! Reads one table of a schema, member by member. Members that nobody asked for are unknown.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::problem::{Problems, Trail};
use super::suggest::nearest;

/// A table that is being read.
pub(crate) struct Table<'v> {
    trail: Trail,
    members: &'v Map<String, Value>,
    /// The names that were asked for, in order. All other names are problems.
    known: Vec<&'static str>,
}

impl<'v> Table<'v> {
    /// Starts to read a value that must be a table.
    pub(crate) fn new(value: &'v Value, trail: Trail, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::Object(members) => Some(Table { trail, members, known: Vec::new() }),
            other => {
                problems.add(trail, wrong_type("a table", other));
                None
            }
        }
    }

    pub(crate) fn trail(&self) -> &Trail {
        &self.trail
    }

    pub(crate) fn trail_of(&self, name: &str) -> Trail {
        let mut trail = self.trail.clone();
        trail.push(name.to_owned());
        trail
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// All members, for a table whose names the user chooses.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
        self.members.iter()
    }

    /// The value with this name, which is known from now on.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<&'v Value> {
        self.known.push(name);
        self.members.get(name)
    }

    pub(crate) fn text(&mut self, name: &'static str, problems: &mut Problems) -> Option<String> {
        self.read(name, "a string", problems, |value| value.as_str().map(str::to_owned))
    }

    pub(crate) fn boolean(&mut self, name: &'static str, problems: &mut Problems) -> Option<bool> {
        self.read(name, "true or false", problems, Value::as_bool)
    }

    pub(crate) fn number(&mut self, name: &'static str, problems: &mut Problems) -> Option<usize> {
        self.read(name, "a whole number", problems, |value| value.as_u64()?.try_into().ok())
    }

    pub(crate) fn integer(&mut self, name: &'static str, problems: &mut Problems) -> Option<i64> {
        self.read(name, "a whole number of 64 bits", problems, Value::as_i64)
    }

    /// A number with far fewer values than a byte; `expected` describes them.
    pub(crate) fn small_number(
        &mut self,
        name: &'static str,
        expected: &str,
        problems: &mut Problems,
    ) -> Option<u8> {
        self.read(name, expected, problems, |value| value.as_u64()?.try_into().ok())
    }

    pub(crate) fn scalar(&mut self, name: &'static str, problems: &mut Problems) -> Option<Value> {
        self.read(name, "a string, a number or a boolean", problems, |value| {
            let is_scalar = matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_));
            is_scalar.then(|| value.clone())
        })
    }

    pub(crate) fn required_text(
        &mut self,
        name: &'static str,
        problems: &mut Problems,
    ) -> Option<String> {
        self.require(name, problems);
        self.text(name, problems)
    }

    pub(crate) fn required_texts(
        &mut self,
        name: &'static str,
        problems: &mut Problems,
    ) -> Option<Vec<String>> {
        self.require(name, problems);
        self.read(name, "a list of strings", problems, texts)
    }

    /// One of several words. A synonym is refused with a hint at the right word.
    pub(crate) fn choice(
        &mut self,
        name: &'static str,
        choices: &[&'static str],
        synonyms: &[(&str, &str)],
        problems: &mut Problems,
    ) -> Option<&'static str> {
        let word = self.text(name, problems)?;
        let chosen = choices.iter().find(|choice| **choice == word).copied();
        if chosen.is_none() {
            let synonym = synonyms.iter().find(|(synonym, _)| *synonym == word.to_lowercase());
            let hint = match synonym {
                Some((_, meant)) => did_you_mean(meant, choices),
                None => did_you_mean(&word, choices),
            };
            let all = choices.join(", ");
            problems.add(self.trail_of(name), format!("{word:?} is not one of {all}{hint}"));
        }
        chosen
    }

    pub(crate) fn required_choice(
        &mut self,
        name: &'static str,
        choices: &[&'static str],
        synonyms: &[(&str, &str)],
        problems: &mut Problems,
    ) -> Option<&'static str> {
        self.require(name, problems);
        self.choice(name, choices, synonyms, problems)
    }

    /// A table of lists of strings.
    pub(crate) fn lists(
        &mut self,
        name: &'static str,
        problems: &mut Problems,
    ) -> Option<BTreeMap<String, Vec<String>>> {
        let value = self.take(name)?;
        let table = Table::new(value, self.trail_of(name), problems)?;
        let mut lists = BTreeMap::new();
        for (name, value) in table.members() {
            match texts(value) {
                Some(texts) => {
                    lists.insert(name.clone(), texts);
                }
                None => problems.add(table.trail_of(name), wrong_type("a list of strings", value)),
            }
        }
        Some(lists)
    }

    /// A table of tables, each read by `read`.
    pub(crate) fn tables<T>(
        &mut self,
        name: &'static str,
        problems: &mut Problems,
        read: impl Fn(Table<'v>, &mut Problems) -> Option<T>,
    ) -> BTreeMap<String, T> {
        let Some(value) = self.take(name) else { return BTreeMap::new() };
        let Some(table) = Table::new(value, self.trail_of(name), problems) else {
            return BTreeMap::new();
        };
        table
            .members()
            .filter_map(|(name, value)| {
                let inner = Table::new(value, table.trail_of(name), problems)?;
                Some((name.clone(), read(inner, problems)?))
            })
            .collect()
    }

    /// Ends the reading: every name that was not asked for is a problem.
    pub(crate) fn finish(self, what: &str, problems: &mut Problems) {
        for name in self.members.keys().filter(|name| !self.known.contains(&name.as_str())) {
            let hint = did_you_mean(name, &self.known);
            let known = quoted(&self.known);
            problems.add_to_name(
                self.trail_of(name),
                format!("unknown key; {what} may have {known}{hint}"),
            );
        }
    }

    fn require(&self, name: &'static str, problems: &mut Problems) {
        if !self.members.contains_key(name) {
            problems.add_to_name(self.trail.clone(), format!("lacks `{name}`"));
        }
    }

    fn read<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        problems: &mut Problems,
        convert: impl Fn(&'v Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.take(name)?;
        let converted = convert(value);
        if converted.is_none() {
            problems.add(self.trail_of(name), wrong_type(expected, value));
        }
        converted
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

fn wrong_type(expected: &str, found: &Value) -> String {
    match found {
        Value::Number(number) => format!("must be {expected}, not {number}"),
        other => format!("must be {expected}, not {}", type_name(other)),
    }
}

/// The type of a value, in TOML's words.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

/// `; did you mean `key`?`, or nothing if no name is similar.
pub(crate) fn did_you_mean(word: &str, known: &[&str]) -> String {
    nearest(word, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
