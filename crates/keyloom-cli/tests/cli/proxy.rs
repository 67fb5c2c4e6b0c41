//! A proxy that passes requests on, until one at which it does something else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not arrive.
    RequestLost,
    /// It arrives, and its answer does not.
    AnswerLost,
}

/// What follows for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The connection is cut.
    Cut,
    /// Nothing comes any more.
    Silence,
}

/// A proxy in front of a server.
pub struct Proxy {
    pub url: String,
    reached: Receiver<()>,
}

impl Proxy {
    /// Passes requests on, but for the one of that number, from 0.
    pub fn start(server: &str, at: usize, fault: Fault, then: Then) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = server.trim_start_matches("http://").to_owned();
        let (tell, reached) = channel();
        let seen = Arc::new(AtomicUsize::new(0));
        thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let passing = Passing {
                    upstream: TcpStream::connect(&server).unwrap(),
                    client,
                    seen: Arc::clone(&seen),
                    at,
                    fault,
                    then,
                    tell: tell.clone(),
                };
                thread::spawn(move || passing.run());
            }
        });
        Proxy { url, reached }
    }

    /// Waits until the request has come that is treated otherwise, and that has been done to it.
    pub fn wait(&self) {
        self.reached.recv().unwrap();
    }
}

/// One connection.
struct Passing {
    client: TcpStream,
    upstream: TcpStream,
    seen: Arc<AtomicUsize>,
    at: usize,
    fault: Fault,
    then: Then,
    tell: Sender<()>,
}

impl Passing {
    fn run(self) {
        while let Some(request) = read_message(&self.client) {
            let is_it = self.seen.fetch_add(1, Ordering::SeqCst) == self.at;
            if !is_it || self.fault == Fault::AnswerLost {
                (&self.upstream).write_all(&request).unwrap();
                let Some(answer) = read_message(&self.upstream) else { return };
                if !is_it {
                    // Nobody listens to a test that has ended.
                    drop((&self.client).write_all(&answer));
                    continue;
                }
            }
            // Nobody waits for it where the test is over.
            let _ = self.tell.send(());
            if self.then == Then::Silence {
                // Until the client is gone.
                drop((&self.client).read(&mut [0]));
            }
            return;
        }
    }
}

/// One message with a length, as it came.
fn read_message(stream: &TcpStream) -> Option<Vec<u8>> {
    let mut reader = BufReader::with_capacity(1, stream);
    let mut message = Vec::new();
    let mut length = 0;
    loop {
        let start = message.len();
        if reader.read_until(b'\n', &mut message).ok()? == 0 {
            return None;
        }
        let line = String::from_utf8_lossy(&message[start..]).to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let start = message.len();
    message.resize(start + length, 0);
    reader.read_exact(&mut message[start..]).ok()?;
    Some(message)
}
