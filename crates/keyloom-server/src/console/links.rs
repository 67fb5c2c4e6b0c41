//! The URLs of the console's pages, as one visitor sees them.

use super::ROOT;
use crate::path;

/// Bytes as the value of a parameter.
pub(super) fn encoded(bytes: &[u8]) -> String {
    form_urlencoded::byte_serialize(bytes).collect()
}

/// Makes URLs that keep the space and the user whom the visitor acts for.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// The prefix of all paths in the space.
    root: String,
    /// The user whom the visitor acts for, if the URL names one.
    user: Option<String>,
}

/// The name of a record in a URL.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordName<'n> {
    pub(super) collection: &'n str,
    pub(super) name: &'n str,
    /// The owner, if that is somebody else.
    pub(super) owner: Option<&'n str>,
}

impl Links {
    /// The links of a space; `None` is the space `main`.
    pub(super) fn new(space: Option<&str>, user: Option<String>) -> Self {
        let root = match space {
            None => ROOT.to_owned(),
            Some(space) => format!("{ROOT}/s/{}", path::encode(space)),
        };
        Links { root, user }
    }

    /// The user whom the visitor acts for, as in the URL.
    pub(super) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The URL of a page: its path must already be encoded, its parameters must not.
    pub(super) fn to<'p>(
        &self,
        path: &str,
        params: impl IntoIterator<Item = (&'p str, &'p str)>,
    ) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(params);
        if let Some(user) = &self.user {
            query.append_pair("as", user);
        }
        match query.finish() {
            query if query.is_empty() => format!("{}{path}", self.root),
            query => format!("{}{path}?{query}", self.root),
        }
    }

    /// The URL of a page without parameters, for forms that add their own.
    pub(super) fn bare(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    /// The overview.
    pub(super) fn overview(&self) -> String {
        self.to("/", [])
    }

    /// The path of a collection.
    pub(super) fn collection_path(name: &str) -> String {
        format!("/collections/{}/", path::encode(name))
    }

    /// A collection.
    pub(super) fn collection(&self, name: &str) -> String {
        self.to(&Self::collection_path(name), [])
    }

    /// The form for a new record.
    pub(super) fn new_record(&self, collection: &str) -> String {
        self.to(&format!("{}new", Self::collection_path(collection)), [])
    }

    /// A record, or one of its forms: `""`, `"/edit"`, `"/delete"`, `"/increment"`.
    pub(super) fn record(&self, record: RecordName<'_>, form: &str) -> String {
        self.record_with(record, form, [])
    }

    /// As [`record`](Self::record), with further parameters.
    pub(super) fn record_with<'p>(
        &self,
        record: RecordName<'p>,
        form: &str,
        more: impl IntoIterator<Item = (&'p str, &'p str)>,
    ) -> String {
        // The name is in the query, since browsers resolve `.` and `..` in a path.
        let path = format!("{}record{form}", Self::collection_path(record.collection));
        let owner = record.owner.map(|owner| ("owner", owner));
        self.to(&path, [("key", record.name)].into_iter().chain(owner).chain(more))
    }

    /// The keyspace below a prefix of an area. A prefix need not be text.
    pub(super) fn keys(&self, area: &str, prefix: impl AsRef<[u8]>) -> String {
        self.keys_after(area, prefix, "")
    }

    /// As [`keys`](Self::keys), after a branch.
    pub(super) fn keys_after(
        &self,
        area: &str,
        prefix: impl AsRef<[u8]>,
        after: impl AsRef<[u8]>,
    ) -> String {
        let mut url = self.to("/keys", (!area.is_empty()).then_some(("area", area)));
        for (name, bytes) in [("prefix", prefix.as_ref()), ("after", after.as_ref())] {
            if !bytes.is_empty() {
                let joint = if url.contains('?') { '&' } else { '?' };
                url.push_str(&format!("{joint}{name}={}", encoded(bytes)));
            }
        }
        url
    }

    /// An index or an aggregate of a collection.
    pub(super) fn index(&self, collection: &str, index: &str) -> String {
        let path = format!("{}indexes/{}", Self::collection_path(collection), path::encode(index));
        self.to(&path, [])
    }
}
