//! The change log, as pages and as a stream.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keyloom_server::{Config, Limits};
use serde_json::{Value, json};

use crate::support::TestServer;
use crate::transaction::{SCHEMA, account, id};

/// One event of a stream.
#[derive(Debug, Default)]
struct Event {
    id: Option<String>,
    event: String,
    data: String,
    has_comment: bool,
}

/// A stream of changes, read event by event from a socket.
struct Stream {
    socket: BufReader<TcpStream>,
    /// Where it begins: what a reader goes on behind who saw nothing else.
    begin: Option<String>,
}

impl Stream {
    fn open(server: &TestServer, query: &str, last: Option<&str>) -> Self {
        let mut socket = TcpStream::connect(server.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let host = server.address;
        write!(
            socket,
            "GET /v1/changes{query} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n{last}\r\n"
        )
        .unwrap();
        let mut stream = Stream { socket: BufReader::new(socket), begin: None };
        let status = stream.line().unwrap();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        while stream.line().is_some_and(|line| !line.is_empty()) {}
        let begin = stream.event().unwrap();
        assert!(begin.has_comment && begin.data.is_empty(), "{begin:?}");
        stream.begin = begin.id;
        stream
    }

    /// The next line without its end, below the chunks of the transfer.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let bytes = self.socket.read_line(&mut line).unwrap();
        (bytes > 0).then(|| line.trim_end().to_owned())
    }

    /// The next event; `None` at the end of the stream. Every event is one chunk.
    fn event(&mut self) -> Option<Event> {
        let size = self.line()?;
        if usize::from_str_radix(&size, 16).unwrap() == 0 {
            return None;
        }
        let mut event = Event::default();
        loop {
            let line = self.line()?;
            match line.split_once(": ") {
                _ if line.is_empty() => break,
                Some(("id", id)) => event.id = Some(id.to_owned()),
                Some(("event", kind)) => event.event = kind.to_owned(),
                Some(("data", data)) => event.data = data.to_owned(),
                _ if line.starts_with(':') => event.has_comment = true,
                _ => panic!("{line:?}"),
            }
        }
        self.line();
        Some(event)
    }
}

fn put(server: &TestServer, number: usize, balance: i64) {
    let put = json!({"op": "put", "collection": "account", "key": id(number), "record": account(number, balance)});
    server.json("POST", "/v1/transaction", &json!({"operations": [put]})).expect(200);
}

/// Every commit of the log that changed records, page by page.
fn logged(server: &TestServer, query: &str) -> Vec<Value> {
    let (mut commits, mut from) = (Vec::new(), "1".to_owned());
    loop {
        let page = server.get(&format!("/v1/changes?from={from}&limit=7{query}")).expect(200);
        commits.extend(page["commits"].as_array().unwrap().clone());
        from = page["next"].as_str().unwrap().to_owned();
        if page["is_end"] == true {
            return commits;
        }
    }
}

#[test]
fn pages_tell_every_commit_once_and_filters_hold() {
    let server = TestServer::start(SCHEMA);
    for number in 0..20 {
        put(&server, number, 1);
    }
    let note = json!({"op": "put", "collection": "note", "key": "ana:notes:n1", "record": {}});
    let increment = json!({"op": "increment", "collection": "account", "key": id(1), "add": {"stats.moves": 2}});
    let delete = json!({"op": "delete", "collection": "account", "key": id(2)});
    server
        .json("POST", "/v1/transaction", &json!({"operations": [note, increment, delete]}))
        .expect(200);
    let all = logged(&server, "");
    let changed: Vec<&Value> =
        all.iter().flat_map(|commit| commit["changes"].as_array().unwrap()).collect();
    assert_eq!(changed.len(), 23);
    assert!(changed.iter().any(|change| change["became"] == "deleted"));
    assert!(changed.iter().any(|change| change["increments"]["stats.moves"] == 2));
    assert_eq!(all[0]["is_schema_change"], true);
    assert_eq!(logged(&server, "&collection=note").len(), 1);
    assert_eq!(logged(&server, &format!("&prefix=account:{}", id(3))).len(), 1);
    let first = server.get("/v1/changes?limit=1").expect(200);
    assert_eq!((&first["oldest"], &first["next"]), (&json!("1"), &json!("2")));
}

#[test]
fn wrong_questions_have_clear_answers() {
    let bounded = SCHEMA.replace("[log]", "[log]\nentries = 2");
    let server = TestServer::start(&bounded);
    (0..20).for_each(|number| put(&server, number, 1));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(server.store.trim_log()).unwrap();
    let problem = server.get("/v1/changes?from=1").expect(410);
    assert_eq!(problem["type"], "/problems/log-trimmed");
    let resumed = [("accept", "text/event-stream"), ("last-event-id", "1")];
    server.send("GET", "/v1/changes", &resumed, "").expect(410);
    for query in ["from=0", "from=x", "limit=0", "limit=1001", "limit=x", "colour=red"] {
        assert_eq!(server.get(&format!("/v1/changes?{query}")).status, 400, "{query}");
    }
    for accept in ["application/json", "text/event-stream"] {
        let answer = server.send("GET", "/v1/changes?from=999", &[("accept", accept)], "");
        assert_eq!(answer.expect(409)["type"], "/problems/invalid-cursor");
    }
    let unwelcome = [("accept", "text/event-stream;q=0, application/json")];
    let page = server.send("GET", "/v1/changes?limit=1", &unwelcome, "").expect(200);
    assert!(page["commits"].is_array(), "{page}");
    server.get("/v1/changes?collection=nobody").expect(404);
    server.send("GET", "/v1/changes", &[("keyloom-act-as", "ana")], "").expect(403);
    let without = TestServer::start(&SCHEMA.replace("[log]", ""));
    let problem = without.get("/v1/changes").expect(501);
    assert_eq!(problem["type"], "/problems/unsupported");
}

/// A reader whose connection is cut again and again sees every commit of the log exactly once and
/// in order, while somebody writes.
#[test]
fn no_commit_is_missed_or_repeated_over_reconnects() {
    const WRITES: usize = 400;
    let server = Arc::new(TestServer::start(SCHEMA));
    let is_written = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (server, is_written) = (server.clone(), is_written.clone());
        move || {
            (0..WRITES).for_each(|step| put(&server, step % 5, step as i64));
            is_written.store(true, Ordering::Release);
        }
    });
    let mut seen: Vec<Value> = Vec::new();
    let (mut last, mut connections) = (None::<String>, 0);
    let mut cut = 0_usize;
    let is_last = |commit: &Value| commit["changes"][0]["record"]["balance"] == WRITES as i64 - 1;
    'all: loop {
        let mut stream = Stream::open(&server, "?from=1&collection=account", last.as_deref());
        connections += 1;
        // The lives of connections differ: 1, 2, … 13 events.
        cut = cut % 13 + 1;
        for _ in 0..cut {
            let event = stream.event().unwrap();
            assert_eq!(event.event, "commit");
            last = event.id;
            seen.push(serde_json::from_str(&event.data).unwrap());
            if seen.last().is_some_and(is_last) {
                break 'all;
            }
        }
    }
    writer.join().unwrap();
    assert!(connections > 50, "{connections}");
    assert_eq!(seen, logged(&server, "&collection=account"));
    assert_eq!(seen.len(), WRITES);
}

/// Who asks for changes from now on, and loses the connection before there was one, can go on.
#[test]
fn a_stream_that_is_cut_before_anything_happened_goes_on_where_it_began() {
    let server = TestServer::start(SCHEMA);
    put(&server, 1, 1);
    let begin = Stream::open(&server, "", None).begin.unwrap();
    put(&server, 1, 2);
    let event = Stream::open(&server, "", Some(&begin)).event().unwrap();
    let commit: Value = serde_json::from_str(&event.data).unwrap();
    assert_eq!(commit["changes"][0]["record"]["balance"], 2);
}

#[test]
fn a_quiet_stream_shows_life_and_how_far_it_is() {
    let limits = Limits { stream_pulse: Duration::from_millis(20), ..Limits::default() };
    let server = TestServer::with(SCHEMA, Config { limits, ..Config::default() });
    let mut stream = Stream::open(&server, "?collection=note", None);
    put(&server, 1, 1);
    put(&server, 2, 1);
    let end = server.get("/v1/changes?limit=1000").expect(200)["next"].as_str().unwrap().to_owned();
    let end = (end.parse::<u64>().unwrap() - 1).to_string();
    // Nothing of notes; the place moves on all the same.
    loop {
        let event = stream.event().unwrap();
        assert!(event.has_comment && event.data.is_empty());
        if event.id.as_ref() == Some(&end) {
            break;
        }
    }
}

#[test]
fn there_are_only_so_many_streams_and_a_closed_one_makes_room() {
    let limits =
        Limits { streams_max: 2, stream_pulse: Duration::from_millis(5), ..Limits::default() };
    let server = TestServer::with(SCHEMA, Config { limits, ..Config::default() });
    let one = Stream::open(&server, "", None);
    let _other = Stream::open(&server, "", None);
    let accept = [("accept", "text/event-stream")];
    let problem = server.send("GET", "/v1/changes", &accept, "").expect(503);
    assert_eq!(problem["type"], "/problems/overloaded");
    drop(one);
    // The server learns of the end when it next writes.
    loop {
        let metrics = String::from_utf8(server.get("/metrics").body).unwrap();
        if metrics.contains("keyloom_streams_open 1\n") {
            break;
        }
    }
    Stream::open(&server, "", None);
}

#[test]
fn a_stream_ends_with_the_server_and_says_so() {
    let server = TestServer::start(SCHEMA);
    let mut stream = Stream::open(&server, "", None);
    put(&server, 1, 1);
    assert_eq!(stream.event().unwrap().event, "commit");
    server.stop();
    let event = stream.event().unwrap();
    assert_eq!(event.event, "problem");
    assert_eq!(serde_json::from_str::<Value>(&event.data).unwrap()["type"], "/problems/closed");
    assert!(stream.event().is_none());
}

/// A reader who falls behind what the log keeps is told so, and the stream ends.
#[test]
fn a_reader_too_far_behind_gets_a_problem_and_the_end() {
    // The reader takes nothing while the writes go on, however long these take.
    let limits = Limits { write_timeout: Duration::from_secs(3600), ..Limits::default() };
    let schema = SCHEMA.replace("[log]", "[log]\nentries = 5");
    let server = TestServer::with(&schema, Config { limits, ..Config::default() });
    put(&server, 0, 0);
    let mut stream = Stream::open(&server, "?from=1", None);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // More than the sockets between the two hold, so that the server has to wait for the reader.
    let text = "x".repeat(300_000);
    for step in 0..120 {
        let record = json!({"id": id(1), "code": "c", "text": text, "step": step});
        let put = json!({"op": "put", "collection": "account", "key": id(1), "record": record});
        server.json("POST", "/v1/transaction", &json!({"operations": [put]})).expect(200);
    }
    runtime.block_on(server.store.trim_log()).unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.event() {
        events.push(event);
    }
    let last = events.pop().unwrap();
    assert_eq!(last.event, "problem");
    let problem: Value = serde_json::from_str(&last.data).unwrap();
    assert_eq!(problem["type"], "/problems/log-trimmed");
    assert!(events.iter().all(|event| event.event == "commit" || event.has_comment));
}
