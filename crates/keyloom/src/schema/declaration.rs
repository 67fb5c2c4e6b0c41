//! A schema as a user declares it, as plain data.
//!
//! This is the canonical form of a schema. Text files and `#[derive(Record)]` are turned into it,
//! the store's catalog holds it as JSON, and [`compile`](super::compile) turns it into a
//! [`Schema`](super::Schema). Its JSON has the same spelling as a schema file, so a person who
//! reads the catalog sees what the user wrote. Maps are ordered, so that equal schemas serialise to
//! equal bytes.
//!
//! An unset flag differs from one that is set to its default: it says nothing, so the stored flag
//! stays.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::read;

/// The collections of a schema, and the settings of the space.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SchemaDeclaration {
    /// Whether the space keeps a change log, and how much of it; no log if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogDeclaration>,
    /// Each collection by its name.
    #[serde(rename = "collection")]
    pub collections: BTreeMap<String, CollectionDeclaration>,
    /// How the space handles writes with idempotency keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<IdempotencyDeclaration>,
}

/// How a space handles writes with idempotency keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdempotencyDeclaration {
    /// How long the answer to a key is kept, such as `24 hours`: a whole number of seconds,
    /// minutes, hours or days.
    pub keep: String,
}

/// How much of a space's change log is kept; everything, unless bounded. A change is removed as
/// soon as it exceeds either bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogDeclaration {
    /// How many days a change is kept: 1 to 36,500.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<usize>,
    /// The most changes that are kept: at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<usize>,
}

/// One collection: the records of one type.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CollectionDeclaration {
    /// The template of the records' keys, such as `approval:record:{id}`.
    pub key: String,
    /// The area of the records, and of index entries without an area of their own; the default area
    /// if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub area: String,
    /// What users may do with the records; everything if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// The field that names a record's owner: the first field of its key. Only for collections
    /// whose `access` depends on owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The field, a timestamp or a date-time, that says when a record expires. Records without a
    /// value there never do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The declared fields by their paths. All other fields are free.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, FieldDeclaration>,
    /// The value indexes by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub index: BTreeMap<String, IndexDeclaration>,
    /// The unique indexes by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unique: BTreeMap<String, IndexDeclaration>,
    /// The geo indexes by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub geo: BTreeMap<String, IndexDeclaration>,
    /// The counts by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub count: BTreeMap<String, AggregateDeclaration>,
    /// The sums by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sum: BTreeMap<String, AggregateDeclaration>,
    /// The counters by their names: paths such as `stats.running`, or families such as `stats.*`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, CounterDeclaration>,
    /// A JSON Schema that every record must meet, without its counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// How much of each record's past is kept; nothing if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryDeclaration>,
}

/// How much of each record's past is kept. A version is removed as soon as it exceeds either bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HistoryDeclaration {
    /// The most versions of one record: 1 to 1,000,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<usize>,
    /// How many days back queries can see: 1 to 36,500.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<usize>,
}

/// What an acting user may do with the records of a collection. The program itself, when it acts
/// for no user, may do everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Everyone reads and writes every record.
    Shared,
    /// Everyone reads every record; only the program writes.
    ReadOnly,
    /// A user reaches only their own records.
    Owned,
    /// Everyone reads every record; only its owner writes.
    Hybrid,
}

impl Access {
    /// The rights of a user: to read others' records, to write others' records, to write their own.
    fn rights(self) -> [bool; 3] {
        match self {
            Access::Shared => [true, true, true],
            Access::ReadOnly => [true, false, false],
            Access::Owned => [false, false, true],
            Access::Hybrid => [true, false, true],
        }
    }

    /// Whether it gives a user any right that the other does not.
    pub(crate) fn grants_more_than(self, other: Access) -> bool {
        self.rights().into_iter().zip(other.rights()).any(|(here, there)| here && !there)
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Shared => "shared",
            Access::ReadOnly => "read-only",
            Access::Owned => "owned",
            Access::Hybrid => "hybrid",
        })
    }
}

/// One field.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldDeclaration {
    /// Its type, with the options of that type.
    #[serde(flatten)]
    pub field_type: FieldType,
    /// Whether an insert without this field gets a fresh value. If not set, the stored setting
    /// stays; its default is no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate: Option<bool>,
    /// Whether a record without this field is refused. If not set, the stored setting stays; its
    /// default is no. Fields of the record's key are always required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum FieldType {
    /// Any string.
    Text,
    /// A whole number.
    Integer {
        /// The most digits that it may have in a key: 1 to 19.
        digits: u8,
    },
    /// A number.
    Float,
    /// `true` or `false`.
    Boolean,
    /// One of several strings.
    Enum {
        /// The strings, in their order.
        values: Vec<String>,
        /// For each value, the values that it may change to. A value that is not listed is final.
        #[serde(skip_serializing_if = "Option::is_none")]
        transitions: Option<BTreeMap<String, Vec<String>>>,
        /// What happens to a write that makes another change.
        #[serde(skip_serializing_if = "Illegal::is_error")]
        illegal: Illegal,
    },
    /// Milliseconds since 1970.
    Timestamp,
    /// `2024-01-31T23:59:59.999Z`.
    Datetime,
    /// 32 lower-case hex digits.
    Uuid {
        /// The version that the value must have; any version if not set.
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<u8>,
    },
    /// 26 letters and digits.
    Id,
    /// A short code such as `A-X7K9Q2`.
    Code {
        /// `*` stands for one character of the unambiguous alphabet, every other character for
        /// itself.
        pattern: String,
    },
    /// A place on Earth.
    Point {
        /// The name of the latitude's member.
        lat: String,
        /// The name of the longitude's member.
        lon: String,
        /// Which object has these two members.
        #[serde(skip_serializing_if = "PointOf::is_field")]
        of: PointOf,
    },
    /// An object whose names are data.
    Map,
}

/// What happens to a write that makes an undeclared transition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Illegal {
    /// It is refused with an error.
    #[default]
    Error,
    /// It succeeds and changes nothing.
    Ignore,
}

impl Illegal {
    fn is_error(&self) -> bool {
        *self == Illegal::Error
    }
}

/// Which object has the two members of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PointOf {
    /// The field of the point's own name.
    #[default]
    Field,
    /// The record itself: `{"id": "x", "lat": 1.0, "lng": 2.0}`.
    Record,
}

impl PointOf {
    fn is_field(&self) -> bool {
        *self == PointOf::Field
    }
}

/// One counter, or one family of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CounterDeclaration {
    /// An increment below this bound is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// An increment above this bound is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
}

/// One index of any kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IndexDeclaration {
    /// The template of its entries' keys.
    pub key: String,
    /// The area of its entries; that of the collection if not set. If the keys of records are
    /// arbitrary text, such as ARNs, the entries need another area.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub area: Option<String>,
    /// What its entries hold: a field's path, `key`, `record`, or `{a, b}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// Which records have entries: those that pass all tests. Without tests, all records.
    #[serde(rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub condition: BTreeMap<String, TestDeclaration>,
    /// The most entries of one record, for an index over an array or a map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<usize>,
    /// Whether a write is refused if another record already has the entry. If not set, the stored
    /// setting stays; its default is no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims: Option<bool>,
    /// Whether a record without an indexed field has no entry. If false, such a record is refused.
    /// If not set, the stored setting stays; its default is yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse: Option<bool>,
}

/// A count or a sum, kept for each group of records.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AggregateDeclaration {
    /// The summed field; none for a count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The fields that make a group, in order; none for one group of all records.
    pub group: Vec<String>,
    /// Which records are counted: those that pass all tests. Without tests, all records.
    #[serde(rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub condition: BTreeMap<String, TestDeclaration>,
}

/// A test of one field. Records must pass it to be indexed or counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TestDeclaration {
    /// `status = "pending"`.
    Equals(Value),
    /// `status = ["pending", "approved"]`.
    OneOf(Vec<Value>),
    /// `priority = { gte = 3 }`, `parent = { present = false }`.
    Compare(Box<Comparison>),
}

/// Bounds and presence. Every part that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Whether the field must be present, or must be missing. `null` counts as missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present: Option<bool>,
    /// Greater than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gt: Option<Value>,
    /// This or greater.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gte: Option<Value>,
    /// Less than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lt: Option<Value>,
    /// This or less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lte: Option<Value>,
}

impl CollectionDeclaration {
    /// A collection with this key template and nothing else.
    pub fn new(key: impl Into<String>) -> Self {
        CollectionDeclaration { key: key.into(), ..Self::default() }
    }

    /// Declares a field.
    #[must_use]
    pub fn field(mut self, path: impl Into<String>, field: impl Into<FieldDeclaration>) -> Self {
        self.fields.insert(path.into(), field.into());
        self
    }

    /// Declares a counter, or a family of counters.
    #[must_use]
    pub fn counter(mut self, path: impl Into<String>, counter: CounterDeclaration) -> Self {
        self.counters.insert(path.into(), counter);
        self
    }
}

impl FieldDeclaration {
    /// Makes inserts without this field generate it.
    #[must_use]
    pub fn generated(mut self) -> Self {
        self.generate = Some(true);
        self
    }

    /// Makes writes without this field fail.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = Some(true);
        self
    }
}

impl From<FieldType> for FieldDeclaration {
    fn from(field_type: FieldType) -> Self {
        FieldDeclaration { field_type, generate: None, required: None }
    }
}

impl IndexDeclaration {
    /// An index with this key template and only defaults.
    pub fn new(key: impl Into<String>) -> Self {
        IndexDeclaration {
            key: key.into(),
            area: None,
            holds: None,
            condition: BTreeMap::new(),
            max: None,
            claims: None,
            sparse: None,
        }
    }
}

impl AggregateDeclaration {
    /// Counts records by the values of these fields.
    pub fn count(group: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let group = group.into_iter().map(Into::into).collect();
        AggregateDeclaration { group, ..Self::default() }
    }

    /// Sums a field by the values of these fields.
    pub fn sum(
        field: impl Into<String>,
        group: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        AggregateDeclaration { field: Some(field.into()), ..Self::count(group) }
    }
}

impl<'de> Deserialize<'de> for SchemaDeclaration {
    /// Reads the form that `Serialize` writes. It is the form of schema files, so their reader
    /// reads it.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        read::schema(&value).map_err(serde::de::Error::custom)
    }
}
