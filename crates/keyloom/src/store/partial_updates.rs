//! Changes parts of records, by merge patches and by functions.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::collection::{Collection, in_indexes, key_of, to_json};
use super::fields::KeyFields;
use super::written::Written;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Carried, Version, carry_over};
use crate::schema::Collection as Declared;
use crate::side::Current;
use crate::write::{self, once};

/// Changes of parts of records. A patch cannot change the fields of the record's key (see
/// [`rename`](Collection::rename)), break the schema, or make an undeclared transition.
impl<T> Collection<T> {
    /// Merges a patch (RFC 7386) into a record that was read in this version: named members change,
    /// `null` removes, all others stay. Makes one attempt. If the record has changed since, the
    /// error is a [`VersionConflict`](ErrorKind::VersionConflict) with the current record
    /// ([`Error::current`]).
    pub async fn update(
        &self,
        key: impl KeyFields,
        patch: &Value,
        version: Version,
    ) -> Result<Written<T>> {
        let values = key.into_values();
        let key = |declared: &Declared| key_of(&self.session, declared, &values);
        let payload = || json!([values, patch, version.to_string()]);
        once!(&self.session, self.request("update", payload), |session| {
            write::update(&session, &self.name, key, patch, version)
        })
        .map(Written::from)
    }

    /// Merges a patch (RFC 7386) into a record, whatever its version is. If somebody else changes
    /// the record meanwhile, it tries again; see [`with_retry`](Collection::with_retry).
    pub async fn update_with_retry(
        &self,
        key: impl KeyFields,
        patch: &Value,
    ) -> Result<Written<T>> {
        let values = key.into_values();
        let key = |declared: &Declared| key_of(&self.session, declared, &values);
        let payload = || json!([values, patch]);
        once!(&self.session, self.request("update_with_retry", payload), |session| {
            write::update_with_retry(&session, &self.name, key, patch, self.retry)
        })
        .map(Written::from)
    }
}

/// Changes records by functions. If somebody else changes the record meanwhile, the change is tried
/// again, so the function may run more than once. Writers of this process take turns. Against
/// writers of other processes, the change is tried as often as
/// [`with_retry`](Collection::with_retry) says. Members of the stored JSON that `T` does not know
/// stay as they are.
impl<T: Serialize + DeserializeOwned + 'static> Collection<T> {
    /// Changes a record, which must exist.
    pub async fn modify(
        &self,
        key: impl KeyFields,
        mut change: impl FnMut(&mut T) -> Result<()>,
    ) -> Result<Written<T>> {
        let values = key.into_values();
        let key = |declared: &Declared| key_of(&self.session, declared, &values);
        once!(&self.session, self.request("modify", || json!(values)), |session| {
            let change =
                |declared: &Declared, current: &Current| changed(declared, current, &mut change);
            write::revise(&session, &self.name, key, self.retry, change)
        })
        .map(Written::from)
    }

    /// Creates the record, or changes the one that has its key.
    pub async fn upsert_with(
        &self,
        record: &T,
        mut change: impl FnMut(&mut T) -> Result<()>,
    ) -> Result<Written<T>> {
        let record = self.json_of(record).await?;
        once!(
            &self.session,
            self.request("upsert_with", || record.clone().into_owned()),
            |session| {
                let change = |declared: &Declared, current: &Current| {
                    changed(declared, current, &mut change)
                };
                write::upsert_with(&session, &self.name, &record, self.retry, change)
            }
        )
        .map(Written::from)
    }

    /// Moves a record to another key: the function changes fields of the key. The record and all
    /// its entries move in one batch and keep the incarnation. No reader sees both records, or
    /// neither.
    pub async fn rename(
        &self,
        key: impl KeyFields,
        mut change: impl FnMut(&mut T) -> Result<()>,
    ) -> Result<Written<T>> {
        let values = key.into_values();
        let key = |declared: &Declared| key_of(&self.session, declared, &values);
        once!(&self.session, self.request("rename", || json!(values)), |session| {
            let change =
                |declared: &Declared, current: &Current| changed(declared, current, &mut change);
            write::rename(&session, &self.name, key, self.retry, change)
        })
        .map(Written::from)
    }
}

/// The record after the function changed its typed form; `None` if the function changed nothing.
fn changed<T: Serialize + DeserializeOwned + 'static>(
    declared: &Declared,
    current: &Current,
    change: &mut impl FnMut(&mut T) -> Result<()>,
) -> Result<Option<Value>> {
    let seen = current.seen(declared);
    let mut record: T = serde_json::from_value(seen.clone()).map_err(|error| {
        Error::new(ErrorKind::Corrupt, "a stored record cannot be read")
            .with("collection", &declared.name)
            .with("reason", &error)
            .with_source(error)
    })?;
    let before = to_json(&declared.name, &record)?.into_owned();
    change(&mut record)?;
    let after = to_json(&declared.name, &record).map_err(|error| in_indexes(error, declared))?;
    if before == *after {
        return Ok(None);
    }
    let Carried { value, doubtful } = carry_over(&seen, &before, &after);
    let is_as_meant = |value: &Value| shows::<T>(value).as_ref() == Some(&*after);
    Ok(Some(without_aliases(value, &doubtful, is_as_meant)))
}

/// The value as the type would write it back; `None` if the type cannot read it.
fn shows<T: Serialize + DeserializeOwned>(value: &Value) -> Option<Value> {
    let record: T = serde_json::from_value(value.clone()).ok()?;
    serde_json::to_value(record).ok()
}

/// Removes the doubtful members that the type reads under another name (serde's `alias`), if that
/// gives the record that the program meant.
fn without_aliases(
    value: Value,
    doubtful: &[String],
    is_as_meant: impl Fn(&Value) -> bool,
) -> Value {
    if doubtful.is_empty() || is_as_meant(&value) {
        return value;
    }
    let without = |pointers: &[String]| {
        let mut value = value.clone();
        for pointer in pointers {
            remove(&mut value, pointer);
        }
        value
    };
    let each = doubtful.iter().map(std::slice::from_ref);
    let fewer = each.chain([doubtful]).map(without).find(is_as_meant);
    fewer.unwrap_or(value)
}

/// Removes the member that a JSON pointer leads to.
fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
    if let Some(Value::Object(members)) = value.pointer_mut(parent) {
        members.shift_remove(&name.replace("~1", "/").replace("~0", "~"));
    }
}
