//! Compiles the field by which records expire, and Keyloom's own index over it.

use super::fields::Fields;
use super::indexes::{self, Found, Surroundings};
use super::under;
use crate::engine::Area;
use crate::key::{Path, Template};
use crate::own::OwnKind;
use crate::schema::declaration::{CollectionDeclaration, IndexDeclaration};
use crate::schema::expiry::{EXPIRY_INDEX, Expiry, MomentForm};
use crate::schema::model::{Field, FieldKind, IndexKind};
use crate::schema::problem::{Problems, ShowTrail, Trail};

/// The expiry of a collection, if it declares one, with its index, which joins the others.
pub(super) fn compile(
    name: &str,
    declaration: &CollectionDeclaration,
    trail: &Trail,
    fields: &Fields,
    record_key: Option<&Template>,
    indexes: &mut Vec<Found>,
    problems: &mut Problems,
) -> Option<Expiry> {
    let text = declaration.expires_at.as_ref()?;
    let trail = under(trail, "expires_at");
    let expiry = match expiry(text, fields, record_key) {
        Ok(expiry) => expiry?,
        Err(reason) => {
            problems.add(trail, reason);
            return None;
        }
    };
    if let Some(rival) = indexes.iter().find(|found| found.index.name == EXPIRY_INDEX) {
        let rival = ShowTrail(&rival.trail);
        problems.add(trail, format!("keeps an index of that name; rename {rival}"));
        return None;
    }
    let own = Area::own();
    let surroundings = Surroundings { fields, record_key, area: Some(&own) };
    // The record's whole key stands at the end, so that a person can read it off an entry.
    let key = format!("{}{name}:{{{}}}:{}", OwnKind::End.words(), expiry.path, declaration.key);
    let declared = IndexDeclaration::new(key);
    let index =
        indexes::index(EXPIRY_INDEX, IndexKind::Value, &declared, &trail, &surroundings, problems)?;
    indexes.push(Found { trail, index: index.into() });
    Some(expiry)
}

/// The field; `None` if it has a problem of its own that was reported already.
fn expiry(
    text: &str,
    fields: &Fields,
    record_key: Option<&Template>,
) -> Result<Option<Expiry>, String> {
    let path = Path::parse(text)?;
    if path.star().is_some() {
        return Err(format!("`{path}` has many values, but a record ends once"));
    }
    if fields.broken.contains(&path) {
        return Ok(None);
    }
    let form = match fields.compiled.get(&path) {
        Some(Field { kind: FieldKind::Key(kind), .. }) => MomentForm::of(kind),
        Some(_) => None,
        None => return Err(format!("`{path}` is not a declared field{}", fields.hint(&path))),
    };
    let Some(form) = form else {
        return Err(format!("`{path}` must be a timestamp or a datetime"));
    };
    let is_in_key =
        record_key.is_some_and(|key| key.segments().any(|segment| segment.path == path));
    if is_in_key {
        return Err(format!(
            "`{path}` is a field of the record's key, so that the end of a record could never be \
             moved; take it out of the key"
        ));
    }
    Ok(Some(Expiry { path, form }))
}
