//! Declared counts and sums of a collection, and the least and greatest values of its fields.

use serde_json::Value;

use super::collection::Collection;
use super::fields::KeyFields;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Path;
use crate::query::{self, GroupPage, GroupQuery, GroupTotal, Order, Query, TopGroups};

impl GroupQuery {
    /// Only groups whose first fields have these values.
    #[must_use]
    pub fn within(mut self, values: impl KeyFields) -> Self {
        self.within = values.into_values();
        self
    }
}

impl<T> Collection<T> {
    /// How many records a group of a declared count or sum has; zero if there is no such group. One
    /// round trip, however many records there are.
    ///
    /// Expired records count until they are swept; [`group`](Self::group) says up to when that was
    /// done.
    pub async fn counted(&self, aggregate: &str, group: impl KeyFields) -> Result<i64> {
        let values = group.into_values();
        Ok(query::group(&self.session, &self.name, aggregate, &values).await?.0)
    }

    /// The sum of a group of a declared sum; zero if the group has no records. One round trip.
    ///
    /// Expired records add to it until they are swept; [`group`](Self::group) says up to when that
    /// was done.
    pub async fn summed(&self, aggregate: &str, group: impl KeyFields) -> Result<i64> {
        let values = group.into_values();
        let (_, sum) = query::group(&self.session, &self.name, aggregate, &values).await?;
        sum.ok_or_else(|| {
            let message = "the aggregate is a count, and sums nothing; declare a sum";
            Error::new(ErrorKind::InvalidQuery, message)
                .with("collection", &self.name)
                .with("aggregate", aggregate)
        })
    }

    /// The count and the sum of a group. If records expire, it also says up to when the collection
    /// was swept, which takes one more round trip. One round trip otherwise.
    pub async fn group(&self, aggregate: &str, group: impl KeyFields) -> Result<GroupTotal> {
        let values = group.into_values();
        query::group_total(&self.session, &self.name, aggregate, &values).await
    }

    /// Groups of a declared count or sum, in the order of their values, page by page.
    pub async fn groups(&self, query: &GroupQuery) -> Result<GroupPage> {
        query::groups(&self.session, &self.name, query).await
    }

    /// The groups with the largest sums, or, for a count, with the most records; the largest first.
    /// Reads all groups that the query selects. More groups than the query's `limit` are an error.
    pub async fn top_groups(&self, query: &GroupQuery, count: usize) -> Result<TopGroups> {
        query::top_groups(&self.session, &self.name, query, count).await
    }

    /// The least value of a field among the records that answer the query; `None` if no record has
    /// one. Reads the first entry of an ordered index: one round trip.
    pub async fn min(&self, query: &Query, field: &str) -> Result<Option<Value>> {
        self.first_value(query, field, Order::Ascending).await
    }

    /// The greatest value of a field among the records that answer the query; `None` if no record
    /// has one. Reads the last entry of an ordered index: one round trip.
    pub async fn max(&self, query: &Query, field: &str) -> Result<Option<Value>> {
        self.first_value(query, field, Order::Descending).await
    }

    async fn first_value(&self, query: &Query, field: &str, order: Order) -> Result<Option<Value>> {
        let path = Path::parse(field).ok().filter(|path| path.star().is_none());
        let path = path.ok_or_else(|| {
            let message = "the least and the greatest are asked of a field with one value";
            Error::new(ErrorKind::InvalidQuery, message)
                .with("collection", &self.name)
                .with("field", field)
        })?;
        let mut query = query.clone().order(field, order).take(1);
        loop {
            let page = self.documents(&query).await?;
            if let Some(document) = page.records.first() {
                let record: Value = document.json()?;
                return Ok(path.get(&record).filter(|value| !value.is_null()).cloned());
            }
            // `verify` reports entries that lead to no record. The next entry may lead to one.
            let Some(next) = page.next else { return Ok(None) };
            query = query.from_cursor(next);
        }
    }
}
