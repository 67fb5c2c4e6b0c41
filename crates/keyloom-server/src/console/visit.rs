//! One request for a page: the visitor, the space, the user they act for, and the form of the
//! answer.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use keyloom::{Collection, CollectionDeclaration, SchemaDeclaration};
use serde_json::Value;

use super::answer;
use super::frame::Frame;
use super::links::Links;
use super::once;
use super::page::Page;
use super::refusal::Refusal;
use crate::app::App;
use crate::auth::Verb;
use crate::body::{RawBody, has_media_type};
use crate::caller::{ACT_AS, Caller};
use crate::params::Params;
use crate::path::{self, PathParts};
use crate::problem::Problem;

/// A visitor's request for a page.
pub(super) struct Visit {
    pub(super) app: App,
    pub(super) caller: Caller,
    /// The parameters, without those that every page has.
    pub(super) params: Params,
    pub(super) links: Links,
    /// The schema of the space, with the collections that the caller may see.
    pub(super) schema: SchemaDeclaration,
    path: PathParts,
    form: Form,
    /// The query as sent.
    query: String,
    /// The path and the query as sent; empty if they cannot be opened as a page again.
    url: String,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Html,
    Json,
}

impl Visit {
    /// A named part of the path.
    pub(super) fn part(&self, name: &str) -> &str {
        self.path.get(name)
    }

    /// A parameter as bytes, which need not be text.
    pub(super) fn param_bytes(&self, name: &str) -> Bytes {
        Params::bytes_of(&self.query, name).into()
    }

    /// The parameters, to be taken one by one.
    pub(super) fn take_params(&mut self) -> Params {
        std::mem::take(&mut self.params)
    }

    /// Takes the key of a form, so that its action happens once however often it is sent.
    pub(super) fn take_once(&mut self, sent: &mut Params) -> Result<(), Problem> {
        if let Some(key) = sent.take(once::FIELD)? {
            self.caller.key = Some(key);
        }
        Ok(())
    }

    /// Takes the content of a form with a single button: only its key.
    pub(super) fn take_button(&mut self, sent: Result<Params, Problem>) -> Result<(), Problem> {
        let mut sent = sent?;
        self.take_once(&mut sent)?;
        sent.finish()
    }

    /// The key of the sent form, for the same form when it is shown again.
    pub(super) fn once(&self, problem: &Problem) -> Option<String> {
        // A key that belongs to another request can never be used again.
        self.caller.key.clone().filter(|_| problem.kind() != "idempotency-conflict")
    }

    /// The collection of the path, with its declaration.
    pub(super) async fn collection(
        &self,
        verb: Verb,
    ) -> Result<(Collection<Value>, &CollectionDeclaration), Problem> {
        let name = self.part("collection");
        let collection = self.caller.collection(verb, name).await?;
        if !self.caller.may_read(name) {
            // Every page shows stored data, even those for changes.
            return Err(Problem::forbidden("the console is for tokens that may read"));
        }
        let unknown = || Problem::not_found("the schema has no collection of that name");
        let declared = self.schema.collections.get(name).ok_or_else(unknown)?;
        Ok((collection, declared))
    }

    /// The collection of the path, if the visitor may see it.
    fn known_collection(&self) -> Option<String> {
        let name = self.part("collection");
        self.schema.collections.contains_key(name).then(|| name.to_owned())
    }

    /// Whether the caller may do this with the collection of the path.
    pub(super) fn may(&self, verb: Verb) -> bool {
        self.caller.grant.allows(verb, self.part("collection"))
    }

    /// The surroundings of every page.
    fn frame(&self) -> Frame<'_> {
        Frame {
            links: &self.links,
            space: self.caller.store.space_name(),
            engine: self.caller.store.engine().capabilities().engine,
            collections: self.schema.collections.keys().map(String::as_str).collect(),
            is_admin: self.caller.admin().is_ok(),
            may_act_as: self.caller.grant.may_act_as,
            is_open: self.app.config().authority.is_open(),
            url: &self.url,
        }
    }

    /// The answer: the page, or the problem.
    pub(super) fn answer(self, made: Result<impl Page, Problem>) -> Response {
        match made {
            Ok(page) => self.show(&page),
            Err(problem) => self.refuse(problem),
        }
    }

    /// The answer to a form: a redirect to a page, or the problem.
    pub(super) fn go_on(self, made: Result<String, Problem>) -> Response {
        match made {
            Ok(url) => Redirect::to(&url).into_response(),
            Err(problem) => self.refuse(problem),
        }
    }

    /// Shows a page in the wanted form.
    pub(super) fn show(&self, page: &impl Page) -> Response {
        match self.form {
            Form::Html => answer::html(page, &self.frame()),
            Form::Json => answer::json(page),
        }
    }

    /// Shows a problem in the wanted form.
    pub(super) fn refuse(&self, problem: Problem) -> Response {
        match self.form {
            Form::Html => {
                let refusal = Refusal::new(problem).within(self.known_collection());
                let mut response = answer::html(&refusal, &self.frame());
                refusal.add_headers(&mut response);
                response
            }
            Form::Json => problem.into_response(),
        }
    }
}

/// A request that fails before it becomes a visit.
pub(super) struct Unvisited {
    problem: Problem,
    form: Form,
}

impl IntoResponse for Unvisited {
    fn into_response(self) -> Response {
        match self.form {
            Form::Html => bare(Refusal::new(self.problem)),
            Form::Json => self.problem.into_response(),
        }
    }
}

/// A page that explains why a request did not reach the console: it was refused, or its handler did
/// not finish.
pub(crate) fn refused(problem: Problem) -> Response {
    bare(Refusal::by_guard(problem))
}

/// A problem alone, without anything about the store's content.
fn bare(refusal: Refusal) -> Response {
    let mut response = answer::html(&refusal, &Frame::bare(&Links::new(None, None)));
    refusal.add_headers(&mut response);
    response
}

impl FromRequestParts<App> for Visit {
    type Rejection = Unvisited;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Unvisited> {
        let mut params = Params::read(parts.uri.query().unwrap_or_default());
        let accepted = accepted(&parts.headers);
        let form = named(&mut params).map(|named| named.unwrap_or(accepted));
        let form = form.map_err(|problem| Unvisited { problem, form: accepted })?;
        let visit = visit(parts, app, params, form).await;
        visit.map_err(|problem| Unvisited { problem, form })
    }
}

async fn visit(
    parts: &mut Parts,
    app: &App,
    mut params: Params,
    form: Form,
) -> Result<Visit, Problem> {
    let user = params.take("as")?.filter(|user| !user.is_empty());
    if let Some(user) = &user {
        // Encoded text is ASCII without control characters, and so always valid in a header.
        let value = HeaderValue::from_str(&path::encode(user));
        let value = value.map_err(|_| Problem::invalid_request("the user has no such name"))?;
        parts.headers.append(ACT_AS, value);
    }
    let path = PathParts::from_request_parts(parts, app).await?;
    let caller = Caller::from_request_parts(parts, app).await?;
    let links = Links::new(path.find("space"), user);
    let mut schema = caller.store.schema().await?.declaration();
    schema.collections.retain(|name, _| caller.grant.sees(name));
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let is_page = parts.method == Method::GET;
    let url = parts.uri.path_and_query().filter(|_| is_page);
    let url = url.map(|url| url.as_str().to_owned()).unwrap_or_default();
    Ok(Visit { app: app.clone(), caller, params, links, schema, path, form, query, url })
}

/// The form in the parameter.
fn named(params: &mut Params) -> Result<Option<Form>, Problem> {
    match params.take("format")?.as_deref() {
        None => Ok(None),
        Some("json") => Ok(Some(Form::Json)),
        Some("html") => Ok(Some(Form::Html)),
        Some(_) => Err(Problem::invalid_request("the format is html or json")),
    }
}

/// The form in the header. A caller who accepts everything gets the page.
fn accepted(headers: &HeaderMap) -> Form {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let names = |media: &str| accepted.is_some_and(|accepted| accepted.contains(media));
    match names("application/json") && !names("text/html") {
        true => Form::Json,
        false => Form::Html,
    }
}

/// The content of a form.
pub(super) struct Sent(pub(super) Result<Params, Problem>);

impl FromRequest<App> for Sent {
    type Rejection = std::convert::Infallible;

    async fn from_request(request: Request, app: &App) -> Result<Self, std::convert::Infallible> {
        const FORM: &str = "application/x-www-form-urlencoded";
        if !has_media_type(request.headers(), &[FORM]) {
            return Ok(Sent(Err(Problem::unsupported_media_type(FORM))));
        }
        let body = RawBody::from_request(request, app).await;
        let read = |RawBody(bytes)| Params::read(&String::from_utf8_lossy(&bytes));
        Ok(Sent(body.map(read)))
    }
}
