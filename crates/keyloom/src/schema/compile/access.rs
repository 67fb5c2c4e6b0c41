//! Compiles who may do what with the records, and who owns them.

use super::{fields, under};
use crate::key::{Kind, Path, Segment, Template};
use crate::schema::declaration::{Access, CollectionDeclaration};
use crate::schema::model::FieldKind;
use crate::schema::problem::{Problems, Trail};

/// What acting users may do, and the field of a record's owner, if it has one.
pub(super) fn compile(
    declaration: &CollectionDeclaration,
    trail: &Trail,
    key: Option<&Template>,
    fields: &fields::Fields,
    problems: &mut Problems,
) -> (Access, Option<Path>) {
    let access = declaration.access.unwrap_or(Access::Shared);
    let has_owner = matches!(access, Access::Owned | Access::Hybrid);
    let owner_trail = under(trail, "owner");
    if problems.touch(&owner_trail) || problems.touch(&under(trail, "access")) {
        return (access, None);
    }
    match (&declaration.owner, has_owner) {
        (None, false) => (access, None),
        (None, true) => {
            let reason = "needs `owner`: the first field of the record's key";
            problems.add(under(trail, "access"), reason);
            (access, None)
        }
        (Some(_), false) => {
            let reason = "records have an owner where access is \"owned\" or \"hybrid\"";
            problems.add(owner_trail, reason);
            (access, None)
        }
        (Some(owner), true) => {
            let owner = key.and_then(|key| match first_field(owner, key, fields) {
                Ok(path) => Some(path),
                Err(reason) => {
                    problems.add(owner_trail, reason);
                    None
                }
            });
            (access, owner)
        }
    }
}

/// The owner's path. It must be the first field of the key and a text: then the records of one
/// owner are one range of keys, and a user's name is a value of the field.
fn first_field(owner: &str, key: &Template, fields: &fields::Fields) -> Result<Path, String> {
    let path = Path::parse(owner)?;
    let Some(Segment { path: first, .. }) = key.segments().next() else {
        return Err("the record's key has no field that could name an owner".to_owned());
    };
    if path != *first {
        return Err(format!(
            "the owner must be the first field of the record's key, which is `{first}`, so that \
             the records of one owner lie side by side"
        ));
    }
    match fields.compiled.get(&path).map(|field| &field.kind) {
        Some(FieldKind::Key(Kind::Text | Kind::Uuid { .. } | Kind::Id | Kind::Code(_))) => Ok(path),
        _ => Err("the owner is named by a text, a UUID, an id or a code".to_owned()),
    }
}
