//! A query, as a program states it.

use std::ops::{Bound, RangeBounds};

use serde_json::{Value, json};

use super::cursor::IntoCursor;
use crate::key::Span;
use crate::schema::Test;

/// How many records a page has, unless the query says otherwise.
const TAKE_DEFAULT: usize = 20;

/// The most records that a page can have.
pub(crate) const TAKE_MAX: usize = 10_000;

/// An order of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Lowest first; for times, oldest first.
    Ascending,
    /// Highest first; for times, newest first.
    Descending,
}

/// A query of a collection: equalities, one range, an order, a page size.
///
/// ```
/// use keyloom::{Order, Query};
/// let mine = Query::new()
///     .equal("requester_id", "ana")
///     .range("created_at", 1_700_000_000_000_u64..)
///     .order("created_at", Order::Descending)
///     .take(20);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub(crate) equal: Vec<(String, Value)>,
    pub(crate) any: Vec<Alternative>,
    pub(crate) range: Option<(String, Span)>,
    pub(crate) order: Option<(String, Order)>,
    pub(crate) index: Option<String>,
    pub(crate) filters: Vec<(String, Test)>,
    pub(crate) scan: bool,
    pub(crate) after: Option<Vec<Value>>,
    pub(crate) take: usize,
    pub(crate) limit: Option<usize>,
    pub(crate) bytes: Option<usize>,
    pub(crate) cursor: Option<String>,
}

/// One branch of a union.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Alternative {
    pub(crate) field: String,
    pub(crate) value: Value,
    /// The index that must answer this branch.
    pub(crate) index: Option<String>,
}

impl Query {
    /// A query without conditions: all records in the order of their keys, page by page. Counting
    /// or filtering them reads the whole collection. It is refused unless [`scan`](Self::scan), or,
    /// for a count, [`limit`](Self::limit) allows it.
    pub fn new() -> Self {
        Query {
            equal: Vec::new(),
            any: Vec::new(),
            range: None,
            order: None,
            index: None,
            filters: Vec::new(),
            scan: false,
            after: None,
            take: TAKE_DEFAULT,
            limit: None,
            bytes: None,
            cursor: None,
        }
    }

    /// Only records whose field has this value. Elements of arrays are named `tags.*`.
    #[must_use]
    pub fn equal(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.equal.push((field.to_owned(), value.into()));
        self
    }

    /// Only records in which at least one of the fields given to `any` has its value. The answer is
    /// the union of several indexes, in one order and without duplicates.
    #[must_use]
    pub fn any(mut self, field: &str, value: impl Into<Value>) -> Self {
        let (field, value) = (field.to_owned(), value.into());
        self.any.push(Alternative { field, value, index: None });
        self
    }

    /// Only records whose field lies in this range. A query has at most one range.
    #[must_use]
    pub fn range<V: Into<Value> + Clone>(
        mut self,
        field: &str,
        range: impl RangeBounds<V>,
    ) -> Self {
        let owned = |bound: Bound<&V>| bound.map(|value| value.clone().into());
        let span = Span::Between(owned(range.start_bound()), owned(range.end_bound()));
        self.range = Some((field.to_owned(), span));
        self
    }

    /// Only records whose text begins with this prefix. Replaces a range.
    #[must_use]
    pub fn starts_with(mut self, field: &str, prefix: &str) -> Self {
        self.range = Some((field.to_owned(), Span::Prefix(prefix.to_owned())));
        self
    }

    /// The order of the answer. Without it, records come in the order of the index.
    #[must_use]
    pub fn order(mut self, field: &str, order: Order) -> Self {
        self.order = Some((field.to_owned(), order));
        self
    }

    /// Uses this index. A partial index serves only queries that imply its condition or name it
    /// like this.
    #[must_use]
    pub fn index(mut self, name: &str) -> Self {
        self.index = Some(name.to_owned());
        self
    }

    /// Drops records that do not pass a test. No index serves a filter: the page reads the records
    /// that it drops. See [`limit`](Self::limit).
    #[must_use]
    pub fn filter(mut self, field: &str, test: Test) -> Self {
        self.filters.push((field.to_owned(), test));
        self
    }

    /// Allows reading the whole collection if no index serves the query.
    #[must_use]
    pub fn scan(mut self) -> Self {
        self.scan = true;
        self
    }

    /// Starts after this key: one value for each field of the record's key, in order. The key need
    /// not have a record, and nothing before it is read. For answers in the order of the records'
    /// keys: scans, and queries that the key itself serves.
    ///
    /// ```
    /// use keyloom::Query;
    /// let rest = Query::new().scan().after(["ana", "milk"]).take(100);
    /// ```
    #[must_use]
    pub fn after(mut self, key: impl IntoIterator<Item = impl Into<Value>>) -> Self {
        self.after = Some(key.into_iter().map(Into::into).collect());
        self
    }

    /// The most records that the page returns; 20 unless set.
    #[must_use]
    pub fn take(mut self, records: usize) -> Self {
        self.take = records;
        self
    }

    /// The most records that the page reads, whether or not a filter drops them. Without filters,
    /// [`take`](Self::take) is enough. For a count, the most entries that it reads.
    #[must_use]
    pub fn limit(mut self, records: usize) -> Self {
        self.limit = Some(records);
        self
    }

    /// Roughly the most bytes that the page returns, counting the keys and texts of its records.
    /// The page ends with the record that reaches the limit, so it always has at least one, and its
    /// cursor continues there. Such a page also reads only a few records ahead, so that large ones
    /// do not fill the memory.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Continues from a cursor of an earlier page of the same query, or from the cursor's text;
    /// `None` is the first page.
    #[must_use]
    pub fn from_cursor(mut self, cursor: impl IntoCursor) -> Self {
        self.cursor = cursor.into_cursor();
        self
    }

    /// Whether the query has no conditions, and so selects every record that the caller may read.
    pub(crate) fn is_of_everything(&self) -> bool {
        self.equal.is_empty()
            && self.any.is_empty()
            && self.range.is_none()
            && self.order.is_none()
            && self.index.is_none()
            && self.filters.is_empty()
    }

    /// The query without its page, as text: the same text for the same query.
    pub(crate) fn canonical(&self) -> String {
        let range = self.range.as_ref().map(|(field, span)| json!([field, span_json(span)]));
        let filters: Vec<Value> =
            self.filters.iter().map(|(field, test)| json!([field, format!("{test:?}")])).collect();
        let order = self.order.as_ref().map(|(field, order)| json!([field, format!("{order:?}")]));
        let any: Vec<Value> = self.any.iter().map(Alternative::canonical).collect();
        let mut words = json!([self.equal, any, range, order, self.index, filters, self.scan]);
        // Added only if used, so that cursors from before this option existed are still valid.
        if let (Some(after), Value::Array(words)) = (&self.after, &mut words) {
            words.push(json!(after));
        }
        words.to_string()
    }
}

impl Alternative {
    fn canonical(&self) -> Value {
        let Alternative { field, value, index } = self;
        match index {
            None => json!([field, value]),
            Some(index) => json!([field, value, index]),
        }
    }
}

impl Default for Query {
    fn default() -> Self {
        Query::new()
    }
}

fn span_json(span: &Span) -> Value {
    let bound = |bound: &Bound<Value>| match bound {
        Bound::Included(value) => json!(["included", value]),
        Bound::Excluded(value) => json!(["excluded", value]),
        Bound::Unbounded => Value::Null,
    };
    match span {
        Span::Between(lower, upper) => json!([bound(lower), bound(upper)]),
        Span::Prefix(text) => json!({ "prefix": text }),
    }
}
