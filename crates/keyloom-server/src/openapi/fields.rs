//! The records of a collection as JSON Schemas, built from the types of its declared fields.
//!
//! | schema | for |
//! | --- | --- |
//! | whole | inserts: required fields are required, except generated ones |
//! | replacement | replacements: fields of the key may be omitted, since the path names them |
//! | patch | merge patches: everything may be omitted, and `null` removes a field that is not required; names have no dots, which would look like paths, except in maps |
//! | stored | answers: generated fields are present, and so are counters |
//!
//! Counters are `readOnly`, and so are fields of the key if the path names them: a record may be
//! sent back as it was read, but no other values are accepted there.

use std::collections::BTreeMap;

use keyloom::{CollectionDeclaration, FieldDeclaration, FieldType, PointOf};
use serde_json::{Map, Value, json};

use super::{keys, object, schema_named};

/// The kinds of schemas for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Replacement,
    Patch,
    Stored,
}

/// The purpose of a schema.
#[derive(Clone, Copy)]
struct Making<'d> {
    form: Form,
    in_key: &'d [String],
    whole_key: Option<&'d str>,
    /// The field that may be omitted, since the caller is the owner.
    implied: Option<&'d str>,
    /// Whether objects are merged into existing ones, as in a patch outside arrays.
    is_merged: bool,
}

impl Making<'_> {
    /// The schema of undeclared members.
    fn any_other(self) -> Value {
        schema_named(if self.is_merged { "Change" } else { "Json" })
    }

    /// Restricts the names in an object that is not a map.
    fn restrict_names(self, object: &mut Map<String, Value>) {
        if self.is_merged {
            object.insert("propertyNames".to_owned(), name_in_patch());
        }
    }
}

/// A node of the tree that the paths of fields form.
#[derive(Default)]
struct Node<'d> {
    declared: Option<&'d FieldDeclaration>,
    members: BTreeMap<&'d str, Node<'d>>,
}

/// The schema of a collection's records. A caller who acts as a user is the owner of the records
/// that they write.
pub(super) fn record(collection: &CollectionDeclaration, form: Form, is_user: bool) -> Value {
    let mut root = Node::default();
    for (path, field) in &collection.fields {
        let mut node = &mut root;
        for step in path.split('.') {
            node = node.members.entry(step).or_default();
        }
        node.declared = Some(field);
    }
    let in_key = keys::fields(&collection.key);
    let implied = collection.owner.as_deref().filter(|_| is_user);
    let whole_key = keys::whole_key(&collection.key);
    let whole_key = whole_key.as_deref();
    let is_merged = form == Form::Patch;
    let making = Making { form, in_key: &in_key, whole_key, implied, is_merged };
    let mut schema = Value::Object(root.object(making, ""));
    // An object has properties, which are an object: neither can fail.
    if form != Form::Patch {
        add_points(collection, &mut schema["properties"]);
    }
    add_counters(collection, &mut schema["properties"]);
    if let (Some(body), Form::Whole | Form::Replacement) = (&collection.body, form) {
        schema = json!({ "allOf": [schema, body] });
    }
    schema
}

impl Node<'_> {
    /// The schema of an object with these members and any others.
    fn object(&self, making: Making, path: &str) -> Map<String, Value> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, node) in &self.members {
            // An existing point may be patched in part. That is described only in words.
            let is_untold = node.is_record_point() || making.form == Form::Patch && node.is_point();
            if *name == "*" || *name == "*key" || is_untold {
                continue;
            }
            let path = if path.is_empty() { (*name).to_owned() } else { format!("{path}.{name}") };
            let is_in_key = making.in_key.contains(&path);
            let is_required = is_in_key || node.is_required();
            let mut schema = node.schema(making, is_required, &path);
            if making.whole_key == Some(path.as_str()) && schema["type"] == "string" {
                schema["minLength"] = json!(1);
            }
            if is_in_key && matches!(making.form, Form::Replacement | Form::Patch) {
                schema["readOnly"] = json!(true);
            }
            properties.insert((*name).to_owned(), schema);
            let is_generated = node.declared.is_some_and(|field| field.generate == Some(true));
            let is_expected = match making.form {
                Form::Whole => !is_generated && making.implied != Some(path.as_str()),
                Form::Replacement => !is_generated && !is_in_key,
                Form::Patch => false,
                Form::Stored => true,
            };
            if is_required && is_expected {
                required.push(json!(name));
            }
        }
        let mut schema = object([("type", json!("object")), ("properties", properties.into())]);
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        schema.insert("additionalProperties".to_owned(), making.any_other());
        making.restrict_names(&mut schema);
        schema
    }

    /// The schema of the value at this node.
    fn schema(&self, making: Making, is_required: bool, path: &str) -> Value {
        let is_map = matches!(self.kind(), Some(FieldType::Map));
        let mut schema = match (self.kind(), self.members.get("*")) {
            (_, Some(element)) if is_map => {
                json!({ "type": "object", "additionalProperties": element.schema(making, false, path) })
            }
            (_, Some(element)) => {
                let item = element.schema(Making { is_merged: false, ..making }, false, path);
                let mut schema = object([
                    ("type", json!(["array", "object"])),
                    ("items", item),
                    ("additionalProperties", element.schema(making, false, path)),
                ]);
                making.restrict_names(&mut schema);
                schema.into()
            }
            (Some(FieldType::Map), None) => {
                json!({ "type": "object", "additionalProperties": making.any_other() })
            }
            (Some(kind), None) => field(kind),
            (None, None) if is_required => Value::Object(self.object(making, path)),
            // Declared members below it are typed; a value of another kind is allowed too.
            (None, None) => {
                return json!({ "anyOf": [self.object(making, path), no_object()] });
            }
        };
        // `null` counts as a missing value, and in a patch it removes the value.
        if !is_required && let Some(kind) = schema.get_mut("type") {
            match kind {
                Value::Array(kinds) => kinds.push(json!("null")),
                kind => *kind = json!([kind.take(), "null"]),
            }
            if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
                values.push(Value::Null);
            }
        }
        schema
    }

    fn kind(&self) -> Option<&FieldType> {
        self.declared.map(|field| &field.field_type)
    }

    /// Whether it is required, or something below it is.
    fn is_required(&self) -> bool {
        let below = self.members.iter().filter(|(name, _)| !name.starts_with('*'));
        self.declared.is_some_and(|field| field.required == Some(true))
            || below.map(|(_, node)| node).any(Node::is_required)
    }

    fn is_point(&self) -> bool {
        matches!(self.kind(), Some(FieldType::Point { .. }))
    }

    /// Whether it is a point made of members of the record itself.
    fn is_record_point(&self) -> bool {
        matches!(self.kind(), Some(FieldType::Point { of: PointOf::Record, .. }))
    }
}

/// Any JSON except an object.
fn no_object() -> Value {
    json!({ "type": ["string", "boolean", "null", "number", "array"], "items": schema_named("Json") })
}

/// The names of members in a patch.
pub(super) fn name_in_patch() -> Value {
    json!({ "pattern": "^[^.]*$" })
}

/// The schema of one value.
pub(super) fn field(kind: &FieldType) -> Value {
    match kind {
        FieldType::Text => json!({ "type": "string" }),
        FieldType::Integer { digits } => {
            let bound = 10_i64.checked_pow(u32::from(*digits)).map_or(i64::MAX, |high| high - 1);
            json!({ "type": "integer", "minimum": -bound, "maximum": bound })
        }
        FieldType::Float => json!({ "type": "number", "minimum": f64::MIN, "maximum": f64::MAX }),
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
            "additionalProperties": schema_named("Json"),
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
fn add_points(collection: &CollectionDeclaration, properties: &mut Value) {
    for field in collection.fields.values() {
        if let FieldType::Point { lat, lon, of: PointOf::Record } = &field.field_type {
            properties[lat] = latitude();
            properties[lon] = longitude();
        }
    }
}

/// Counters are changed only by increments.
fn add_counters(collection: &CollectionDeclaration, properties: &mut Value) {
    let about = "counters: a record may be sent back as it was read; add to them by `increment`";
    for path in collection.counters.keys() {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        if properties.get(first).is_none() {
            let mut schema = match rest.is_empty() {
                true => json!({ "type": "integer" }),
                false => json!({ "type": "object", "additionalProperties": true }),
            };
            schema["readOnly"] = json!(true);
            schema["description"] = json!(about);
            properties[first] = schema;
        }
    }
}
