//! The names of records: a name and the collection give the key back, whatever strings are in it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod long;

use std::sync::Arc;

use keyloom::engine::Memory;
use keyloom::{Collection, ErrorKind, Schema, Store};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

const SYSTEMS: [(&str, &str); 6] = [
    ("approvals", include_str!("schemas/systems/approvals.toml")),
    ("executions", include_str!("../../../examples/executions/keyloom.toml")),
    ("flows", include_str!("../../../examples/flows/keyloom.toml")),
    ("patterns", include_str!("../../../examples/patterns/keyloom.toml")),
    ("reputation", include_str!("../../../examples/reputation/keyloom.toml")),
    ("more", MORE),
];

/// What the systems do not have: nothing but a literal, sorted and descending parts, numbers.
const MORE: &str = r#"
[collection.settings]
key = "settings"

[collection.mixed]
key    = "m/{owner}/{n desc}/{word sorted}{rest sorted desc}/{flag}"
access = "owned"
owner  = "owner"
fields = { owner = "text", n = "integer", word = "text", rest = "text", flag = "boolean" }
"#;

/// A collection, and what its keys are made of: fields and their kinds.
type Shape = (&'static str, &'static str, &'static [(&'static str, Kind)], bool);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    Id,
    Uuid,
    Integer,
    Boolean,
}

/// Every collection of every system; the last says whether its records have owners.
const SHAPES: [Shape; 19] = {
    use Kind::{Boolean, Id, Integer, Text, Uuid};
    [
        ("approvals", "approval", &[("id", Id)], false),
        ("executions", "execution", &[("executionArn", Text)], false),
        ("flows", "run", &[("flow", Text), ("run_id", Text)], false),
        ("flows", "flow", &[("flow", Text)], false),
        ("patterns", "user", &[("userId", Text)], true),
        ("patterns", "note", &[("userId", Text), ("noteId", Text)], true),
        ("patterns", "preferences", &[("userId", Text)], true),
        ("patterns", "session", &[("userId", Text), ("sessionId", Text)], true),
        ("patterns", "template", &[("name", Text)], false),
        ("patterns", "config", &[("name", Text)], false),
        ("patterns", "stats", &[("name", Text)], false),
        ("patterns", "post", &[("userId", Text), ("postId", Text)], true),
        ("patterns", "location", &[("id", Text)], false),
        ("reputation", "user", &[("user", Uuid)], false),
        ("reputation", "tag", &[("user", Uuid), ("tag", Uuid)], false),
        ("reputation", "reputation", &[("user", Uuid), ("tag", Uuid)], false),
        (
            "reputation",
            "vote",
            &[("user", Uuid), ("tag", Uuid), ("target", Uuid), ("key", Uuid)],
            false,
        ),
        ("more", "settings", &[], false),
        (
            "more",
            "mixed",
            &[("owner", Text), ("n", Integer), ("word", Text), ("rest", Text), ("flag", Boolean)],
            true,
        ),
    ]
};

/// Separators, escapes, what looks like names and keys, and nothing.
const WORDS: [&str; 24] = [
    "-",
    "",
    "ana",
    "ana:notes",
    ":",
    "%",
    "%3A",
    "%3a",
    "%25",
    "a/b",
    "..",
    ".",
    "/",
    "_",
    "~",
    "!",
    "\0",
    "\n",
    "\u{7f}",
    "é",
    "日本",
    "{id}",
    "user:ana:notes:n1",
    "usr_x_tag_y",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(WORDS.to_vec()).prop_map(str::to_owned),
        2 => "[-a:%/_!~\\x00]{0,6}",
        1 => any::<String>().prop_map(|text| text.chars().take(30).collect()),
    ]
}

fn value(kind: Kind) -> BoxedStrategy<Value> {
    match kind {
        Kind::Text => text().prop_map(Value::from).boxed(),
        Kind::Id => "[0-9A-Za-z]{26}".prop_map(Value::from).boxed(),
        Kind::Uuid => "[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}".prop_map(Value::from).boxed(),
        Kind::Integer => any::<i32>().prop_map(Value::from).boxed(),
        Kind::Boolean => any::<bool>().prop_map(Value::from).boxed(),
    }
}

/// A collection by its place in the table, and values for its key.
fn record() -> impl Strategy<Value = (usize, Vec<Value>)> {
    (0..SHAPES.len()).prop_flat_map(|place| {
        let fields: Vec<_> = SHAPES[place].2.iter().map(|(_, kind)| value(*kind)).collect();
        (Just(place), fields)
    })
}

async fn open(system: &str) -> Store {
    let (_, schema) = SYSTEMS.iter().find(|(name, _)| *name == system).unwrap();
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
    store
}

/// Writes a record with these values, and gives its key. `None` when they make no key: it would
/// be empty.
async fn put(of: &Collection<Value>, shape: &Shape, values: &[Value]) -> Option<String> {
    let fields = shape.2.iter().zip(values).map(|((name, _), value)| ((*name).to_owned(), value));
    let mut record: Map<String, Value> =
        fields.map(|(name, value)| (name, value.clone())).collect();
    if shape.1 == "execution" {
        let more = json!({
            "agentName": "a", "startDate": "2024-01-31T23:59:59.999Z", "status": "RUNNING",
        });
        record.extend(more.as_object().unwrap().clone());
    }
    match of.upsert(&record.into()).await {
        Ok(written) => Some(written.key.to_string()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidKey, "{error}");
            None
        }
    }
}

/// A name leads back to the values, and by them to the record.
async fn check_name(of: &Collection<Value>, key: &str, values: &[Value]) -> String {
    let name = of.name_of(key).await.unwrap();
    assert_eq!(of.key_named(&name).await.unwrap(), values, "{name:?} of {key:?}");
    let found = of.get(of.key_named(&name).await.unwrap()).await.unwrap().unwrap();
    assert_eq!(found.key, key);
    name
}

#[test]
fn a_name_is_the_key_whatever_is_in_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let stores: Vec<(&str, Store)> =
        SYSTEMS.iter().map(|(name, _)| (*name, runtime.block_on(open(name)))).collect();
    let config =
        Config { cases: long::times(1_500), failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&(record(), text(), text()), |((place, values), user, word)| {
            let shape = &SHAPES[place];
            let store = &stores.iter().find(|(name, _)| *name == shape.0).unwrap().1;
            runtime.block_on(check(store, shape, &values, &user, &word));
            Ok(())
        })
        .unwrap();
}

async fn check(store: &Store, shape: &Shape, values: &[Value], user: &str, word: &str) {
    let of = store.documents(shape.1).await.unwrap();
    if let Some(key) = put(&of, shape, values).await {
        let long = check_name(&of, &key, values).await;
        assert!(key.ends_with(&long) || long == "-");
        // An acting user leaves themselves out.
        if let Some(owner) = values.first().and_then(Value::as_str).filter(|it| !it.is_empty()) {
            let own = check_name(&of.acting_as(owner).unwrap(), &key, values).await;
            let is_short = own.len() < long.len() || own == "-";
            assert!(if shape.3 { is_short } else { own == long }, "{own:?} {long:?}");
            if shape.3 {
                let values_of_owner = of.key_of_owner_named(owner, &own).await.unwrap();
                assert_eq!(values_of_owner, values);
            }
        }
        // To somebody else it has no short name, and no record of theirs has its name.
        if !user.is_empty() && shape.3 && values.first() != Some(&json!(user)) {
            let other = of.acting_as(user).unwrap();
            assert_eq!(other.name_of(&key).await.unwrap_err().kind(), ErrorKind::InvalidKey);
            if let Ok(theirs) = other.key_named(&long).await {
                assert_eq!(theirs.first(), Some(&json!(user)));
            }
        }
    }
    // Any text is the name of one record, or of none, and that is told.
    match of.key_named(word).await {
        Ok(named) => {
            let key = put(&of, shape, &named).await.unwrap();
            assert_eq!(of.name_of(&key).await.unwrap(), word, "{key:?}");
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidKey, "{error}");
            for part in ["collection", "template", "name", "reason"] {
                assert!(error.context_value(part).is_some(), "{part} of {error}");
            }
        }
    }
}

#[tokio::test]
async fn names_are_what_people_expect() {
    let patterns = open("patterns").await;
    let notes = patterns.documents("note").await.unwrap();
    let ana = notes.acting_as("ana").unwrap();
    assert_eq!(notes.name_of("user:ana:notes:n1").await.unwrap(), "ana:notes:n1");
    assert_eq!(ana.name_of("user:ana:notes:n1").await.unwrap(), "n1");
    assert_eq!(ana.name_of("user:ana:notes:").await.unwrap(), "");
    assert_eq!(ana.name_of("user:ana:notes:-").await.unwrap(), "-");
    assert_eq!(ana.key_named("-").await.unwrap(), [json!("ana"), json!("-")]);
    assert_eq!(ana.key_named("a%3Ab").await.unwrap(), [json!("ana"), json!("a:b")]);
    let ben = notes.key_of_owner_named("ben", "n1").await.unwrap();
    assert_eq!(ben, [json!("ben"), json!("n1")]);
    let preferences = patterns.documents("preferences").await.unwrap();
    assert_eq!(preferences.name_of("user:ana:preferences").await.unwrap(), "ana:preferences");
    let preferences = preferences.acting_as("ana").unwrap();
    assert_eq!(preferences.name_of("user:ana:preferences").await.unwrap(), "-");
    assert_eq!(preferences.key_named("-").await.unwrap(), [json!("ana")]);
    let reputation = open("reputation").await.documents("tag").await.unwrap();
    let (user, tag) = ("0".repeat(12) + "4000" + "8000" + &"0".repeat(12), "1".repeat(12));
    let tag = tag + "4000" + "8000" + &"0".repeat(12);
    let key = format!("usr_{user}_tag_{tag}");
    assert_eq!(reputation.name_of(&key).await.unwrap(), format!("{user}_tag_{tag}"));
    let settings = open("more").await.documents("settings").await.unwrap();
    assert_eq!(settings.name_of("settings").await.unwrap(), "-");
    assert!(settings.key_named("-").await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_no_name_is_told_with_its_place() {
    let of = |system: &'static str, name: &'static str| async move {
        open(system).await.documents(name).await.unwrap()
    };
    let approvals = of("approvals", "approval").await;
    let error = approvals.key_named("A7X9").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidKey);
    assert_eq!(
        error.to_string(),
        "the name gives no key of the collection; collection: approval; \
         template: approval:record:{id}; name: A7X9; field: id; \
         reason: an id is 26 letters and digits; 'A7X9' is none"
    );
    let reason = |error: keyloom::Error| {
        let field = error.context_value("field").unwrap_or("-").to_owned();
        (field, error.context_value("reason").unwrap().to_owned())
    };
    let tags = of("reputation", "tag").await;
    let short = tags.key_named("b068e9ee1422edf7878440ab8b6_tag_x").await.unwrap_err();
    let (field, told) = reason(short);
    assert_eq!(field, "user");
    assert!(told.contains("32 lower-case hex digits"), "{told}");
    let notes = of("patterns", "note").await;
    let told = reason(notes.key_named("ana").await.unwrap_err());
    assert_eq!(told.1, "a value and then ':' are expected where 'ana' stands");
    let told = reason(notes.key_named("ana:files:1").await.unwrap_err());
    assert_eq!(told, ("-".into(), "':notes:' is expected where ':files:1' stands".into()));
    let told = reason(notes.key_named("ana:notes:a:b").await.unwrap_err());
    assert!(told.0 == "noteId" && told.1.contains("for :"), "{told:?}");
    let told =
        reason(notes.key_named(&format!("ana:notes:{}", "x".repeat(900))).await.unwrap_err());
    assert!(told.1.contains("at most 900 bytes"), "{told:?}");
    let preferences = of("patterns", "preferences").await;
    let told = reason(preferences.key_named("ana:preferences2").await.unwrap_err());
    assert_eq!(told.1, "nothing is expected where '2' stands");
    let own = preferences.acting_as("ana").unwrap();
    let told = reason(own.key_named("ana").await.unwrap_err());
    assert_eq!(told.1, "there is one such record, and its name is '-'");
    let templates = of("patterns", "template").await;
    let error = templates.key_of_owner_named("ana", "t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error = notes.name_of("user:ana:posts:1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidKey);
}
