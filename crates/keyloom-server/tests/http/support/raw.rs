//! Requests byte by byte, for what a careful client would never send.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use super::TestServer;

/// An answer as it came over the socket.
#[derive(Debug)]
pub struct RawAnswer {
    pub status: u16,
    /// Everything before the body.
    pub head: String,
    pub body: String,
}

impl TestServer {
    /// A connection.
    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    /// Sends a request as it is and reads until the server closes the connection.
    pub fn raw(&self, request: impl AsRef<[u8]>) -> RawAnswer {
        let mut stream = self.connect();
        stream.write_all(request.as_ref()).unwrap();
        read_answer(&mut stream)
    }

    /// `GET` of a path that no client may tidy up.
    pub fn raw_get(&self, path: &str) -> RawAnswer {
        self.raw(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
    }
}

/// Reads until the other side closes.
pub fn read_answer(stream: &mut TcpStream) -> RawAnswer {
    let text = read_rest(stream);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    RawAnswer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

/// Everything that comes until the connection is closed, or reset.
pub fn read_rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}"),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
