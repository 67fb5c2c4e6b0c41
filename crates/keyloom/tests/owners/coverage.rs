//! Every public method that reads or writes is one that the property tries, or is refused, or
//! cannot reach a record. A new one fails here until somebody has thought about it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::hostile::METHODS;

/// Refused to acting users; see `examples::maintenance_is_refused`.
const REFUSED: [&str; 36] = [
    "Store::apply",
    "Store::backup",
    "Store::backup_to",
    "Store::restore_from",
    "Store::restorer",
    "Store::stored_schema",
    "Store::index_state",
    "Store::build",
    "Store::build_with_progress",
    "Store::disable",
    "Store::verify",
    "Store::verify_with",
    "Store::repair",
    "Store::repair_with_progress",
    "Store::recount",
    "Store::raw_keys",
    "Store::stats",
    "Store::distribution",
    "Store::purge_groups",
    "Store::changes",
    "Store::log_bounds",
    "Store::trim_log",
    "Store::watch",
    "Store::replay",
    "Store::replay_until",
    "Store::sweep",
    "Store::maintain",
    "Store::maintain_every",
    "Store::start_job",
    "Store::job_of_this_process",
    "Store::jobs",
    "Store::jobs_of_all_spaces",
    "Store::purge_history",
    "Store::purge_idempotency_keys",
    "Collection::lease",
    "Collection::lease_documents",
];

/// Reach no record by themselves, or only through those that do.
const HARMLESS: [&str; 75] = [
    // Reached only through `Store::backup`, which is refused.
    "Backup::info",
    "Backup::next",
    // What is in the log is known to whoever could read it.
    "Changes::is_end",
    "Collection::acting_as",
    // Pages one after the other, each read as `page` and its kin read it.
    "Collection::document_pages",
    "Collection::history_pages",
    "Collection::key_pages",
    "Collection::name",
    "Collection::near_pages",
    "Collection::pages",
    "PagedRecords::next",
    "Pages::cursor",
    "Pages::next",
    "Pages::records",
    // Names of indexes, and their states.
    "Collection::to_build",
    "GroupQuery::within",
    "Increment::add",
    "Increment::of",
    // Reached only through `Store::start_job` and its like, which are refused.
    "Job::id",
    "Job::is_kept",
    "Job::note",
    "Job::pace",
    "Job::progress",
    "Job::run",
    "Job::space_name",
    "Job::started_at",
    "Job::stop",
    "Job::work",
    "JobOptions::with_note",
    "JobOptions::with_pace",
    "LoggedChange::after",
    "LoggedChange::document",
    "Plain::in_area",
    // Reached only through `Store::raw_keys`, which is refused.
    "RawKeys::areas",
    "RawKeys::branches",
    "RawKeys::get",
    "RawKeys::list",
    "RawList::area",
    "RawList::from_cursor",
    "RawList::new",
    "RawList::prefix",
    "RawList::take",
    "RawList::values",
    // Reached only through `Store::restorer`, which is refused.
    "Restorer::finish",
    "Restorer::write",
    "Store::acting_as",
    "Store::close",
    "Store::collection",
    "Store::documents",
    // The way around all of this, for the program itself.
    "Store::engine",
    "Store::on",
    "Store::open",
    "Store::open_existing",
    // The same caller, at one moment.
    "Store::pinned",
    "Store::plain",
    "Store::schema",
    "Store::space",
    "Store::space_name",
    "Store::transaction",
    "Store::transaction_with",
    // Refused with `verify`, which is made of it.
    "Store::verifier",
    "Store::with_clock",
    "Store::with_warnings",
    "Stored::into_value",
    "Transaction::collection",
    "Transaction::documents",
    "Watch::next",
    "Watch::position",
    "WatchOptions::collection",
    "WatchOptions::from_now",
    "WatchOptions::from_position",
    "WatchOptions::key_prefix",
    // What a write answered to whoever wrote it.
    "Written::into_document",
    "Written::text",
    "Written::value",
];

#[test]
fn every_public_method_was_thought_of() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        found.extend(methods(&text));
    }
    for listed in REFUSED.iter().chain(&HARMLESS) {
        assert!(found.contains(*listed), "{listed} is gone");
    }
    let unknown: Vec<_> = found.iter().filter(|method| !is_known(method)).collect();
    assert!(
        unknown.is_empty(),
        "what may an acting user do with these? Try them in `hostile.rs`, or refuse them by \
         `Session::program`: {unknown:?}"
    );
}

fn is_known(method: &str) -> bool {
    let (of, name) = method.split_once("::").unwrap();
    let tried = match of {
        "Collection" => name.to_owned(),
        "TransactionCollection" => format!("transaction {name}"),
        _ => format!("{} {name}", of.to_lowercase()),
    };
    METHODS.contains(&&*tried) || REFUSED.contains(&method) || HARMLESS.contains(&method)
}

/// The public methods in a source, each with its type. Sources are formatted, so that an `impl`
/// stands at the start of a line and its methods one step in.
fn methods(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut of = String::new();
    for line in text.lines() {
        if line.starts_with("impl") {
            let head = line.split('{').next().unwrap().trim_end();
            let head = head.split(" for ").last().unwrap();
            let head = head.split(" where").next().unwrap();
            let plain = head.rsplit_once(' ').map_or(head, |(_, name)| name);
            of = plain.split('<').next().unwrap().to_owned();
        }
        let method = line.strip_prefix("    pub async fn ").or(line.strip_prefix("    pub fn "));
        if let Some(method) = method {
            let name = method.split(['(', '<']).next().unwrap();
            found.push(format!("{of}::{name}"));
        }
    }
    found
}

#[test]
fn methods_are_found_where_they_are() {
    let source = "impl<T: Serialize> Collection<T> {\n    pub async fn insert(&self)\n}\n\
                  impl Deref for Stored<u8> {\n    fn deref(&self)\n}\n\
                  impl Plain {\n    pub fn list<T>(&self)\n}\n";
    assert_eq!(methods(source), ["Collection::insert", "Plain::list"]);
}
