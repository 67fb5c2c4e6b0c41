//! The lightest client that still reads every answer whole: the same for both sides.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Makes the request of that number.
pub type Request = Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>;

/// A connection that is kept.
struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// Sends requests over so many connections for a while, and gives how many were answered in how
/// many seconds. An answer that is not 2xx is an error.
pub async fn drive(
    address: SocketAddr,
    connections: usize,
    turn: Duration,
    request: Request,
    next: Arc<AtomicU64>,
) -> Result<(u64, f64)> {
    let started = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..connections {
        let (request, next) = (request.clone(), next.clone());
        tasks.push(tokio::spawn(async move {
            let mut connection = Connection::open(address).await?;
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
    Connection::open(address).await?.ask(request).await
}

impl Connection {
    async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, received: Vec::with_capacity(32 << 10) })
    }

    /// Sends one request and reads its whole answer.
    async fn ask(&mut self, request: &[u8]) -> Result<Vec<u8>> {
        self.stream.write_all(request).await?;
        self.received.clear();
        let (head, length) = loop {
            if let Some(head) = end_of_head(&self.received) {
                break (head, length(&self.received[..head])?);
            }
            self.read().await?;
        };
        while self.received.len() < head + length {
            self.read().await?;
        }
        Ok(self.received.split_off(head))
    }

    async fn read(&mut self) -> Result<()> {
        if self.stream.read_buf(&mut self.received).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}

fn end_of_head(received: &[u8]) -> Option<usize> {
    received.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

/// The length of the body that follows this head.
fn length(head: &[u8]) -> Result<usize> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    if !head.starts_with("http/1.1 2") {
        bail!("the server answered {}", head.lines().next().unwrap_or_default());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.context("an answer without a length")?.trim().parse().context("no length")
}
