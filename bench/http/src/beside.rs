//! Small requests beside the largest that are allowed: what one caller costs the others.
//!
//! A few connections ask for one small record each, again and again, first with nothing else going
//! on and then beside connections that all repeat one kind of large request. Those run on threads
//! of their own, in this process: what they take of the processors is part of what the small ones
//! meet.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use keyloom::{Schema, Store};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::Options;
use crate::client::Connection;
use crate::contest::serve;
use crate::samples::Samples;

const SCHEMA: &str = r#"
[collection.note]
key = "note:{id}"
fields = { id = "text" }
counters = { "seen.*" = {} }
"#;

/// How many connections ask for small records, and how many of those there are.
const SMALL: usize = 4;
const SMALL_RECORDS: u64 = 1_000;

/// How large the large records are, and how many of them a page may have.
const LARGE_BYTES: usize = 360_000;
const LARGE_RECORDS: usize = 30;

/// The goal: so many times the quiet p99, or so long, whichever is more.
const TIMES: f64 = 20.0;
const LEAST: Duration = Duration::from_millis(25);

/// One kind of large request.
struct Large {
    name: &'static str,
    bytes: Arc<[u8]>,
}

/// Runs the contest, and prints a table.
pub fn run(options: &Options) -> Result<()> {
    let (serving, asking, loading) = (Runtime::new()?, one_thread()?, Runtime::new()?);
    let address = serving.block_on(async {
        let store = filled().await?;
        serve(store).await
    })?;
    println!(
        "| beside {} connections with | small requests a second | p50 | p90 | p99 | p99.9 | large \
         requests a second | goal for p99 |\n| --- | --- | --- | --- | --- | --- | --- | --- |",
        options.connections
    );
    let quiet = asking.block_on(small(address, options.turn))?;
    print("nothing", &quiet, options.turn, 0, "");
    let goal = quiet.quantile(0.99).mul_f64(TIMES).max(LEAST);
    for large in kinds() {
        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicU64::new(0));
        for _ in 0..options.connections {
            let (bytes, stop, answered) = (large.bytes.clone(), stop.clone(), answered.clone());
            loading.spawn(async move { load(address, &bytes, &stop, &answered).await });
        }
        // The first answers tell that the load is there.
        asking.block_on(async {
            while answered.load(Ordering::Relaxed) < 4 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let before = answered.load(Ordering::Relaxed);
        let beside = asking.block_on(small(address, options.turn))?;
        let done = answered.load(Ordering::Relaxed) - before;
        stop.store(true, Ordering::Relaxed);
        let reached = if beside.quantile(0.99) <= goal { "reached" } else { "missed" };
        let told = format!("{:.1} ms, {reached}", goal.as_secs_f64() * 1e3);
        print(large.name, &beside, options.turn, done, &told);
        ensure!(beside.count() > 0, "no small request was answered beside {}", large.name);
        asking.block_on(idle(address))?;
    }
    Ok(())
}

fn one_thread() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(1).enable_all().build()?)
}

async fn filled() -> Result<Store> {
    let store = Store::open("memory:").await?;
    store.apply(&Schema::from_toml(SCHEMA)?).await?;
    let notes = store.documents("note").await?;
    for number in 0..SMALL_RECORDS {
        notes.insert(&json!({ "id": format!("s{number}"), "text": "x".repeat(300) })).await?;
    }
    for number in 0..LARGE_RECORDS {
        let text = "x".repeat(LARGE_BYTES);
        notes.insert(&json!({ "id": format!("l{number}"), "text": text })).await?;
    }
    Ok(store)
}

/// The largest requests of each kind that a server with the usual limits takes.
fn kinds() -> Vec<Large> {
    let operations = |one: Value| json!({ "operations": vec![one; 1_000] }).to_string();
    let get = json!({ "op": "get", "collection": "note", "key": "l0" });
    let add = json!({ "op": "increment", "collection": "note", "key": "s0", "add": {"seen.a": 1} });
    let record = json!({ "id": "s1", "text": "x".repeat(300) });
    let put = json!({ "op": "put", "collection": "note", "key": "s1", "record": record });
    // Read to its last byte, and then refused.
    let strings = format!("{{\"operations\":[{}0]}}", "\"0123456789012345\",".repeat(370_000));
    let text = json!({ "id": "s2", "text": "x".repeat(LARGE_BYTES) }).to_string();
    let post = |name, path: &str, body: String| Large { name, bytes: sent("POST", path, &body) };
    vec![
        post("bodies of 7 MB that are refused at last", "/v1/batch", strings),
        post("batches of 1,000 gets of 360 KB", "/v1/batch", operations(get)),
        post("batches of 1,000 increments", "/v1/batch", operations(add)),
        post("batches of 1,000 puts", "/v1/batch", operations(put.clone())),
        post("transactions of 1,000 puts", "/v1/transaction", operations(put)),
        Large {
            name: "puts of 360 KB",
            bytes: sent("PUT", "/v1/collections/note/records/s2", &text),
        },
        Large {
            name: "pages of 1,000, of 8 MiB",
            bytes: sent("GET", "/v1/collections/note/records?scan=true&limit=1000", ""),
        },
    ]
}

fn sent(method: &str, path: &str, body: &str) -> Arc<[u8]> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat().into()
}

/// Asks for small records for a while, each connection as fast as it is answered.
async fn small(address: SocketAddr, turn: Duration) -> Result<Samples> {
    let began = Instant::now();
    let mut tasks = Vec::new();
    for first in 0..SMALL as u64 {
        tasks.push(tokio::spawn(async move {
            let mut connection = Connection::open(address).await?;
            let mut samples = Samples::default();
            for number in first.. {
                if began.elapsed() >= turn {
                    break;
                }
                let path = format!("/v1/collections/note/records/s{}", number % SMALL_RECORDS);
                let asked = sent("GET", &path, "");
                let sent_at = Instant::now();
                connection.ask(&asked).await?;
                samples.push(sent_at.elapsed());
            }
            anyhow::Ok(samples)
        }));
    }
    let mut all = Samples::default();
    for task in tasks {
        all.append(task.await??);
    }
    Ok(all)
}

/// Repeats a large request until it is told to stop, whatever the answers are. A connection that
/// is closed is opened anew.
async fn load(address: SocketAddr, bytes: &[u8], stop: &AtomicBool, answered: &AtomicU64) {
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut connection) = Connection::open(address).await else { return };
        while !stop.load(Ordering::Relaxed) && connection.exchange(bytes).await.is_ok() {
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Waits until small requests are answered as fast as if there were nothing else, so that one kind
/// of load does not count against the next.
async fn idle(address: SocketAddr) -> Result<()> {
    const ENOUGH: usize = 200;
    let mut connection = Connection::open(address).await?;
    let asked = sent("GET", "/v1/collections/note/records/s0", "");
    let mut in_a_row = 0;
    while in_a_row < ENOUGH {
        let sent_at = Instant::now();
        connection.ask(&asked).await?;
        in_a_row = if sent_at.elapsed() < Duration::from_millis(2) { in_a_row + 1 } else { 0 };
    }
    Ok(())
}

fn print(beside: &str, samples: &Samples, turn: Duration, large: u64, goal: &str) {
    let ms = |part| format!("{:.2} ms", samples.quantile(part).as_secs_f64() * 1e3);
    let rate = |count: f64| count / turn.as_secs_f64();
    println!(
        "| {beside} | {:.0} | {} | {} | {} | {} | {:.1} | {goal} |",
        rate(samples.count() as f64),
        ms(0.5),
        ms(0.9),
        ms(0.99),
        ms(0.999),
        rate(large as f64),
    );
}
