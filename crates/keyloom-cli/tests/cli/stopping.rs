//! `keyloom serve` told to stop while somebody still talks to it.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::support::{SCHEMA, Sandbox, Served};

const RECORD: &str = "{}";

/// A write whose head the server has taken, and whose body it waits for.
struct HalfSent(TcpStream);

impl HalfSent {
    fn begin(served: &Served, key: &str) -> Self {
        let address = served.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(
            stream,
            "PUT /v1/collections/flow/records/{key} HTTP/1.1\r\nHost: localhost\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            RECORD.len()
        )
        .unwrap();
        // The server asks for the body when it has taken the head.
        let mut go_on = [0; 25];
        stream.read_exact(&mut go_on).unwrap();
        assert!(go_on.starts_with(b"HTTP/1.1 100"));
        HalfSent(stream)
    }

    /// Sends the body, and gives the first line of the answer.
    fn end(mut self) -> String {
        self.0.write_all(RECORD.as_bytes()).unwrap();
        self.answer()
    }

    /// The first line of the answer; nothing if the connection is cut off without one.
    fn answer(mut self) -> String {
        let mut answer = Vec::new();
        match self.0.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("{error}"),
        }
        String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
    }
}

fn serving(grace: &str) -> (Sandbox, Served) {
    let sandbox = Sandbox::empty();
    sandbox.write("keyloom.toml", SCHEMA);
    let served = sandbox.serve(&["--shutdown-grace", grace]);
    (sandbox, served)
}

#[test]
fn a_second_interrupt_stops_at_once_and_loses_nothing_acknowledged() {
    let (sandbox, mut served) = serving("3600");
    sandbox.run(&["put", "flow", "before", RECORD, "--server", &served.url]).expect(0);
    let (finished, hanging) =
        (HalfSent::begin(&served, "during"), HalfSent::begin(&served, "never"));
    served.signal("INT");
    served.hear("stopping; Ctrl-C again does not wait");
    // The first lets what has begun end, and waits for the one that does not.
    assert_eq!(finished.end(), "HTTP/1.1 201 Created");
    served.signal("INT");
    let (code, err) = served.ended();
    assert_eq!(code, 0, "{err}");
    // It was cut off: a server that waits answers 408 when the time for the body is over.
    assert_eq!(hanging.answer(), "");
    for key in ["before", "during"] {
        sandbox.run(&["get", "flow", key]).expect(0);
    }
    sandbox.run(&["get", "flow", "never"]).expect(1);
    sandbox.run(&["verify"]).expect(0);
}

#[test]
fn the_grace_of_the_command_ends_what_does_not_end_by_itself() {
    let (sandbox, served) = serving("1");
    sandbox.run(&["put", "flow", "before", RECORD, "--server", &served.url]).expect(0);
    let hanging = HalfSent::begin(&served, "never");
    served.signal("TERM");
    let (code, err) = served.ended();
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("requests were cut off at the end of the grace"), "{err}");
    assert_eq!(hanging.answer(), "");
    sandbox.run(&["get", "flow", "before"]).expect(0);
    sandbox.run(&["get", "flow", "never"]).expect(1);
}
