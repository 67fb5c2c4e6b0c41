//! Recipes: how to get from an index entry to its record by bytes only, so that even a script
//! inside a server can do it without knowing anything about records.
//!
//! A recipe first cuts the entry's key into fields. Then it builds the record's key from literals,
//! fields, and members of the entry's JSON value.

use bytes::Bytes;
use serde_json::Value;

use super::address::{Address, Area};
use super::percent;

/// With at most this many cuts, no memory is allocated for the fields: a list follows many entries.
const CUTS_FEW: usize = 16;

/// How to get from an index entry to the key of its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// The area of the record.
    pub area: Area,
    /// How to cut the entry's key, from its start. Bytes after the last cut are ignored.
    pub cuts: Vec<Cut>,
    /// The parts that the record's key is built from.
    pub parts: Vec<Part>,
}

/// One cut of the entry's key. Each cut makes one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// This many bytes.
    Fixed(usize),
    /// Everything before the next occurrence of this byte, which is left for the next cut.
    Until(u8),
    /// The rest of the key.
    Rest,
}

/// One part of the record's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// These bytes.
    Literal(Bytes),
    /// A field of the entry's key, unchanged.
    Field(usize),
    /// A field of the entry's key. Its `%XX` are undone; then it is escaped for the separator that
    /// follows in the record's key.
    Recoded {
        /// The number of the cut that made the field.
        field: usize,
        /// The byte that follows in the record's key.
        separator: Option<u8>,
    },
    /// A string in the entry's JSON value, escaped for the separator that follows in the record's
    /// key.
    Member {
        /// The names that lead to the string; none if the value itself is the string.
        path: Vec<String>,
        /// `None`: not escaped at all. `Some(separator)`: escaped for the byte that follows.
        escape: Option<Option<u8>>,
    },
}

impl Recipe {
    /// The address that the entry leads to; `None` if the entry does not fit.
    pub fn target(&self, key: &[u8], value: &[u8]) -> Option<Address> {
        let (mut few, mut many) = ([&[][..]; CUTS_FEW], Vec::new());
        let fields = match few.get_mut(..self.cuts.len()) {
            Some(few) => few,
            None => {
                many.resize(self.cuts.len(), &[][..]);
                &mut many[..]
            }
        };
        self.cut(key, fields)?;
        let members = if self.parts.iter().any(|part| matches!(part, Part::Member { .. })) {
            Members::parse(value)?
        } else {
            Members::Tree(Value::Null)
        };
        let mut target = Vec::with_capacity(self.target_bytes(fields, value));
        for part in &self.parts {
            match part {
                Part::Literal(bytes) => target.extend_from_slice(bytes),
                Part::Field(field) => target.extend_from_slice(fields.get(*field)?),
                Part::Recoded { field, separator } => {
                    percent::escape(
                        &percent::unescape(fields.get(*field)?)?,
                        *separator,
                        &mut target,
                    );
                }
                Part::Member { path, escape } => {
                    let text = members.text_at(path)?;
                    match escape {
                        None => target.extend_from_slice(text.as_bytes()),
                        Some(separator) => {
                            percent::escape(text.as_bytes(), *separator, &mut target)
                        }
                    }
                }
            }
        }
        Some(Address::new(self.area.clone(), target))
    }

    /// The length of the target, unless it has escapes. A correct guess saves an allocation for
    /// each entry of a list.
    fn target_bytes(&self, fields: &[&[u8]], value: &[u8]) -> usize {
        let of_part = |part: &Part| match part {
            Part::Literal(bytes) => bytes.len(),
            Part::Field(field) | Part::Recoded { field, .. } => {
                fields.get(*field).map_or(0, |field| field.len())
            }
            Part::Member { path, .. } if path.is_empty() => value.len().saturating_sub(2),
            Part::Member { .. } => 0,
        };
        self.parts.iter().map(of_part).sum()
    }

    /// Cuts a key into as many fields as there are cuts.
    fn cut<'k>(&self, key: &'k [u8], fields: &mut [&'k [u8]]) -> Option<()> {
        let mut rest = key;
        for (cut, field) in self.cuts.iter().zip(fields) {
            let width = match cut {
                Cut::Fixed(width) => *width,
                Cut::Until(byte) => rest.iter().position(|found| found == byte)?,
                Cut::Rest => rest.len(),
            };
            (*field, rest) = rest.split_at_checked(width)?;
        }
        Some(())
    }
}

/// The JSON value of an entry. Most values are one string without escapes, which needs no tree.
enum Members<'v> {
    Text(&'v str),
    Tree(Value),
}

impl<'v> Members<'v> {
    fn parse(value: &'v [u8]) -> Option<Self> {
        match plain_string(value) {
            Some(text) => Some(Members::Text(text)),
            None => serde_json::from_slice(value).ok().map(Members::Tree),
        }
    }

    fn text_at(&self, path: &[String]) -> Option<&str> {
        match self {
            Members::Text(text) => path.is_empty().then_some(text),
            Members::Tree(tree) => path.iter().try_fold(tree, |at, name| at.get(name))?.as_str(),
        }
    }
}

/// The text of a JSON string without escapes or surrounding space; `None` for everything else,
/// whether or not it is JSON.
fn plain_string(value: &[u8]) -> Option<&str> {
    let text = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let is_plain = text.iter().all(|&byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    is_plain.then(|| std::str::from_utf8(text).ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recipe(cuts: &[Cut], parts: &[Part]) -> Recipe {
        Recipe { area: Area::own(), cuts: cuts.to_vec(), parts: parts.to_vec() }
    }

    fn literal(text: &'static str) -> Part {
        Part::Literal(Bytes::from_static(text.as_bytes()))
    }

    fn member(path: &[&str], escape: Option<Option<u8>>) -> Part {
        Part::Member { path: path.iter().map(|name| (*name).to_owned()).collect(), escape }
    }

    /// The target's key as text.
    fn target(recipe: &Recipe, key: &str, value: &str) -> Option<String> {
        let address = recipe.target(key.as_bytes(), value.as_bytes())?;
        assert_eq!(address.area, Area::own());
        String::from_utf8(address.key.to_vec()).ok()
    }

    #[test]
    fn fields_are_cut_from_the_start() {
        let cuts = [Cut::Fixed(2), Cut::Until(b':'), Cut::Fixed(1), Cut::Rest];
        let parts: Vec<Part> = (0..4).flat_map(|n| [literal("|"), Part::Field(n)]).collect();
        let cut = recipe(&cuts, &parts);
        assert_eq!(target(&cut, "i:ana:1:2", "").as_deref(), Some("|i:|ana|:|1:2"));
        assert_eq!(target(&cut, "i::", "").as_deref(), Some("|i:||:|"));
        for too_short in ["", "i", "i:", "i:ana"] {
            assert_eq!(target(&cut, too_short, ""), None, "{too_short}");
        }
        let first = recipe(&[Cut::Fixed(1)], &[Part::Field(0)]);
        assert_eq!(target(&first, "xyz", "").as_deref(), Some("x"), "the rest is ignored");
        assert_eq!(target(&recipe(&[], &[Part::Field(0)]), "xyz", ""), None, "no such field");
    }

    #[test]
    fn members_are_strings_of_the_value() {
        let deep = recipe(&[], &[literal("r:"), member(&["a", "b"], Some(Some(b':')))]);
        assert_eq!(target(&deep, "i", r#"{"a":{"b":"x:y"}}"#).as_deref(), Some("r:x%3Ay"));
        for other in ["", "{", "null", "\"x\"", r#"{"a":"b"}"#, r#"{"a":{"b":7}}"#, "[1]"] {
            assert_eq!(target(&deep, "i", other), None, "{other}");
        }
        let raw = recipe(&[], &[member(&[], None)]);
        assert_eq!(target(&raw, "i", "\"a:%\\u0000\"").as_deref(), Some("a:%\0"));
        let no_member = recipe(&[], &[literal("r")]);
        assert_eq!(target(&no_member, "i", "not JSON").as_deref(), Some("r"), "not looked at");
    }

    #[test]
    fn recoding_changes_the_separator() {
        let recode = |separator| recipe(&[Cut::Rest], &[Part::Recoded { field: 0, separator }]);
        assert_eq!(target(&recode(Some(b'/')), "a%3Ab/c", "").as_deref(), Some("a:b%2Fc"));
        assert_eq!(target(&recode(None), "a%3Ab/c", "").as_deref(), Some("a:b/c"));
        assert_eq!(target(&recode(None), "a%3", ""), None, "a broken escape does not fit");
    }

    fn any_cut() -> impl Strategy<Value = Cut> {
        prop_oneof![
            (0_usize..9).prop_map(Cut::Fixed),
            Just(Cut::Fixed(usize::MAX)),
            any::<u8>().prop_map(Cut::Until),
            Just(Cut::Rest),
        ]
    }

    proptest! {
        #[test]
        fn any_entry_can_be_tried(
            cuts in proptest::collection::vec(any_cut(), 0..4),
            field in 0_usize..5,
            separator: Option<u8>,
            key: Vec<u8>,
            value: Vec<u8>,
        ) {
            let parts = [
                Part::Field(field),
                Part::Recoded { field, separator },
                member(&["a"], Some(separator)),
            ];
            for part in parts {
                let _ = recipe(&cuts, &[part]).target(&key, &value);
            }
        }

        /// The fast path for plain strings gives the same result as the JSON parser.
        #[test]
        fn plain_strings_are_read_as_json_reads_them(
            text in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'\\')], 0..6),
        ) {
            let value = [b"\"", &text[..], b"\""].concat();
            let by_json: Option<String> = serde_json::from_slice(&value).ok();
            match plain_string(&value) {
                Some(plain) => prop_assert_eq!(Some(plain), by_json.as_deref()),
                None => prop_assert!(by_json.is_none() || text.contains(&b'\\')),
            }
        }

        /// However a key is cut, its fields joined in order are a prefix of it.
        #[test]
        fn fields_join_to_the_key(
            cuts in proptest::collection::vec(any_cut(), 0..4),
            key: Vec<u8>,
        ) {
            let parts: Vec<Part> = (0..cuts.len()).map(Part::Field).collect();
            if let Some(joined) = recipe(&cuts, &parts).target(&key, b"") {
                prop_assert!(key.starts_with(&joined.key));
                prop_assert!(!cuts.contains(&Cut::Rest) || joined.key == key);
            }
        }
    }
}
