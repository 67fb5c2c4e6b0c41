//! The lightest client that still reads every answer whole: the same for both sides.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// Makes the request of that number.
pub type Request = Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>;

/// A connection that is kept.
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// Connections that are open and wait for a request.
pub struct Connections(Vec<Connection>);

impl Connections {
    /// Opens so many.
    pub async fn open(address: SocketAddr, connections: usize) -> Result<Self> {
        let mut open = Vec::new();
        for _ in 0..connections {
            open.push(Connection::open(address).await?);
        }
        Ok(Connections(open))
    }
}

/// Sends requests over all connections for a while, and gives how many were answered in how many
/// seconds. An answer that is not 2xx is an error.
pub async fn drive(
    connections: Connections,
    turn: Duration,
    request: Request,
    next: Arc<AtomicU64>,
) -> Result<(u64, f64)> {
    let started = Instant::now();
    let mut tasks = Vec::new();
    for mut connection in connections.0 {
        let (request, next) = (request.clone(), next.clone());
        tasks.push(tokio::spawn(async move {
            let mut answered = 0_u64;
            while started.elapsed() < turn {
                let bytes = request(next.fetch_add(1, Ordering::Relaxed));
                connection.ask(&bytes).await?;
                answered += 1;
            }
            anyhow::Ok(answered)
        }));
    }
    let mut answered = 0;
    for task in tasks {
        answered += task.await??;
    }
    Ok((answered, started.elapsed().as_secs_f64()))
}

/// One answer's body.
pub async fn fetch(address: SocketAddr, request: &[u8]) -> Result<Vec<u8>> {
    Ok(Connection::open(address).await?.ask(request).await?.to_vec())
}

impl Connection {
    /// Opens one.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, received: Vec::with_capacity(32 << 10) })
    }

    /// Sends one request and reads its whole answer, of which it gives the body.
    /// An answer that is not 2xx is an error.
    pub async fn ask(&mut self, request: &[u8]) -> Result<&[u8]> {
        let head = self.exchange(request).await?;
        if !self.received.starts_with(b"HTTP/1.1 2") {
            let line = self.received.split(|byte| *byte == b'\r').next().unwrap_or_default();
            bail!("the server answered {}", String::from_utf8_lossy(line));
        }
        Ok(&self.received[head..])
    }

    /// Sends one request and reads its whole answer, whatever it is; gives the length of its head.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<usize> {
        self.stream.write_all(request).await?;
        self.received.clear();
        let (head, length) = loop {
            if let Some(end) = memmem::find(&self.received, END_OF_HEAD) {
                break (end + END_OF_HEAD.len(), length(&self.received[..end])?);
            }
            self.read().await?;
        };
        while self.received.len() < head + length {
            self.read().await?;
        }
        Ok(head)
    }

    async fn read(&mut self) -> Result<()> {
        if self.stream.read_buf(&mut self.received).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}

/// The length of the body that follows this head.
fn length(head: &[u8]) -> Result<usize> {
    const LENGTH: &[u8] = b"content-length:";
    let mut lines = memmem::find_iter(head, b"\r\n").map(|end| &head[end + 2..]);
    let is_length = |line: &&[u8]| {
        line.get(..LENGTH.len()).is_some_and(|name| name.eq_ignore_ascii_case(LENGTH))
    };
    let line = lines.find(is_length).context("an answer without a length")?;
    let value = line[LENGTH.len()..].split(|byte| *byte == b'\r').next().unwrap_or_default();
    std::str::from_utf8(value)?.trim().parse().context("no length")
}
