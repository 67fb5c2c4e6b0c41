//! Pages of records: what was found, where to go on, and why it stopped.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::counted::{CountedBy, counted_by};
use super::cursor::{Binding, Cursor, Position, Question};
use super::freshness::Freshness;
use super::plan::{Branch, Plan, plan};
use super::predicate::{Query, TAKE_MAX};
use super::reader::{Reader, Resolved, unreadable};
use super::swept::swept;
use super::walk::{Walk, Want};
use crate::engine::ShowKey;
use crate::error::{Error, ErrorKind, Result};
use crate::record::Document;
use crate::schema::Collection;
use crate::side::reveal;
use crate::space::Loaded;
use crate::space::Session;

/// The most entries that are read ahead when a filter may drop them.
const CHUNK_FILTERED: usize = 128;

/// The most entries that are read ahead, over all ranges, where bytes are counted: each may lead to
/// a record of the largest size.
const CHUNK_WEIGHED: usize = 32;

/// One page of an answer.
#[derive(Clone, Debug)]
pub struct Page<R> {
    /// What was found, in order.
    pub records: Vec<R>,
    /// Where the next page starts; `None` when this is the last.
    pub next: Option<Cursor>,
    /// Where the page before ends; `None` when this is the first.
    pub previous: Option<Cursor>,
    /// Why the page has no more records.
    pub stopped: Stopped,
    /// How many entries were read, whether a filter kept them or not.
    pub read: usize,
    /// What could not be read, apart from the records that could.
    pub problems: Vec<Problem>,
    /// For keys alone, of a collection whose records expire: those that expired before this
    /// moment, in milliseconds since 1970, are not among them; later ones may be, until they are
    /// swept. `None` in all other answers, which hold no expired record.
    pub swept_until: Option<u64>,
    /// Tells whether the same question would still get the same page. `None` where only asking
    /// again can tell: records expire or have counters, or the engine does not know.
    pub freshness: Option<Freshness>,
}

/// Why a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// There is nothing after it.
    End,
    /// It is full.
    Take,
    /// It read as many entries as it may.
    Limit,
    /// It has as many bytes as it may.
    Bytes,
}

/// Something that a page met and could not return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What it is.
    pub kind: ProblemKind,
    /// The key of the entry or the record.
    pub key: String,
    /// What is wrong with it.
    pub reason: String,
}

/// The kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// An index entry whose record is not there.
    Dangling,
    /// An index entry that its record does not have.
    Wrong,
    /// An entry or a record that cannot be read.
    Unreadable,
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, key: &[u8], reason: impl fmt::Display) -> Self {
        Problem { kind, key: ShowKey(key).to_string(), reason: reason.to_string() }
    }
}

/// A problem as the error of a program that cannot do without the record.
impl From<Problem> for Error {
    fn from(Problem { kind, key, reason }: Problem) -> Self {
        let message = match kind {
            ProblemKind::Dangling => "an index entry leads to no record; run verify",
            ProblemKind::Wrong => "an index entry is not its record's; run verify",
            ProblemKind::Unreadable => "a record, or an entry of it, cannot be read",
        };
        Error::new(ErrorKind::Corrupt, message).with("key", key).with("reason", reason)
    }
}

impl<R> Page<R> {
    /// The page of an answer that has nothing in it.
    pub(crate) fn nothing() -> Self {
        Page {
            records: Vec::new(),
            next: None,
            previous: None,
            stopped: Stopped::End,
            read: 0,
            problems: Vec::new(),
            swept_until: None,
            freshness: None,
        }
    }

    /// Turns every record into something else; what fails becomes a problem.
    pub(crate) fn map<S>(self, mut turn: impl FnMut(R) -> Result<S, Problem>) -> Page<S> {
        let mut problems = self.problems;
        let mut records = Vec::with_capacity(self.records.len());
        for record in self.records {
            match turn(record) {
                Ok(turned) => records.push(turned),
                Err(problem) => problems.push(problem),
            }
        }
        let Page { next, previous, stopped, read, swept_until, freshness, .. } = self;
        Page { records, next, previous, stopped, read, problems, swept_until, freshness }
    }
}

/// A page of records as they lie in the store.
pub(crate) async fn documents(
    session: &Session,
    name: &str,
    query: &Query,
) -> Result<Page<Document>> {
    run(session, name, query, Want::Records).await
}

/// A page of the keys of records, without reading the records.
pub(crate) async fn keys(session: &Session, name: &str, query: &Query) -> Result<Page<Document>> {
    // Looked up first: what is swept meanwhile is missing from the page, and not in it.
    let swept_until = swept(session, name).await?;
    let page = run(session, name, query, Want::Entries).await?;
    Ok(Page { swept_until, ..page })
}

/// How the query would be answered, and counted where that is otherwise, in words.
pub(crate) async fn explained(session: &Session, name: &str, query: &Query) -> Result<String> {
    // Nothing is read by the plan that could tell that the schema is another by now.
    let loaded = session.live.reload().await?;
    let collection = loaded.schema.collection(name)?;
    let counted = counting(session, &loaded, collection, query)?;
    match (plan(session, &loaded, collection, query, None), counted) {
        (plan, None) => Ok(plan?.to_string()),
        (Ok(plan), Some(CountedBy { aggregate, .. })) => {
            Ok(format!("{plan}\ncount: the aggregate {aggregate}, one round trip"))
        }
        (Err(_), Some(CountedBy { aggregate, .. })) => {
            Ok(format!("records: no index\ncount: the aggregate {aggregate}, one round trip"))
        }
    }
}

/// The group whose number is the number of the query's records, if there is one.
pub(super) fn counting(
    session: &Session,
    loaded: &Loaded,
    collection: &Collection,
    query: &Query,
) -> Result<Option<CountedBy>> {
    // Groups count what has expired until it is swept, and the records of all owners.
    let is_exact = collection.expiry.is_none() && session.forced(collection).is_none();
    if is_exact { counted_by(session, loaded, collection, query) } else { Ok(None) }
}

/// How the query would be answered, from the start.
pub(crate) async fn planned(session: &Session, name: &str, query: &Query) -> Result<Plan> {
    session
        .live
        .decide(|loaded| plan(session, loaded, loaded.schema.collection(name)?, query, None))
        .await
}

async fn run(session: &Session, name: &str, query: &Query, want: Want) -> Result<Page<Document>> {
    check_size(name, query)?;
    let mut attempts = session.live.reads();
    loop {
        if let Some(page) = attempts.settle(run_once(session, name, query, want).await).await? {
            return Ok(page);
        }
    }
}

async fn run_once(
    session: &Session,
    name: &str,
    query: &Query,
    want: Want,
) -> Result<Page<Document>> {
    let decided = session.live.decide(|loaded| {
        let collection = loaded.schema.collection(name)?;
        let binding = Arc::new(bind(session, loaded, collection, query));
        let cursor = query.cursor.as_deref();
        let position = cursor.map(|text| Cursor::open(text, &binding)).transpose()?;
        let pinned = position.as_ref().map(|position| position.indexes.as_str());
        Ok((plan(session, loaded, collection, query, pinned)?, position, binding))
    });
    let (plan, position, binding) = decided.await?;
    // A scan filters by whatever else is asked for.
    if want == Want::Entries {
        plan.check_entries_tell("keys alone cannot be filtered by what the records hold")?;
    }
    let mut gathered = gather(session, &plan, query, want, position.as_ref()).await?;
    if want == Want::Records {
        reveal(session, &plan.collection, gathered.records.iter_mut()).await?;
    }
    Ok(gathered.into_page(&plan, position, binding))
}

/// What counts as the bytes of a record: its key and its text.
pub(super) fn weight(document: &Document) -> usize {
    document.key.len() + document.text().len()
}

fn check_size(name: &str, query: &Query) -> Result<()> {
    if (1..=TAKE_MAX).contains(&query.take) && query.limit != Some(0) {
        return Ok(());
    }
    let message = "a page takes 1 to 10000 records and reads at least one";
    let error = Error::new(ErrorKind::InvalidQuery, message)
        .with("collection", name)
        .with("take", query.take);
    Err(match query.limit {
        Some(limit) => error.with("limit", limit),
        None => error,
    })
}

fn bind(session: &Session, loaded: &Loaded, collection: &Collection, query: &Query) -> Binding {
    Binding {
        secret: loaded.catalog.cursor_secret.0.to_vec(),
        space: session.live.space.name().to_owned(),
        actor: session.actor().map(str::to_owned),
        collection: collection.name.clone(),
        query: Question::Query(Box::new(query.clone())),
    }
}

/// What one walk brought.
struct Gathered {
    records: Vec<Document>,
    problems: Vec<Problem>,
    /// The positions of the first and the last entry that were read.
    ends: Option<(Bytes, Bytes)>,
    stopped: Stopped,
    read: usize,
    /// The bytes of the records, as far as they are counted.
    bytes: usize,
    freshness: Option<Freshness>,
}

/// Reads until the page is full, or something else ends it.
async fn gather(
    session: &Session,
    plan: &Plan,
    query: &Query,
    want: Want,
    position: Option<&Position>,
) -> Result<Gathered> {
    let mut walk = Walk::new(session, plan, want, position)?;
    let gathered = walk_on(&mut walk, &Reader::new(session, plan), query, want).await?;
    let freshness = if plan.is_timeless(want) { walk.into_freshness() } else { None };
    Ok(Gathered { freshness, ..gathered })
}

async fn walk_on(
    walk: &mut Walk<'_>,
    reader: &Reader<'_>,
    query: &Query,
    want: Want,
) -> Result<Gathered> {
    let limit = query.limit.unwrap_or(usize::MAX);
    let mut all = Gathered {
        records: Vec::with_capacity(query.take.min(CHUNK_FILTERED)),
        problems: Vec::new(),
        ends: None,
        stopped: Stopped::End,
        read: 0,
        bytes: 0,
        freshness: None,
    };
    let bytes_max = query.bytes.unwrap_or(usize::MAX);
    let chunk_max = match query.bytes {
        Some(_) => (CHUNK_WEIGHED / walk.ranges()).max(1),
        None => usize::MAX,
    };
    loop {
        // One entry more than the page takes tells whether there is a next page.
        let left = (query.take - all.records.len()).saturating_add(1);
        let drops = reader.filters() || all.read > all.records.len();
        let ahead = if drops { left.max(CHUNK_FILTERED) } else { left };
        if walk.is_hungry() {
            let chunk = ahead.min((limit - all.read).saturating_add(1)).min(chunk_max);
            walk.refill(chunk).await?;
        }
        let Some(mut found) = walk.pop() else { return Ok(all) };
        if all.records.len() == query.take {
            return Ok(Gathered { stopped: Stopped::Take, ..all });
        }
        if all.read == limit {
            return Ok(Gathered { stopped: Stopped::Limit, ..all });
        }
        if all.bytes >= bytes_max {
            return Ok(Gathered { stopped: Stopped::Bytes, ..all });
        }
        all.read += 1;
        match &mut all.ends {
            Some((_, last)) => *last = found.position.clone(),
            ends => *ends = Some((found.position.clone(), found.position.clone())),
        }
        let mut twins = std::mem::take(&mut found.twins).into_iter();
        let mut entry = Some(found);
        while let Some(found) = entry {
            let branch = found.branch;
            let resolved = match want {
                Want::Entries => reader.key_only(&found),
                Want::Records => match reader.resolve_at_once(found) {
                    Ok(resolved) => resolved,
                    Err(doubt) => reader.validate(doubt).await?,
                },
            };
            entry = match resolved {
                // Another side of a union may want what this one does not.
                Resolved::Record(document) => match all.take_in(reader, branch, document) {
                    true => None,
                    false => twins.next(),
                },
                Resolved::Problem(problem) => {
                    all.problems.push(problem);
                    twins.next()
                }
                Resolved::Gone => twins.next(),
            };
        }
    }
}

impl Plan {
    /// Whether an answer changes with nothing but what a walk reads: not with time, and not with
    /// counters, which are looked up after it.
    fn is_timeless(&self, want: Want) -> bool {
        let has_counters = want == Want::Records && !self.collection.counters.is_empty();
        self.collection.expiry.is_none() && !has_counters
    }
}

impl Gathered {
    /// Takes in a record that was found, or what is wrong with it; or tells that a filter drops it.
    fn take_in(&mut self, reader: &Reader<'_>, branch: &Branch, document: Document) -> bool {
        match reader.passes(branch, &document) {
            Ok(true) => {
                self.bytes += weight(&document);
                self.records.push(document);
            }
            Ok(false) => return false,
            Err(error) => self.problems.push(unreadable(document.key.bytes(), error)),
        }
        true
    }

    fn into_page(
        mut self,
        plan: &Plan,
        position: Option<Position>,
        binding: Arc<Binding>,
    ) -> Page<Document> {
        let towards_start = position.as_ref().is_some_and(|position| position.towards_start);
        let at = |key: &Bytes, towards_start, inclusive| {
            let position = Position {
                indexes: plan.index_names(),
                key: key.clone(),
                towards_start,
                inclusive,
            };
            Cursor::new(position, binding.clone())
        };
        let onward = match (&self.ends, self.stopped) {
            (_, Stopped::End) | (None, _) => None,
            (Some((_, last)), _) => Some(at(last, towards_start, false)),
        };
        let back = position.as_ref().map(|from| match &self.ends {
            Some((first, _)) => at(first, !towards_start, false),
            // Nothing was read, so that what was left out on the way here comes next on the way back.
            None => at(&from.key, !towards_start, !from.inclusive),
        });
        let (next, previous) = if towards_start { (back, onward) } else { (onward, back) };
        if towards_start {
            self.records.reverse();
            self.problems.reverse();
        }
        let Gathered { records, problems, stopped, read, freshness, .. } = self;
        Page { records, next, previous, stopped, read, problems, swept_until: None, freshness }
    }
}
