//! The names of records within their collection: their keys without the common prefix.
//!
//! | template | who asks | key | name |
//! | --- | --- | --- | --- |
//! | `approval:record:{id}` | anybody | `approval:record:a1` | `a1` |
//! | `usr_{u}_tag_{t}` | anybody | `usr_ana_tag_x` | `ana_tag_x` |
//! | `user:{userId}:notes:{noteId}` | the program | `user:ana:notes:n1` | `ana:notes:n1` |
//! | `user:{userId}:notes:{noteId}` | ana, of an owned or hybrid collection | `user:ana:notes:n1` | `n1` |
//! | `user:{userId}:preferences` | ana, of an owned or hybrid collection | `user:ana:preferences` | `-` |
//! | `settings` | anybody | `settings` | `-` |
//!
//! Names are parts of keys, escapes included, so a name and the template give the key back.

use bytes::Bytes;
use serde_json::Value;

use super::collection::Collection;
use crate::engine::ShowKey;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Access, Collection as Declared};

/// The name of a record whose key is nothing but the prefix.
const ONLY: &str = "-";

/// Names: short texts for records within their collection, as URLs need them.
impl<T> Collection<T> {
    /// The name of the record with this key: the key without the prefix that all keys of the
    /// collection share. For an acting user of an owned or hybrid collection that prefix includes
    /// the user, so a note `user:ana:notes:n1` is `n1` to ana. If the key is nothing but the
    /// prefix, the name is `-`.
    ///
    /// Fails with [`InvalidKey`](ErrorKind::InvalidKey) if this is not a key of the collection, or
    /// if the record does not belong to the acting user.
    pub async fn name_of(&self, key: &str) -> Result<String> {
        let loaded = self.session.live.loaded().await?;
        let declared = loaded.schema.collection(&self.name)?;
        Names::new(declared, self.namesake(declared))?.of(key)
    }

    /// The values of the key of the record with this name, owner included, as [`get`](Self::get)
    /// and its like take them. The record need not exist.
    ///
    /// Fails with [`InvalidKey`](ErrorKind::InvalidKey) if the name gives no key, and says what is
    /// wrong with the name.
    pub async fn key_named(&self, name: &str) -> Result<Vec<Value>> {
        let loaded = self.session.live.loaded().await?;
        let declared = loaded.schema.collection(&self.name)?;
        Names::new(declared, self.namesake(declared))?.key(name)
    }

    /// As [`key_named`](Self::key_named), for a name that this owner would use for a record of
    /// their own. The call does not check whether the acting user may read that record.
    ///
    /// Fails with [`InvalidArgument`](ErrorKind::InvalidArgument) if records of the collection have
    /// no owners.
    pub async fn key_of_owner_named(&self, owner: &str, name: &str) -> Result<Vec<Value>> {
        let loaded = self.session.live.loaded().await?;
        let declared = loaded.schema.collection(&self.name)?;
        if !has_owners(declared) {
            let message = "only records of owned and hybrid collections have owners";
            return Err(Error::new(ErrorKind::InvalidArgument, message)
                .with("collection", &declared.name)
                .with("owner", owner));
        }
        Names::new(declared, Some(owner))?.key(name)
    }

    /// The owner that names omit.
    fn namesake(&self, declared: &Declared) -> Option<&str> {
        self.session.actor().filter(|_| has_owners(declared))
    }
}

fn has_owners(declared: &Declared) -> bool {
    matches!(declared.access, Access::Owned | Access::Hybrid) && declared.owner.is_some()
}

/// What names leave out of keys, for one caller.
struct Names<'c> {
    declared: &'c Declared,
    owner: Option<Value>,
    /// The prefix that the keys of all named records share.
    prefix: Bytes,
    /// Whether the prefix is a complete key, and so the only one.
    is_only: bool,
}

impl<'c> Names<'c> {
    fn new(declared: &'c Declared, owner: Option<&str>) -> Result<Self> {
        let owner = owner.map(Value::from);
        let fixed: Vec<&Value> = owner.iter().collect();
        let prefix = declared
            .key
            .prefix(&fixed)
            .map_err(|refusal| refusal.into_error().with("collection", &declared.name))?;
        let is_only = declared.key.segments().count() == fixed.len();
        Ok(Names { declared, owner, prefix, is_only })
    }

    fn of(&self, key: &str) -> Result<String> {
        let about = |message| self.about(message).with("key", ShowKey(key.as_bytes()));
        let values = self.declared.key.decode(key.as_bytes());
        let Some(values) = values else {
            return Err(self.with_fault(about("the text is no key of the collection"), key));
        };
        match key.as_bytes().strip_prefix(&self.prefix[..]) {
            Some(rest) if self.is_own(&values) => Ok(match self.is_only {
                true => ONLY.to_owned(),
                false => String::from_utf8_lossy(rest).into_owned(),
            }),
            _ => Err(about("the key is of no record of the acting user, who has no name for it")),
        }
    }

    fn key(&self, name: &str) -> Result<Vec<Value>> {
        let about = |message| self.about(message).with("name", ShowKey(name.as_bytes()));
        if self.is_only && name != ONLY {
            return Err(about("the name gives no key of the collection").with(
                "reason",
                format_args!("there is one such record, and its name is '{ONLY}'"),
            ));
        }
        let rest = if self.is_only { "" } else { name };
        let key = format!("{}{rest}", String::from_utf8_lossy(&self.prefix));
        match self.declared.key.decode(key.as_bytes()).filter(|values| self.is_own(values)) {
            Some(values) => Ok(values),
            None => Err(self.with_fault(about("the name gives no key of the collection"), &key)),
        }
    }

    /// Whether the values of a key begin with the owner that names omit.
    fn is_own(&self, values: &[Value]) -> bool {
        self.owner.as_ref().is_none_or(|owner| values.first() == Some(owner))
    }

    fn about(&self, message: &'static str) -> Error {
        Error::new(ErrorKind::InvalidKey, message)
            .with("collection", &self.declared.name)
            .with("template", &self.declared.key.source)
    }

    fn with_fault(&self, error: Error, key: &str) -> Error {
        let Some(fault) = self.declared.key.fault(key.as_bytes()) else { return error };
        let error = match fault.field {
            Some(field) => error.with("field", field),
            None => error,
        };
        error.with("reason", fault.reason)
    }
}
