//! Callers who take their time, on purpose or not.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use keyloom_server::{Config, Limits};

use crate::people::SCHEMA;
use crate::support::TestServer;
use crate::support::raw::{read_answer, read_rest};

const TICKET: &str = "/v1/collections/ticket/records/t1";
const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(3600);

/// Everything may take an hour, but for what a test changes.
fn patient(change: impl FnOnce(&mut Limits)) -> TestServer {
    let mut limits = Limits {
        head_timeout: LONG,
        body_timeout: LONG,
        answer_timeout: LONG,
        write_timeout: LONG,
        idle_timeout: LONG,
        ..Limits::default()
    };
    change(&mut limits);
    TestServer::with(SCHEMA, Config { limits, ..Config::default() })
}

/// Whether a connection, on which nothing is to be read, stays open for the time of its timeout.
fn is_open(stream: &mut TcpStream) -> bool {
    let read = stream.read(&mut [0; 1]);
    read.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

#[test]
fn a_thousand_slow_connections_do_not_stop_others() {
    let server = patient(|_| ());
    let slow: Vec<TcpStream> = (0..1_000)
        .map(|number| {
            let mut stream = server.connect();
            // Half of them stop in the head, the others in the body.
            let text = match number % 2 {
                0 => format!("GET {TICKET} HTTP/1.1\r\nHost: loc"),
                _ => format!(
                    "PUT {TICKET} HTTP/1.1\r\nHost: localhost\r\n\
                     Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
                ),
            };
            stream.write_all(text.as_bytes()).unwrap();
            stream
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(server.raw_get(TICKET).status, 404);
    }
    // Nor do they hold up the end: see `shutdown` for those who are being answered.
    drop(slow);
}

#[test]
fn a_head_that_does_not_arrive_in_time_ends_the_connection() {
    let server = patient(|limits| limits.head_timeout = SHORT);
    let mut silent = server.connect();
    let mut stuck = server.connect();
    stuck.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    // One that always sends a little is no better.
    let mut dripping = server.connect();
    dripping.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let mut sent = 0;
    while dripping.write_all(b"x").is_ok() && is_open(&mut dripping) {
        sent += 1;
        assert!(sent < 10_000, "the connection is still open");
    }
    assert_eq!(read_rest(&mut silent), "");
    assert_eq!(read_rest(&mut stuck), "");
}

/// The head of a further request has the same clock, from its first byte.
#[test]
fn a_later_head_has_the_same_clock_and_idleness_another() {
    let request = format!("GET {TICKET} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let answered = |stream: &mut TcpStream| {
        stream.write_all(request.as_bytes()).unwrap();
        let mut piece = [0; 4096];
        assert!(stream.read(&mut piece).unwrap() > 0);
    };
    let server = patient(|limits| limits.head_timeout = SHORT);
    let mut stream = server.connect();
    answered(&mut stream);
    // It may wait longer than a head may take.
    stream.set_read_timeout(Some(SHORT * 2)).unwrap();
    assert!(is_open(&mut stream));
    stream.set_read_timeout(None).unwrap();
    answered(&mut stream);
    stream.write_all(b"GET / HT").unwrap();
    assert_eq!(read_rest(&mut stream), "");

    let server = patient(|limits| limits.idle_timeout = SHORT);
    let mut stream = server.connect();
    answered(&mut stream);
    assert_eq!(read_rest(&mut stream), "");
}

#[test]
fn a_body_that_does_not_arrive_in_time_is_told_so() {
    let server = patient(|limits| limits.body_timeout = SHORT);
    let mut stream = server.connect();
    let head = format!(
        "PUT {TICKET} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\n\r\n{{\"id\""
    );
    stream.write_all(head.as_bytes()).unwrap();
    let answer = read_answer(&mut stream);
    assert_eq!(answer.status, 408, "{answer:?}");
    assert!(answer.body.contains("/problems/request-timeout"), "{answer:?}");
    assert!(answer.body.contains("did_not_happen"), "{answer:?}");
    assert_eq!(server.raw_get(TICKET).status, 404);
}

#[test]
fn a_caller_who_takes_nothing_of_the_answer_is_cut_off() {
    let server = patient(|limits| {
        limits.write_timeout = SHORT;
        limits.connections_max = 1;
    });
    let mut stream = server.connect();
    // Answers enough to fill every buffer on the way, none of which is read.
    let request = format!("GET {TICKET} HTTP/1.1\r\nHost: localhost\r\n\r\n").repeat(200);
    while stream.write_all(request.as_bytes()).is_ok() {}
    // The one place is free again.
    assert_eq!(server.raw_get(TICKET).status, 404);
}

/// A caller who takes a little now and then is no better, and keeps its place no longer.
#[test]
fn a_caller_who_takes_too_little_of_the_answer_is_cut_off() {
    let server = patient(|limits| {
        limits.write_timeout = SHORT;
        // More than anybody takes piece by piece with a pause after each.
        limits.send_rate_min = 1 << 30;
        limits.connections_max = 1;
    });
    let mut stream = server.connect();
    let request = format!("GET {TICKET} HTTP/1.1\r\nHost: localhost\r\n\r\n").repeat(200);
    stream.set_write_timeout(Some(Duration::from_millis(5))).unwrap();
    let is_cut_off = |error: &std::io::Error| error.kind() != ErrorKind::WouldBlock;
    for _ in 0..1_000_000 {
        let written = stream.write(request.as_bytes());
        if written.as_ref().is_err_and(is_cut_off) {
            break;
        }
        if written.is_err() && stream.read(&mut [0; 400]).is_err() {
            break;
        }
    }
    // The one place is free again.
    assert_eq!(server.raw_get(TICKET).status, 404);
}

#[test]
fn heads_have_a_limit_of_size() {
    let server = TestServer::start(SCHEMA);
    let with_header = |bytes: usize| {
        let value = "x".repeat(bytes);
        server.raw(format!(
            "GET {TICKET} HTTP/1.1\r\nHost: localhost\r\nX: {value}\r\nConnection: close\r\n\r\n"
        ))
    };
    assert_eq!(with_header(30 << 10).status, 404);
    let answer = with_header(33 << 10);
    assert_eq!(answer.status, 431, "{answer:?}");
    assert!(answer.body.contains("/problems/too-large-headers"), "{answer:?}");
    assert_eq!(server.raw_get(&format!("/{}", "x".repeat(33 << 10))).status, 431);
    // Far larger, or never ending: refused on the way, by the status alone.
    let mut stream = server.connect();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n").unwrap();
    let line = format!("X: {}\r\n", "x".repeat(1_000));
    while stream.write_all(line.as_bytes()).is_ok() {}
    assert_eq!(server.raw_get(TICKET).status, 404);
    let many = "X: y\r\n".repeat(1_000);
    let many = server.raw(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"));
    assert_eq!(many.status, 431);
}
