//! Whether a value is of the declared type.
//!
//! What a type allows is defined once, by its codec in keys. A field therefore carries a template
//! of itself alone, and a value fits if that template can write it.

use serde_json::Value;

use super::model::{Field, FieldKind};
use crate::key::{Kind, Path, Pattern, PatternPart, Placeholder, Template};

/// A template with the one field, for the types whose values are more than a JSON type.
pub(crate) fn probe_of(path: &Path, kind: &FieldKind) -> Option<Template> {
    let kind = match kind {
        FieldKind::Key(Kind::Text | Kind::Float | Kind::Boolean) | FieldKind::Map => return None,
        FieldKind::Key(kind) => kind.clone(),
        FieldKind::RecordPoint { lat, lon } => Kind::Point { lat: lat.clone(), lon: lon.clone() },
    };
    let geohash = matches!(kind, Kind::Point { .. }).then_some(1);
    let placeholder =
        Placeholder { path: path.clone(), desc: false, sorted: false, raw: false, geohash };
    let parts = vec![PatternPart::Placeholder(placeholder)];
    let pattern = Pattern { source: format!("{{{path}}}"), parts };
    Template::new(&pattern, |_| Some(kind.clone())).ok()
}

impl Field {
    /// Why the value is not of this field's type, as a sentence without a final stop. For a point
    /// of the record itself the value is the record.
    pub(crate) fn misfit(&self, value: &Value) -> Option<String> {
        let (fits, expected) = match &self.kind {
            FieldKind::Key(Kind::Text) => (value.is_string(), "text is a string"),
            FieldKind::Key(Kind::Float) => (value.is_number(), "a float is a number"),
            FieldKind::Key(Kind::Boolean) => (value.is_boolean(), "a boolean is true or false"),
            FieldKind::Map => (value.is_object(), "a map is an object"),
            FieldKind::Key(_) | FieldKind::RecordPoint { .. } => {
                return self.probe.as_ref()?.encode(&[value]).err().map(|refusal| refusal.reason);
            }
        };
        (!fits).then(|| expected.to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use serde_json::json;

    use crate::schema::Schema;

    #[test]
    fn every_type_knows_its_values() {
        let schema = Schema::from_toml(
            r#"
            [collection.x]
            key = "x:{id}"
            [collection.x.fields]
            id = "id"
            text = "text"
            integer = { type = "integer", digits = 2 }
            float = "float"
            boolean = "boolean"
            enum = { type = "enum", values = ["a", "b"] }
            timestamp = "timestamp"
            datetime = "datetime"
            uuid = { type = "uuid", version = 4 }
            code = { type = "code", pattern = "A-***" }
            point = "point"
            here = { type = "point", lon = "lng", of = "record" }
            map = "map"
            "#,
        )
        .unwrap();
        let long = "x".repeat(2000);
        let uuid4 = "0123456789ab4def8123456789abcdef";
        for (field, good, bad) in [
            ("id", json!("0123456789ABCDEFGHJKMNPQRS"), json!("short")),
            ("text", json!(long), json!(1)),
            ("integer", json!(99), json!(100)),
            ("integer", json!(-100), json!(1.5)),
            ("float", json!(1), json!("1")),
            ("boolean", json!(false), json!(0)),
            ("enum", json!("b"), json!("c")),
            ("timestamp", json!(0), json!(-1)),
            ("datetime", json!("2024-01-31T23:59:59.999Z"), json!("2024-02-31T23:59:59.999Z")),
            ("uuid", json!(uuid4), json!(uuid4.replace("b4d", "b5d"))),
            ("code", json!("A-X7K"), json!("A-X7O")),
            ("point", json!({ "lat": 1, "lon": 2 }), json!({ "lat": 91, "lon": 2 })),
            ("here", json!({ "lat": 1, "lng": 2 }), json!({ "lat": 1 })),
            ("map", json!({}), json!([])),
        ] {
            let path = crate::key::Path::parse(field).unwrap();
            let field = &schema.collections["x"].fields[&path];
            assert_eq!(field.misfit(&good), None, "{path} {good}");
            assert!(field.misfit(&bad).is_some(), "{path} {bad}");
            assert!(field.misfit(&json!(null)).is_some(), "{path} null");
        }
    }
}
