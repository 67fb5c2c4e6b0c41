//! A query for the groups of an aggregate.

use serde_json::Value;

use crate::query::cursor::IntoCursor;

/// How many groups a page has, unless the query says otherwise.
const TAKE_DEFAULT: usize = 100;

/// How many groups are read, unless the query says otherwise.
const LIMIT_DEFAULT: usize = 10_000;

/// A query for the groups of an aggregate.
///
/// ```
/// use keyloom::GroupQuery;
/// let of_one_flow = GroupQuery::new("seconds").within("nightly").take(20);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GroupQuery {
    pub(crate) aggregate: String,
    pub(crate) within: Vec<Value>,
    pub(crate) take: usize,
    pub(crate) limit: usize,
    pub(crate) cursor: Option<String>,
}

impl GroupQuery {
    /// All groups of this count or sum.
    pub fn new(aggregate: &str) -> Self {
        GroupQuery {
            aggregate: aggregate.to_owned(),
            within: Vec::new(),
            take: TAKE_DEFAULT,
            limit: LIMIT_DEFAULT,
            cursor: None,
        }
    }

    /// The most groups that a page holds; 100 unless set.
    #[must_use]
    pub fn take(mut self, groups: usize) -> Self {
        self.take = groups;
        self
    }

    /// The most groups that are read, including empty groups that were not purged yet; 10,000
    /// unless set. A page that reaches this limit ends there. The largest groups are found only if
    /// all groups were read.
    #[must_use]
    pub fn limit(mut self, groups: usize) -> Self {
        self.limit = groups;
        self
    }

    /// Continues from the cursor of an earlier page of the same query; `None` is the first page.
    #[must_use]
    pub fn from_cursor(mut self, cursor: impl IntoCursor) -> Self {
        self.cursor = cursor.into_cursor();
        self
    }
}
