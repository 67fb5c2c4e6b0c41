//! Parses the keys of records in requests. They come as names, which are parts of keys, or as the
//! values of the key's fields in the form that people write.
//!
//! | template | name | also |
//! | --- | --- | --- |
//! | `issue:{id}`, an integer of 6 digits | `000005` | `5` |
//! | `issue:{project}:{number}` | `web:000005` | `web:5` |
//! | `log:{at desc}`, a timestamp | `8325049212765` | `2023-01-29T00:06:27.234Z` |
//! | `doc:{id}`, a UUID | `0f8fad5bd9cb469fa16570867728950e` | `0F8FAD5B-D9CB-469F-A165-70867728950E` |
//!
//! A text that is a valid name is always taken as a name: `1674950787234` of `log` means the record
//! of the year 2233 with this name, and not the one of 2023.

use keyloom::{Access, Collection, CollectionDeclaration, Error, ErrorKind};
use serde_json::Value;

use super::typed::value_of;
use crate::problem::Problem;

/// The values of the key of the record that a text names. `user` is the acting user.
pub(crate) async fn key_of(
    collection: &Collection<Value>,
    user: Option<&str>,
    text: &str,
) -> Result<Vec<Value>, Problem> {
    match collection.key_named(text).await {
        Ok(key) => Ok(key),
        Err(error) => as_written(collection, user, text, error).await,
    }
}

/// As [`key_of`], for a text that names a record to its owner.
pub(crate) async fn key_of_owner(
    collection: &Collection<Value>,
    owner: &str,
    text: &str,
) -> Result<Vec<Value>, Problem> {
    match collection.key_of_owner_named(owner, text).await {
        Ok(key) => Ok(key),
        Err(error) => as_written(collection, Some(owner), text, error).await,
    }
}

async fn as_written(
    collection: &Collection<Value>,
    owner: Option<&str>,
    text: &str,
    error: Error,
) -> Result<Vec<Value>, Problem> {
    if error.kind() != ErrorKind::InvalidKey {
        return Err(error.into());
    }
    let declaration = collection.declaration().await?;
    values(&declaration, owner, text).ok_or_else(|| error.into())
}

/// One value for each field of the key; `None` if the text does not give them.
fn values(
    declaration: &CollectionDeclaration,
    owner: Option<&str>,
    text: &str,
) -> Option<Vec<Value>> {
    let has_owners = matches!(declaration.access, Some(Access::Owned | Access::Hybrid));
    let mut values: Vec<Value> =
        owner.filter(|_| has_owners).map(Value::from).into_iter().collect();
    let fields = Placeholder::all(&declaration.key).skip(values.len());
    let mut rest = text;
    for Placeholder { path, ending } in fields {
        // If one field directly follows another, only the key itself shows where the first one
        // ends.
        let end = match ending {
            Ending::End => rest.len(),
            Ending::Literal(literal) => rest.find(literal)?,
            Ending::Field => return None,
        };
        values.push(value(declaration, path, &rest[..end])?);
        rest = match ending {
            Ending::Literal(literal) => &rest[end + literal.len()..],
            Ending::End | Ending::Field => "",
        };
    }
    rest.is_empty().then_some(values)
}

/// Characters that keys escape are accepted only in names, so that each text has a single spelling.
fn value(declaration: &CollectionDeclaration, path: &str, text: &str) -> Option<Value> {
    let is_plain = !text.contains(|letter: char| letter == '%' || letter.is_control());
    is_plain.then(|| value_of(declaration, path, text).ok())?
}

/// One field of a template, and the part after it.
struct Placeholder<'t> {
    path: &'t str,
    ending: Ending<'t>,
}

enum Ending<'t> {
    Literal(&'t str),
    /// Another field directly after it.
    Field,
    End,
}

impl<'t> Placeholder<'t> {
    fn all(template: &'t str) -> impl Iterator<Item = Self> {
        template.split('{').skip(1).enumerate().map(move |(place, rest)| {
            let (inside, behind) = rest.split_once('}').unwrap_or((rest, ""));
            let is_last = template.split('{').count() == place + 2;
            let ending = match (behind, is_last) {
                ("", true) => Ending::End,
                ("", false) => Ending::Field,
                (literal, _) => Ending::Literal(literal),
            };
            Placeholder { path: inside.split(' ').next().unwrap_or(inside), ending }
        })
    }
}

#[cfg(test)]
mod tests {
    use keyloom::{FieldDeclaration, FieldType};
    use serde_json::json;

    use super::*;

    fn read(template: &str, owner: Option<&str>, text: &str) -> Option<Vec<Value>> {
        let field = |kind: FieldType| FieldDeclaration::from(kind);
        let mut declaration = CollectionDeclaration::new(template)
            .field("t", field(FieldType::Text))
            .field("n", field(FieldType::Integer { digits: 6 }))
            .field("at", field(FieldType::Timestamp))
            .field("id", field(FieldType::Uuid { version: None }));
        declaration.access = Some(Access::Owned);
        declaration.owner = Some("t".to_owned());
        values(&declaration, owner, text)
    }

    #[test]
    fn values_stand_for_their_pieces() {
        let uuid = "0f8fad5bd9cb469fa16570867728950e";
        let time = "2023-01-29T00:06:27.234Z";
        for (template, owner, text, wanted) in [
            ("x:{n}", None, "5", json!([5])),
            ("x:{n desc}", None, "-5", json!([-5])),
            ("x:{t}:{n}", None, "a b:5", json!(["a b", 5])),
            ("x:{t}:{n}", Some("ana"), "5", json!(["ana", 5])),
            ("x:{n}/{at}", None, &format!("7/{time}"), json!([7, 1_674_950_787_234_i64])),
            ("x:{n}:end", None, "5:end", json!([5])),
            ("x:{id}", None, "0F8FAD5B-D9CB-469F-A165-70867728950E", json!([uuid])),
        ] {
            assert_eq!(
                read(template, owner, text),
                wanted.as_array().cloned(),
                "{template} {text}"
            );
        }
        for (template, text) in [
            ("x:{n}", "five"),
            ("x:{n}", "1234567"),
            ("x:{t}:{n}", "5"),
            ("x:{n}:end", "5"),
            ("x:{n}:end", "5:end:more"),
            ("x:{n}{at}", "57"),
            ("x:{t}:{n}", "a%3Ab:5"),
            ("x:{t}:{n}", "a\n:5"),
        ] {
            assert_eq!(read(template, None, text), None, "{template} {text}");
        }
    }
}
