//! Many connections: who makes room for whom, and what is answered when there is none.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use keyloom_server::{Config, Limits};

use crate::people::SCHEMA;
use crate::support::TestServer;
use crate::support::raw::{RawAnswer, read_answer, read_rest};

const TICKET: &str = "/v1/collections/ticket/records/t1";
const LONG: Duration = Duration::from_secs(3600);

/// Two callers, as Linux has them: all of 127.0.0.0/8 is this machine.
const HONEST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const GREEDY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// How many more of everything than usual.
fn times() -> usize {
    std::env::var("KEYLOOM_LONG").ok().and_then(|long| long.parse().ok()).unwrap_or(1).max(1)
}

/// A server with so many connections, on which nothing ends by itself.
fn server_with(connections_max: usize) -> TestServer {
    let limits = Limits {
        connections_max,
        head_timeout: LONG,
        body_timeout: LONG,
        idle_timeout: LONG,
        write_timeout: LONG,
        ..Limits::default()
    };
    TestServer::with(SCHEMA, Config { limits, ..Config::default() })
}

/// A connection from an address.
fn connect_from(server: &TestServer, address: Ipv4Addr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((address, 0).into()).unwrap();
        socket.connect(server.address).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    // Only a test that fails waits so long.
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn ask(stream: &mut TcpStream, path: &str) -> RawAnswer {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    // Whoever was closed has nobody to write to.
    drop(stream.write_all(request.as_bytes()));
    read_answer(stream)
}

fn ask_from(server: &TestServer, address: Ipv4Addr, path: &str) -> RawAnswer {
    ask(&mut connect_from(server, address), path)
}

/// A connection whose request the server has begun to answer: it asked for the body.
fn busy(server: &TestServer, address: Ipv4Addr) -> Result<TcpStream, RawAnswer> {
    let mut stream = connect_from(server, address);
    let head = format!(
        "PUT {TICKET} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    if &status == b"HTTP/1.1 100" {
        stream.read_exact(&mut [0; 13]).unwrap();
        return Ok(stream);
    }
    let mut answer = read_answer(&mut stream);
    answer.status = String::from_utf8_lossy(&status[9..]).parse().unwrap();
    Err(answer)
}

/// Connections that are busy, as many as an address gets.
fn take_all(server: &TestServer, address: Ipv4Addr) -> Vec<TcpStream> {
    let mut held = Vec::new();
    loop {
        match busy(server, address) {
            Ok(stream) => held.push(stream),
            Err(answer) => {
                assert_eq!(answer.status, 503, "{answer:?}");
                return held;
            }
        }
    }
}

/// Whether the server has closed the connection, as far as the system has heard.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = stream.read(&mut [0; 1]);
    stream.set_nonblocking(false).unwrap();
    !matches!(read, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn at_the_limit_a_new_client_gets_the_place_of_the_one_that_waited_longest() {
    let server = server_with(3);
    let mut waiting: Vec<TcpStream> = (0..3).map(|_| connect_from(&server, HONEST)).collect();
    assert_eq!(ask_from(&server, HONEST, TICKET).status, 404);
    assert_eq!(read_rest(&mut waiting[0]), "", "it had waited longest");
    // Those that waited less are still answered.
    assert_eq!(ask(&mut waiting[1], TICKET).status, 404);
    assert_eq!(ask(&mut waiting[2], TICKET).status, 404);
}

/// A connection that was answered and kept waits like one that never asked.
#[test]
fn an_idle_connection_makes_room() {
    let server = server_with(1);
    let mut idle = connect_from(&server, HONEST);
    idle.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    idle.read_exact(&mut [0; 12]).unwrap();
    // The end of its answer may still be on its way.
    while ask_from(&server, HONEST, TICKET).status == 503 {}
    assert!(!read_rest(&mut idle).contains("HTTP/1.1"), "it was closed, and not answered again");
}

#[test]
fn heads_that_trickle_from_one_address_do_not_keep_others_out() {
    let server = server_with(64);
    let mut honest = connect_from(&server, HONEST);
    let mut slow = Vec::new();
    for round in 0..10 * times() {
        for _ in 0..32 {
            let mut stream = connect_from(&server, GREEDY);
            // It may have been closed already for one that came after it.
            drop(stream.write_all(b"GET / HTTP/1.1\r\nHost: loc"));
            slow.push(stream);
        }
        assert_eq!(ask_from(&server, HONEST, TICKET).status, 404, "round {round}");
        slow.iter_mut().for_each(|stream| drop(stream.write_all(b"a")));
        let kept = slow.len().saturating_sub(100);
        slow.drain(..kept);
    }
    // It has waited longest of all, and has no more than its share.
    assert!(!is_closed(&mut honest));
    assert_eq!(ask(&mut honest, TICKET).status, 404);
}

#[test]
fn one_address_cannot_have_every_place_whatever_it_does() {
    let server = server_with(16);
    let held = take_all(&server, GREEDY);
    assert_eq!(held.len(), 12);
    for _ in 0..20 {
        assert_eq!(ask_from(&server, HONEST, TICKET).status, 404);
    }
    let refused = ask_from(&server, GREEDY, TICKET);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("its share"), "{refused:?}");
    assert_eq!(take_all(&server, HONEST).len(), 4);
}

/// When all connections are busy, a new one is told so at once, and whoever watches over the
/// server still learns that it lives: however many try, and however slowly.
#[test]
fn health_is_answered_when_every_connection_is_busy() {
    let server = server_with(8);
    let _held = [take_all(&server, GREEDY), take_all(&server, HONEST)];
    let silent: Vec<TcpStream> =
        (0..200 * times()).map(|_| connect_from(&server, GREEDY)).collect();
    for path in ["/health", "/ready"] {
        for address in [HONEST, GREEDY] {
            let answer = ask_from(&server, address, path);
            assert_eq!(answer.status, 200, "{answer:?}");
            assert!(answer.head.contains("\r\nconnection: close"), "{answer:?}");
        }
    }
    for path in [TICKET, "/metrics", "/console/", "/nothing"] {
        let answer = ask_from(&server, HONEST, path);
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.body.contains("/problems/overloaded"), "{answer:?}");
        assert!(answer.body.contains("did_not_happen"), "{answer:?}");
        assert!(answer.head.contains("\r\nretry-after: 1"), "{answer:?}");
        assert!(answer.head.contains("\r\nconnection: close"), "{answer:?}");
    }
    drop(silent);
}

/// What is being answered ends well, however many want its place.
#[test]
fn a_request_that_has_begun_is_answered_in_a_crowd() {
    let server = server_with(4);
    let mut begun = busy(&server, HONEST).unwrap();
    let crowd: Vec<TcpStream> = (0..50 * times()).map(|_| connect_from(&server, GREEDY)).collect();
    assert_eq!(ask_from(&server, GREEDY, TICKET).status, 404);
    let record = format!("{:<100}", r#"{"id":"t1","state":"open"}"#);
    begun.write_all(record.as_bytes()).unwrap();
    let mut status = [0; 12];
    begun.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 201");
    drop(crowd);
}
