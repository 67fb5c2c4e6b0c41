//! Which groups are asked for.

use serde_json::Value;

use crate::query::cursor::IntoCursor;

/// The groups that a page holds unless told otherwise.
const TAKE_DEFAULT: usize = 100;

/// The groups that are read unless told otherwise.
const LIMIT_DEFAULT: usize = 10_000;

/// Which groups of an aggregate are asked for.
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

    /// The most groups that are read, empty ones that are not swept yet included; 10,000 unless
    /// set. A page that reads so many ends there. The largest groups are told only if all were
    /// read.
    #[must_use]
    pub fn limit(mut self, groups: usize) -> Self {
        self.limit = groups;
        self
    }

    /// Goes on from the cursor of an earlier page of the same question; `None` is the first page.
    #[must_use]
    pub fn from_cursor(mut self, cursor: impl IntoCursor) -> Self {
        self.cursor = cursor.into_cursor();
        self
    }
}
