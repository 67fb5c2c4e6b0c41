//! Everything that a store wants to have done now and then, in one call and in the background.

#![cfg(feature = "embedded")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod time_support;

use std::sync::Arc;
use std::time::Duration;

use keyloom::engine::{CommitFault, Memory, Unreliable};
use keyloom::{
    Due, ErrorKind, MaintainOptions, Maintained, PurgeOptions, Schema, Store, SweepOptions,
    blocking,
};
use serde_json::json;
use time_support::{START, Subject};

const SCHEMA: &str = r#"
[idempotency]
keep = "1 hours"

[collection.job]
key        = "job:{id}"
expires_at = "ends"
history    = { days = 1 }
[collection.job.fields]
id   = "text"
kind = "text"
at   = "timestamp"
ends = "timestamp"
[collection.job.index.due]
key = "job-due:{at}:{id}"
[collection.job.count.kinds]
group = ["kind"]
"#;

/// For engines that keep one.
const LOG: &str = "[log]\nentries = 5";

const DAY: u64 = 24 * 60 * 60 * 1_000;
const JOBS: usize = 200;

/// A store in which everything is over: records, groups, leases, histories, keys, the log.
async fn untidy(subject: Subject) -> Subject {
    let jobs = subject.store.documents("job").await.unwrap();
    for n in 0..JOBS {
        let job =
            json!({ "id": n.to_string(), "kind": n.to_string(), "at": START, "ends": START + 9 });
        let keyed = jobs.with_idempotency_key(&n.to_string()).unwrap();
        keyed.insert(&job).await.unwrap();
    }
    let leased = jobs.lease(&Due::new("due").take(3), "w", Duration::from_secs(1)).await.unwrap();
    assert_eq!(leased.items.len(), 3);
    subject.clock.pass(2 * DAY);
    subject
}

async fn untidy_memory() -> Subject {
    let schema = format!("{LOG}\n{SCHEMA}");
    untidy(Subject::on("memory", Arc::new(Memory::new()), &schema).await).await
}

/// Keys of the own area by what they begin with: groups, histories, idempotency keys, leases.
async fn left(subject: &Subject) -> [usize; 5] {
    let keys = subject.keys().await;
    ["job:", "aggregate:", "history:version", "idempotency:", "lease:"]
        .map(|begin| keys.iter().filter(|key| key.starts_with(begin)).count())
}

#[tokio::test]
async fn one_call_removes_all_that_is_over() {
    for subject in Subject::all(SCHEMA).await {
        let name = subject.name;
        let logs = subject.store.apply(&Schema::from_toml(LOG).unwrap()).await.is_ok();
        let subject = untidy(subject).await;
        assert_eq!(left(&subject).await, [JOBS, JOBS, JOBS, JOBS, 3], "{name}");
        let done = subject.store.maintain(&MaintainOptions::default()).await.unwrap();
        assert!(done.is_complete());
        let swept = done.sweep.as_ref().unwrap();
        assert_eq!((swept.records, swept.leases), (JOBS as u64, 3), "{name}");
        for purged in [&done.groups, &done.idempotency_keys] {
            assert_eq!(purged.as_ref().unwrap().removed, JOBS as u64, "{name}");
        }
        // Each record ended just now, and is kept for a day.
        assert_eq!(done.history.as_ref().unwrap().removed, 0, "{name}");
        assert_eq!(left(&subject).await, [0, 0, 2 * JOBS, 0, 0], "{name}");
        assert_eq!(done.log.is_some_and(|trimmed| trimmed.removed > 0), logs, "{name}");
        assert_eq!(logs, name != "torn");
        if logs {
            let bounds = subject.store.log_bounds().await.unwrap();
            assert_eq!(bounds.next.number() - bounds.oldest.number(), 5, "{bounds:?}");
        }
        let again = subject.store.maintain(&MaintainOptions::default()).await.unwrap();
        assert_eq!(again.sweep.as_ref().unwrap().records, 0);
        subject.assert_sound().await;
        subject.clock.pass(2 * DAY);
        subject.store.maintain(&MaintainOptions::default()).await.unwrap();
        assert_eq!(subject.keys().await, Vec::<String>::new(), "{name}");
    }
}

#[tokio::test]
async fn bounds_hold_and_the_next_call_goes_on() {
    let subject = untidy_memory().await;
    let mut options = MaintainOptions::bounded(64);
    let mut removed = Maintained::default().removed();
    let mut calls = 0;
    loop {
        let done = subject.store.maintain(&options).await.unwrap();
        assert!(done.sweep.as_ref().unwrap().records <= 64);
        for purged in [&done.groups, &done.history, &done.idempotency_keys].into_iter().flatten() {
            assert!(purged.read < 64 + 64, "a chunk more at most: {purged:?}");
        }
        removed += done.removed();
        calls += 1;
        if done.is_complete() {
            break;
        }
        assert!(calls < 99, "it comes to an end");
        options = options.after(&done);
    }
    assert!(calls > 3);
    // Some groups were looked at before their records were gone.
    removed += subject.store.maintain(&MaintainOptions::default()).await.unwrap().removed();
    assert_eq!(left(&subject).await, [0, 0, 2 * JOBS, 0, 0]);
    assert!(removed >= 3 * JOBS as u64 + 3);
}

#[tokio::test]
async fn only_what_is_asked_for_is_done() {
    let subject = untidy_memory().await;
    let nothing = subject.store.maintain(&MaintainOptions::nothing()).await.unwrap();
    assert_eq!((nothing.removed(), nothing.is_complete()), (0, true));
    assert_eq!(nothing, Maintained::default());
    assert_eq!(left(&subject).await, [JOBS, JOBS, JOBS, JOBS, 3]);
    let keys = Some(PurgeOptions::default());
    let keys = MaintainOptions { idempotency_keys: keys, ..MaintainOptions::nothing() };
    subject.store.maintain(&keys).await.unwrap();
    assert_eq!(left(&subject).await, [JOBS, JOBS, JOBS, 0, 3]);
    let sweep = Some(SweepOptions::default());
    let sweep = MaintainOptions { sweep, ..MaintainOptions::nothing() };
    subject.store.maintain(&sweep).await.unwrap();
    assert_eq!(left(&subject).await[0], 0);
}

#[tokio::test]
async fn a_part_that_fails_does_not_stop_the_others() {
    let unreliable = Arc::new(Unreliable::new(Arc::new(Memory::new()), 1, 0.0));
    let subject = untidy(Subject::on("unreliable", unreliable.clone(), SCHEMA).await).await;
    unreliable.script([CommitFault::Refused]);
    let error = subject.store.maintain(&MaintainOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(left(&subject).await, [JOBS, JOBS, JOBS, 0, 3], "the keys are gone all the same");
    assert!(subject.store.maintain(&MaintainOptions::default()).await.unwrap().is_complete());
}

#[tokio::test(start_paused = true)]
async fn a_maintainer_goes_on_until_it_is_stopped() {
    let subject = untidy_memory().await;
    let pause = Duration::from_secs(3_600);
    let bounded = MaintainOptions::bounded(64);
    let mut maintainer = subject.store.maintain_every(pause, bounded).unwrap();
    let mut report = maintainer.next_pass().await;
    assert_eq!((report.passes, report.failures), (1, 0));
    assert_eq!(report.last.sweep.as_ref().unwrap().records, 64);
    while left(&subject).await[..2] != [0, 0] {
        report = maintainer.next_pass().await;
        assert!(report.passes < 99, "each pass goes on where the last one stopped: {report:?}");
    }
    let stopped = maintainer.stop().await;
    assert_eq!(stopped.passes, report.passes, "nothing after it was stopped");
    assert!(stopped.removed > 2 * JOBS as u64);

    let unreliable = Arc::new(Unreliable::new(Arc::new(Memory::new()), 1, 0.0));
    let failing = untidy(Subject::on("unreliable", unreliable.clone(), SCHEMA).await).await;
    unreliable.script([CommitFault::Refused]);
    let options = MaintainOptions::default();
    let mut maintainer = failing.store.maintain_every(pause, options.clone()).unwrap();
    let report = maintainer.next_pass().await;
    assert_eq!((report.failures, report.last.sweep), (1, None));
    assert!(report.last_failure.is_some());
    let report = maintainer.next_pass().await;
    assert_eq!(report.last.sweep.unwrap().records, JOBS as u64, "the next pass tries again");
    // Dropping one stops it too.
    drop(maintainer);
    drop(failing.store.maintain_every(pause, options).unwrap());
}

#[test]
fn a_maintainer_needs_a_runtime_and_blocking_stores_have_the_call() {
    let options = MaintainOptions::default();
    let store = Store::on(Arc::new(Memory::new()));
    let refused = store.maintain_every(Duration::from_secs(1), options.clone());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let store = blocking::Store::open("memory:").unwrap();
    let done = store.maintain(&options).unwrap();
    assert_eq!((done.removed(), done.log), (0, None), "a space without a log has nothing to trim");
    assert_eq!(store.purge_groups(&PurgeOptions::default()).unwrap().removed, 0);
}

/// Whatever runs in the background can be handed to another thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_part_can_be_spawned() {
    let subject = untidy_memory().await;
    let spawned = |store: Store| {
        tokio::spawn(async move {
            store.purge_groups(&PurgeOptions::default()).await?;
            store.purge_history(&PurgeOptions::default()).await?;
            store.purge_idempotency_keys(&PurgeOptions::default()).await?;
            store.maintain(&MaintainOptions::default()).await
        })
    };
    // Several at once do not get into each other's way.
    let tasks: Vec<_> = (0..4).map(|_| spawned(subject.store.clone())).collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(left(&subject).await[..2], [0, 0]);
    subject.assert_sound().await;
}
