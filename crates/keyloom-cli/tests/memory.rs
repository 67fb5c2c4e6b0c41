//! A server whose memory is attacked: requests that ask for a lot, bodies that never end, callers
//! who take nothing of their answers. What it has resident stays below the bound that its option
//! sets, and others are answered meanwhile.
//!
//! With KEYLOOM_LONG the limits are those of a server for which nothing was set, and there are more
//! callers.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

const MIB: usize = 1 << 20;

/// What the process may have beside what it had when nobody asked for anything, and beside what
/// the option sets: buffers of connections, threads, rows of one read, and what its allocator keeps
/// for the next time.
const BASE_BYTES: usize = 96 * MIB;

/// Answers take as long as they do, on any machine.
const PATIENT: &[&str] = &["--answer-timeout", "3600", "--body-timeout", "3600"];

/// How large the records are, and how many there are.
const RECORD_BYTES: usize = 360_000;
const RECORDS: usize = 60;

const SCHEMA: &str = r#"
    [collection.note]
    key = "note:{id}"
    fields = { id = "text" }

    [log]
    days = 1
"#;

/// How hard the server is attacked, and what it is told to hold at most.
struct Attack {
    memory_bytes: usize,
    options: Vec<String>,
    /// How many callers there are at one time.
    callers: usize,
}

impl Attack {
    /// Attacks a server with these options.
    fn on(options: &[&str]) -> Self {
        let mut options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        if std::env::var_os("KEYLOOM_LONG").is_some() {
            return Attack { memory_bytes: 512 * MIB, options, callers: 1_000 };
        }
        options.extend(["--memory-bytes-max", "64MiB"].map(str::to_owned));
        Attack { memory_bytes: 64 * MIB, options, callers: 100 }
    }
}

/// A `keyloom serve` of its own process, whose store holds some large records.
struct Server {
    child: Child,
    address: String,
    /// The most that it may ever have resident.
    bytes_max: usize,
}

impl Server {
    fn start(attack: &Attack) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("keyloom.toml"), SCHEMA).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_keyloom"))
            .current_dir(folder.path())
            .args(["serve", "--listen", "127.0.0.1:0", "--json", "--store", "memory:"])
            .args(&attack.options)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("told {line:?}"));
        let address = told["url"].as_str().unwrap().trim_start_matches("http://").to_owned();
        let mut server = Server { child, address, bytes_max: 0 };
        for number in 0..RECORDS {
            let record = json!({"id": format!("n{number:02}"), "text": "x".repeat(RECORD_BYTES)});
            let path = format!("/v1/collections/note/records/n{number:02}");
            assert_eq!(server.ask("PUT", &path, &record.to_string()).0, 201);
        }
        server.bytes_max = server.resident("VmRSS") + attack.memory_bytes + BASE_BYTES;
        server
    }

    /// What the process has resident now (`VmRSS`), or had at most (`VmHWM`), in bytes.
    fn resident(&self, what: &str) -> usize {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
        let digits: String = line.chars().filter(char::is_ascii_digit).collect();
        digits.parse::<usize>().unwrap() << 10
    }

    #[track_caller]
    fn check(&self, after: &str) {
        let most = self.resident("VmHWM");
        println!("{after}: {} MiB at most, {} allowed", most / MIB, self.bytes_max / MIB);
        assert!(most <= self.bytes_max, "{after}: {} MiB", most / MIB);
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// Asks, and reads the whole answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Vec<u8>) {
        let mut stream = self.connect();
        stream.write_all(request(method, path, body.len()).as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let head = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let status = std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap();
        (status, answer.split_off(head + 4))
    }

    fn ask_json(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (status, body) = self.ask(method, path, body);
        (status, serde_json::from_slice(&body).unwrap())
    }

    /// Whether others are answered: the one who looks whether the server lives, and one who writes
    /// a small record.
    fn is_answering(&self) -> bool {
        let small = ("/v1/collections/note/records/small", r#"{"id":"small"}"#);
        self.ask("GET", "/health", "").0 == 200 && self.ask("PUT", small.0, small.1).0 < 300
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn request(method: &str, path: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// The same record asked for a thousand times.
fn gets() -> String {
    let get = json!({"op": "get", "collection": "note", "key": "n00"});
    json!({"operations": vec![get; 1_000]}).to_string()
}

#[test]
fn a_small_request_for_a_lot_is_answered_within_its_bytes() {
    let attack = Attack::on(PATIENT);
    let server = Server::start(&attack);
    let body = gets();
    assert!(body.len() < 60_000);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let (status, answer) = server.ask_json("POST", "/v1/batch", &body);
                assert_eq!(status, 200, "{answer}");
                let results = answer["results"].as_array().unwrap();
                let of = |status: u64| results.iter().filter(|it| it["status"] == status).count();
                // As many as fit into 8 MiB, and the rest says what to do.
                assert_eq!((of(200), of(413)), (8 * MIB / RECORD_BYTES, 1_000 - of(200)));
                let refused = results.iter().find(|it| it["status"] == 413).unwrap();
                assert_eq!(refused["body"]["type"], "/problems/limit-exceeded");
                let detail = refused["body"]["detail"].as_str().unwrap();
                assert!(detail.contains("8388608 bytes") && detail.contains("fewer"), "{detail}");
            });
        }
        assert!(server.is_answering());
    });
    server.check("batches of gets");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let (status, refused) = server.ask_json("POST", "/v1/transaction", &body);
                assert_eq!(status, 413, "{refused}");
                assert_eq!(refused["operation"], 8 * MIB / RECORD_BYTES);
            });
        }
    });
    server.check("transactions of gets");
    // Writes happen, and are answered without the records that do not fit.
    let patch = json!({"op": "patch", "collection": "note", "key": "n01", "patch": {"a": 1}});
    let patches = json!({"operations": vec![patch; 100]}).to_string();
    let (status, answer) = server.ask_json("POST", "/v1/batch", &patches);
    let results = answer["results"].as_array().unwrap();
    assert!(status == 200 && results.iter().all(|it| it["status"] == 200), "{status}");
    let shown = results.iter().filter(|it| it["body"]["record"].is_object()).count();
    assert_eq!(shown, 8 * MIB / RECORD_BYTES);
    server.check("patches of a large record");
}

#[test]
fn lists_of_large_records_end_before_their_bytes_do_and_go_on() {
    let attack = Attack::on(PATIENT);
    let server = Server::start(&attack);
    for (path, list, all) in [
        ("/v1/collections/note/records?scan=true&limit=1000", "records", RECORDS),
        ("/v1/kv?limit=1000", "keys", RECORDS),
        ("/v1/admin/keys?area=&values=true&limit=1000", "keys", RECORDS),
        ("/v1/changes?limit=1000", "commits", RECORDS),
    ] {
        let (mut found, mut pages, mut cursor) = (0, 0, String::new());
        loop {
            let (status, page) = server.ask("GET", &format!("{path}{cursor}"), "");
            assert_eq!(status, 200, "{path}");
            assert!(page.len() < 16 * MIB, "{path}: {} bytes", page.len());
            let page: Value = serde_json::from_slice(&page).unwrap();
            found += page[list].as_array().unwrap().len();
            pages += 1;
            let Some(next) = page["next"].as_str().filter(|_| page["is_end"] != true) else {
                break;
            };
            if list != "commits" && !path.contains("admin") {
                assert_eq!(page["stopped"], "bytes", "{path}");
            }
            let name = if list == "commits" { "from" } else { "cursor" };
            cursor = format!("&{name}={next}");
        }
        assert!(found >= all && pages >= 2, "{path}: {found} on {pages} pages");
    }
    server.check("lists, one after the other");
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let path = "/v1/collections/note/records?scan=true&limit=1000";
                let (status, page) = server.ask_json("GET", path, "");
                assert_eq!((status, page["stopped"].as_str()), (200, Some("bytes")));
            });
        }
        assert!(server.is_answering());
    });
    server.check("lists, many at once");
}

/// Sends as much of a body to each connection as it takes, in turns, until none takes any more,
/// however often others are answered in between.
fn push(server: &Server, streams: &mut [TcpStream], bytes: usize) {
    const IN_VAIN: usize = 30;
    let piece = vec![b' '; 64 << 10];
    let mut sent = vec![0; streams.len()];
    let mut in_vain = 0;
    while in_vain < IN_VAIN {
        in_vain += 1;
        for (stream, sent) in streams.iter_mut().zip(&mut sent) {
            while *sent < bytes {
                match stream.write(&piece[..piece.len().min(bytes - *sent)]) {
                    Ok(written) => (*sent, in_vain) = (*sent + written, 0),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // It was refused.
                    Err(_) => *sent = bytes,
                }
            }
        }
        assert!(server.is_answering(), "small requests find no room beside large bodies");
    }
}

#[test]
fn bodies_that_never_end_wait_for_room_and_small_ones_are_taken() {
    let attack = Attack::on(PATIENT);
    let server = Server::start(&attack);
    const LENGTH: usize = 5 * MIB;
    for path in ["/v1/batch", "/v1/transaction"] {
        let mut streams: Vec<TcpStream> = (0..attack.callers).map(|_| server.connect()).collect();
        for stream in &mut streams {
            stream.write_all(request("POST", path, LENGTH).as_bytes()).unwrap();
            stream.set_nonblocking(true).unwrap();
        }
        // All but the last byte.
        push(&server, &mut streams, LENGTH - 1);
        server.check(&format!("{} unfinished bodies for {path}", streams.len()));
    }
}

#[test]
fn json_that_becomes_large_is_refused_or_read_in_turns() {
    let attack = Attack::on(PATIENT);
    let server = Server::start(&attack);
    let length = attack.memory_bytes / 32 * 3 - 1_000;
    let nested = format!("{{\"operations\":[{}0]}}", "[0],".repeat(length.min(7 * MIB) / 4));
    let values = format!("{{\"operations\":[{}0]}}", "{\"a\":1},".repeat(MIB / 8));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let (status, refused) = server.ask_json("POST", "/v1/batch", &nested);
                assert_eq!(status, 413, "{refused}");
                let detail = refused["detail"].as_str().unwrap();
                assert!(detail.contains("--memory-bytes-max"), "{detail}");
                let (status, _) = server.ask("POST", "/v1/batch", &values);
                assert!(matches!(status, 400 | 413), "{status}");
            });
        }
        assert!(server.is_answering());
    });
    server.check("JSON of small values");
}

#[test]
fn answers_that_nobody_takes_are_bounded_and_others_are_answered() {
    // Those who wait for room that nobody gives back are told soon.
    let attack = Attack::on(&["--write-timeout", "5", "--answer-timeout", "10"]);
    let server = Server::start(&attack);
    let page = "/v1/collections/note/records?scan=true&limit=1000";
    let batch = gets();
    let mut streams = Vec::new();
    for number in 0..attack.callers {
        let mut stream = server.connect();
        let (asked, body) = match number % 3 {
            0 => (request("GET", page, 0), ""),
            1 => (request("POST", "/v1/batch", batch.len()), batch.as_str()),
            _ => (request("GET", "/v1/collections/note/records/n00", 0), ""),
        };
        stream.write_all(asked.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        streams.push(stream);
        assert!(server.is_answering());
    }
    server.check("answers that nobody takes");
    // Those who read get theirs, or are told to come again: nobody is forgotten.
    let statuses: Vec<u16> = streams
        .into_iter()
        .map(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
            let mut answer = Vec::new();
            drop(stream.read_to_end(&mut answer));
            let status = answer.get(9..12).and_then(|status| std::str::from_utf8(status).ok());
            // 0: it took nothing for so long that it was cut off.
            status.and_then(|status| status.parse().ok()).unwrap_or(0)
        })
        .collect();
    assert!(statuses.iter().all(|status| matches!(status, 0 | 200 | 503 | 504)), "{statuses:?}");
    assert!(statuses.contains(&200), "{statuses:?}");
    server.check("answers that were taken at last");
}
