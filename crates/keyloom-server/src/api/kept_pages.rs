//! Pages that were written out, kept as long as they are true.
//!
//! Lists are asked for again and again, and each time there is a plan to make, there are rows to
//! read and records to write out. A page that was written is kept, with what the library knows of
//! its freshness, and given out again only after that was asked. Nothing is kept for a time: the
//! first answer after an acknowledged change shows the change.

use std::sync::Arc;

use axum::http::Uri;
use bytes::Bytes;
use keyloom::Freshness;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// What is larger is hardly asked for twice, and would push out many others.
const PAGE_BYTES_MAX: usize = 64 << 10;

/// How large a page is expected to be, and what it takes beside its text and its question.
const PAGE_BYTES_USUAL: usize = 8 << 10;
const OVERHEAD_BYTES: usize = 512;

/// See the [module's](self) description.
pub(crate) struct KeptPages {
    pages: Cache<Question, Arc<KeptPage>, Weight>,
}

/// What is asked for, and on behalf of whom.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question(Box<str>);

struct KeptPage {
    text: Bytes,
    freshness: Freshness,
}

#[derive(Clone)]
struct Weight;

impl KeptPages {
    /// At most so many bytes of them; 0 for none.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let usual = bytes_max / PAGE_BYTES_USUAL;
        KeptPages { pages: Cache::with_weighter(usual, bytes_max as u64, Weight) }
    }

    /// The page that answers a question, if it was kept and is still true.
    pub(super) async fn find(&self, question: &Question) -> Option<Bytes> {
        let kept = self.pages.get(question)?;
        // An error is told to whoever asks by reading.
        let is_true = kept.freshness.holds().await.is_ok_and(|holds| holds);
        is_true.then(|| kept.text.clone())
    }

    /// Keeps a page, if there is a way to tell how long it is true.
    pub(super) fn keep(&self, question: Question, text: &Bytes, freshness: Option<Freshness>) {
        if let Some(freshness) = freshness.filter(|_| text.len() <= PAGE_BYTES_MAX) {
            self.pages.insert(question, Arc::new(KeptPage { text: text.clone(), freshness }));
        }
    }
}

impl Question {
    /// The path names the space and the collection, and with its parameters the page. What is
    /// seen of it depends on the acting user. No URI holds a NUL, so that both stay apart.
    pub(super) fn new(uri: &Uri, user: Option<&str>) -> Self {
        let path = uri.path_and_query().map_or("", |path| path.as_str());
        let mut text = String::with_capacity(path.len() + user.map_or(0, |user| user.len() + 1));
        text.push_str(path);
        if let Some(user) = user {
            text.push('\0');
            text.push_str(user);
        }
        Question(text.into_boxed_str())
    }
}

impl Weighter<Question, Arc<KeptPage>> for Weight {
    fn weight(&self, Question(question): &Question, page: &Arc<KeptPage>) -> u64 {
        (question.len() + page.text.len() + OVERHEAD_BYTES) as u64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn question(uri: &str, user: Option<&str>) -> Question {
        Question::new(&uri.parse().unwrap(), user)
    }

    #[test]
    fn questions_differ_by_path_parameters_and_user() {
        let all = [
            question("/v1/collections/note/records", None),
            question("/v1/collections/note/records", Some("ada")),
            question("/v1/collections/note/records", Some("")),
            question("/v1/collections/note/records?limit=1", None),
            question("/s/ada/v1/collections/note/records", None),
            question("/v1/collections/note/records?ada", None),
        ];
        for (at, left) in all.iter().enumerate() {
            for right in &all[at + 1..] {
                assert_ne!(left, right);
            }
        }
    }
}
