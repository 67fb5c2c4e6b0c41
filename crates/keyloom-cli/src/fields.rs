//! Selects the fields of records, and finds those that are times.

use clap::Args;
use keyloom::did_you_mean;
use serde_json::{Map, Value};

use crate::exit::{Failure, WRONG_INPUT};
use crate::output::moment;
use crate::target::{Request, Target};

/// Which fields are wanted; all unless said.
#[derive(Debug, Default, Args)]
pub(crate) struct Fields {
    /// Print only these fields of each record, in this order: title,author.name
    #[arg(long = "fields", value_name = "FIELD,…", value_delimiter = ',')]
    wanted: Vec<String>,
}

impl Fields {
    /// Removes all but the wanted fields from the records of items. A field is refused if it is
    /// neither declared nor in any of the records.
    pub(crate) fn keep(
        &self,
        target: &Target,
        collection: &str,
        items: &mut [Value],
    ) -> Result<(), Failure> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        self.check(&Declared::of(target, collection), items)?;
        for item in items.iter_mut().filter(|item| item.get("record").is_some()) {
            let mut kept = Value::Object(Map::new());
            for path in &self.wanted {
                let value = value_at(&item["record"], path);
                if !value.is_null() {
                    set(&mut kept, path, value.clone());
                }
            }
            item["record"] = kept;
        }
        Ok(())
    }

    /// The columns of a table: the wanted fields, or all fields of the records.
    pub(crate) fn columns(&self, items: &[Value]) -> Vec<String> {
        if !self.wanted.is_empty() {
            return self.wanted.clone();
        }
        let mut columns: Vec<String> = Vec::new();
        let records = items.iter().filter_map(|item| item["record"].as_object());
        for name in records.flat_map(|record| record.keys()) {
            if !columns.contains(name) {
                columns.push(name.clone());
            }
        }
        // A field that equals the key would be printed twice.
        columns.retain(|column| items.iter().any(|item| item["record"][column] != item["key"]));
        columns
    }

    fn check(&self, declared: &Declared, items: &[Value]) -> Result<(), Failure> {
        let is_there =
            |path: &str| items.iter().any(|item| !value_at(&item["record"], path).is_null());
        let unknown = self.wanted.iter().find(|path| !declared.knows(path) && !is_there(path));
        let Some(unknown) = unknown else { return Ok(()) };
        let records = items.iter().filter_map(|item| item["record"].as_object());
        let mut known: Vec<&str> = declared.names().collect();
        known.extend(records.flat_map(|record| record.keys().map(String::as_str)));
        known.sort_unstable();
        known.dedup();
        let message = format!("no record here has the field {unknown:?}, and none is declared");
        let failure = Failure::new(WRONG_INPUT, message);
        match did_you_mean(unknown, &known) {
            Some(meant) => Err(failure.with_hint(format!("did you mean {meant}?"))),
            // Without records, nothing tells whether an undeclared field may exist.
            None if items.is_empty() => Ok(()),
            None => Err(failure.with_hint(format!("the fields are {}", known.join(", ")))),
        }
    }
}

/// The declared fields of a collection, by their paths; none if the server does not tell them.
pub(crate) struct Declared(Map<String, Value>);

impl Declared {
    /// Fetches them.
    pub(crate) fn of(target: &Target, collection: &str) -> Self {
        let answer = target.value(Request::get(&["collections", collection]));
        match answer.map(|mut answer| answer["fields"].take()) {
            Ok(Value::Object(fields)) => Declared(fields),
            _ => Declared(Map::new()),
        }
    }

    /// Whether a field is declared, or contains a declared field.
    fn knows(&self, path: &str) -> bool {
        self.names().any(|name| {
            let is_within = |outer: &str, inner: &str| {
                inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
            };
            name == path || is_within(path, name) || is_within(name, path)
        })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Replaces the declared timestamps of a record by ISO-8601 times, for people.
    pub(crate) fn tell_times(&self, record: &mut Value) {
        for (path, declared) in &self.0 {
            if declared["type"] == "timestamp" {
                tell_time(record, path);
            }
        }
    }
}

/// Replaces the number at a path by a time, or all of them if the path goes over elements.
fn tell_time(value: &mut Value, path: &str) {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let inside: Vec<&mut Value> = match (value, first) {
        (Value::Array(elements), "*") => elements.iter_mut().collect(),
        (Value::Object(members), "*") => members.values_mut().collect(),
        (Value::Object(members), name) => members.get_mut(name).into_iter().collect(),
        _ => return,
    };
    for value in inside {
        match (rest, value.as_i64()) {
            ("", Some(millis)) => *value = moment(millis).into(),
            ("", None) => {}
            (rest, _) => tell_time(value, rest),
        }
    }
}

/// The value at a path of names; null if there is none. A name may contain dots.
pub(crate) fn value_at<'r>(record: &'r Value, path: &str) -> &'r Value {
    if let Some(value) = record.get(path) {
        return value;
    }
    let ends = path.match_indices('.').map(|(at, _)| at);
    let mut found = ends.filter_map(|at| Some(value_at(record.get(&path[..at])?, &path[at + 1..])));
    found.find(|value| !value.is_null()).unwrap_or(&Value::Null)
}

fn set(record: &mut Value, path: &str, value: Value) {
    let Value::Object(members) = record else { return };
    match path.split_once('.') {
        None => {
            members.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inside = members.entry(first).or_insert_with(|| Value::Object(Map::new()));
            set(inside, rest, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_told_wherever_they_are_declared() {
        let declared = json!({ "at": { "type": "timestamp" }, "n": { "type": "integer" },
            "log.*.at": { "type": "timestamp" }, "seen.*": { "type": "timestamp" },
            "deep.at": { "type": "timestamp" } });
        let Value::Object(declared) = declared else { return };
        let mut record = json!({ "at": 0, "n": 0, "log": [{ "at": 1 }, { "x": 1 }, 7],
            "seen": { "ana": 2, "ben": "?" }, "deep": { "at": -1.5 } });
        Declared(declared).tell_times(&mut record);
        let time = |end: &str| format!("1970-01-01T00:00:00.{end}Z");
        assert_eq!(
            record,
            json!({ "at": time("000"), "n": 0, "log": [{ "at": time("001") }, { "x": 1 }, 7],
                "seen": { "ana": time("002"), "ben": "?" }, "deep": { "at": -1.5 } })
        );
    }

    #[test]
    fn only_what_is_wanted_stays_and_what_nobody_knows_is_refused() {
        let fields = |wanted: &[&str]| Fields {
            wanted: wanted.iter().map(|name| (*name).to_owned()).collect(),
        };
        let declared = Declared(Map::from_iter([
            ("title".to_owned(), json!({ "type": "text" })),
            ("tags.*".to_owned(), json!({ "type": "text" })),
        ]));
        let items = [json!({ "key": "1", "record": { "a": { "b": 1 }, "x.y": 2 } })];
        for known in [&["title"][..], &["tags", "a.b"], &["x.y"], &["a"], &[]] {
            assert!(fields(known).check(&declared, &items).is_ok(), "{known:?}");
        }
        for unknown in ["titel", "c", "a.c"] {
            let failure = fields(&["title", unknown]).check(&declared, &items);
            assert_eq!(failure.map_err(|failure| failure.code()), Err(WRONG_INPUT), "{unknown}");
        }
        assert!(fields(&["c"]).check(&declared, &[]).is_ok());
        assert!(fields(&["titel"]).check(&declared, &[]).is_err());
        assert_eq!(value_at(&items[0]["record"], "a.b"), &json!(1));
        assert_eq!(value_at(&items[0]["record"], "x.y"), &json!(2));
    }
}
