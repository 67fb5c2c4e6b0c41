//! Turns parameters into a query: conditions, order, page, budget.

use std::collections::HashSet;
use std::ops::Bound;

use keyloom::{CollectionDeclaration, Order, Query, Test, did_you_mean};
use serde_json::Value;

use super::typed::value_of;
use crate::config::Limits;
use crate::params::Params;
use crate::problem::Problem;

/// How many records a page has, unless the request says otherwise.
const PAGE_DEFAULT: usize = 20;

/// How much one request may read, unless it says otherwise.
const READ_DEFAULT: usize = 100_000;

/// The page that a request asks for.
#[derive(Debug, PartialEq)]
pub(crate) struct PageAsked {
    pub(crate) query: Query,
    /// Keys without records.
    pub(super) is_keys_only: bool,
}

/// The count that a request asks for.
#[derive(Debug, PartialEq)]
pub(super) struct CountAsked {
    pub(super) query: Query,
    /// Counts only index entries.
    pub(super) is_keys_only: bool,
}

/// The operator between a field and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    Greater,
    AtLeast,
    Less,
    AtMost,
    Prefix,
    Present,
}

/// Parses all parameters of a page.
pub(crate) fn page(
    mut params: Params,
    declaration: &CollectionDeclaration,
    limits: &Limits,
) -> Result<PageAsked, Problem> {
    let mut query = conditions(&mut params, declaration)?;
    if let Some(order) = params.take("order")? {
        query = match order.strip_prefix('-') {
            Some(field) => query.order(field, Order::Descending),
            None => query.order(&order, Order::Ascending),
        };
    }
    query = query.take(page_size(&mut params, limits)?);
    query = query.limit(budget(&mut params, "read", limits)?);
    if let Some(cursor) = params.take("cursor")? {
        query = query.from_cursor(cursor);
    }
    let is_keys_only = params.take_flag("keys_only")?;
    params.finish_meaning(|name| meant(declaration, name))?;
    Ok(PageAsked { query, is_keys_only })
}

/// Parses all parameters of a count.
pub(super) fn count(
    mut params: Params,
    declaration: &CollectionDeclaration,
    limits: &Limits,
) -> Result<CountAsked, Problem> {
    let query = conditions(&mut params, declaration)?;
    let query = query.limit(budget(&mut params, "limit", limits)?);
    let is_keys_only = params.take_flag("keys_only")?;
    params.finish_meaning(|name| meant(declaration, name))?;
    Ok(CountAsked { query, is_keys_only })
}

/// The right spelling of a condition without its prefix: `where.state` for `state`.
fn meant(declaration: &CollectionDeclaration, name: &str) -> Option<String> {
    let named = Named { prefix: "where", declaration };
    let (field, _) = named.split(name);
    let ending = &name[field.len()..];
    let known: Vec<&str> = declaration.fields.keys().map(String::as_str).collect();
    let is_declared = known.contains(&field);
    let field = if is_declared { field } else { did_you_mean(field, &known)? };
    Some(format!("where.{field}{ending}"))
}

/// Takes `limit`, the number of records of a page.
pub(super) fn page_size(params: &mut Params, limits: &Limits) -> Result<usize, Problem> {
    let asked = params.take_number("limit")?;
    within("limit", 1, limits.page_max, asked.unwrap_or(PAGE_DEFAULT.min(limits.page_max)))
}

/// Takes the limit on reading.
pub(super) fn budget(
    params: &mut Params,
    name: &'static str,
    limits: &Limits,
) -> Result<usize, Problem> {
    let asked = params.take_number(name)?;
    within(name, 1, limits.read_max, asked.unwrap_or(READ_DEFAULT.min(limits.read_max)))
}

/// A number within bounds.
pub(super) fn within(name: &str, min: usize, max: usize, asked: usize) -> Result<usize, Problem> {
    match (min..=max).contains(&asked) {
        true => Ok(asked),
        false => {
            let detail = format!("the parameter {name} is {min} to {max} on this server");
            Err(Problem::invalid_request(detail).with("value", asked))
        }
    }
}

/// Takes equalities only: `PREFIX.FIELD=value`.
pub(super) fn equalities(
    params: &mut Params,
    prefix: &str,
    declaration: &CollectionDeclaration,
) -> Result<Vec<(String, Value)>, Problem> {
    let named = Named { prefix, declaration };
    let mut found = Vec::new();
    for (path, text) in named.take(params)? {
        let value = named.value(&path, Operator::Equal, &path, &text)?;
        found.push((path, value));
    }
    Ok(found)
}

fn conditions(params: &mut Params, declaration: &CollectionDeclaration) -> Result<Query, Problem> {
    let mut query = wheres(params, declaration)?;
    for (path, value) in unions(params, declaration)? {
        query = query.any(&path, value);
    }
    query = filters(params, declaration, query)?;
    if let Some(index) = params.take("index")? {
        query = query.index(&index);
    }
    if params.take_flag("scan")? {
        query = query.scan();
    }
    Ok(query)
}

/// Takes `any.FIELD=v`. One field may have several values.
fn unions(
    params: &mut Params,
    declaration: &CollectionDeclaration,
) -> Result<Vec<(String, Value)>, Problem> {
    let named = Named { prefix: "any", declaration };
    let taken = params.take_all(|name| name.strip_prefix("any.").map(str::to_owned));
    let read = |(path, text): (String, String)| {
        let value = named.value(&path, Operator::Equal, &path, &text)?;
        Ok((path, value))
    };
    taken.into_iter().map(read).collect()
}

/// Takes `where.FIELD=v`, and one range.
fn wheres(params: &mut Params, declaration: &CollectionDeclaration) -> Result<Query, Problem> {
    let named = Named { prefix: "where", declaration };
    let (mut query, mut range) = (Query::new(), None::<Ranged>);
    for (name, text) in named.take(params)? {
        let (path, operator) = named.split(&name);
        if operator == Operator::Present {
            let detail = format!("where.{name}: presence is no range; use filter.{name}");
            return Err(Problem::invalid_request(detail));
        }
        let value = named.value(&name, operator, path, &text)?;
        if operator == Operator::Equal {
            query = query.equal(path, value);
            continue;
        }
        let ranged = range.get_or_insert_with(|| Ranged::of(path));
        ranged.bound(path, operator, value)?;
    }
    Ok(match range {
        None => query,
        Some(Ranged { field, prefix: Some(prefix), .. }) => query.starts_with(&field, &prefix),
        Some(Ranged { field, lower, upper, .. }) => {
            let unbounded = |bound: Option<Bound<Value>>| bound.unwrap_or(Bound::Unbounded);
            query.range(&field, (unbounded(lower), unbounded(upper)))
        }
    })
}

/// Takes `filter.FIELD=v`, `.gt`, `.gte`, `.lt`, `.lte`, `.present`.
fn filters(
    params: &mut Params,
    declaration: &CollectionDeclaration,
    mut query: Query,
) -> Result<Query, Problem> {
    let named = Named { prefix: "filter", declaration };
    for (name, text) in named.take(params)? {
        let (path, operator) = named.split(&name);
        let value = named.value(&name, operator, path, &text)?;
        let test = match operator {
            Operator::Equal if value.is_null() => Test::Missing,
            Operator::Equal => Test::Equals(value),
            Operator::Greater => Test::Greater(value),
            Operator::AtLeast => Test::AtLeast(value),
            Operator::Less => Test::Less(value),
            Operator::AtMost => Test::AtMost(value),
            Operator::Present if value == Value::Bool(true) => Test::Present,
            Operator::Present => Test::Missing,
            Operator::Prefix => {
                let detail = format!("filter.{name}: filters compare whole values; use where");
                return Err(Problem::invalid_request(detail));
            }
        };
        query = query.filter(path, test);
    }
    Ok(query)
}

/// Parameters with one prefix, about the fields of a collection.
struct Named<'d> {
    prefix: &'d str,
    declaration: &'d CollectionDeclaration,
}

impl Named<'_> {
    /// Takes these parameters, without their prefix. Each may occur once; elements of arrays may
    /// occur several times.
    fn take(&self, params: &mut Params) -> Result<Vec<(String, String)>, Problem> {
        let own = |name: &str| Some(name.strip_prefix(self.prefix)?.strip_prefix('.')?.to_owned());
        let taken = params.take_all(own);
        let mut seen = HashSet::new();
        let repeated = taken.iter().find(|(name, _)| !name.contains('*') && !seen.insert(name));
        match repeated {
            None => Ok(taken),
            Some((name, _)) => {
                let detail = format!("the parameter {}.{name} came more than once", self.prefix);
                Err(Problem::invalid_request(detail))
            }
        }
    }

    /// Splits a name into field and operator. A declared field may itself end like an operator.
    fn split<'n>(&self, name: &'n str) -> (&'n str, Operator) {
        if self.declaration.fields.contains_key(name) {
            return (name, Operator::Equal);
        }
        let Some((path, last)) = name.rsplit_once('.') else { return (name, Operator::Equal) };
        let operator = match last {
            "gt" => Operator::Greater,
            "gte" => Operator::AtLeast,
            "lt" => Operator::Less,
            "lte" => Operator::AtMost,
            "prefix" => Operator::Prefix,
            "present" => Operator::Present,
            _ => return (name, Operator::Equal),
        };
        (path, operator)
    }

    /// The value of a parameter, parsed as its field and its operator require.
    fn value(
        &self,
        name: &str,
        operator: Operator,
        path: &str,
        text: &str,
    ) -> Result<Value, Problem> {
        let read = match operator {
            Operator::Prefix => Ok(text.into()),
            Operator::Present => match text {
                "true" => Ok(true.into()),
                "false" => Ok(false.into()),
                _ => Err("it is true or false".to_owned()),
            },
            _ => value_of(self.declaration, path, text),
        };
        read.map_err(|reason| {
            let parameter = format!("{}.{name}", self.prefix);
            Problem::invalid_request(format!("the value of {parameter} does not fit: {reason}"))
                .with("parameter", parameter)
                .with("value", text)
        })
    }
}

/// The one range of a query.
struct Ranged {
    field: String,
    lower: Option<Bound<Value>>,
    upper: Option<Bound<Value>>,
    prefix: Option<String>,
}

impl Ranged {
    fn of(field: &str) -> Self {
        Ranged { field: field.to_owned(), lower: None, upper: None, prefix: None }
    }

    fn bound(&mut self, field: &str, operator: Operator, value: Value) -> Result<(), Problem> {
        if field != self.field {
            let detail = format!("a query has one range, and not of {} and {field}", self.field);
            return Err(Problem::invalid_query(detail));
        }
        let is_second = match operator {
            Operator::Greater => self.lower.replace(Bound::Excluded(value)).is_some(),
            Operator::AtLeast => self.lower.replace(Bound::Included(value)).is_some(),
            Operator::Less => self.upper.replace(Bound::Excluded(value)).is_some(),
            Operator::AtMost => self.upper.replace(Bound::Included(value)).is_some(),
            // A prefix is a range of its own.
            _ => {
                self.prefix = value.as_str().map(str::to_owned);
                false
            }
        };
        let is_mixed = self.prefix.is_some() && (self.lower.is_some() || self.upper.is_some());
        match is_second || is_mixed {
            true => {
                let detail = format!("a range has one beginning and one end, and so has {field}");
                Err(Problem::invalid_query(detail))
            }
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
