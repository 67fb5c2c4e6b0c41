//! The two contests: lists against a bare handler, durable inserts against the library.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use axum::Router;
use axum::http::header;
use axum::routing::get;
use keyloom::{Collection, Schema, Store};
use keyloom_server::{App, Config};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::client::{Connections, Request, drive, fetch};
use crate::system;
use crate::workload::{Approval, user, users_of};
use crate::{Contest, Options};

const SCHEMA: &str = include_str!("schema.toml");

/// How many records a list has.
const LISTED: usize = 20;

/// Runs both contests, and prints a table.
pub fn run(options: &Options) -> Result<()> {
    let runtime = Runtime::new()?;
    std::fs::create_dir_all(&options.folder)?;
    let measured = runtime.block_on(async {
        println!(
            "| contest | server | rival | server / rival | processor time of each |\n\
             | --- | --- | --- | --- | --- |"
        );
        if options.only.is_none_or(|only| only == Contest::Lists) {
            lists(options).await?;
        }
        if options.only.is_none_or(|only| only == Contest::Inserts) {
            inserts(options).await?;
        }
        anyhow::Ok(())
    });
    std::fs::remove_dir_all(&options.folder)?;
    measured
}

/// List 20 over HTTP, against a bare axum handler that returns the same bytes.
async fn lists(options: &Options) -> Result<()> {
    let store = open(options, "lists").await?;
    fill(&store, options.records).await?;
    let keyloom = serve(store).await?;
    let users = users_of(options.records);
    let asked: Request = Arc::new(move |number| list_of(number % users));
    let body = fetch(keyloom, &list_of(0)).await?;
    println!("<!-- a list of {LISTED} has {} bytes -->", body.len());
    let bare = serve_bare(body).await?;
    let mut rates = Rates::default();
    system::settle();
    for _ in 0..options.rounds {
        for (address, rate) in [(keyloom, &mut rates.server), (bare, &mut rates.rival)] {
            let next = Arc::new(AtomicU64::new(0));
            let connections = Connections::open(address, options.connections).await?;
            rate.push(measured(drive(connections, options.turn, asked.clone(), next)).await?);
        }
    }
    rates.print(&format!("list {LISTED}, {} connections, bare handler", options.connections));
    Ok(())
}

/// Durable inserts over HTTP, against as many tasks that call the library.
async fn inserts(options: &Options) -> Result<()> {
    let behind = open(options, "inserts-http").await?;
    let keyloom = serve(behind).await?;
    let library = open(options, "inserts-library").await?;
    let users = users_of(options.records);
    let asked: Request = Arc::new(move |number| insert_of(&Approval::unread(number, users)));
    let (over_http, in_process) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut rates = Rates::default();
    for _ in 0..options.rounds {
        // A store still writes its tables when its turn is over; the other side must not pay.
        system::settle();
        let connections = Connections::open(keyloom, options.connections).await?;
        let driven = drive(connections, options.turn, asked.clone(), over_http.clone());
        rates.server.push(measured(driven).await?);
        system::settle();
        let inserted = insert(options, &library, users, in_process.clone());
        rates.rival.push(measured(inserted).await?);
    }
    rates.print(&format!("durable insert, {} at once, library", options.connections));
    Ok(())
}

async fn insert(
    options: &Options,
    store: &Store,
    users: u64,
    next: Arc<AtomicU64>,
) -> Result<(u64, f64)> {
    let started = Instant::now();
    let turn = options.turn;
    let mut tasks = Vec::new();
    for _ in 0..options.connections {
        let approvals: Collection<Value> = store.documents("approval").await?;
        let next = next.clone();
        tasks.push(tokio::spawn(async move {
            let mut inserted = 0_u64;
            while started.elapsed() < turn {
                let approval = Approval::new(next.fetch_add(1, Ordering::Relaxed), users);
                approvals.insert(&approval.json).await?;
                inserted += 1;
            }
            anyhow::Ok(inserted)
        }));
    }
    let mut inserted = 0;
    for task in tasks {
        inserted += task.await??;
    }
    Ok((inserted, started.elapsed().as_secs_f64()))
}

async fn open(options: &Options, name: &str) -> Result<Store> {
    let store = Store::open(&format!("file:{}", options.folder.join(name).display())).await?;
    store.apply(&Schema::from_toml(SCHEMA)?).await?;
    Ok(store)
}

async fn fill(store: &Store, records: u64) -> Result<()> {
    let (users, next) = (users_of(records), Arc::new(AtomicU64::new(0)));
    let mut tasks = Vec::new();
    for _ in 0..256 {
        let (approvals, next) = (store.documents("approval").await?, next.clone());
        tasks.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= records {
                    return anyhow::Ok(());
                }
                approvals.insert(&Approval::new(number, users).json).await?;
            }
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// Serves a store on a free port, as it is configured by default.
pub async fn serve(store: Store) -> Result<SocketAddr> {
    let app = App::new(store, Config::default());
    let server = keyloom_server::serve(app, ([127, 0, 0, 1], 0).into()).await?;
    let address = server.address()?;
    tokio::spawn(server.run(std::future::pending()));
    Ok(address)
}

/// A server that does nothing but answer with these bytes, whatever the parameters.
async fn serve_bare(body: Vec<u8>) -> Result<SocketAddr> {
    let body = axum::body::Bytes::from(body);
    let answer = move || {
        let body = body.clone();
        async move { ([(header::CONTENT_TYPE, "application/json")], body) }
    };
    let routes = Router::new().route("/v1/collections/{collection}/records", get(answer));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(address)
}

fn list_of(number: u64) -> Vec<u8> {
    let user = user(number);
    let asked = format!("where.requester_id={user}&order=-created_at&limit={LISTED}");
    format!("GET /v1/collections/approval/records?{asked} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        .into()
}

fn insert_of(approval: &Approval) -> Vec<u8> {
    const HEAD: &str = "POST /v1/collections/approval/records HTTP/1.1\r\nHost: 127.0.0.1\r\n\
        Content-Type: application/json\r\nContent-Length: ";
    let length = approval.text.len().to_string();
    [HEAD, &length, "\r\n\r\n", &approval.text].concat().into()
}

/// What one side reached in one round.
#[derive(Clone, Copy)]
struct Round {
    a_second: f64,
    /// What one request took of the processors, in microseconds, its caller included. Other load
    /// on the machine hardly changes it.
    processor_us: f64,
}

/// Runs one side, and tells what it took of the processors.
async fn measured(side: impl Future<Output = Result<(u64, f64)>>) -> Result<Round> {
    let before = system::processor_time();
    let (answered, seconds) = side.await?;
    let processor = system::processor_time().saturating_sub(before);
    let processor_us = processor.as_secs_f64() * 1e6 / answered as f64;
    Ok(Round { a_second: answered as f64 / seconds, processor_us })
}

/// What both sides reached in each round.
#[derive(Default)]
struct Rates {
    server: Vec<Round>,
    rival: Vec<Round>,
}

impl Rates {
    fn print(&self, contest: &str) {
        let ratios = self.server.iter().zip(&self.rival);
        let ratio = median(ratios.map(|(server, rival)| server.a_second / rival.a_second));
        let rate = |rounds: &[Round]| median(rounds.iter().map(|round| round.a_second));
        let processor = |rounds: &[Round]| median(rounds.iter().map(|round| round.processor_us));
        println!(
            "| {contest} | {:.0}/s | {:.0}/s | {ratio:.2} | {:.1} µs, {:.1} µs |",
            rate(&self.server),
            rate(&self.rival),
            processor(&self.server),
            processor(&self.rival),
        );
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
