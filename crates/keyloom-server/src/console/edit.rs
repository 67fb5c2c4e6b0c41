//! Edits records as text: new and existing ones, with their conflicts.

mod view;

use axum::http::StatusCode;
use axum::response::Response;
use keyloom::{Difference, Document, Effect, ErrorKind, Version, read_json};
use serde::Serialize;
use serde_json::Value;

use super::declared::{fields, with_key, without_counters};
use super::differences::apply;
use super::record::{Addressed, addressed};
use super::refusal::Told;
use super::visit::{Sent, Visit};
use crate::auth::Verb;
use crate::params::Params;
use crate::problem::Problem;

/// The page: a text, and the result of trying to save it.
#[derive(Serialize)]
struct EditPage {
    collection: String,
    /// The record's name and owner; `None` for a new record.
    name: Option<String>,
    /// The visitor's text, or the stored one.
    text: String,
    /// The version that the text replaces.
    version: Option<String>,
    /// The record at the beginning of the editing, as JSON text, to tell later who changed what.
    base: String,
    /// Why it was not saved.
    problem: Option<Told>,
    conflict: Option<Conflict>,
    /// Names of the counters, which are not part of the text.
    counters: Vec<String>,
    /// Names of the fields that are generated for a new record.
    generated: Vec<String>,
    /// The key of the form, if it was sent before.
    #[serde(skip)]
    once: Option<String>,
    #[serde(skip)]
    status: StatusCode,
}

/// Somebody else changed the record meanwhile.
#[derive(Serialize)]
struct Conflict {
    /// The record as it is now.
    theirs: Value,
    /// The changes from the current record to the visitor's text.
    differences: Vec<Difference>,
    /// The current record with the visitor's changes applied, if these are known.
    merged: Option<String>,
}

/// The content of the form.
struct Draft {
    text: String,
    version: Option<String>,
    base: String,
}

impl Draft {
    fn read(mut sent: Params) -> Result<Self, Problem> {
        let text = sent.take("text")?.unwrap_or_default();
        let version = sent.take("version")?.filter(|version| !version.is_empty());
        let base = sent.take("base")?.unwrap_or_default();
        // The merged text, if the visitor chose it.
        let text = match (sent.take("choice")?.as_deref(), sent.take("merged")?) {
            (Some("merged"), Some(merged)) => merged,
            _ => text,
        };
        sent.finish()?;
        Ok(Draft { text, version, base })
    }
}

/// The content of a form, with its key.
fn drafted(visit: &mut Visit, sent: Result<Params, Problem>) -> Result<Draft, Problem> {
    let mut sent = sent?;
    visit.take_once(&mut sent)?;
    Draft::read(sent)
}

/// `GET /collections/{collection}/new`
pub(super) async fn new_page(mut visit: Visit) -> Response {
    let made = blank(&mut visit).await;
    visit.answer(made)
}

/// `GET /collections/{collection}/record/edit?key=`
pub(super) async fn page(mut visit: Visit) -> Response {
    let made = begun(&mut visit).await;
    visit.answer(made)
}

/// `POST /collections/{collection}/new`
pub(super) async fn insert(mut visit: Visit, Sent(sent): Sent) -> Response {
    let draft = match drafted(&mut visit, sent) {
        Ok(draft) => draft,
        Err(problem) => return visit.refuse(problem),
    };
    match inserted(&mut visit, &draft).await {
        Ok(url) => visit.go_on(Ok(url)),
        Err(problem) => {
            let once = visit.once(&problem);
            let blank = blank(&mut visit).await;
            visit.answer(blank.map(|page| page.again(draft, once, &problem)))
        }
    }
}

/// `POST /collections/{collection}/record/edit?key=`
pub(super) async fn save(mut visit: Visit, Sent(sent): Sent) -> Response {
    let draft = match drafted(&mut visit, sent) {
        Ok(draft) => draft,
        Err(problem) => return visit.refuse(problem),
    };
    let saved = saved(&mut visit, draft).await;
    match saved {
        Ok(Saved::Written(url)) => visit.go_on(Ok(url)),
        Ok(Saved::Refused(page)) => visit.show(&*page),
        Err(problem) => visit.refuse(problem),
    }
}

async fn blank(visit: &mut Visit) -> Result<EditPage, Problem> {
    visit.take_params().finish()?;
    let (collection, declared) = visit.collection(Verb::Write).await?;
    Ok(EditPage {
        collection: collection.name().to_owned(),
        name: None,
        text: pretty(&template_of(declared)),
        version: None,
        base: String::new(),
        problem: None,
        conflict: None,
        counters: declared.counters.keys().cloned().collect(),
        generated: generated(declared),
        once: None,
        status: StatusCode::OK,
    })
}

fn generated(declared: &keyloom::CollectionDeclaration) -> Vec<String> {
    let fields = declared.fields.iter().filter(|(_, field)| field.generate == Some(true));
    fields.map(|(path, _)| path.clone()).collect()
}

/// A template for a new record: the declared fields that a person must fill in.
fn template_of(declared: &keyloom::CollectionDeclaration) -> Value {
    use keyloom::FieldType as Type;
    let mut record = Value::Object(serde_json::Map::new());
    let is_simple = |path: &str| !path.contains('*') && !path.contains('.');
    let in_key = |path: &str| fields(&declared.key).any(|(field, _)| field == path);
    for (path, field) in declared.fields.iter().filter(|(path, _)| is_simple(path)) {
        let is_generated = field.generate == Some(true);
        if is_generated || matches!(field.field_type, Type::Point { .. } | Type::Map) {
            continue;
        }
        let value = match &field.field_type {
            Type::Integer { .. } => Value::from(0),
            Type::Timestamp => Value::from(keyloom::Timestamp::now().millis()),
            Type::Datetime => Value::from(String::from(keyloom::DateTime::now())),
            Type::Float => Value::from(0.0),
            Type::Boolean => Value::from(false),
            Type::Enum { values, .. } => Value::from(values.first().map_or("", String::as_str)),
            _ => Value::from(""),
        };
        record[path.as_str()] = value;
    }
    for (path, _) in fields(&declared.key).filter(|(path, _)| is_simple(path)) {
        let is_generated = declared.fields.get(path).is_some_and(|it| it.generate == Some(true));
        if !is_generated && in_key(path) && record.get(path).is_none() {
            record[path] = Value::from("");
        }
    }
    record
}

async fn begun(visit: &mut Visit) -> Result<EditPage, Problem> {
    let mut params = visit.take_params();
    let addressed = addressed(visit, &mut params, Verb::Write).await?;
    params.finish()?;
    let document = addressed.found().await?;
    let text = editable(&addressed, &document)?;
    Ok(EditPage::of(&addressed, text, Some(document.version.to_string())))
}

async fn inserted(visit: &mut Visit, draft: &Draft) -> Result<String, Problem> {
    let (collection, _) = visit.collection(Verb::Write).await?;
    let record = read_json(draft.text.as_bytes())?;
    let document = collection.insert(&record).await?;
    let name = collection.name_of(&document.key).await?;
    let link = super::links::RecordName { collection: collection.name(), name: &name, owner: None };
    Ok(visit.links.record_with(link, "", [("notice", "inserted")]))
}

/// The result of trying to save.
enum Saved {
    /// Continue at the record.
    Written(String),
    /// Show the form again, with the reason.
    Refused(Box<EditPage>),
}

async fn saved(visit: &mut Visit, draft: Draft) -> Result<Saved, Problem> {
    let mut params = visit.take_params();
    let addressed = addressed(visit, &mut params, Verb::Write).await?;
    params.finish()?;
    let refused = |draft: Draft, problem: &Problem| {
        let blank = EditPage::of(&addressed, String::new(), None);
        let page = blank.again(draft, visit.once(problem), problem);
        Ok(Saved::Refused(Box::new(page)))
    };
    let read = read_json(draft.text.as_bytes()).map_err(Problem::from);
    let record = read.and_then(|it| with_key(it, &addressed.declared.key, &addressed.values));
    let version = version_of(&draft);
    let (record, version) = match (record, version) {
        (Ok(record), Ok(version)) => (record, version),
        (Err(problem), _) | (_, Err(problem)) => return refused(draft, &problem),
    };
    match addressed.collection.replace_if(&record, version).await {
        Ok(written) => {
            let notice = if written.effect == Effect::Unchanged { "same" } else { "saved" };
            Ok(Saved::Written(visit.links.record_with(addressed.link(), "", [("notice", notice)])))
        }
        Err(error) if error.kind() == ErrorKind::VersionConflict && error.current().is_some() => {
            // The caller has checked that it is there.
            let Some(current) = error.current() else { return Err(Problem::from(error)) };
            let page = conflicting(&addressed, &draft, &record, current)?;
            Ok(Saved::Refused(Box::new(page)))
        }
        Err(error) => refused(draft, &Problem::from(error)),
    }
}

fn version_of(draft: &Draft) -> Result<Version, Problem> {
    let missing = || Problem::invalid_request("the form did not say which version it replaces");
    let text = draft.version.as_deref().ok_or_else(missing)?;
    Ok(text.parse::<Version>()?)
}

/// The page of a conflict: from now on, the visitor's text replaces the current version.
fn conflicting(
    addressed: &Addressed<'_>,
    draft: &Draft,
    mine: &Value,
    current: &Document,
) -> Result<EditPage, Problem> {
    let theirs = without_counters(&addressed.declared.counters, current.json()?);
    let base = read_json(draft.base.as_bytes()).ok().filter(Value::is_object);
    let merged = base.map(|base| apply(&Difference::between(&base, mine), theirs.clone()));
    let merged = merged.filter(|merged| merged != mine && *merged != theirs);
    let conflict = Conflict {
        differences: Difference::between(&theirs, mine),
        merged: merged.as_ref().map(pretty),
        theirs,
    };
    let version = Some(current.version.to_string());
    let mut page = EditPage::of(addressed, draft.text.clone(), version);
    page.base = conflict.theirs.to_string();
    page.conflict = Some(conflict);
    page.status = StatusCode::CONFLICT;
    Ok(page)
}

/// The text of a record without its counters.
fn editable(addressed: &Addressed<'_>, document: &Document) -> Result<String, Problem> {
    Ok(pretty(&without_counters(&addressed.declared.counters, document.json()?)))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

impl EditPage {
    fn of(addressed: &Addressed<'_>, text: String, version: Option<String>) -> Self {
        let link = addressed.link();
        EditPage {
            collection: link.collection.to_owned(),
            name: Some(link.name.to_owned()),
            base: text.clone(),
            text,
            version,
            problem: None,
            conflict: None,
            counters: addressed.declared.counters.keys().cloned().collect(),
            generated: Vec::new(),
            once: None,
            status: StatusCode::OK,
        }
    }

    /// The same form with the visitor's text, and the reason why it was refused.
    fn again(self, draft: Draft, once: Option<String>, problem: &Problem) -> Self {
        let Draft { text, version, base } = draft;
        let (problem, status) = (Some(Told::of(problem)), problem.status());
        EditPage { text, version, base, once, problem, status, ..self }
    }
}
