//! Index maintenance as a pure function of the old and the new record.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::engine::ShowKey;
use crate::error::{Error, ErrorKind, Result};
use crate::key::{KeyRefusal, Path, Step, shortened};
use crate::record::is_about_what_stays;
use crate::schema::{Collection, Holds, Index, IndexKind};

/// A record as index maintenance sees it.
#[derive(Clone, Copy)]
pub(crate) struct Image<'a> {
    /// The record's key.
    pub(crate) key: &'a Bytes,
    /// The record.
    pub(crate) value: &'a Value,
    /// Its JSON text.
    pub(crate) text: &'a Bytes,
}

/// One key that an index holds for a record.
#[derive(Clone, Debug)]
pub(crate) struct OwnedEntry<'i> {
    pub(crate) index: &'i Arc<Index>,
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
}

impl OwnedEntry<'_> {
    /// Whether both are at the same address.
    fn is_at(&self, other: &OwnedEntry<'_>) -> bool {
        self.key == other.key && self.index.area == other.index.area
    }
}

/// What has to be done to one index entry.
#[derive(Clone, Debug)]
pub(crate) struct EntryChange<'i> {
    pub(crate) index: &'i Arc<Index>,
    pub(crate) key: Bytes,
    pub(crate) step: EntryStep,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EntryStep {
    /// The key is new to the record.
    Claim(Bytes),
    /// The record has the key already, and its value changes.
    Rewrite(Bytes),
    /// The record gives the key up.
    Remove,
}

/// What to do about a record that an index cannot hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lenience<'v> {
    /// An error: the record is about to be written. Where there is one before it that the index
    /// could not hold for the same reason, it is no error: the index was declared over it, and has
    /// no entry of either.
    Strict {
        /// The record before it.
        old: Option<&'v Value>,
    },
    /// No entry: the record is in the store already, so that such an entry was never written.
    Lenient,
}

/// Which keys to remove and which to put when a record changes from `old` to `new`, for the
/// indexes that are maintained.
pub(crate) fn entries<'i>(
    collection: &'i Collection,
    maintained: impl Fn(&Index) -> bool + Copy,
    old: Option<Image<'_>>,
    new: Option<Image<'_>>,
) -> Result<Vec<EntryChange<'i>>> {
    let of = |image: Option<Image<'_>>, lenience| match image {
        Some(image) => entries_of(collection, maintained, image, lenience),
        None => Ok(Vec::new()),
    };
    let strict = Lenience::Strict { old: old.map(|old| old.value) };
    Ok(difference(of(old, Lenience::Lenient)?, of(new, strict)?))
}

fn difference<'i>(old: Vec<OwnedEntry<'i>>, new: Vec<OwnedEntry<'i>>) -> Vec<EntryChange<'i>> {
    let removed = old
        .iter()
        .filter(|before| !new.iter().any(|after| after.is_at(before)))
        .map(|before| EntryChange {
            index: before.index,
            key: before.key.clone(),
            step: EntryStep::Remove,
        })
        .collect::<Vec<_>>();
    let written = new.into_iter().filter_map(|after| {
        let step = match old.iter().find(|before| before.is_at(&after)) {
            // An entry that carries the record carries its version too, which is a new one even
            // when a transaction has written the old text again.
            Some(before) if before.value == after.value && after.index.holds != Holds::Record => {
                return None;
            }
            Some(_) => EntryStep::Rewrite(after.value),
            None => EntryStep::Claim(after.value),
        };
        Some(EntryChange { index: after.index, key: after.key, step })
    });
    removed.into_iter().chain(written).collect()
}

/// Every entry that the maintained indexes hold for a record.
pub(crate) fn entries_of<'i>(
    collection: &'i Collection,
    maintained: impl Fn(&Index) -> bool,
    image: Image<'_>,
    lenience: Lenience<'_>,
) -> Result<Vec<OwnedEntry<'i>>> {
    let mut all = Vec::new();
    // Indexes with entries of one form mostly come one after the other.
    let mut last: Option<(&Holds, Bytes)> = None;
    for index in collection.indexes.values().filter(|index| maintained(index)) {
        let keys = match lenience {
            Lenience::Strict { old } => written_keys_of(collection, index, old, image.value)?,
            Lenience::Lenient => stored_keys_of(collection, index, image.value).unwrap_or_default(),
        };
        if keys.is_empty() {
            continue;
        }
        let value = match last.take() {
            Some((holds, value)) if *holds == index.holds => value,
            _ => entry_value(index, image),
        };
        last = Some((&index.holds, value.clone()));
        all.extend(keys.into_iter().map(|key| OwnedEntry { index, key, value: value.clone() }));
    }
    Ok(all)
}

/// The keys that one index holds for a record that is written now over another one, each once.
///
/// An index may be declared over a record that it cannot hold. Such a record has no entries in it,
/// and may be changed all the same, as long as the index cannot hold it because of values that were
/// there before. One that the index could hold, or did not have to, must still fit.
fn written_keys_of(
    collection: &Collection,
    index: &Index,
    old: Option<&Value>,
    record: &Value,
) -> Result<Vec<Bytes>> {
    let written = entry_keys_of(collection, index, record);
    let (Some(old), Err(_)) = (old, &written) else { return written };
    let known = refusals_of(collection, index, old);
    let is_known = |refusal: &Error| {
        known.iter().any(|known| known.says_the_same_as(refusal))
            || !known.is_empty() && is_about_what_stays(collection, refusal, old, record)
    };
    match refusals_of(collection, index, record).into_iter().find(|refusal| !is_known(refusal)) {
        Some(refusal) => Err(refusal),
        None => Ok(stored_keys_of(collection, index, record).unwrap_or_default()),
    }
}

/// The keys that one index holds for a record that is written now, each once; an error if the
/// index cannot hold it.
pub(crate) fn entry_keys_of(
    collection: &Collection,
    index: &Index,
    record: &Value,
) -> Result<Vec<Bytes>> {
    let keys = keys_of(collection, index, record, index.sparse, Err)?;
    check_max(collection, index, &keys)?;
    Ok(keys)
}

/// The keys that one index holds for a record in the store, each once; an error if it has none and
/// should have one.
///
/// The record may be from before the index was declared, became strict about missing fields, or
/// allowed fewer entries. What lacked a field then, and an element that does not fit, rightly have
/// no entry; other elements of the same array or map have theirs, and so has what is beyond the
/// present `max`.
pub(crate) fn stored_keys_of(
    collection: &Collection,
    index: &Index,
    record: &Value,
) -> Result<Vec<Bytes>> {
    let let_be = |refusal| if index.star.is_some() { Ok(()) } else { Err(refusal) };
    keys_of(collection, index, record, true, let_be)
}

/// Why an index does not hold all of a record in the store, if it does not.
pub(crate) fn stored_refusal_of(
    collection: &Collection,
    index: &Index,
    record: &Value,
) -> Option<Error> {
    keys_of(collection, index, record, true, Err).err()
}

/// Everything about a record that an index cannot hold.
fn refusals_of(collection: &Collection, index: &Index, record: &Value) -> Vec<Error> {
    let mut refusals = Vec::new();
    let note = |refusal| {
        refusals.push(refusal);
        Ok(())
    };
    let keys = keys_of(collection, index, record, index.sparse, note);
    let whole = keys.and_then(|keys| check_max(collection, index, &keys)).err();
    refusals.extend(whole);
    refusals
}

/// Refuses more entries than a record may have.
fn check_max(collection: &Collection, index: &Index, keys: &[Bytes]) -> Result<()> {
    let Some(star) = &index.star else { return Ok(()) };
    if keys.len() <= index.max {
        return Ok(());
    }
    let message = "a record has too many entries for an index; raise its `max`";
    let error = in_index(ErrorKind::LimitExceeded, message, collection, index);
    Err(error.with("field", star).with("entries", keys.len()).with("max", index.max))
}

/// The keys of a record, or of its elements. What has none for another reason than that a value is
/// missing is refused, unless it is let be.
fn keys_of(
    collection: &Collection,
    index: &Index,
    record: &Value,
    sparse: bool,
    mut let_be: impl FnMut(Error) -> Result<()>,
) -> Result<Vec<Bytes>> {
    if index.condition.as_ref().is_some_and(|condition| !condition.holds(record)) {
        return Ok(Vec::new());
    }
    let mut keys: Vec<Bytes> = Vec::new();
    let Some(star) = &index.star else {
        let whole = Element { name: None, value: record };
        match key_of(collection, index, record, &whole, sparse) {
            Ok(key) => keys.extend(key),
            Err(refusal) => let_be(refusal)?,
        }
        return Ok(keys);
    };
    for element in elements(collection, index, star, record)? {
        match key_of(collection, index, record, &element, sparse) {
            Ok(key) => keys.extend(key.filter(|key| !keys.contains(key))),
            Err(refusal) => let_be(refusal)?,
        }
    }
    Ok(keys)
}

/// The key for one element; `None` when a value is missing, and that means no entry.
fn key_of<'v>(
    collection: &Collection,
    index: &Index,
    record: &'v Value,
    element: &'v Element<'v>,
    sparse: bool,
) -> Result<Option<Bytes>> {
    let Some(values) = segment_values(collection, index, record, element, sparse)? else {
        return Ok(None);
    };
    let key = index.key.encode(&values).map_err(|refusal| refused(collection, index, refusal))?;
    Ok(Some(key))
}

/// One element of the array or map that a multi-valued index walks over, or the record as a whole for
/// an index that walks over none.
struct Element<'v> {
    /// The name of a map's member, as a value for keys.
    name: Option<Value>,
    value: &'v Value,
}

/// The elements of the array or map at this path.
fn elements<'v>(
    collection: &Collection,
    index: &Index,
    star: &Path,
    record: &'v Value,
) -> Result<Vec<Element<'v>>> {
    match star.get(record) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            Ok(items.iter().map(|value| Element { name: None, value }).collect())
        }
        Some(Value::Object(members)) => {
            let element = |(name, value): (&String, &'v Value)| Element {
                name: Some(name.as_str().into()),
                value,
            };
            Ok(members.iter().map(element).collect())
        }
        Some(other) => Err(in_index(
            ErrorKind::InvalidRecord,
            "a multi-valued index walks over an array or an object",
            collection,
            index,
        )
        .with("field", star)
        .with("value", shortened(other))),
    }
}

/// One value per segment; `None` when one is missing or null, and that means no entry.
fn segment_values<'v>(
    collection: &Collection,
    index: &Index,
    record: &'v Value,
    element: &'v Element<'v>,
    sparse: bool,
) -> Result<Option<Vec<&'v Value>>> {
    let mut values = Vec::with_capacity(index.key.parts.len().div_ceil(2));
    for segment in index.key.segments() {
        let value = match segment_value(collection, &segment.path, record, element) {
            None | Some(Value::Null) if sparse => return Ok(None),
            None | Some(Value::Null) => {
                return Err(in_index(
                    ErrorKind::InvalidRecord,
                    "an index that is not sparse needs this field",
                    collection,
                    index,
                )
                .with("field", &segment.path));
            }
            Some(value) => value,
        };
        values.push(value);
    }
    Ok(Some(values))
}

fn segment_value<'v>(
    collection: &Collection,
    path: &Path,
    record: &'v Value,
    element: &'v Element<'v>,
) -> Option<&'v Value> {
    match path.0.iter().position(|step| !matches!(step, Step::Name(_))) {
        None => collection.value(path, record),
        Some(place) if path.0[place] == Step::EachKey => element.name.as_ref(),
        Some(place) => Path::get_steps(&path.0[place + 1..], element.value),
    }
}

/// What the entries of an index hold for a record.
pub(crate) fn entry_value(index: &Index, image: Image<'_>) -> Bytes {
    let field = |path: &Path| path.get(image.value).unwrap_or(&Value::Null);
    match &index.holds {
        Holds::Record => image.text.clone(),
        Holds::Key => json_text(&String::from_utf8_lossy(image.key)),
        Holds::Field(path) => json_text(field(path)),
        Holds::Object(paths) => {
            let members = paths.iter().map(|path| (path.to_string(), field(path).clone()));
            json_text(&members.collect::<Map<_, _>>())
        }
    }
}

/// JSON, in a buffer that is long enough for the ids that most entries hold.
fn json_text(value: &(impl Serialize + ?Sized)) -> Bytes {
    const TYPICAL_BYTES: usize = 64;
    let mut text = Vec::with_capacity(TYPICAL_BYTES);
    // Values of a record are written into memory: neither can fail.
    let _ = serde_json::to_writer(&mut text, value);
    text.into()
}

fn refused(collection: &Collection, index: &Index, refusal: KeyRefusal) -> Error {
    refusal.into_error().with("collection", &collection.name).with("index", &index.name)
}

fn in_index(
    kind: ErrorKind,
    message: &'static str,
    collection: &Collection,
    index: &Index,
) -> Error {
    Error::new(kind, message).with("collection", &collection.name).with("index", &index.name)
}

/// The error for a unique value, or another exclusive key, that another record holds.
pub(crate) fn taken(
    collection: &Collection,
    index: &Index,
    key: &[u8],
    holder: Holder<'_>,
) -> Error {
    let message = match index.kind {
        IndexKind::Unique => "another record holds this unique value",
        IndexKind::Value | IndexKind::Geo => "another record holds this index key",
    };
    let mut error = in_index(ErrorKind::UniqueConflict, message, collection, index);
    for (segment, value) in index.key.segments().zip(index.key.decode(key).unwrap_or_default()) {
        error = error.with("field", &segment.path).with("value", shortened(&value));
    }
    error = error.with("key", ShowKey(key));
    match holder {
        Holder::Record(holder) => error
            .with("held by", ShowKey(holder))
            .with_holder(String::from_utf8_lossy(holder).into_owned()),
        Holder::Unknown => error.with("held by", "unknown"),
        Holder::Hidden => error,
    }
}

/// Who holds a key that is taken, as far as it may be told.
pub(crate) enum Holder<'k> {
    /// The record with this key.
    Record(&'k [u8]),
    /// What lies there does not say.
    Unknown,
    /// A record that the caller may not read.
    Hidden,
}
