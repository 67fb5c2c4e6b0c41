//! A cache of rendered pages, each served only while it is still current.
//!
//! The same lists are requested again and again. Each time, a plan must be made, rows read, and
//! records written out. So a rendered page is cached together with its freshness, and served again
//! only after a check of that freshness. There is no expiry time: the first answer after an
//! acknowledged change shows the change.

use std::sync::Arc;

use axum::http::Uri;
use bytes::Bytes;
use keyloom::Freshness;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// Larger pages are rarely requested twice, and would displace many others.
const PAGE_BYTES_MAX: usize = 64 << 10;

/// The expected size of a page, and the overhead beside its text and its question.
const PAGE_BYTES_USUAL: usize = 8 << 10;
const OVERHEAD_BYTES: usize = 512;

/// See the [module's](self) description.
pub(crate) struct KeptPages {
    pages: Cache<Question, Arc<KeptPage>, Weight>,
}

/// A request, and the user for whom it is made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question(Box<str>);

struct KeptPage {
    text: Bytes,
    freshness: Freshness,
}

#[derive(Clone)]
struct Weight;

impl KeptPages {
    /// A cache of at most this many bytes; 0 disables it.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let usual = bytes_max / PAGE_BYTES_USUAL;
        KeptPages { pages: Cache::with_weighter(usual, bytes_max as u64, Weight) }
    }

    /// The cached page for a question, if it is still current.
    pub(super) async fn find(&self, question: &Question) -> Option<Bytes> {
        let kept = self.pages.get(question)?;
        // If the check fails, the read that follows reports the error.
        let is_true = kept.freshness.holds().await.is_ok_and(|holds| holds);
        is_true.then(|| kept.text.clone())
    }

    /// Caches a page, if there is a way to tell whether it is still current.
    pub(super) fn keep(&self, question: Question, text: &Bytes, freshness: Option<Freshness>) {
        if let Some(freshness) = freshness.filter(|_| text.len() <= PAGE_BYTES_MAX) {
            self.pages.insert(question, Arc::new(KeptPage { text: text.clone(), freshness }));
        }
    }
}

impl Question {
    /// The path with its parameters determines the space, the collection and the page. The acting
    /// user determines which records are visible. A NUL separates them, since no URI contains one.
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
