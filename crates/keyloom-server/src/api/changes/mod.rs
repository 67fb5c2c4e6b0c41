//! The change log, as pages and as a stream.

mod stream;
mod told;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, header as name};
use axum::response::Response;
use axum::routing::get;
use keyloom::{Changes, Error, ErrorKind, Logged, Position, Store};

use crate::api::accept::weight;
use crate::api::answer;
use crate::api::routes::Routes;
use crate::api::weighed::Growing;
use crate::app::App;
use crate::auth::Verb;
use crate::caller::{Caller, header, needs_user};
use crate::guard::Arrival;
use crate::params::Params;
use crate::problem::Problem;
use crate::refusal;
use told::commit;

/// How many commits a page has, unless the request says otherwise.
const PAGE: usize = 100;

/// The media type of a stream.
const EVENT_STREAM: &str = "text/event-stream";

/// The position from which a broken stream is resumed.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

pub(in crate::api) fn routes() -> Routes {
    Routes::new().route("/changes", get(changes))
}

/// Which changes the caller wants.
pub(super) struct Wanted {
    /// These collections, if any are named, or all that the caller may see.
    collections: Option<Vec<String>>,
    prefix: Option<String>,
}

/// `GET /changes`
async fn changes(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
    headers: HeaderMap,
    Extension(arrival): Extension<Arrival>,
) -> Result<Response, Problem> {
    if caller.user.is_some() {
        let detail = "the change log tells of every user's records; ask without an acting user";
        return Err(Problem::forbidden(detail));
    }
    let from = params.take("from")?.map(|text| text.parse::<Position>()).transpose()?;
    let limit = params.take_number("limit")?;
    let collection = params.take("collection")?;
    let wanted = Wanted {
        collections: readable(&caller, collection).await?,
        prefix: params.take("prefix")?,
    };
    params.finish()?;
    if accepts_stream(&headers)? {
        if limit.is_some() {
            let detail = "a stream goes on, and has no limit; ask for application/json for pages";
            return Err(Problem::invalid_request(detail));
        }
        let from = resumed(&headers)?.or(from);
        return stream::answer(&app, &caller.store, from, &wanted).await;
    }
    let limit = limit.unwrap_or(PAGE);
    let most = app.config().limits.page_max;
    if !(1..=most).contains(&limit) {
        let detail = format!("the parameter limit is a number from 1 to {most}");
        return Err(Problem::invalid_request(detail).with("value", limit));
    }
    let list = Growing::new(&app, &arrival, limit, "{\"commits\":[");
    page(&caller.store, from, list, &wanted).await
}

async fn page(
    store: &Store,
    from: Option<Position>,
    mut list: Growing<'_>,
    wanted: &Wanted,
) -> Result<Response, Problem> {
    let mut from = match from {
        Some(from) => from,
        None => store.log_bounds().await?.oldest,
    };
    let (oldest, is_end) = loop {
        let changes = store.changes(from, list.rows()).await.map_err(refused)?;
        let is_end = changes.is_end();
        let Changes { commits, next, bounds } = changes;
        let read = commits.len();
        let commits = commits.into_iter().filter_map(|logged| wanted.of(logged));
        list.add(read, commits.map(|logged| commit(logged).to_string())).await;
        from = next;
        if is_end || list.stopped().is_some() {
            break (bounds.oldest, is_end);
        }
    };
    let mut text = list.into_text();
    let end = format!("],\"next\":\"{from}\",\"oldest\":\"{oldest}\",\"is_end\":{is_end}}}");
    text.extend_from_slice(end.as_bytes());
    Ok(answer::text(text))
}

impl Wanted {
    /// The commit with the wanted changes; `None` if it has none. Changes of the schema are
    /// included if nothing is filtered out.
    fn of(&self, mut logged: Logged) -> Option<Logged> {
        let is_one = |name: &String| self.collections.as_ref().is_none_or(|all| all.contains(name));
        let begins = |key: &str| self.prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix));
        logged.changes.retain(|change| is_one(&change.collection) && begins(&change.key));
        let is_all = self.collections.is_none() && self.prefix.is_none();
        let is_wanted = !logged.changes.is_empty() || (is_all && logged.is_schema_change);
        is_wanted.then_some(logged)
    }
}

/// The collections that the caller gets; `None` for all of them.
async fn readable(caller: &Caller, named: Option<String>) -> Result<Option<Vec<String>>, Problem> {
    if let Some(named) = named {
        caller.collection(Verb::Read, &named).await?;
        return Ok(Some(vec![named]));
    }
    if caller.reads_keys() {
        return Ok(None);
    }
    let schema = caller.store.schema().await?.declaration();
    let is_told = |name: &str, access| {
        caller.may_read(name) && !(caller.lacks_user() && needs_user(Verb::Read, access))
    };
    let told = schema.collections.into_iter().filter(|(name, it)| is_told(name, it.access));
    let names: Vec<String> = told.map(|(name, _)| name).collect();
    match names.is_empty() {
        true => Err(Problem::forbidden("the token allows to read no collection")),
        false => Ok(Some(names)),
    }
}

/// A position beyond the end of the log may be valid in another store, as a cursor can be.
fn refused(error: Error) -> Problem {
    if error.kind() != ErrorKind::InvalidArgument || error.context_value("next position").is_none()
    {
        return error.into();
    }
    let foreign = Error::new(ErrorKind::InvalidCursor, "the log has not come to this position");
    let context = error.context().map(|(name, value)| (name, value.to_owned()));
    context.fold(foreign, |foreign, (name, value)| foreign.with(name, value)).into()
}

/// Where a broken stream is resumed: after the last event that it gave.
fn resumed(headers: &HeaderMap) -> Result<Option<Position>, Problem> {
    let Some(id) = header(headers, &LAST_EVENT_ID)?.filter(|id| !id.is_empty()) else {
        return Ok(None);
    };
    Ok(Some(id.parse::<Position>()?.next()))
}

/// Whether the caller wants a stream.
fn accepts_stream(headers: &HeaderMap) -> Result<bool, Problem> {
    let Some(accept) = header(headers, &name::ACCEPT)? else { return Ok(false) };
    Ok(accept.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_stream = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(EVENT_STREAM));
        is_stream && weight(parts).is_none_or(|weight| weight > 0.0)
    }))
}

/// The refusal of a stream beyond the limit.
fn too_many(most: usize) -> Problem {
    refusal::overloaded(format!("there are {most} streams already, which is the limit"))
}
