//! Pages of records: the records, where to continue, and why the page stopped.

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

/// The most entries that are read ahead when a filter may drop some of them.
const CHUNK_FILTERED: usize = 128;

/// The most entries that are read ahead, over all ranges, when the page has a limit of bytes: each
/// entry may lead to a record of the largest size.
const CHUNK_WEIGHED: usize = 32;

/// One page of an answer.
#[derive(Clone, Debug)]
pub struct Page<R> {
    /// The records, in order.
    pub records: Vec<R>,
    /// Where the next page starts; `None` if this is the last.
    pub next: Option<Cursor>,
    /// Where the previous page ends; `None` if this is the first.
    pub previous: Option<Cursor>,
    /// Why the page ended.
    pub stopped: Stopped,
    /// How many entries were read, whether or not a filter dropped their records.
    pub read: usize,
    /// Entries and records that could not be read.
    pub problems: Vec<Problem>,
    /// For a page of keys, if the collection's records expire: up to when it was swept, in
    /// milliseconds since 1970. Keys of records that expired before this time are not in the page.
    /// Keys of records that expired later may be, until they are swept. `None` for all other pages,
    /// which never have expired records.
    pub swept_until: Option<u64>,
    /// Tells whether the same query would still get the same page. `None` if only the query itself
    /// can tell: because records expire or have counters, or because the engine cannot know.
    pub freshness: Option<Freshness>,
}

/// Why a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// No records follow.
    End,
    /// It is full.
    Take,
    /// It read as many entries as its limit allows.
    Limit,
    /// It reached its limit of bytes.
    Bytes,
}

/// An entry or a record that a page found but could not return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of the problem.
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
    /// An index entry whose record does not exist.
    Dangling,
    /// An index entry that does not belong to the record that it leads to.
    Wrong,
    /// An entry or a record that cannot be decoded.
    Unreadable,
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, key: &[u8], reason: impl fmt::Display) -> Self {
        Problem { kind, key: ShowKey(key).to_string(), reason: reason.to_string() }
    }
}

/// The problem as an error, for a program that cannot do without the record.
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
    /// A page without records.
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

    /// Converts every record. A failed conversion becomes a problem.
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

/// A page of records as stored.
pub(crate) async fn documents(
    session: &Session,
    name: &str,
    query: &Query,
) -> Result<Page<Document>> {
    run(session, name, query, Want::Records).await
}

/// A page of the keys of records, without reading the records.
pub(crate) async fn keys(session: &Session, name: &str, query: &Query) -> Result<Page<Document>> {
    // Read before the page: a later sweep can only remove more records, so the time stays true.
    let swept_until = swept(session, name).await?;
    let page = run(session, name, query, Want::Entries).await?;
    Ok(Page { swept_until, ..page })
}

/// Explains in words how the query would be answered, and how it would be counted if that differs.
pub(crate) async fn explained(session: &Session, name: &str, query: &Query) -> Result<String> {
    // Reloads the schema first: a plan alone reads nothing that would reveal an outdated schema.
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

/// The group that counts exactly the query's records, if there is one.
pub(super) fn counting(
    session: &Session,
    loaded: &Loaded,
    collection: &Collection,
    query: &Query,
) -> Result<Option<CountedBy>> {
    // Groups count expired records until they are swept, and the records of all owners.
    let is_exact = collection.expiry.is_none() && session.forced(collection).is_none();
    if is_exact { counted_by(session, loaded, collection, query) } else { Ok(None) }
}

/// The plan of the query, without a cursor.
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
    // A scan turns all conditions into filters.
    if want == Want::Entries {
        plan.check_entries_tell("keys alone cannot be filtered by what the records hold")?;
    }
    let mut gathered = gather(session, &plan, query, want, position.as_ref()).await?;
    if want == Want::Records {
        reveal(session, &plan.collection, gathered.records.iter_mut()).await?;
    }
    Ok(gathered.into_page(&plan, position, binding))
}

/// The bytes of a record, as a page counts them: its key and its text.
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

/// The results of one walk.
struct Gathered {
    records: Vec<Document>,
    problems: Vec<Problem>,
    /// The positions of the first and the last entry that were read.
    ends: Option<(Bytes, Bytes)>,
    stopped: Stopped,
    read: usize,
    /// The bytes of the records, if the page counts them.
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
        // One entry more than the page takes shows whether there is a next page.
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
                // Another branch of the union may accept a record that this one drops.
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
    /// Whether an answer depends only on the entries and records that a walk reads: not on the
    /// time, and not on counters, which are read after the walk.
    fn is_timeless(&self, want: Want) -> bool {
        let has_counters = want == Want::Records && !self.collection.counters.is_empty();
        self.collection.expiry.is_none() && !has_counters
    }
}

impl Gathered {
    /// Adds a record, or the reason why it cannot be read; `false` if a filter drops it.
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
            // No entry was read. The way back has the record at the position exactly if the way
            // here had not.
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
