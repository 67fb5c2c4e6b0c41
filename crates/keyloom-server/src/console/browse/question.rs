//! What a visitor asks of a collection, as the form and its links say it.

use keyloom::{CollectionDeclaration, Query};
use serde::Serialize;

use crate::api;
use crate::config::Limits;
use crate::params::Params;
use crate::problem::Problem;

/// The records of a page unless the visitor says otherwise.
pub(super) const TAKE: usize = 20;

/// The most records of a page.
const TAKE_MAX: usize = 500;

/// How a field is compared: what the parameter ends in, and the sign for people.
pub(super) const COMPARISONS: [(&str, &str); 6] = [
    ("", "="),
    (".gt", ">"),
    (".gte", "≥"),
    (".lt", "<"),
    (".lte", "≤"),
    (".prefix", "begins with"),
];

/// A question.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Question {
    pub(super) index: Option<String>,
    /// What the index answers.
    pub(super) conditions: Vec<Said>,
    /// What is looked at after reading.
    pub(super) filters: Vec<Said>,
    /// `FIELD` or `-FIELD`.
    pub(super) order: Option<String>,
    pub(super) limit: usize,
    pub(super) keys_only: bool,
    pub(super) cursor: Option<String>,
}

/// One thing that is said of a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Said {
    pub(super) field: String,
    /// One of [`COMPARISONS`], without the dot; empty for equality.
    pub(super) comparison: &'static str,
    pub(super) value: String,
}

impl Question {
    /// Takes the parameters that ask. Empty ones say nothing: forms send every field.
    pub(super) fn take(params: &mut Params) -> Result<Self, Problem> {
        let mut taken = |prefix: &'static str| -> Vec<Said> {
            let named = |name: &str| name.strip_prefix(prefix).map(str::to_owned);
            let all = params.take_all(named).into_iter();
            all.filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| said(&name, value))
                .collect()
        };
        let conditions = taken("where.");
        let mut filters = taken("filter.");
        filters.extend(added(params)?);
        let mut text = |name: &str| -> Result<_, Problem> {
            Ok(params.take(name)?.filter(|text| !text.is_empty()))
        };
        let (index, order, cursor) = (text("index")?, text("order")?, text("cursor")?);
        let limit = params.take_number("limit")?.unwrap_or(TAKE).clamp(1, TAKE_MAX);
        let keys_only = params.take_flag("keys_only")?;
        Ok(Question { index, conditions, filters, order, limit, keys_only, cursor })
    }

    /// The parameters that ask the same from another place; `None` begins at the start.
    pub(super) fn params(&self, cursor: Option<&str>) -> Vec<(String, String)> {
        let mut params = Vec::new();
        let mut add = |name: &str, value: &str| params.push((name.to_owned(), value.to_owned()));
        if let Some(index) = &self.index {
            add("index", index);
        }
        for said in &self.conditions {
            add(&said.param("where."), &said.value);
        }
        for said in &self.filters {
            add(&said.param("filter."), &said.value);
        }
        if let Some(order) = &self.order {
            add("order", order);
        }
        if self.limit != TAKE {
            add("limit", &self.limit.to_string());
        }
        if self.keys_only {
            add("keys_only", "true");
        }
        if let Some(cursor) = cursor {
            add("cursor", cursor);
        }
        params
    }

    /// What is said of a field.
    pub(super) fn condition(&self, field: &str, comparison: &str) -> Option<&str> {
        let is_it = |said: &&Said| said.field == field && said.comparison == comparison;
        self.conditions.iter().find(is_it).map(|said| said.value.as_str())
    }

    /// The question as the library takes it, read as the API reads it.
    pub(super) fn query(
        &self,
        declared: &CollectionDeclaration,
        limits: &Limits,
    ) -> Result<Query, Problem> {
        let mut text = form_urlencoded::Serializer::new(String::new());
        text.extend_pairs(self.params(self.cursor.as_deref()));
        // Pages of all records, by their keys, are cheap: they end where the page ends.
        if self.index.is_none() && self.conditions.is_empty() {
            text.append_pair("scan", "true");
        }
        let asked = api::asked_page(Params::read(&text.finish()), declared, limits)?;
        Ok(asked.query)
    }
}

/// The filter that the form's empty row says.
fn added(params: &mut Params) -> Result<Option<Said>, Problem> {
    let field = params.take("add_field")?.unwrap_or_default();
    let comparison = params.take("add_comparison")?.unwrap_or_default();
    let value = params.take("add_value")?.unwrap_or_default();
    if field.is_empty() {
        return Ok(None);
    }
    let known = COMPARISONS.iter().map(|(ending, _)| ending.trim_start_matches('.'));
    match known.into_iter().find(|known| *known == comparison && *known != "prefix") {
        Some(comparison) => Ok(Some(Said { field, comparison, value })),
        None => Err(Problem::invalid_request("a filter compares by =, gt, gte, lt or lte")),
    }
}

fn said(name: &str, value: String) -> Said {
    let ending = COMPARISONS.iter().skip(1).find(|(ending, _)| name.ends_with(ending));
    let ending = ending.map_or("", |(ending, _)| ending);
    let field = name.strip_suffix(ending).unwrap_or(name).to_owned();
    Said { field, comparison: ending.trim_start_matches('.'), value }
}

impl Said {
    /// The name of its parameter.
    pub(super) fn param(&self, prefix: &str) -> String {
        match self.comparison {
            "" => format!("{prefix}{}", self.field),
            comparison => format!("{prefix}{}.{comparison}", self.field),
        }
    }

    /// The sign for people.
    pub(super) fn sign(&self) -> &'static str {
        let is_it = |(ending, _): &&(&str, &str)| ending.trim_start_matches('.') == self.comparison;
        COMPARISONS.iter().find(is_it).map_or("=", |(_, sign)| sign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_survives_its_own_links() -> Result<(), String> {
        let text = "index=by&where.a=1&where.t.gte=5&where.b=&filter.x.lt=3&order=-t&limit=50&\
                    keys_only=true&add_field=y&add_comparison=&add_value=z&cursor=c";
        let read = |params: &mut Params| Question::take(params).map_err(|it| format!("{it:?}"));
        let mut params = Params::read(text);
        let asked = read(&mut params)?;
        params.finish().map_err(|it| format!("{it:?}"))?;
        assert_eq!((asked.conditions.len(), asked.filters.len()), (2, 2));
        assert_eq!(asked.condition("t", "gte"), Some("5"));
        let mut query = form_urlencoded::Serializer::new(String::new());
        let again = query.extend_pairs(asked.params(Some("c"))).finish();
        let again = read(&mut Params::read(&again))?;
        assert_eq!(format!("{asked:?}"), format!("{again:?}"));
        Ok(())
    }
}
