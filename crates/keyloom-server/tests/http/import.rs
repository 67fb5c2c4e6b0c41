//! Batches of an import: written once, whatever becomes of those who send them.

use std::collections::BTreeMap;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;

use async_trait::async_trait;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use keyloom::engine::{
    Address, Batch, Capabilities, Cell, Direction, Engine, Memory, Outcome, Range, Row, Space,
    Stretch,
};
use keyloom::{Clock, Result, Schema, Store};
use keyloom_server::{App, Config};
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt;

/// Records with ids that the store makes, with unique values, with counters that have bounds, and
/// with keys of their own.
const SCHEMA: &str = r#"
    [idempotency]
    keep = "24 hours"

    [collection.account]
    key = "account:{id}"
    fields = { id = { type = "id", generate = true }, code = "text" }
    unique.code = { key = "account:code:{code}" }
    counters = { "moves" = { min = 0 } }

    [collection.note]
    key = "note:{id}"
    history = { versions = 50 }
    fields = { id = "text", text = "text" }
"#;

/// An engine on which the caller is never heard of again after so many commits, and that takes
/// batches of a chosen size.
struct Mortal {
    inner: Arc<dyn Engine>,
    commits_left: AtomicUsize,
    /// Whether the last commit still happens.
    is_last_made: bool,
    is_dead: AtomicBool,
    capabilities: Capabilities,
}

impl Mortal {
    fn new(inner: &Arc<dyn Engine>, commits: usize, is_last_made: bool, entries: usize) -> Self {
        let mut capabilities = inner.capabilities().clone();
        capabilities.batch_entries_max = entries;
        let (commits_left, is_dead) = (commits.into(), false.into());
        Mortal { inner: inner.clone(), commits_left, is_last_made, is_dead, capabilities }
    }
}

#[async_trait]
impl Engine for Mortal {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        self.inner.get(space, addresses).await
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        self.inner.scan(space, ranges, limit, direction).await
    }

    async fn commit(&self, batch: Batch) -> Result<Outcome> {
        // What is refused for its size never gets this far.
        batch.check(&self.capabilities)?;
        if self.is_dead.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
        if self.commits_left.load(Ordering::Relaxed) == 0 {
            self.is_dead.store(true, Ordering::Relaxed);
            if self.is_last_made {
                self.inner.commit(batch).await?;
            }
            return pending().await;
        }
        self.commits_left.fetch_sub(1, Ordering::Relaxed);
        self.inner.commit(batch).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}

/// Runs until it ends, or until the process is dead.
async fn until_death<T>(mortal: &Mortal, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending if mortal.is_dead.load(Ordering::Relaxed) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// The number of entries that engines take unless a test says otherwise.
const MANY: usize = 10_000;

/// A server in this process, asked without a socket.
struct Asked(App);

impl Asked {
    fn on(engine: Arc<dyn Engine>) -> Self {
        Asked(App::new(Store::on(engine), Config::default()))
    }

    async fn send(&self, method: &str, path: &str, key: Option<&str>, body: &str) -> (u16, String) {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let answer = self.0.router().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Sends a batch with this key, and gives the status and the answer.
    async fn batch(&self, more: &str, key: &str, lines: &str) -> (u16, Value) {
        let path = format!("/v1/admin/import?batch=true&collection=account{more}");
        let (status, body) = self.send("POST", &path, Some(key), lines).await;
        (status, serde_json::from_str(&body).unwrap())
    }

    /// Every record, with what differs from run to run left out, and how often there is such a one.
    async fn records(&self) -> BTreeMap<String, usize> {
        let (status, body) = self.send("GET", "/v1/admin/export", None, "").await;
        assert_eq!(status, 200, "{body}");
        let mut records = BTreeMap::new();
        for line in body.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let mut record = line["record"].clone();
            let is_chosen = |id: &Value| id.as_str().is_some_and(|id| id.starts_with("000"));
            if line["collection"] == "account" && !is_chosen(&record["id"]) {
                record["id"] = "made".into();
            }
            // The number of versions, which every write of a record adds to.
            let number = line["version"].as_str().unwrap().rsplit('-').next().unwrap();
            *records.entry(format!("{number} {record}")).or_default() += 1;
        }
        records
    }

    async fn is_clean(&self) -> bool {
        self.0.store().verify().await.unwrap().is_clean()
    }
}

async fn store_with(schema: &str, held: &[String]) -> Arc<dyn Engine> {
    let memory: Arc<dyn Engine> = Arc::new(Memory::new());
    Store::on(memory.clone()).apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
    let server = Asked::on(memory.clone());
    let (status, answer) = server.batch("", "held", &held.join("\n")).await;
    assert_eq!((status, &answer["written"]), (200, &json!(held.len())), "{answer}");
    memory
}

/// Lines that are written by themselves are written at once, and of two that want one value the
/// faster one gets it. Here nobody gives way, so that this is always the earlier one.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(tokio::task::unconstrained(work))
}

/// One line: good ones, and every kind of bad one. `n` tells lines apart.
fn line(n: usize, kind: usize) -> String {
    let id = format!("{:026}", 2 + n % 3);
    match kind {
        // Nothing would keep it from being written twice.
        0 => json!({"n": n}).to_string(),
        1 => json!({"id": id, "code": format!("k{n}"), "n": n}).to_string(),
        // A value that another record has, or another line.
        2 => json!({"code": format!("held{}", n % 2), "n": n}).to_string(),
        3 => json!({"code": "the same", "n": n}).to_string(),
        // Counters are written behind their record.
        4 => json!({"code": format!("m{n}"), "moves": n, "n": n}).to_string(),
        5 => json!({"code": format!("b{n}"), "moves": -1, "n": n}).to_string(),
        6 => json!({"collection": "account", "record": {"code": 5}}).to_string(),
        7 => "{".to_owned(),
        8 => String::new(),
        // A record that can be replaced, whose counter cannot be set.
        9 => {
            json!({"id": format!("{:026}", 1), "code": format!("o{n}"), "moves": i64::MIN, "n": n})
                .to_string()
        }
        _ => json!({"id": id, "code": "held0", "n": n}).to_string(),
    }
}

/// The records that are there before.
fn held() -> Vec<String> {
    let record =
        |n: usize| json!({"id": format!("{n:026}"), "code": format!("held{n}"), "moves": 5});
    (0..2).map(|n| record(n).to_string()).collect()
}

/// The sender dies before the first commit, after it, before the second, and so on, and sends the
/// batch again: the store is what it would be had the batch been sent once.
async fn is_exact_at_every_death(lines: &str, mode: &str, entries: usize) {
    let asked = |engine: &Arc<dyn Engine>| {
        Asked::on(Arc::new(Mortal::new(engine, usize::MAX, false, entries)))
    };
    let plain = asked(&store_with(SCHEMA, &held()).await);
    let (_, once) = plain.batch(mode, "i-1", lines).await;
    let wanted = plain.records().await;
    if entries == MANY {
        // And that is what the lines give by themselves.
        let by_lines = asked(&store_with(SCHEMA, &held()).await);
        let path = format!("/v1/admin/import?collection=account{mode}");
        let (_, answer) = by_lines.send("POST", &path, None, lines).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(told(&answer), told(&once));
        assert_eq!(by_lines.records().await, wanted);
    }
    for commits in 0.. {
        let mut deaths = 0;
        for is_last_made in [false, true] {
            let engine = store_with(SCHEMA, &held()).await;
            let mortal = Arc::new(Mortal::new(&engine, commits, is_last_made, entries));
            let dying = Asked::on(mortal.clone());
            let ended = until_death(&mortal, dying.batch(mode, "i-1", lines)).await;
            deaths += usize::from(ended.is_none());
            let server = asked(&engine);
            let case = format!("{commits} commits, the last made: {is_last_made}, {lines}");
            for _ in 0..2 {
                let (status, answer) = server.batch(mode, "i-1", lines).await;
                assert_eq!((status, told(&answer)), (200, told(&once)), "{case}: {answer:#}");
            }
            assert_eq!(server.records().await, wanted, "{case}");
            assert!(server.is_clean().await, "{case}");
        }
        if deaths == 0 {
            return;
        }
    }
}

/// What an answer tells: the lines, those that were written, and the numbers of the others.
fn told(answer: &Value) -> (Value, Value, Vec<Value>) {
    let errors = answer["errors"].as_array().unwrap().iter();
    let numbers = errors.map(|error| error["line"].clone());
    (answer["lines"].clone(), answer["written"].clone(), numbers.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_batch_is_written_once_whenever_its_sender_dies(
        kinds in prop::collection::vec(prop_oneof![3 => Just(0_usize), 2 => 0_usize..11], 0..12),
        mode in prop::sample::select(vec!["", "&mode=put"]),
        // What takes the whole batch, and what takes a part of it.
        entries in prop::sample::select(vec![MANY, 12]),
    ) {
        let lines: Vec<String> = kinds.iter().enumerate().map(|(n, kind)| line(n, *kind)).collect();
        block_on(is_exact_at_every_death(&lines.join("\n"), mode, entries));
    }
}

/// Sends a batch to a store whose engine takes so many entries, dies at each commit in turn, lets
/// something happen, and sends it again to one that takes many: each line is there once.
async fn stays_divided(lines: &str, entries: usize, meanwhile: impl AsyncFn(&Asked)) {
    for commits in 0.. {
        let engine = store_with(SCHEMA, &held()).await;
        let mortal = Arc::new(Mortal::new(&engine, commits, true, entries));
        let dying = Asked::on(mortal.clone());
        let ended = until_death(&mortal, dying.batch("", "i-1", lines)).await;
        let server = Asked::on(engine);
        meanwhile(&server).await;
        let (status, answer) = server.batch("", "i-1", lines).await;
        assert_eq!((status, &answer["lines"]), (200, &json!(lines.lines().count())));
        let records = server.records().await;
        assert!(records.values().all(|times| *times == 1), "{commits}: {records:#?}");
        let imported = records.keys().filter(|record| record.contains("\"n\":")).count();
        assert_eq!(answer["written"], imported, "{commits}: {answer}");
        if ended.is_some() {
            assert!(commits > 2, "it was not divided");
            return;
        }
    }
}

/// What kept lines out of a common commit may be gone when they are sent again. Those that were
/// written by themselves are not written once more by a commit of all.
#[test]
fn lines_that_were_written_apart_stay_apart() {
    block_on(async {
        let lines = [line(0, 0), line(1, 2), line(2, 0)].join("\n");
        stays_divided(&lines, MANY, async |server| {
            let holder = format!("/v1/collections/account/records/{:026}", 1);
            assert_eq!(server.send("DELETE", &holder, None, "").await.0, 204);
        })
        .await;
    });
}

/// A batch that was too large for one commit may not be when it is sent again.
#[test]
fn halves_stay_halves() {
    block_on(async {
        let lines: Vec<String> = (0..12).map(|n| line(n, 0)).collect();
        stays_divided(&lines.join("\n"), 12, async |_| ()).await;
    });
}

/// The first line claims what another record has, which is given up by the last line, or by
/// somebody else while the sender is dead. The third line is the last word about its record, and
/// what was answered once is answered again.
#[test]
fn later_lines_win_whenever_their_sender_dies() {
    block_on(async {
        let [record, other] = [5, 0].map(|n| format!("{n:026}"));
        for claimed in ["held0", "held1"] {
            let lines = [
                json!({"id": record, "code": claimed, "n": 1}),
                json!({"id": record, "code": 7}),
                json!({"id": record, "code": "mine", "n": 2}),
                json!({"id": other, "code": "free", "n": 3}),
            ];
            let lines = lines.map(|line| line.to_string()).join("\n");
            for commits in 0.. {
                let engine = store_with(SCHEMA, &held()).await;
                let mortal = Arc::new(Mortal::new(&engine, commits, true, MANY));
                let dying = Asked::on(mortal.clone());
                let ended = until_death(&mortal, dying.batch("&mode=put", "i-1", &lines)).await;
                let server = Asked::on(engine);
                let holder = format!("/v1/collections/account/records/{:026}", 1);
                assert_eq!(server.send("DELETE", &holder, None, "").await.0, 204);
                let (_, answer) = server.batch("&mode=put", "i-1", &lines).await;
                let records = server.records().await;
                let (_, again) = server.batch("&mode=put", "i-1", &lines).await;
                assert_eq!(again, answer, "{claimed}, {commits}");
                assert_eq!(server.records().await, records, "{claimed}, {commits}");
                let path = format!("/v1/collections/account/records/{record}");
                let (_, found) = server.send("GET", &path, None, "").await;
                assert!(found.contains("mine"), "{claimed}, {commits}: {found}");
                if let Some((_, first)) = ended {
                    assert_eq!(first, answer, "{claimed}, {commits}");
                    break;
                }
            }
        }
    });
}

/// A refusal stays what it was, also where a later line took away its reason.
#[test]
fn what_was_refused_apart_stays_refused() {
    block_on(async {
        let server = Asked::on(store_with(SCHEMA, &held()).await);
        let lines = [line(0, 0), line(1, 2)].join("\n");
        let (_, answer) = server.batch("", "i-1", &lines).await;
        assert_eq!((&answer["written"], &answer["errors_count"]), (&json!(1), &json!(1)));
        let holder = format!("/v1/collections/account/records/{:026}", 1);
        assert_eq!(server.send("DELETE", &holder, None, "").await.0, 204);
        let records = server.records().await;
        assert_eq!(server.batch("", "i-1", &lines).await, (200, answer));
        assert_eq!(server.records().await, records);
    });
}

/// A line whose counters are refused leaves nothing of its record.
#[test]
fn a_line_is_written_with_its_counters_or_not_at_all() {
    block_on(async {
        let server = Asked::on(store_with(SCHEMA, &held()).await);
        let before = server.records().await;
        let (_, answer) = server.batch("&mode=put", "i-1", &line(0, 9)).await;
        assert_eq!((&answer["written"], &answer["errors_count"]), (&json!(0), &json!(1)));
        assert_eq!(answer["errors"][0]["problem"]["type"], "/problems/out-of-bounds");
        assert_eq!(server.records().await, before);
    });
}

/// Lines that are fit share a commit, so that a batch costs one cell more than its records.
#[test]
fn a_batch_of_fit_lines_is_one_commit() {
    block_on(async {
        let lines: Vec<String> = (0..500).map(|n| line(n, 0)).collect();
        for mode in ["", "&mode=put"] {
            let engine = store_with(SCHEMA, &[]).await;
            let mortal = Arc::new(Mortal::new(&engine, 1, false, MANY));
            let server = Asked::on(mortal.clone());
            let ended = until_death(&mortal, server.batch(mode, "i-1", &lines.join("\n"))).await;
            assert_eq!(ended.unwrap().1["written"], 500);
            let purged = server.0.store().purge_idempotency_keys(&Default::default()).await;
            // Its own, and that of the batch that filled the store.
            assert_eq!(purged.unwrap().read, 2);
        }
    });
}

/// Each line of one record is a version of it, as it is without a batch.
#[test]
fn lines_of_one_record_leave_all_their_versions() {
    block_on(async {
        let engine = store_with(SCHEMA, &[]).await;
        let server = Asked::on(engine);
        let line = |n: usize| json!({"id": "a", "text": format!("t{n}")}).to_string();
        let lines: Vec<String> = (0..5).map(line).collect();
        let path = "/v1/admin/import?batch=true&mode=put&collection=note";
        for _ in 0..2 {
            let (status, _) = server.send("POST", path, Some("i"), &lines.join("\n")).await;
            assert_eq!(status, 200);
            let (_, history) =
                server.send("GET", "/v1/collections/note/records/a/history", None, "").await;
            let history: Value = serde_json::from_str(&history).unwrap();
            assert_eq!(history["versions"].as_array().unwrap().len(), 5, "{history:#}");
        }
    });
}

/// A batch that may have been written is not written now, unless the store would still know.
#[test]
fn a_batch_comes_after_one_that_is_still_known() {
    const HOUR: u64 = 3_600_000;
    block_on(async {
        let engine = store_with(SCHEMA, &[]).await;
        let now = Arc::new(AtomicU64::new(1_700_000_000_000));
        let clock = now.clone();
        let clock = Clock::new(move || clock.load(Ordering::Relaxed));
        let store = Store::on(engine.clone()).with_clock(clock);
        let server = Asked(App::new(store, Config::default()));
        let line = json!({"code": "a"}).to_string();
        let other = json!({"code": "b"}).to_string();

        let (status, problem) = server.batch("&after=i", "i-1", &line).await;
        assert_eq!((status, &problem["type"]), (409, &json!("/problems/unknown-batch")));
        assert!(server.records().await.is_empty());

        assert_eq!(server.batch("", "i", "").await.0, 200);
        now.fetch_add(23 * HOUR, Ordering::Relaxed);
        assert_eq!(server.batch("&after=i", "i-1", &line).await.0, 200);
        // What was written is known for longer than what it came after.
        now.fetch_add(2 * HOUR, Ordering::Relaxed);
        let (status, answer) = server.batch("&after=i", "i-1", &line).await;
        assert_eq!((status, &answer["written"]), (200, &json!(1)));
        assert_eq!(server.batch("&after=i-1", "i-2", &other).await.0, 200);
        assert_eq!(server.records().await.len(), 2);
        // A day later nobody knows of the second, and it is not written again.
        now.fetch_add(25 * HOUR, Ordering::Relaxed);
        assert_eq!(server.batch("&after=i-1", "i-2", &other).await.0, 409);
        assert_eq!(server.records().await.len(), 2);
    });
}

#[test]
fn a_batch_that_cannot_be_one_is_refused_before_anything_is_written() {
    block_on(async {
        let engine = store_with(SCHEMA, &[]).await;
        let server = Asked::on(engine);
        let lines = |count: usize| (0..count).map(|n| line(n, 0) + "\n").collect::<String>();
        let (status, problem) = server.batch("", "i-1", &lines(1_001)).await;
        assert_eq!((status, &problem["type"]), (413, &json!("/problems/limit-exceeded")));
        let long = json!({"code": "x".repeat(900_000)}).to_string() + "\n";
        assert_eq!(server.batch("", "i-1", &long.repeat(5)).await.0, 413);
        assert_eq!(server.batch("&from_line=2", "i-1", "").await.0, 400);
        let path = "/v1/admin/import?collection=account";
        assert_eq!(server.send("POST", &format!("{path}&batch=true"), None, "").await.0, 400);
        assert_eq!(server.send("POST", &format!("{path}&after=i"), Some("k"), "").await.0, 400);
        assert!(server.records().await.is_empty());

        // A key is for one batch of lines, in one mode.
        assert_eq!(server.batch("", "i-1", &lines(2)).await.0, 200);
        for (mode, lines) in [("", lines(1)), ("", lines(3)), ("&mode=put", lines(2))] {
            let (status, problem) = server.batch(mode, "i-1", &lines).await;
            assert_eq!((status, &problem["type"]), (422, &json!("/problems/idempotency-conflict")));
        }
        assert_eq!(server.records().await.len(), 2);
        // The longest key has room for those of its parts.
        let longest = "k".repeat(255);
        let two = [line(8, 1), line(11, 1)].join("\n");
        for _ in 0..2 {
            let (status, answer) = server.batch("&mode=put", &longest, &two).await;
            assert_eq!((status, &answer["written"]), (200, &json!(2)), "{answer}");
        }
        assert_eq!(server.records().await.len(), 3);
    });
}
