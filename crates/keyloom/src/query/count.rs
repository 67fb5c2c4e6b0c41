//! Counts the records that answer a query.

use super::counted::CountedBy;
use super::page::{counting, planned};
use super::plan::{Plan, plan};
use super::predicate::Query;
use super::reader::{Reader, Resolved};
use super::swept::swept;
use super::walk::{Found, Walk, Want};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Collection;
use crate::space::Session;

/// The most entries that one read asks for.
const CHUNK: usize = 1_000;

/// The number of records that answer a query, judged by the entries of an index alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The number of records.
    pub records: usize,
    /// Up to when the collection was swept, in milliseconds since 1970, if its records expire.
    /// Records that expired before this time are not counted. Records that expired later may be,
    /// until they are swept.
    pub swept_until: Option<u64>,
}

/// How many records answer the query. It is an error if the limit is too low to count them all.
pub(crate) async fn count(session: &Session, name: &str, query: &Query) -> Result<usize> {
    let mut attempts = session.live.reads();
    loop {
        if let Some(counted) = attempts.settle(count_once(session, name, query).await).await? {
            return Ok(counted);
        }
    }
}

/// The ways to count records.
enum Way {
    /// A declared aggregate keeps the number.
    Group(CountedBy),
    /// The entries, or records, are read.
    Read(Plan),
}

async fn count_once(session: &Session, name: &str, query: &Query) -> Result<usize> {
    let decided = session.live.decide(|loaded| {
        let collection = loaded.schema.collection(name)?;
        match counting(session, loaded, collection, query)? {
            Some(counted) => Ok(Way::Group(counted)),
            None => {
                check_bounded(session, collection, query)?;
                Ok(Way::Read(plan(session, loaded, collection, query, None)?))
            }
        }
    });
    let plan = match decided.await? {
        Way::Read(plan) => plan,
        Way::Group(CountedBy { aggregate, group }) => {
            let (counted, _) = super::groups::group(session, name, &aggregate, &group).await?;
            return Ok(usize::try_from(counted).unwrap_or(0));
        }
    };
    let expires = plan.collection.expiry.is_some();
    let want = if plan.filters() || expires { Want::Records } else { Want::Entries };
    count_as(session, &plan, query, want).await
}

/// As [`count`], from the entries alone: records that have expired but were not swept yet count
/// too.
pub(crate) async fn count_entries(session: &Session, name: &str, query: &Query) -> Result<Counted> {
    let mut attempts = session.live.reads();
    loop {
        let counted = count_entries_once(session, name, query).await;
        if let Some(counted) = attempts.settle(counted).await? {
            return Ok(counted);
        }
    }
}

async fn count_entries_once(session: &Session, name: &str, query: &Query) -> Result<Counted> {
    let swept_until = swept(session, name).await?;
    let plan = planned(session, name, query).await?;
    check_bounded(session, &plan.collection, query)?;
    let message = "entries alone cannot be filtered by what the records hold; use count";
    plan.check_entries_tell(message)?;
    let records = count_as(session, &plan, query, Want::Entries).await?;
    Ok(Counted { records, swept_until })
}

/// Refuses to count a whole collection by reading it, unless the caller asked for a scan or set a
/// limit. A page stops when it is full; a count would read on.
fn check_bounded(session: &Session, collection: &Collection, query: &Query) -> Result<()> {
    let is_bounded = query.limit.is_some() || query.scan || session.forced(collection).is_some();
    if is_bounded || !query.is_of_everything() {
        return Ok(());
    }
    let message = "to count a whole collection reads all of it";
    Err(Error::new(ErrorKind::NoIndex, message)
        .with("collection", &collection.name)
        .with("would serve", format_args!("[collection.{}.count.all] group = []", collection.name))
        .with("or", "set a limit, or ask for a scan of the whole collection"))
}

async fn count_as(session: &Session, plan: &Plan, query: &Query, want: Want) -> Result<usize> {
    let mut walk = Walk::new(session, plan, want, None)?;
    let reader = Reader::new(session, plan);
    let limit = query.limit.unwrap_or(usize::MAX);
    let (mut counted, mut read) = (0, 0);
    while let Some(found) = walk.next(CHUNK.min(limit.saturating_add(1))).await? {
        if read == limit {
            let message = "there is more to count than the limit allows to read";
            return Err(Error::new(ErrorKind::LimitExceeded, message)
                .with("collection", &plan.collection.name)
                .with("limit", limit)
                .with("at least", counted)
                .with("instead", "raise the limit, or declare a count, which needs no reading"));
        }
        read += 1;
        let counts = match want {
            Want::Entries => true,
            Want::Records => is_counted(&reader, found).await?,
        };
        counted += usize::from(counts);
    }
    Ok(counted)
}

/// Whether an entry, or one of its twins, leads to a record that passes the filters.
async fn is_counted(reader: &Reader<'_>, mut found: Found<'_>) -> Result<bool> {
    let twins = std::mem::take(&mut found.twins);
    for found in std::iter::once(found).chain(twins) {
        let branch = found.branch;
        if let Resolved::Record(document) = reader.resolve(found).await?
            && reader.passes(branch, &document)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}
