//! A server that is killed under load, again and again: nothing acknowledged is lost.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde_json::{Value, json};

/// How often the server is killed.
const CYCLES: usize = 50;

/// How many write at once.
const WRITERS: usize = 8;

const SCHEMA: &str = r#"
    [collection.order]
    key = "order:{id}"
    fields = { id = "text", customer = "text", number = "integer" }
    index.customer = { key = "order:customer:{customer}:{number desc}:{id}" }
    unique.number = { key = "order:number:{number}" }
    count.by_customer = { group = ["customer"] }
    counters = { "stats.seen" = {} }
"#;

/// A `keyloom serve` of its own process, on a free port.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut child = keyloom(folder)
            .args(["serve", "--listen", "127.0.0.1:0", "--no-build", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("told {line:?}"));
        Server { url: told["url"].as_str().unwrap().to_owned(), child }
    }

    fn kill(mut self) {
        // On Unix this is SIGKILL: no handler runs, and nothing is flushed.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn keyloom(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_keyloom"));
    command.current_dir(folder);
    command
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).build().into()
}

/// Writes orders until the server is gone, and tells of each that was acknowledged.
fn write(url: &str, cycle: usize, writer: usize, stop: &AtomicBool, acknowledged: &Sender<String>) {
    let agent = agent();
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let id = format!("{cycle}-{writer}-{turn}");
        let number = (cycle * WRITERS + writer) * 1_000_000 + turn;
        let order = json!({ "id": id, "customer": format!("c{}", turn % 5), "number": number });
        let request = agent.post(format!("{url}/v1/collections/order/records"));
        match request.header("content-type", "application/json").send(order.to_string()) {
            Ok(answer) if answer.status() == 201 => drop(acknowledged.send(id)),
            Ok(answer) => panic!("{} for {id}", answer.status()),
            // Killed in the middle: nobody was told anything.
            Err(_) => return,
        }
    }
}

/// Lets writers write until so many orders are acknowledged, then kills the server, and gives all
/// that were.
fn cycle(folder: &Path, number: usize, enough: usize) -> Vec<String> {
    let server = Server::start(folder);
    let (tell, told): (Sender<String>, Receiver<String>) = channel();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (tell, stop, url) = (tell.clone(), &stop, server.url.clone());
            scope.spawn(move || write(&url, number, writer, stop, &tell));
        }
        drop(tell);
        let mut acknowledged: Vec<String> = told.iter().take(enough).collect();
        server.kill();
        stop.store(true, Ordering::Relaxed);
        acknowledged.extend(told.iter());
        acknowledged
    })
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("keyloom.toml"), SCHEMA).unwrap();
    let mut acknowledged = Vec::new();
    for number in 0..CYCLES {
        // From the first acknowledged write on, and later and later.
        acknowledged.extend(cycle(folder.path(), number, 1 + number * 7 % 60));
    }
    assert!(acknowledged.len() >= CYCLES, "{} were acknowledged", acknowledged.len());

    let server = Server::start(folder.path());
    let agent = agent();
    for id in &acknowledged {
        let url = format!("{}/v1/collections/order/records/{id}", server.url);
        assert_eq!(agent.get(url).call().unwrap().status(), 200, "{id} was acknowledged");
    }
    let count = format!("{}/v1/collections/order/count?scan=true", server.url);
    let counted = agent.get(count).call().unwrap().body_mut().read_to_string().unwrap();
    let counted: Value = serde_json::from_str(&counted).unwrap();
    assert!(counted["count"].as_u64().unwrap() >= acknowledged.len() as u64, "{counted}");
    server.kill();

    let verified = keyloom(folder.path()).args(["verify", "--json"]).output().unwrap();
    let findings = String::from_utf8_lossy(&verified.stdout);
    assert!(verified.status.success(), "{findings}{}", String::from_utf8_lossy(&verified.stderr));
}

/// How many orders there are for a job to go over.
const ORDERS: u64 = 2_000;

/// What a job goes over in a second: slowly enough to be killed in the midst of it.
const PACE: u64 = 4_000;

const BY_NUMBER: &str = "index.by_number = { key = \"order:by-number:{number}:{id}\" }\n";

fn ask(server: &Server, method: &str, path: &str, body: &str) -> (u16, Value) {
    let request = ureq::http::Request::builder()
        .method(method)
        .uri(format!("{}{path}", server.url))
        .header("content-type", "application/json")
        .body(body.to_owned())
        .unwrap();
    let mut answer = agent().run(request).unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null))
}

fn job(server: &Server, id: &str) -> Value {
    let (status, job) = ask(server, "GET", &format!("/v1/admin/jobs/{id}"), "");
    assert_eq!(status, 200, "{job}");
    job
}

/// Starts a job, and kills the server when it has done some of it. Gives the server that goes on,
/// and the job as it was told last.
fn kill_in_the_midst(folder: &Path, kind: &str, body: &Value) -> (Server, Value) {
    for _ in 0..20 {
        let server = Server::start(folder);
        let (status, started) =
            ask(&server, "POST", &format!("/v1/admin/{kind}"), &body.to_string());
        assert_eq!(status, 202, "{started}");
        let id = started["id"].as_str().unwrap();
        let last = loop {
            let job = job(&server, id);
            if job["state"] != "running" || job["progress"]["records"].as_u64().unwrap() > 0 {
                break job;
            }
            thread::yield_now();
        };
        server.kill();
        let server = Server::start(folder);
        // On a slow machine the job may have been over by then.
        if ask(&server, "GET", &format!("/v1/admin/jobs/{id}"), "").0 == 200 {
            return (server, last);
        }
        server.kill();
    }
    panic!("no {kind} goes on")
}

/// Whoever looks at a job sees it go on after the server was killed, under its own name, to the end
/// that it would have had.
#[test]
fn a_job_goes_on_when_the_server_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("keyloom.toml"), SCHEMA).unwrap();
    let server = Server::start(folder);
    let lines: String = (0..ORDERS)
        .map(|n| {
            json!({ "id": format!("{n:05}"), "customer": "c", "number": n }).to_string() + "\n"
        })
        .collect();
    let (status, imported) = ask(&server, "POST", "/v1/admin/import?collection=order", &lines);
    assert_eq!((status, &imported["written"]), (200, &json!(ORDERS)), "{imported}");
    server.kill();
    // An index from before which its records are.
    std::fs::write(folder.join("keyloom.toml"), format!("{SCHEMA}{BY_NUMBER}")).unwrap();

    let build = json!({ "collection": "order", "index": "by_number", "keys_per_second": PACE });
    let looks = [
        ("build", build, ORDERS),
        ("verify", json!({ "keys_per_second": PACE }), ORDERS),
        ("repair", json!({ "dry_run": false, "keys_per_second": PACE }), ORDERS),
    ];
    for (kind, body, records) in looks {
        let (server, before) = kill_in_the_midst(folder, kind, &body);
        let listed = ask(&server, "GET", "/v1/admin/jobs", "").1;
        assert_eq!(listed["jobs"][0]["id"], before["id"], "{listed}");
        let over = loop {
            let job = job(&server, before["id"].as_str().unwrap());
            if job["state"] != "running" {
                break job;
            }
            thread::yield_now();
        };
        for told in ["id", "kind", "request", "started_at"] {
            assert_eq!(over[told], before[told], "{kind}");
        }
        assert_eq!(over["state"], "done", "{kind}: {over}");
        assert_eq!(over["result"]["records"], records, "{kind}: {over}");
        let verified = ask(&server, "GET", "/v1/admin/keys?area=~&prefix=task:", "").1;
        assert_eq!(verified["keys"], json!([]), "{kind}");
        server.kill();
    }
    let verified = keyloom(folder).args(["verify", "--json"]).output().unwrap();
    let findings = String::from_utf8_lossy(&verified.stdout);
    assert!(verified.status.success(), "{findings}{}", String::from_utf8_lossy(&verified.stderr));
}
