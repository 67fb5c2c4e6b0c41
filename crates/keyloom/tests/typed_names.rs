//! The derive spells names as serde does, whatever serde is told.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeSet;

use keyloom::{Choice, Record, Store};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

macro_rules! rules {
    ($($module:ident: $rule:literal;)*) => {$(
        mod $module {
            use super::*;

            #[derive(Default, Serialize, Deserialize, Record)]
            #[serde(rename_all = $rule)]
            #[record(key = "r:{same}")]
            struct Names {
                #[serde(rename = "same")]
                other: String,
                #[field]
                created_at: String,
                #[field]
                r#type: String,
                #[field]
                line_2_of_3: String,
                #[field]
                _odd_name: String,
            }

            #[derive(Clone, Copy, Serialize, Deserialize, Choice)]
            #[serde(rename_all = $rule)]
            enum Choices {
                Open,
                TimedOut,
                HTTPError,
                Line2,
                #[serde(rename = "Något")]
                Renamed,
            }

            #[test]
            fn names_of_fields() {
                let Value::Object(json) = serde_json::to_value(Names::default()).unwrap() else {
                    panic!("a struct is an object");
                };
                let declared = Names::declaration().unwrap().fields;
                assert_eq!(
                    declared.keys().collect::<BTreeSet<_>>(),
                    json.keys().collect::<BTreeSet<_>>()
                );
            }

            #[test]
            fn names_of_variants() {
                use Choices::{HTTPError, Line2, Open, Renamed, TimedOut};
                for choice in [Open, TimedOut, HTTPError, Line2, Renamed] {
                    let json = serde_json::to_value(choice).unwrap();
                    assert_eq!(json, choice.name());
                    assert_eq!(json, Value::from(choice));
                }
            }
        }
    )*};
}

rules! {
    lower: "lowercase";
    upper: "UPPERCASE";
    pascal: "PascalCase";
    camel: "camelCase";
    snake: "snake_case";
    screaming_snake: "SCREAMING_SNAKE_CASE";
    kebab: "kebab-case";
    screaming_kebab: "SCREAMING-KEBAB-CASE";
}

/// The names of a flattened field are declared by their paths.
#[derive(Serialize, Deserialize, Record)]
#[record(key = "thing:{kind}:{id}")]
#[field(path = "kind", type = "text")]
struct Thing {
    id: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[tokio::test]
async fn names_of_a_flattened_field() {
    let things = Store::open("memory:").await.unwrap().collection::<Thing>().await.unwrap();
    let rest = Map::from_iter([("kind".to_owned(), "tool".into()), ("size".to_owned(), 3.into())]);
    things.insert(&Thing { id: "saw".to_owned(), rest }).await.unwrap();
    let found = things.by_key("tool").id("saw").first().await.unwrap().unwrap();
    assert_eq!(found.key, "thing:tool:saw");
    assert_eq!(found.rest["size"], 3);
}
