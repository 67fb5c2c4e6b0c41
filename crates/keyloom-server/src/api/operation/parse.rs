//! Parses operations from JSON, strictly: unknown, missing and mistyped members are refused.

use keyloom::Version;
use serde_json::{Map, Value};

use super::{Action, Guard, NewRecord, Operation, PutOnly, Versions};
use crate::config::Limits;
use crate::problem::Problem;
use crate::refusal;

/// The operations of a body `{"operations": […]}`.
pub(crate) fn read_all(body: Value, limits: &Limits) -> Result<Vec<Operation>, Problem> {
    let mut members = Members::of(body, "the body")?;
    let operations = members.take("operations")?;
    members.finish()?;
    let Value::Array(operations) = operations else {
        return Err(Problem::invalid_request("operations is a list"));
    };
    if operations.is_empty() {
        return Err(Problem::invalid_request("operations is empty; send at least one"));
    }
    if operations.len() > limits.operations_max {
        let (count, most) = (operations.len(), limits.operations_max);
        let detail = format!("there are {count} operations, and a request has at most {most}");
        return Err(refusal::limit_exceeded(detail));
    }
    let numbered = operations.into_iter().enumerate();
    numbered.map(|(number, json)| read(json).map_err(|p| p.with("operation", number))).collect()
}

fn read(json: Value) -> Result<Operation, Problem> {
    let mut members = Members::of(json, "an operation")?;
    let op = members.text("op")?;
    let action = match op.as_str() {
        "insert" => Action::Insert { record: NewRecord::Read(members.object("record")?) },
        "put" => put(&mut members)?,
        "patch" => Action::Patch {
            key: members.text("key")?,
            patch: members.object("patch")?,
            versions: members.version()?.map(only),
            guard: members.guard()?,
        },
        "delete" => {
            Action::Delete { key: members.text("key")?, versions: members.version()?.map(only) }
        }
        "increment" => {
            Action::Increment { key: members.text("key")?, add: additions(members.take("add")?)? }
        }
        "check" => check(&mut members)?,
        "get" => Action::Get { key: members.text("key")? },
        other => {
            let known = "insert, put, patch, delete, increment, check and get";
            let detail = format!("there is no operation {other:?}; known are {known}");
            return Err(Problem::invalid_request(detail));
        }
    };
    let collection = members.text("collection")?;
    members.finish()?;
    Ok(Operation { collection, action })
}

fn put(members: &mut Members) -> Result<Action, Problem> {
    let (key, record) = (members.text("key")?, members.object("record")?);
    let only = match (members.version()?, members.flag("if_absent")?) {
        (Some(_), Some(true)) => {
            let detail = "if_match and if_absent exclude each other";
            return Err(Problem::invalid_request(detail));
        }
        (Some(version), _) => PutOnly::IfMatch(only(version)),
        (None, Some(true)) => PutOnly::IfAbsent,
        (None, Some(false) | None) => PutOnly::Always,
    };
    Ok(Action::Put { key, record, only })
}

fn only(version: Version) -> Versions {
    vec![version]
}

fn check(members: &mut Members) -> Result<Action, Problem> {
    let key = members.text("key")?;
    let (version, guard) = (members.version()?, members.guard()?);
    let exists = members.flag("exists")?;
    let refused = |detail: &str| Err(Problem::invalid_request(detail));
    match exists {
        None if version.is_none() && guard.is_empty() => {
            refused("a check needs if_match, if or exists")
        }
        Some(false) if version.is_some() || !guard.is_empty() => {
            refused("what does not exist has neither a version nor fields")
        }
        _ => Ok(Action::Check { key, version, guard, exists }),
    }
}

/// Counters and their increments.
pub(super) fn additions(json: Value) -> Result<Vec<(String, i64)>, Problem> {
    let Value::Object(members) = json else {
        return Err(Problem::invalid_request("add is an object: counters and whole numbers"));
    };
    if members.is_empty() {
        return Err(Problem::invalid_request("add names no counter"));
    }
    let addition = |(name, number): (String, Value)| match whole(&number) {
        Some(number) => Ok((name, number)),
        None => {
            let detail = format!("what is added to {name} is no whole number of 64 bits");
            Err(Problem::invalid_request(detail))
        }
    };
    members.into_iter().map(addition).collect()
}

/// A whole number of 64 bits. `1.0` is one too, since JSON does not distinguish it from `1`.
pub(crate) fn whole(number: &Value) -> Option<i64> {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    number.as_i64().or_else(|| {
        let number = number.as_f64()?;
        let is_whole = number.fract() == 0.0 && (-BEYOND..BEYOND).contains(&number);
        // A whole number in this range is the same as an integer.
        is_whole.then_some(number as i64)
    })
}

/// The members of an object, each taken once.
pub(crate) struct Members {
    what: &'static str,
    members: Map<String, Value>,
}

impl Members {
    /// The members of an object; `what` names it in messages.
    pub(crate) fn of(json: Value, what: &'static str) -> Result<Self, Problem> {
        match json {
            Value::Object(members) => Ok(Members { what, members }),
            _ => Err(Problem::invalid_request(format!("{what} is an object"))),
        }
    }

    /// An optional member.
    pub(crate) fn take_if_there(&mut self, name: &str) -> Option<Value> {
        self.members.shift_remove(name)
    }

    /// A required member.
    pub(crate) fn take(&mut self, name: &str) -> Result<Value, Problem> {
        self.take_if_there(name)
            .ok_or_else(|| Problem::invalid_request(format!("{} lacks {name}", self.what)))
    }

    /// A string.
    pub(crate) fn text(&mut self, name: &str) -> Result<String, Problem> {
        match self.take(name)? {
            Value::String(text) => Ok(text),
            _ => Err(Problem::invalid_request(format!("{name} is a string"))),
        }
    }

    fn object(&mut self, name: &str) -> Result<Value, Problem> {
        match self.take(name)? {
            object @ Value::Object(_) => Ok(object),
            _ => Err(Problem::invalid_request(format!("{name} is an object"))),
        }
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, Problem> {
        match self.take_if_there(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(Problem::invalid_request(format!("{name} is true or false"))),
        }
    }

    fn version(&mut self) -> Result<Option<Version>, Problem> {
        match self.take_if_there("if_match") {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.parse()?)),
            Some(_) => Err(Problem::invalid_request("if_match is a version, as a string")),
        }
    }

    fn guard(&mut self) -> Result<Guard, Problem> {
        match self.take_if_there("if") {
            None => Ok(Guard::new()),
            Some(Value::Object(guard)) if !guard.is_empty() => Ok(guard.into_iter().collect()),
            Some(_) => Err(Problem::invalid_request("if is an object: fields and their values")),
        }
    }

    /// Refuses members that nobody took.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.members.keys().next() {
            None => Ok(()),
            Some(name) => {
                let detail = format!("{} has a member {name:?} that is not known", self.what);
                Err(Problem::invalid_request(detail))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const VERSION: &str = "0199c0e2a1b27f3c00000000000000aa-1";

    fn refused(operation: Value) -> Value {
        let good = json!({"op": "get", "collection": "note", "key": "n1"});
        let body = json!({"operations": [good, operation]});
        read_all(body, &Limits::default()).unwrap_err().to_json()
    }

    #[test]
    fn every_operation_is_read_with_its_conditions() {
        let body = json!({"operations": [
            {"op": "insert", "collection": "n", "record": {}},
            {"op": "put", "collection": "n", "key": "1", "record": {}, "if_match": VERSION},
            {"op": "put", "collection": "n", "key": "1", "record": {}, "if_absent": true},
            {"op": "patch", "collection": "n", "key": "1", "patch": {}, "if": {"a": 1}},
            {"op": "delete", "collection": "n", "key": "1", "if_match": VERSION},
            {"op": "increment", "collection": "n", "key": "1", "add": {"c": -1}},
            {"op": "check", "collection": "n", "key": "1", "exists": false},
            {"op": "get", "collection": "n", "key": "1"},
        ]});
        let read = read_all(body, &Limits::default()).unwrap();
        let names: Vec<&str> = read.iter().map(Operation::name).collect();
        let wanted = ["insert", "put", "put", "patch", "delete", "increment", "check", "get"];
        assert_eq!(names, wanted);
        assert!(matches!(read[1].action, Action::Put { only: PutOnly::IfMatch(_), .. }));
        assert!(matches!(read[2].action, Action::Put { only: PutOnly::IfAbsent, .. }));
    }

    #[test]
    fn whole_numbers_are_known_in_every_form() {
        let read = |text: &str| whole(&serde_json::from_str(text).unwrap());
        assert_eq!(read("-3"), Some(-3));
        assert_eq!(read("-3.0"), Some(-3));
        assert_eq!(read("1e3"), Some(1_000));
        assert_eq!(read("-9223372036854775808.0"), Some(i64::MIN));
        for text in
            ["1.5", "9223372036854775808", "9223372036854775808.0", "1e300", "\"1\"", "null"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused_with_the_number_of_the_operation() {
        for (operation, detail) in [
            (json!(1), "an operation is an object"),
            (json!({"op": "get", "collection": "n"}), "an operation lacks key"),
            (json!({"op": "get", "key": "1"}), "an operation lacks collection"),
            // An unknown operation is reported before its missing members.
            (
                json!({"op": "drop"}),
                "there is no operation \"drop\"; known are insert, put, patch, delete, increment, check and get",
            ),
            (json!({"op": "get", "collection": "n", "key": 1}), "key is a string"),
            (
                json!({"op": "drop", "collection": "n"}),
                "there is no operation \"drop\"; known are insert, put, patch, delete, increment, check and get",
            ),
            (json!({"op": "insert", "collection": "n", "record": []}), "record is an object"),
            (
                json!({"op": "get", "collection": "n", "key": "1", "if": {"a": 1}}),
                "an operation has a member \"if\" that is not known",
            ),
            (
                json!({"op": "delete", "collection": "n", "key": "1", "if_match": 1}),
                "if_match is a version, as a string",
            ),
            (
                json!({"op": "increment", "collection": "n", "key": "1", "add": {"c": 1.5}}),
                "what is added to c is no whole number of 64 bits",
            ),
            (
                json!({"op": "increment", "collection": "n", "key": "1", "add": {}}),
                "add names no counter",
            ),
            (
                json!({"op": "check", "collection": "n", "key": "1"}),
                "a check needs if_match, if or exists",
            ),
            (
                json!({"op": "check", "collection": "n", "key": "1", "exists": false, "if": {"a": 1}}),
                "what does not exist has neither a version nor fields",
            ),
            (
                json!({"op": "put", "collection": "n", "key": "1", "record": {}, "if_match": VERSION, "if_absent": true}),
                "if_match and if_absent exclude each other",
            ),
        ] {
            let problem = refused(operation);
            assert_eq!(problem["detail"], detail);
            assert_eq!(problem["operation"], 1);
            assert_eq!(problem["status"], 400);
        }
        let wrong_version = json!({"op": "delete", "collection": "n", "key": "1", "if_match": "x"});
        assert_eq!(refused(wrong_version)["operation"], 1);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z]{0,6}".prop_map(Value::from),
            prop::sample::select(vec!["get", "put", "check", "increment"]).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 5, |inner| {
            let names =
                vec!["op", "collection", "key", "record", "if", "if_match", "add", "exists"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((prop::sample::select(names), inner), 0..6).prop_map(
                    |members| members
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect::<Map<_, _>>()
                        .into()
                ),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_json_makes_the_reader_panic(operations in prop::collection::vec(any_json(), 0..4)) {
            let count = operations.len();
            if let Ok(read) = read_all(json!({"operations": operations}), &Limits::default()) {
                prop_assert_eq!(read.len(), count);
            }
        }
    }
}
