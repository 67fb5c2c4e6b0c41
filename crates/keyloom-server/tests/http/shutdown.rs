//! Stopping: what was acknowledged is there, what had begun ends, and nobody holds it up.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use keyloom::{Schema, Store};
use keyloom_server::{App, Authority, Config, Limits, serve};
use serde_json::json;

use crate::people::SCHEMA;
use crate::support::TestServer;
use crate::support::raw::read_answer;

/// Writers that never stop are cut off by a shutdown; whatever was acknowledged to them is in the
/// folder afterwards.
#[test]
fn a_shutdown_under_load_loses_no_acknowledged_write() {
    const WRITERS: usize = 8;
    const ENOUGH: usize = 200;
    let folder = tempfile::tempdir().unwrap();
    let address = format!("file:{}", folder.path().join("store").display());
    let server = TestServer::on(&address, SCHEMA, Config::default());
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let at = server.address;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let acknowledged = acknowledged.clone();
            std::thread::spawn(move || {
                let agent: ureq::Agent =
                    ureq::Agent::config_builder().http_status_as_error(false).build().into();
                for number in 0.. {
                    let id = format!("w{writer}-{number}");
                    let url = format!("http://{at}/v1/collections/ticket/records/{id}");
                    let body = json!({ "id": id, "state": "open" }).to_string();
                    let sent = agent.put(&url).content_type("application/json").send(body);
                    match sent {
                        Ok(answer) if answer.status() == 201 => {
                            acknowledged.lock().unwrap().push(id)
                        }
                        Ok(answer) => panic!("{}", answer.status()),
                        // The server is gone.
                        Err(_) => return,
                    }
                }
            })
        })
        .collect();
    while acknowledged.lock().unwrap().len() < ENOUGH {
        std::thread::yield_now();
    }
    server.stop();
    for writer in writers {
        writer.join().unwrap();
    }
    let acknowledged = acknowledged.lock().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(&address).await.unwrap();
        let tickets = store.documents("ticket").await.unwrap();
        for id in acknowledged.iter() {
            assert!(tickets.get(id.as_str()).await.unwrap().is_some(), "{id} is lost");
        }
        store.close().await.unwrap();
    });
}

/// A request whose head has come is answered, even if its body comes only after the stop.
#[test]
fn a_request_that_has_begun_is_answered_after_the_stop() {
    let server = TestServer::start(SCHEMA);
    let store = server.store.clone();
    let record = json!({ "id": "t1", "state": "open" }).to_string();
    let mut stream = server.connect();
    // The server asks for the body when it has taken the head.
    let head = format!(
        "PUT /v1/collections/ticket/records/t1 HTTP/1.1\r\nHost: localhost\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        record.len(),
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).unwrap();
    assert!(go_on.starts_with(b"HTTP/1.1 100"));
    let address = server.address;
    let stopping = std::thread::spawn(move || server.stop());
    // It takes no more connections when it has begun to stop.
    while TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
    stream.write_all(record.as_bytes()).unwrap();
    let answer = read_answer(&mut stream);
    assert_eq!(answer.status, 201, "{answer:?}");
    stopping.join().unwrap();
    drop(store);
}

/// A program that serves a store without access control cannot let everyone in by mistake.
#[test]
fn a_server_for_everyone_without_access_control_is_one_by_decision() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open("memory:").await.unwrap();
        let app =
            |open_to_all| App::new(store.clone(), Config { open_to_all, ..Config::default() });
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[2001:db8::1]:0"] {
            let refused = serve(app(false), address.parse().unwrap()).await.err().unwrap();
            assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput, "{address}");
            assert!(refused.to_string().contains("open_to_all"), "{refused}");
        }
        for address in ["127.0.0.1:0", "127.7.7.7:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            assert!(serve(app(false), address.parse().unwrap()).await.is_ok(), "{address}");
        }
        assert!(serve(app(true), "0.0.0.0:0".parse().unwrap()).await.is_ok());
        let file = format!(
            "[[token]]\nname = \"ops\"\nrole = \"admin\"\nsha256 = \"{}\"\n",
            "0".repeat(64)
        );
        let authority = Authority::from_toml(&file).unwrap();
        let config = Config { authority, ..Config::default() };
        let guarded = App::new(store.clone(), config);
        assert!(serve(guarded, "0.0.0.0:0".parse().unwrap()).await.is_ok());
    });
}

/// Nobody who is idle, or who has not even sent the head of a request, is waited for.
#[test]
fn idle_and_half_sent_connections_do_not_hold_up_a_shutdown() {
    let hour = Duration::from_secs(3600);
    let limits = Limits {
        head_timeout: hour,
        idle_timeout: hour,
        shutdown_grace: hour,
        ..Limits::default()
    };
    let server = TestServer::with(SCHEMA, Config { limits, ..Config::default() });
    let silent = server.connect();
    let mut half = server.connect();
    half.write_all(b"GET /health HTTP/1.1\r\nHo").unwrap();
    let mut idle = server.connect();
    idle.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut byte = [0; 1];
    idle.read_exact(&mut byte).unwrap();
    server.stop();
    drop((silent, half, idle));
}

/// The server stops although a request never ends, and it is the server that ends it: its runtime
/// goes on.
#[test]
fn a_request_that_never_ends_is_cut_off_after_the_grace() {
    let long = Duration::from_secs(60);
    let limits = Limits {
        body_timeout: Duration::from_secs(3600),
        shutdown_grace: Duration::from_millis(200),
        ..Limits::default()
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (address, running) = runtime.block_on(async {
        let store = Store::open("memory:").await.unwrap();
        store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
        let app = App::new(store, Config { limits, ..Config::default() });
        let server = serve(app, ([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = server.address().unwrap();
        (address, tokio::spawn(server.run(async { drop(stopped.await) })))
    });
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(long)).unwrap();
    stream
        .write_all(
            b"PUT /v1/collections/ticket/records/t1 HTTP/1.1\r\nHost: localhost\r\n\
              Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n",
        )
        .unwrap();
    stream.read_exact(&mut [0; 25]).unwrap();
    let told = Instant::now();
    drop(stop);
    let ended = runtime.block_on(async { tokio::time::timeout(long, running).await });
    ended.expect("the server waits for ever").unwrap().unwrap();
    assert!(told.elapsed() >= Duration::from_millis(200), "the request had its grace");
    assert_eq!(read_answer(&mut stream).status, 0);
    drop(runtime);
}
