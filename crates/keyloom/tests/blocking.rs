//! Stores that wait: the same answers, from any thread that no runtime owns.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod typed_support;

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keyloom::blocking::{self, Job, Started, Store};
use keyloom::{
    BranchOptions, Due, Error, ErrorKind, IndexState, JobOptions, JobProgress, JobResult, Near,
    Query, RawList, Record, RepairOptions, Retry, Schema, StatsOptions, SweepOptions,
    VerifyOptions, WatchOptions, Work,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use typed_support::approvals::{Approval, Status};
use typed_support::patterns::Place;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "account:{name}")]
struct Account {
    name: String,
    balance: i64,
}

fn account(name: &str, balance: i64) -> Account {
    Account { name: name.to_owned(), balance }
}

#[test]
fn a_record_goes_in_and_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&format!("file:{}", folder.path().display())).unwrap();
    let approvals = store.collection::<Approval>().unwrap();
    assert_eq!(approvals.name(), "approval");
    for n in 0..10 {
        approvals.insert(&Approval::new("ana", "ben", 1_000 + n)).unwrap();
    }
    let page = approvals.by_requester("ana").newest().page(4).wait().unwrap();
    assert_eq!(page.records[0].created_at.millis(), 1_009);
    let next = approvals.by_requester("ana").newest().page(4).after(page.next).wait().unwrap();
    assert_eq!(next.records[0].created_at.millis(), 1_005);

    let approval = &next.records[0];
    let code = approval.code.clone().unwrap();
    assert_eq!(approvals.by_code(&code).get().wait().unwrap().as_ref(), Some(approval));
    assert_eq!(approvals.get_by("code", &code).unwrap().as_ref(), Some(approval));
    assert_eq!(approvals.get(approval.id).unwrap().as_ref(), Some(approval));
    assert_eq!(approvals.get_many([approval.id]).unwrap(), [Some(approval.clone())]);
    let approved = Approval { status: Status::Approved, ..approval.value.clone() };
    approvals.replace_if(&approved, approval.version).unwrap();
    let error = approvals.replace_if(&approved, approval.version).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::VersionConflict);
    assert!(approvals.delete(approval.id).unwrap().is_some());
    let mine = Query::new().equal("requester_id", "ana");
    assert_eq!(approvals.count(&mine).unwrap(), 9);
    assert_eq!(approvals.by_requester("ana").count().wait().unwrap(), 9);
    assert!(approvals.explain(&mine).unwrap().contains("index approval.requester"));
    store.close().unwrap();
}

#[test]
fn json_spaces_and_places() {
    let store = Store::open("memory:").unwrap().space("tenant").unwrap();
    assert_eq!(store.space_name(), "tenant");
    store.apply(&Place::schema().unwrap()).unwrap();
    assert_eq!(store.schema().unwrap(), Place::schema().unwrap());
    let places = store.documents("location").unwrap();
    places.upsert(&json!({ "id": "a", "lat": 1.0, "lng": 2.0 })).unwrap();
    assert_eq!(places.near(&Near::new(1.0, 2.0).within(10.0)).unwrap().records.len(), 1);
    let found = store.run(places.as_async().get("a")).unwrap().unwrap();
    assert_eq!(found.value["lng"], 2.0);
}

#[test]
fn a_transaction_reads_and_writes_while_it_waits() {
    let store = Store::open("memory:").unwrap();
    let accounts = store.collection::<Account>().unwrap();
    accounts.insert(&account("ana", 10)).unwrap();
    accounts.insert(&account("ben", 0)).unwrap();
    let moved: i64 = store
        .transaction(|transaction| {
            let accounts = transaction.collection::<Account>()?;
            let mut from = accounts.get("ana")?.unwrap().into_value();
            let mut to = accounts.get("ben")?.unwrap().into_value();
            from.balance -= 3;
            to.balance += 3;
            accounts.replace(&from)?;
            accounts.replace(&to)?;
            accounts.insert(&account("cyd", 0))?;
            Ok::<_, Error>(to.balance)
        })
        .unwrap();
    assert_eq!(moved, 3);
    assert_eq!(accounts.get("ana").unwrap().unwrap().balance, 7);
    assert!(accounts.get("cyd").unwrap().is_some());
}

#[test]
fn the_closures_own_error_ends_the_transaction() {
    #[derive(Debug)]
    enum Refusal {
        TooPoor,
        Store(Error),
    }
    impl From<Error> for Refusal {
        fn from(error: Error) -> Self {
            Refusal::Store(error)
        }
    }
    let store = Store::open("memory:").unwrap();
    let accounts = store.collection::<Account>().unwrap();
    let refused = store.transaction(|transaction| {
        transaction.collection::<Account>()?.insert(&account("ana", 0))?;
        Err::<(), _>(Refusal::TooPoor)
    });
    assert!(matches!(refused, Err(Refusal::TooPoor)));
    assert_eq!(accounts.get("ana").unwrap(), None);
    let refused = store.transaction(|transaction| {
        transaction.documents("nothing")?;
        Ok::<_, Refusal>(())
    });
    assert!(
        matches!(refused, Err(Refusal::Store(error)) if error.kind() == ErrorKind::InvalidArgument)
    );
}

#[test]
fn a_conflict_runs_the_closure_again() {
    let store = Store::open("memory:").unwrap();
    let accounts = store.collection::<Account>().unwrap();
    accounts.insert(&account("ana", 0)).unwrap();
    let mut attempts = 0;
    store
        .transaction(|transaction| {
            attempts += 1;
            let inside = transaction.collection::<Account>()?;
            let seen = inside.get("ana")?.unwrap().into_value();
            if attempts == 1 {
                accounts.replace(&account("ana", 100))?;
            }
            inside.replace(&account("ana", seen.balance + 1))?;
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(attempts, 2);
    assert_eq!(accounts.get("ana").unwrap().unwrap().balance, 101);

    let never = store.transaction_with(Retry::never(), |transaction| {
        let inside = transaction.collection::<Account>()?;
        inside.get("ana")?;
        accounts.upsert(&account("ana", 5))?;
        inside.replace(&account("ana", 6))?;
        Ok::<_, Error>(())
    });
    assert_eq!(never.unwrap_err().kind(), ErrorKind::Contention);
    assert_eq!(accounts.get("ana").unwrap().unwrap().balance, 5);
}

#[test]
fn several_threads_wait_at_once() {
    const THREADS: i64 = 4;
    const ADDITIONS: i64 = 25;
    let store = Store::open("memory:").unwrap();
    let accounts = store.collection::<Account>().unwrap();
    accounts.insert(&account("ana", 0)).unwrap();
    let start = Barrier::new(THREADS as usize);
    let patient = Retry { attempts: 1_000, ..Retry::eager() };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, accounts, start) = (&store, &accounts, &start);
            scope.spawn(move || {
                start.wait();
                for n in 0..ADDITIONS {
                    accounts.insert(&account(&format!("{thread}-{n}"), 1)).unwrap();
                    store
                        .transaction_with(patient, |transaction| {
                            let inside = transaction.collection::<Account>()?;
                            let balance = inside.get("ana")?.unwrap().balance;
                            inside.replace(&account("ana", balance + 1)).map(drop)
                        })
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(accounts.get("ana").unwrap().unwrap().balance, THREADS * ADDITIONS);
    assert_eq!(accounts.scan().count().wait().unwrap() as i64, THREADS * ADDITIONS + 1);
}

#[test]
fn inside_a_runtime_it_is_an_error_and_no_panic() {
    let store = Store::open("memory:").unwrap();
    let accounts = store.collection::<Account>().unwrap();
    accounts.insert(&account("ana", 0)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async move {
        let kind = |error: Error| error.kind();
        assert_eq!(accounts.get("ana").map_err(kind), Err(ErrorKind::InvalidArgument));
        assert_eq!(accounts.scan().count().wait().map_err(kind), Err(ErrorKind::InvalidArgument));
        assert_eq!(Store::open("memory:").map(drop).map_err(kind), Err(ErrorKind::InvalidArgument));
        let nothing = store.transaction(|_| Ok::<_, Error>(()));
        assert_eq!(nothing.map_err(kind), Err(ErrorKind::InvalidArgument));
        // Awaiting works everywhere, and so does dropping the last handle.
        assert_eq!(accounts.as_async().get("ana").await.unwrap().unwrap().balance, 0);
        assert_eq!(accounts.scan().count().await.unwrap(), 1);
        drop((accounts, store));
    });
}

/// One of each way to wait, on an engine that answers from another thread: what is in memory, what
/// has to be made durable, what takes turns, and what pauses.
fn wait_for_everything(store: &Store) -> Result<(), Error> {
    let accounts = store.collection::<Account>()?;
    accounts.upsert(&account("ana", 0))?;
    let mut attempts = 0;
    store.transaction(|transaction| {
        attempts += 1;
        let inside = transaction.collection::<Account>()?;
        let seen = inside.get("ana")?.map_or(0, |ana| ana.balance);
        if attempts == 1 {
            accounts.upsert(&account("ana", 100))?;
        }
        inside.replace(&account("ana", seen + 1)).map(drop)
    })?;
    assert_eq!(attempts, 2, "the first attempt met another write, and paused");
    // A function that waits while it is waited for.
    accounts.modify("ana", |ana| {
        ana.balance += accounts.get("ana")?.map_or(0, |ana| ana.balance);
        Ok(())
    })?;
    assert_eq!(accounts.get("ana")?.unwrap().balance, 202);
    assert_eq!(accounts.scan().page(5).wait()?.records.len(), 1);
    Ok(())
}

#[test]
fn threads_of_spawn_blocking_may_wait() {
    let flavors = [
        tokio::runtime::Builder::new_current_thread(),
        tokio::runtime::Builder::new_multi_thread(),
    ];
    for mut flavor in flavors {
        // Without a clock of its own: the store brings one.
        let runtime = flavor.build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let address = format!("file:{}", folder.path().display());
        let waited = runtime.block_on(async {
            tokio::task::spawn_blocking(move || {
                let store = Store::open(&address)?;
                wait_for_everything(&store)?;
                store.close()
            })
            .await
            .unwrap()
        });
        waited.unwrap();
    }
}

#[test]
fn many_lent_threads_wait_for_one_store_at_once() {
    const THREADS: i64 = 8;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&format!("file:{}", folder.path().display())).unwrap();
    let accounts = store.collection::<Account>().unwrap();
    accounts.insert(&account("ana", 0)).unwrap();
    runtime.block_on(async {
        let add = || {
            let accounts = accounts.clone();
            tokio::task::spawn_blocking(move || {
                for _ in 0..5 {
                    let add = |ana: &mut Account| {
                        ana.balance += 1;
                        Ok(())
                    };
                    accounts.modify("ana", add).unwrap();
                }
            })
        };
        let all: Vec<_> = (0..THREADS).map(|_| add()).collect();
        for thread in all {
            thread.await.unwrap();
        }
    });
    assert_eq!(accounts.get("ana").unwrap().unwrap().balance, 5 * THREADS);
}

#[test]
fn a_task_is_told_where_a_blocking_store_may_wait() {
    let store = Store::open("memory:").unwrap();
    let accounts = store.collection::<Account>().unwrap();
    let refused = |accounts: &blocking::Collection<Account>| {
        let error = accounts.get("ana").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("spawn_blocking"), "{error}");
    };
    for mut flavor in
        [tokio::runtime::Builder::new_current_thread(), tokio::runtime::Builder::new_multi_thread()]
    {
        let runtime = flavor.build().unwrap();
        let (here, there) = (accounts.clone(), accounts.clone());
        runtime.block_on(async move {
            refused(&here);
            tokio::spawn(async move { refused(&there) }).await.unwrap();
        });
    }
    // A task of a `LocalSet` cannot be told from a lent thread. It waits, and does not panic.
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.spawn_local(async move { accounts.insert(&account("ana", 0)).map(drop) });
    runtime.block_on(local);
    assert_eq!(store.collection::<Account>().unwrap().scan().count().wait().unwrap(), 1);
}

#[test]
fn an_async_answer_cannot_be_waited_for() {
    let store = Store::open("memory:").unwrap();
    store.apply(&Schema::default()).unwrap();
    let accounts = store.run(store.as_async().collection::<Account>()).unwrap();
    let error = accounts.scan().page(1).wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("awaited"));
}

#[test]
fn changes_are_read_watched_and_replayed() {
    let store = Store::open("memory:").unwrap();
    store.apply(&Schema::from_toml("[log]\nentries = 100").unwrap()).unwrap();
    let accounts = store.collection::<Account>().unwrap();
    let watch = store.watch(WatchOptions::from_now()).unwrap();
    let end = store.log_bounds().unwrap().next;
    assert_eq!(watch.position(), end);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..20 {
                accounts.insert(&account(&format!("a{number}"), number)).unwrap();
            }
        });
        for (number, commit) in watch.take(20).enumerate() {
            assert_eq!(commit.unwrap().changes[0].key, format!("account:a{number}"));
        }
    });
    assert_eq!(store.changes(end, 100).unwrap().commits.len(), 20);
    assert_eq!(store.trim_log().unwrap().removed, 0);
    let copy = Store::open("memory:").unwrap();
    copy.replay(&store).unwrap();
    assert_eq!(copy.collection::<Account>().unwrap().get("a7").unwrap().unwrap().balance, 7);
    let half = Store::open("memory:").unwrap();
    half.replay_until(&store, end).unwrap();
    assert_eq!(half.collection::<Account>().unwrap().scan().count().wait().unwrap(), 1);
}

#[test]
fn what_expires_and_what_is_due_waits_too() {
    let schema = r#"
        [collection.job]
        key = "job:{id}"
        expires_at = "ends"
        fields = { id = "text", at = "timestamp", ends = "timestamp" }
        index.due = { key = "job-due:{at}:{id}" }
        count.all = { group = [] }
    "#;
    let store = Store::open("memory:").unwrap();
    store.apply(&Schema::from_toml(schema).unwrap()).unwrap();
    let jobs = store.documents("job").unwrap();
    jobs.insert(&json!({ "id": "over", "at": 1, "ends": 2 })).unwrap();
    jobs.insert(&json!({ "id": "due", "at": 1 })).unwrap();
    assert!(jobs.get("over").unwrap().is_none());
    assert_eq!(jobs.count_entries(&Query::new().scan()).unwrap().swept_until, Some(2));
    let all = jobs.group("all", ()).unwrap();
    assert_eq!((all.count, all.swept_until), (2, Some(2)));
    assert_eq!(store.sweep(&SweepOptions::default()).unwrap().records, 1);
    let (due, hour) = (Due::new("due").take(9), Duration::from_secs(3_600));
    let mut leased = jobs.lease(&due, "w", hour).unwrap();
    assert!(jobs.lease_documents(&due, "w", hour).unwrap().items.is_empty());
    let item = &mut leased.items[0];
    store.extend(&mut item.lease, hour).unwrap();
    let finish = || {
        store.transaction(|transaction| {
            transaction.documents("job")?.delete("due")?;
            transaction.complete(&item.lease)?;
            Ok::<_, Error>(())
        })
    };
    finish().unwrap();
    assert_eq!(finish().unwrap_err().kind(), ErrorKind::LeaseLost);
    jobs.insert(&json!({ "id": "again", "at": 1 })).unwrap();
    let item = jobs.lease(&due, "w", hour).unwrap().items.remove(0);
    assert!(store.release(item.lease).unwrap());
    assert_eq!(jobs.lease(&due, "w", hour).unwrap().items.len(), 1);
}

#[test]
fn names_keys_and_amounts_are_told() {
    let store = Store::open("memory:").unwrap();
    let accounts = store.collection::<Account>().unwrap();
    accounts.insert(&account("ana", 1)).unwrap();
    assert_eq!(accounts.name_of("account:ana").unwrap(), "ana");
    assert_eq!(accounts.key_named("ana").unwrap(), [json!("ana")]);
    let error = accounts.key_of_owner_named("ana", "x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(accounts.owned_keys("ana").unwrap().unwrap()[0].key, "account:ana");
    let first = accounts.get("ana").unwrap().unwrap().version;
    let changed = store.transaction(|tx| {
        let accounts = tx.collection::<Account>()?;
        accounts.update("ana", &json!({ "balance": 2 }))?;
        let error = accounts.update_if("ana", &json!({ "balance": 3 }), first).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::VersionConflict);
        assert_eq!(accounts.delete_if("ana", first).unwrap_err().kind(), error.kind());
        Ok::<_, Error>(())
    });
    changed.unwrap();
    assert_eq!(accounts.get("ana").unwrap().unwrap().balance, 2);
    let stats = store.stats(&StatsOptions::default()).unwrap();
    assert_eq!(stats.collections[0].records.keys, 1);
    let error = store.distribution("account", "none", 1, 10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn plain_and_raw_keys_and_chunks_of_a_verification_wait_too() {
    let store = Store::open("memory:").unwrap();
    let accounts = store.collection::<Account>().unwrap();
    accounts.insert(&account("ana", 1)).unwrap();
    let plain = store.plain();
    plain.put("free", "text").unwrap();
    assert_eq!(plain.get("free").unwrap().unwrap(), "text");
    let once = plain.with_idempotency_key("k").unwrap();
    assert_eq!(once.put("other", "1").unwrap(), once.put("other", "1").unwrap());
    assert!(plain.delete("other").unwrap().is_some());
    assert_eq!(plain.list("", 10, None).unwrap().entries.len(), 2);
    assert_eq!(plain.in_area("apart").unwrap().get("free").unwrap(), None);
    let raw = store.raw_keys().unwrap();
    assert_eq!(raw.areas().unwrap(), ["", "~"]);
    assert_eq!(raw.list(&RawList::new().area("")).unwrap().keys.len(), 2);
    assert_eq!(raw.get("", "free").unwrap().unwrap().text, "free");
    assert!(!raw.branches("", "account:", &BranchOptions::default()).unwrap().branches.is_empty());
    let acting = store.acting_as("ana").unwrap();
    assert_eq!(acting.raw_keys().err().unwrap().kind(), ErrorKind::Forbidden);
    let chunks = store.verifier(&VerifyOptions::default()).unwrap();
    assert_eq!(chunks.map(|chunk| chunk.unwrap().records).sum::<u64>(), 1);
}

#[test]
fn the_stored_schema_tells_states_and_long_work_its_progress() {
    let store = Store::open("memory:").unwrap();
    let approvals = store.collection::<Approval>().unwrap();
    store.disable(approvals.name(), "code").unwrap();
    let stored = store.stored_schema().unwrap();
    assert_eq!(stored.states[approvals.name()]["code"], IndexState::Disabled);
    assert_eq!(stored.schema.declaration(), store.schema().unwrap().declaration());
    store.build_with_progress(approvals.name(), "code", |_| {}).unwrap();
    store.repair_with_progress(&RepairOptions::default(), |_| {}).unwrap();
    let stored = store.stored_schema().unwrap();
    assert_eq!(stored.states[approvals.name()]["code"], IndexState::Ready);
}

#[test]
fn a_job_is_started_found_run_and_stopped() {
    let store = Store::open("memory:").unwrap();
    store.collection::<Account>().unwrap().insert(&account("ana", 1)).unwrap();
    let work = || Work::Verify(VerifyOptions::default());
    let options = || JobOptions::default().with_note(json!("nightly"));
    let Started::Job(job) = store.start_job(work(), options()).unwrap() else { panic!("a rival") };
    let Started::Rival(rival) = store.start_job(work(), options()).unwrap() else {
        panic!("two jobs of a kind")
    };
    assert_eq!((rival.id(), rival.note()), (job.id(), &json!("nightly")));
    let found = store.jobs().unwrap();
    assert_eq!(found.iter().map(Job::id).collect::<Vec<_>>(), [job.id()]);
    let heard = AtomicU64::new(0);
    let hear = |progress: JobProgress| heard.store(progress.records, Ordering::Relaxed);
    let Some(JobResult::Verified(verification)) = job.run(hear).unwrap() else {
        panic!("no result")
    };
    assert_eq!((verification.records, heard.load(Ordering::Relaxed)), (1, 1));
    assert!(store.jobs_of_all_spaces().unwrap().is_empty());
    let Started::Job(job) = store.start_job(work(), options()).unwrap() else { panic!("a rival") };
    assert!(job.stop().unwrap());
    assert_eq!(job.run(|_| {}).unwrap().map(|_| "ran"), None);
    let own = store.job_of_this_process(work(), JobOptions::default()).unwrap();
    assert!(!own.is_kept() && own.run(|_| {}).unwrap().is_some());
}

/// The types with public async methods, and the file in which each of these has a twin.
const TWINS: [(&str, &str); 13] = [
    ("Store", "store"),
    ("Collection", "collection"),
    ("Plain", "plain"),
    ("RawKeys", "raw_keys"),
    ("Transaction", "transaction"),
    ("TransactionCollection", "transaction"),
    ("Watch", "watch"),
    ("Freshness", "store"),
    ("Lease", "store"),
    ("Job", "job"),
    ("Verifier", "verifier"),
    ("Pages", "pages"),
    ("PagedRecords", "pages"),
];

/// Async methods that need none: a blocking store has no threads of its own to maintain it, writes
/// a backup to what takes bytes and restores from what gives them, a transaction refuses all
/// pages, and a blocking verifier is an iterator over its chunks.
const WITHOUT_TWIN: [(&str, &str); 9] = [
    ("Backup", "next"),
    ("Restorer", "finish"),
    ("Restorer", "write"),
    ("Store", "backup"),
    ("Store", "restorer"),
    ("Maintainer", "next_pass"),
    ("Maintainer", "stop"),
    ("TransactionCollection", "page"),
    ("Verifier", "next_chunk"),
];

/// Engines are for those who write engines; typed queries end in `wait()`.
const WITHOUT_FACADE: [&str; 3] = ["engine", "blocking", "typed"];

/// Every public async method: the type, and its own name.
fn async_methods() -> BTreeSet<(String, String)> {
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut methods = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_file() {
                methods.extend(async_methods_in(&std::fs::read_to_string(&path).unwrap()));
            } else if !WITHOUT_FACADE.contains(&name) {
                folders.push(path);
            }
        }
    }
    methods
}

fn async_methods_in(text: &str) -> Vec<(String, String)> {
    let mut of = "";
    let mut methods = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("impl") {
            let about = head.trim_end_matches(" {").split(" for ").last().unwrap_or_default();
            // Without the parameters before the type and those behind it.
            let about = about.rsplit_once("> ").map_or(about, |(_, about)| about);
            of = about.trim().split('<').next().unwrap_or_default();
        }
        if let Some(rest) = line.trim().strip_prefix("pub async fn ") {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            methods.push((of.to_owned(), name.to_owned()));
        }
    }
    methods
}

#[test]
fn every_async_method_has_one_that_waits() {
    let methods = async_methods();
    assert!(methods.len() >= 85, "{}: {methods:?}", methods.len());
    for (of, name) in &methods {
        if WITHOUT_TWIN.contains(&(of, name)) {
            continue;
        }
        let file = TWINS.iter().find(|(known, _)| known == of).map(|(_, file)| file);
        let file = file.unwrap_or_else(|| panic!("nothing waits for {of}::{name}"));
        let path = format!("{}/src/blocking/{file}.rs", env!("CARGO_MANIFEST_DIR"));
        let blocking = std::fs::read_to_string(path).unwrap();
        let is_there = ["(", "<"].iter().any(|end| blocking.contains(&format!("fn {name}{end}")));
        assert!(is_there, "blocking::{of} lacks {name}");
    }
    for (of, name) in WITHOUT_TWIN {
        assert!(methods.contains(&(of.to_owned(), name.to_owned())), "there is no {of}::{name}");
    }
}

#[test]
fn a_page_tells_whether_it_is_still_true() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&format!("file:{}", folder.path().display())).unwrap();
    let approvals = store.collection::<Approval>().unwrap();
    let query = Query::new().scan();
    // Lists are kept by the engine once they are read again.
    let fresh = (0..3).find_map(|_| approvals.page(&query).unwrap().freshness).unwrap();
    assert!(store.holds(&fresh).unwrap());
    store.disable(approvals.name(), "code").unwrap();
    assert!(!store.holds(&fresh).unwrap());
}
