//! Watching a space: no change is missed, none comes twice, and all come in the order of commits.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod log_support;
mod long;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use keyloom::engine::{Engine, Unreliable};
use keyloom::{Error, ErrorKind, Logged, Position, Store, Version, Watch, WatchOptions};
use log_support::{Subject, keeping, note, schema};
use serde_json::{Value, json};

const WRITERS: usize = 6;
const WRITES: usize = 60;

/// Whether the future is over after one more look at it.
async fn is_over<F: Future + ?Sized>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

async fn take(watch: &mut Watch, count: usize) -> Vec<Logged> {
    let mut commits = Vec::new();
    for _ in 0..count {
        commits.push(watch.next().await.unwrap());
    }
    commits
}

/// Each writer makes so many commits, alone and against the others, of both collections.
async fn write_all(store: &Store, writes: usize) -> usize {
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let notes = store.documents("note").await.unwrap();
                let runs = store.documents("run").await.unwrap();
                let owner = format!("w{writer}");
                for number in 0..writes {
                    match number % 4 {
                        0 => drop(notes.insert(&note(&owner, number, 1)).await.unwrap()),
                        1 => {
                            let id = format!("n{}", number - 1);
                            let patch = json!({ "stars": 2 + number % 90 });
                            let key = (owner.as_str(), id.as_str());
                            notes.update_with_retry(key, &patch).await.unwrap();
                        }
                        2 => {
                            // All writers add to one record.
                            store
                                .transaction(async |transaction| {
                                    let runs = transaction.documents("run")?;
                                    let seen = runs.get("shared").await?;
                                    let count =
                                        seen.map_or(0, |run| run.value["n"].as_u64().unwrap());
                                    let run =
                                        json!({ "id": "shared", "status": "on", "n": count + 1 });
                                    runs.upsert(&run).await?;
                                    Ok::<_, Error>(())
                                })
                                .await
                                .unwrap();
                        }
                        _ => {
                            let run = json!({ "id": format!("{owner}-{number}"), "status": "on" });
                            drop(runs.insert(&run).await.unwrap());
                        }
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    WRITERS * writes
}

/// Applied one after the other, the commits lead from version to version of every record, and to
/// what is in the store.
async fn check_story(store: &Store, commits: &[Logged]) {
    let mut records: BTreeMap<(String, String), (Version, Value)> = BTreeMap::new();
    assert!(commits.windows(2).all(|pair| pair[0].position < pair[1].position));
    for change in commits.iter().flat_map(|commit| &commit.changes) {
        let place = (change.collection.clone(), change.key.clone());
        let known = records.get(&place).map(|(version, _)| *version);
        assert_eq!(change.before, known, "{place:?}: a change was missed, or came twice");
        match change.document() {
            Some(document) => {
                records.insert(place, (document.version, document.json().unwrap()));
            }
            None => {
                records.remove(&place);
            }
        }
    }
    for ((collection, key), (version, value)) in &records {
        let area = if collection == "run" { "runs" } else { "" };
        let found = store.plain().in_area(area).unwrap().get(key).await.unwrap().unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&found).unwrap(), *value);
        assert!(version.revision() > 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn watchers_among_writers_miss_and_repeat_nothing() {
    for subject in Subject::every_with(&schema()).await {
        let store = subject.store.clone();
        let writes = WRITES * long::times(1) as usize;
        let mut watchers = Vec::new();
        for _ in 0..3 {
            let mut watch = store.watch(WatchOptions::from_now()).await.unwrap();
            let count = WRITERS * writes;
            watchers.push(tokio::spawn(async move { take(&mut watch, count).await }));
        }
        // One that begins anew after every few commits, as a client that reconnects.
        let reconnecting = {
            let (store, count) = (store.clone(), WRITERS * writes);
            let mut from = store.log_bounds().await.unwrap().next;
            tokio::spawn(async move {
                let mut commits = Vec::new();
                while commits.len() < count {
                    let options = WatchOptions::from_position(from);
                    let mut watch = store.watch(options).await.unwrap();
                    let some = (1 + commits.len() % 7).min(count - commits.len());
                    commits.extend(take(&mut watch, some).await);
                    // Either tells where to go on.
                    let after = commits.last().unwrap().position.next();
                    from = if commits.len() % 2 == 0 { watch.position() } else { after };
                    assert_eq!(watch.position(), after);
                    // As a browser would hand it back.
                    from = from.to_string().parse().unwrap();
                }
                commits
            })
        };
        write_all(&store, writes).await;
        let expected = reconnecting.await.unwrap();
        check_story(&store, &expected).await;
        for watcher in watchers {
            assert_eq!(watcher.await.unwrap(), expected);
        }
    }
}

#[tokio::test]
async fn a_watch_goes_on_from_every_position() {
    for subject in Subject::every_with(&schema()).await {
        let store = &subject.store;
        write_all(store, 12).await;
        let all = store.changes(Position::FIRST, 10_000).await.unwrap().commits;
        for (place, commit) in all.iter().enumerate() {
            let options = WatchOptions::from_position(commit.position);
            let mut watch = store.watch(options).await.unwrap();
            assert_eq!(watch.position(), commit.position);
            let rest = take(&mut watch, all.len() - place).await;
            assert_eq!(rest, all[place..]);
            let mut next = pin!(watch.next());
            assert!(!is_over(next.as_mut()).await, "there is nothing more");
        }
    }
}

#[tokio::test]
async fn only_what_is_wanted_is_given() {
    for subject in Subject::every_with(&schema()).await {
        let store = &subject.store;
        let of = |options: WatchOptions| store.watch(options);
        let now = WatchOptions::from_now;
        let mut of_notes = of(now().collection("note")).await.unwrap();
        let mut of_ana = of(now().key_prefix("note:ana:").collection("note")).await.unwrap();
        let mut of_two = of(now().key_prefix("note:bo:").key_prefix("r")).await.unwrap();
        let mut of_all = of(now().collection("note").collection("run")).await.unwrap();
        let notes = store.documents("note").await.unwrap();
        notes.insert(&note("anabel", 1, 1)).await.unwrap();
        store.disable("note", "stars").await.unwrap();
        notes.insert(&note("ana", 1, 1)).await.unwrap();
        store
            .transaction(async |transaction| {
                transaction.documents("note")?.insert(&note("bo", 1, 1)).await?;
                transaction.documents("note")?.insert(&note("ana", 2, 1)).await?;
                transaction.documents("run")?.insert(&json!({ "id": "r", "status": "s" })).await?;
                Ok::<_, Error>(())
            })
            .await
            .unwrap();
        let keys = |commits: Vec<Logged>| {
            let keys = |commit: &Logged| {
                commit.changes.iter().map(|change| change.key.clone()).collect::<Vec<_>>()
            };
            let mut keys: Vec<Vec<String>> = commits.iter().map(keys).collect();
            keys.iter_mut().for_each(|keys| keys.sort_unstable());
            keys
        };
        let both = vec!["note:ana:n2", "note:bo:n1"];
        let (anabel, ana) = (vec!["note:anabel:n1"], vec!["note:ana:n1"]);
        assert_eq!(keys(take(&mut of_notes, 3).await), [anabel.clone(), ana.clone(), both]);
        assert_eq!(keys(take(&mut of_ana, 2).await), [ana.clone(), vec!["note:ana:n2"]]);
        assert_eq!(keys(take(&mut of_two, 1).await), [["note:bo:n1", "r"]]);
        let all = vec!["note:ana:n2", "note:bo:n1", "r"];
        assert_eq!(keys(take(&mut of_all, 3).await), [anabel, ana, all]);
        let end = store.log_bounds().await.unwrap().next;
        for watch in [&mut of_notes, &mut of_ana, &mut of_two, &mut of_all] {
            assert_eq!(watch.position(), end, "what is not wanted is passed");
            let mut next = pin!(watch.next());
            assert!(!is_over(next.as_mut()).await);
        }
        let mut schema_too = of(WatchOptions::from_position(Position::FIRST)).await.unwrap();
        assert!(schema_too.next().await.unwrap().is_schema_change);
    }
}

#[tokio::test]
async fn a_reader_that_falls_behind_what_is_kept_is_told() {
    for subject in Subject::every_with(&keeping("entries = 3")).await {
        let store = &subject.store;
        let mut slow = store.watch(WatchOptions::from_now()).await.unwrap();
        let stood = slow.position();
        write_all(store, 4).await;
        let kept = store.trim_log().await.unwrap().bounds;
        for _ in 0..2 {
            let error = slow.next().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LogTrimmed);
            assert_eq!(error.context_value("position"), Some(&*stood.to_string()));
            assert_eq!(error.context_value("oldest kept"), Some(&*kept.oldest.to_string()));
        }
        let late = store.watch(WatchOptions::from_position(stood)).await.err().unwrap();
        assert_eq!(late.kind(), ErrorKind::LogTrimmed, "told at once");
        let early = WatchOptions::from_position(kept.next.next());
        assert_eq!(store.watch(early).await.err().unwrap().kind(), ErrorKind::InvalidArgument);
        let mut again = store.watch(WatchOptions::from_position(kept.oldest)).await.unwrap();
        assert_eq!(take(&mut again, 3).await.len(), 3);
    }
}

/// Also when it was woken already, and when more has come than a watch holds ahead.
#[tokio::test]
async fn giving_up_waiting_loses_nothing() {
    for subject in Subject::every_with(&schema()).await {
        let store = &subject.store;
        let mut watch = store.watch(WatchOptions::from_now()).await.unwrap();
        let notes = store.documents("note").await.unwrap();
        let mut expected = store.log_bounds().await.unwrap().next;
        for number in 0..7 {
            let before = watch.position();
            let mut next = Box::pin(watch.next());
            assert!(!is_over(next.as_mut()).await, "there is nothing more");
            notes.insert(&note("woken", number, 1)).await.unwrap();
            drop(next);
            assert_eq!(watch.position(), before);
            assert_eq!(take(&mut watch, 1).await[0].position, expected);
            expected = expected.next();
        }
        for number in 0..700 {
            notes.insert(&note("ana", number, 1)).await.unwrap();
        }
        for commit in take(&mut watch, 700).await {
            assert_eq!(commit.position, expected);
            expected = expected.next();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_the_store_ends_the_waiting() {
    for subject in Subject::every_with(&schema()).await {
        let mut watch = subject.store.watch(WatchOptions::from_now()).await.unwrap();
        let waiting = tokio::spawn(async move { watch.next().await });
        tokio::task::yield_now().await;
        subject.store.close().await.unwrap();
        assert_eq!(waiting.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    }
}

/// A read that fails leaves the watch where it stood.
#[tokio::test]
async fn a_failed_read_leaves_no_gap() {
    let subject = Subject::memory();
    subject.store.apply(&schema()).await.unwrap();
    write_all(&subject.store, 20).await;
    let all = subject.store.changes(Position::FIRST, 10_000).await.unwrap().commits;
    let unreliable = Arc::new(Unreliable::new(subject.engine.clone(), 5, 0.0));
    let store = Store::on(unreliable.clone() as Arc<dyn Engine>);
    let options = WatchOptions::from_position(Position::FIRST);
    let mut watch = store.watch(options).await.unwrap();
    unreliable.set_rate(0.7);
    let (mut found, mut failures) = (Vec::new(), 0);
    while found.len() < all.len() {
        match watch.next().await {
            Ok(commit) => found.push(commit),
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                failures += 1;
            }
        }
    }
    assert_eq!(found, all);
    assert!(failures > 0);
}
