//! The page of a collection: choose an index and values, and see records page by page with the
//! plan.

mod form;
mod question;
mod view;

use axum::http::StatusCode;
use axum::response::Response;
use keyloom::{
    Collection, CollectionDeclaration, FieldType, Near, Nearby, Page as Listed, PointOf, Stopped,
    Stored,
};
use serde::Serialize;
use serde_json::Value;

use self::question::Question;
use super::declared::{at, fields};
use super::refusal::Told;
use super::visit::Visit;
use crate::auth::Verb;
use crate::memory::PAGE_BYTES;
use crate::problem::Problem;

/// How many fields of records have columns of their own.
const COLUMNS_MAX: usize = 5;

/// The page.
#[derive(Serialize)]
struct BrowsePage {
    collection: String,
    /// The template of the records' keys.
    template: String,
    access: Option<String>,
    indexes: Vec<Way>,
    question: Question,
    /// The plan of the query, in words.
    plan: Option<String>,
    answer: Option<Answer>,
    /// Why there is no answer.
    problem: Option<Told>,
    may_write: bool,
    #[serde(skip)]
    columns: Vec<String>,
    #[serde(skip)]
    declared: CollectionDeclaration,
    #[serde(skip)]
    notice: Option<String>,
    #[serde(skip)]
    status: StatusCode,
}

/// One way to browse the collection.
#[derive(Clone, Debug, Serialize)]
struct Way {
    name: String,
    kind: &'static str,
    template: String,
}

/// A page of records, or of their keys.
#[derive(Serialize)]
struct Answer {
    rows: Vec<Row>,
    next: Option<String>,
    previous: Option<String>,
    stopped: &'static str,
    read: usize,
    problems: Vec<Trouble>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swept_until: Option<u64>,
}

/// One record.
#[derive(Serialize)]
struct Row {
    /// Its name for the visitor; `None` if the key does not tell it.
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    stored_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Its distance from the place of the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance_m: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<Value>,
}

/// A key that could not be read.
#[derive(Serialize)]
struct Trouble {
    kind: String,
    key: String,
    reason: String,
}

/// `GET /collections/{collection}/`
pub(super) async fn page(mut visit: Visit) -> Response {
    let made = model(&mut visit).await;
    visit.answer(made)
}

async fn model(visit: &mut Visit) -> Result<BrowsePage, Problem> {
    let mut params = visit.take_params();
    let notice = params.take("notice")?;
    let (collection, declared) = visit.collection(Verb::Read).await?;
    let question = Question::take(&mut params, declared)?;
    params.finish()?;
    let mut page = BrowsePage {
        collection: collection.name().to_owned(),
        template: declared.key.clone(),
        access: declared.access.map(|access| access.to_string()),
        indexes: ways(declared),
        question,
        plan: None,
        answer: None,
        problem: None,
        may_write: visit.may(Verb::Write),
        columns: columns(declared),
        declared: declared.clone(),
        notice,
        status: StatusCode::OK,
    };
    let limits = &visit.app.config().limits;
    let answer = match &page.question.place {
        Some(place) if place.is_open() => return Ok(page),
        Some(_) => match page.question.near(declared, limits) {
            Ok(near) => around(visit, &collection, declared, &near).await,
            Err(problem) => Err(problem),
        },
        None => match page.question.query(declared, limits) {
            Ok(query) => {
                page.plan = collection.explain(&query).await.ok();
                match page.question.keys_only {
                    true => keys(visit, &collection, &query).await,
                    false => records(visit, &collection, declared, &query).await,
                }
            }
            Err(problem) => Err(problem),
        },
    };
    match answer {
        Ok(answer) => page.answer = Some(answer),
        Err(problem) => return Ok(page.refused(&problem)),
    }
    Ok(page)
}

impl BrowsePage {
    /// The page without an answer. An index without any values yet is not an error.
    fn refused(mut self, problem: &Problem) -> Self {
        let told = Told::of(problem);
        let is_begun = self.question.conditions.is_empty() && self.question.index.is_some();
        if !(is_begun && matches!(told.kind.as_str(), "no-index" | "invalid-query")) {
            self.status = problem.status();
            self.problem = Some(told);
        }
        self
    }
}

async fn records(
    visit: &Visit,
    collection: &Collection<Value>,
    declared: &CollectionDeclaration,
    query: &keyloom::Query,
) -> Result<Answer, Problem> {
    let page = collection.page(&query.clone().bytes(PAGE_BYTES)).await?;
    let mut rows = Vec::new();
    for stored in &page.records {
        rows.push(row(visit, collection, declared, stored).await);
    }
    Ok(Answer::of(rows, page))
}

/// Records near a place, nearest first.
async fn around(
    visit: &Visit,
    collection: &Collection<Value>,
    declared: &CollectionDeclaration,
    near: &Near,
) -> Result<Answer, Problem> {
    let page = collection.near(&near.clone().bytes(PAGE_BYTES)).await?;
    let mut rows = Vec::new();
    for Nearby { record, distance_m } in &page.records {
        let row = row(visit, collection, declared, record).await;
        rows.push(Row { distance_m: Some(*distance_m), ..row });
    }
    Ok(Answer::of(rows, page))
}

async fn row(
    visit: &Visit,
    collection: &Collection<Value>,
    declared: &CollectionDeclaration,
    stored: &Stored<Value>,
) -> Row {
    let owner = declared.owner.as_deref().and_then(|path| at(&stored.value, path)?.as_str());
    let (name, owner) = name_of(visit, collection, &stored.key, owner).await;
    Row {
        name,
        owner,
        stored_at: stored.key.to_string(),
        version: Some(stored.version.to_string()),
        distance_m: None,
        record: Some(stored.value.clone()),
    }
}

async fn keys(
    visit: &Visit,
    collection: &Collection<Value>,
    query: &keyloom::Query,
) -> Result<Answer, Problem> {
    let page = collection.keys(&query.clone().bytes(PAGE_BYTES)).await?;
    let mut rows = Vec::new();
    for key in &page.records {
        let (name, owner) = name_of(visit, collection, key, None).await;
        rows.push(Row {
            name,
            owner,
            stored_at: key.to_string(),
            version: None,
            distance_m: None,
            record: None,
        });
    }
    Ok(Answer::of(rows, page))
}

/// The record's name for the visitor, and its owner if that is somebody else.
async fn name_of(
    visit: &Visit,
    collection: &Collection<Value>,
    key: &str,
    owner: Option<&str>,
) -> (Option<String>, Option<String>) {
    if let Ok(name) = collection.name_of(key).await {
        return (Some(name), None);
    }
    let Some(owner) = owner.filter(|_| visit.caller.user.is_some()) else { return (None, None) };
    let Ok(theirs) = collection.acting_as(owner) else { return (None, None) };
    match theirs.name_of(key).await {
        Ok(name) => (Some(name), Some(owner.to_owned())),
        Err(_) => (None, None),
    }
}

impl Answer {
    fn of<R>(rows: Vec<Row>, page: Listed<R>) -> Self {
        let problems = page.problems.into_iter();
        Answer {
            rows,
            next: page.next.map(|cursor| cursor.to_string()),
            previous: page.previous.map(|cursor| cursor.to_string()),
            stopped: match page.stopped {
                Stopped::End => "end",
                Stopped::Take => "take",
                Stopped::Limit => "limit",
                Stopped::Bytes => "bytes",
            },
            read: page.read,
            problems: problems
                .map(|it| Trouble {
                    kind: format!("{:?}", it.kind).to_lowercase(),
                    key: it.key,
                    reason: it.reason,
                })
                .collect(),
            swept_until: page.swept_until,
        }
    }
}

/// The indexes that pages can be read by.
fn ways(declared: &CollectionDeclaration) -> Vec<Way> {
    let of = |kind, (name, index): (&String, &keyloom::IndexDeclaration)| Way {
        name: name.clone(),
        kind,
        template: index.key.clone(),
    };
    let values = declared.index.iter().map(|it| of("index", it));
    let unique = declared.unique.iter().map(|it| of("unique", it));
    values.chain(unique).chain(declared.geo.iter().map(|it| of("geo", it))).collect()
}

/// The fields with columns: those of indexes first, since people search by them.
fn columns(declared: &CollectionDeclaration) -> Vec<String> {
    let in_key: Vec<&str> = fields(&declared.key).map(|(path, _)| path).collect();
    let indexes = declared.index.values().chain(declared.unique.values());
    let indexed = indexes.flat_map(|index| fields(&index.key)).map(|(path, _)| path);
    let others = declared.fields.iter().flat_map(|(path, field)| match &field.field_type {
        // The record has no such member: the place consists of members of its own.
        FieldType::Point { lat, lon, of: PointOf::Record } => vec![lat.as_str(), lon.as_str()],
        _ => vec![path.as_str()],
    });
    let mut columns: Vec<String> = Vec::new();
    for path in indexed.chain(others) {
        let is_new = !in_key.contains(&path) && !columns.iter().any(|column| column == path);
        if is_new && !path.contains('*') && columns.len() < COLUMNS_MAX {
            columns.push(path.to_owned());
        }
    }
    columns
}
