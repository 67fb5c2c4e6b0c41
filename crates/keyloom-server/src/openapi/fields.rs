//! The records of a collection as JSON Schemas, from the types of its declared fields.
//!
//! | schema | for |
//! | --- | --- |
//! | whole | inserts and answers: what is required is required, except what is generated |
//! | replacement | replacements: fields of the key may be left out, since the path names them |
//! | patch | merge patches: everything may be left out, `null` removes what is not required |

use std::collections::BTreeMap;

use keyloom::{CollectionDeclaration, FieldDeclaration, FieldType, PointOf};
use serde_json::{Map, Value, json};

use super::{keys, object, schema_named};

/// Which of the schemas of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Replacement,
    Patch,
}

/// A node of the tree that the paths of fields make.
#[derive(Default)]
struct Node<'d> {
    declared: Option<&'d FieldDeclaration>,
    members: BTreeMap<&'d str, Node<'d>>,
}

/// The schema of a collection's records.
pub(super) fn record(collection: &CollectionDeclaration, form: Form) -> Value {
    let mut root = Node::default();
    for (path, field) in &collection.fields {
        let mut node = &mut root;
        for step in path.split('.') {
            node = node.members.entry(step).or_default();
        }
        node.declared = Some(field);
    }
    let in_key = keys::fields(&collection.key);
    let mut schema = root.object(form, "", &in_key);
    add_points(collection, &mut schema);
    refuse_counters(collection, &mut schema);
    let mut schema = Value::Object(schema);
    if let (Some(body), Form::Whole | Form::Replacement) = (&collection.body, form) {
        schema = json!({ "allOf": [schema, body] });
    }
    schema
}

impl Node<'_> {
    /// The schema of an object with these members and any others.
    fn object(&self, form: Form, path: &str, in_key: &[String]) -> Map<String, Value> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, node) in &self.members {
            if *name == "*" || *name == "*key" {
                continue;
            }
            let path = if path.is_empty() { (*name).to_owned() } else { format!("{path}.{name}") };
            let is_in_key = in_key.contains(&path);
            let is_required = is_in_key || node.is_required();
            if is_in_key && form != Form::Whole {
                properties.insert((*name).to_owned(), Value::Bool(false));
                continue;
            }
            if node.is_record_point() {
                continue;
            }
            properties.insert((*name).to_owned(), node.schema(form, is_required, &path, in_key));
            let is_generated = node.declared.is_some_and(|field| field.generate == Some(true));
            if is_required && !is_generated && form != Form::Patch {
                required.push(json!(name));
            }
        }
        let mut schema = object([("type", json!("object")), ("properties", properties.into())]);
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        schema.insert("propertyNames".to_owned(), json!({ "pattern": "^[^.]*$" }));
        schema.insert("additionalProperties".to_owned(), schema_named("Json"));
        schema
    }

    /// The schema of the value at this node.
    fn schema(&self, form: Form, is_required: bool, path: &str, in_key: &[String]) -> Value {
        let is_map = matches!(self.kind(), Some(FieldType::Map));
        let below = self.members.get("*");
        let mut schema = match (self.kind(), below) {
            (_, Some(element)) if is_map => {
                let element = element.schema(form, false, path, in_key);
                json!({ "type": "object", "additionalProperties": element })
            }
            (_, Some(element)) => {
                let element = element.schema(form, false, path, in_key);
                json!({ "type": "array", "items": element })
            }
            (Some(kind), None) => field(kind),
            (None, None) => Value::Object(self.object(form, path, in_key)),
        };
        // `null` is a value that is missing, and in a patch one that goes.
        if !is_required && let Some(kind) = schema.get_mut("type") {
            *kind = json!([kind.take(), "null"]);
            if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
                values.push(Value::Null);
            }
        }
        schema
    }

    fn kind(&self) -> Option<&FieldType> {
        self.declared.map(|field| &field.field_type)
    }

    fn is_required(&self) -> bool {
        self.declared.is_some_and(|field| field.required == Some(true))
    }

    /// Whether it is a point whose members are members of the record itself.
    fn is_record_point(&self) -> bool {
        matches!(self.kind(), Some(FieldType::Point { of: PointOf::Record, .. }))
    }
}

/// The schema of one value.
pub(super) fn field(kind: &FieldType) -> Value {
    match kind {
        FieldType::Text => json!({ "type": "string", "maxLength": 200 }),
        FieldType::Integer { digits } => {
            let bound = 10_i64.checked_pow(u32::from(*digits)).map_or(i64::MAX, |high| high - 1);
            json!({ "type": "integer", "minimum": -bound, "maximum": bound })
        }
        FieldType::Float => json!({ "type": "number", "minimum": -1e300, "maximum": 1e300 }),
        FieldType::Boolean => json!({ "type": "boolean" }),
        FieldType::Enum { values, .. } => json!({ "type": "string", "enum": values }),
        FieldType::Timestamp => {
            json!({ "type": "integer", "minimum": 0, "maximum": 9_999_999_999_999_u64 })
        }
        FieldType::Datetime | FieldType::Uuid { .. } | FieldType::Id | FieldType::Code { .. } => {
            json!({ "type": "string", "pattern": format!("^{}$", keys::value_pattern(kind)) })
        }
        FieldType::Point { lat, lon, .. } => json!({
            "type": "object",
            "properties": object([(lat, latitude()), (lon, longitude())]),
            "required": [lat, lon],
        }),
        FieldType::Map => json!({ "type": "object", "additionalProperties": schema_named("Json") }),
    }
}

pub(super) fn latitude() -> Value {
    json!({ "type": "number", "minimum": -90, "maximum": 90 })
}

pub(super) fn longitude() -> Value {
    json!({ "type": "number", "minimum": -180, "maximum": 180 })
}

/// Points whose latitude and longitude are members of the record.
fn add_points(collection: &CollectionDeclaration, schema: &mut Map<String, Value>) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for field in collection.fields.values() {
        if let FieldType::Point { lat, lon, of: PointOf::Record } = &field.field_type {
            properties.insert(lat.clone(), latitude());
            properties.insert(lon.clone(), longitude());
        }
    }
}

/// Counters are changed by increments alone.
fn refuse_counters(collection: &CollectionDeclaration, schema: &mut Map<String, Value>) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for path in collection.counters.keys() {
        let first = path.split('.').next().unwrap_or(path);
        properties.entry(first).or_insert(Value::Bool(false));
    }
}
