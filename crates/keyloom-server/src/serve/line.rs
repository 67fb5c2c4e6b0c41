//! One connection, with a clock on what the other side does.
//!
//! | phase | begins | how long it may last |
//! | --- | --- | --- |
//! | head | when the connection is made; with the first byte of a further request | `head_timeout` |
//! | busy | when the head is there | as long as its answer takes; the body has a clock of its own |
//! | idle | when the answer has been given | `idle_timeout` |
//!
//! A peer that takes nothing of an answer for `write_timeout` is cut off in any phase. HTTP's own
//! implementation has one clock for head and idle together, and none for writing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::config::Limits;

const HEAD: u8 = 0;
const BUSY: u8 = 1;
const IDLE: u8 = 2;

/// What is known of a connection by all who work on it.
#[derive(Clone)]
pub(super) struct Line {
    shared: Arc<Shared>,
    head_timeout: Duration,
    idle_timeout: Duration,
    write_timeout: Duration,
}

#[derive(Default)]
struct Shared {
    phase: AtomicU8,
    is_stopping: AtomicBool,
}

impl Line {
    pub(super) fn new(limits: &Limits) -> Self {
        Line {
            shared: Arc::default(),
            head_timeout: limits.head_timeout,
            idle_timeout: limits.idle_timeout,
            write_timeout: limits.write_timeout,
        }
    }

    /// The stream, with clocks.
    pub(super) fn over(&self, stream: TcpStream) -> Timed {
        Timed { stream, line: self.clone(), reading: Clock::default(), writing: Clock::default() }
    }

    /// A request is there.
    pub(super) fn busy(&self) -> Busy {
        self.shared.phase.store(BUSY, Ordering::Release);
        Busy(self.shared.clone())
    }

    /// Requests whose head is not there yet are not waited for any more.
    pub(super) fn stop(&self) {
        self.shared.is_stopping.store(true, Ordering::Release);
    }
}

/// A request that is being answered; dropped, it is over.
pub(super) struct Busy(Arc<Shared>);

impl Busy {
    /// The body of the answer, which is over when it has been given.
    pub(super) fn until_end(self, body: Body) -> Answer {
        Answer { body, _busy: self }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.phase.store(IDLE, Ordering::Release);
    }
}

/// The body of an answer.
pub(super) struct Answer {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream with a clock for each direction.
pub(super) struct Timed {
    stream: TcpStream,
    line: Line,
    reading: Clock,
    writing: Clock,
}

impl Timed {
    /// Wakes the task when the phase has lasted too long, and says whether it has.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        let phase = self.line.shared.phase.load(Ordering::Acquire);
        let limit = match phase {
            HEAD => self.line.head_timeout,
            IDLE => self.line.idle_timeout,
            _ => {
                self.reading.stop();
                return false;
            }
        };
        self.reading.poll(phase, limit, context).is_ready()
    }

    /// The first byte after an answer begins the head of the next request.
    fn note_read(&mut self, bytes: usize) {
        if bytes > 0 {
            let phase = &self.line.shared.phase;
            // In any other phase nothing changes.
            let _ = phase.compare_exchange(IDLE, HEAD, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    fn written<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.writing.stop();
        } else if self.writing.poll(BUSY, self.line.write_timeout, context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        written
    }
}

impl AsyncRead for Timed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.note_read(buffer.filled().len() - before);
            return read;
        }
        let is_head = self.line.shared.phase.load(Ordering::Acquire) == HEAD;
        if is_head && self.line.shared.is_stopping.load(Ordering::Acquire) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if self.is_late(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl AsyncWrite for Timed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.written(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// After the last byte of an answer nobody may read until there is something to be read, so
    /// that the clock of idleness is started here.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        if self.is_late(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A clock that runs while something is waited for.
///
/// A busy connection starts and stops it with every request. Its timer is therefore never moved
/// when that happens: it rings at the end that was set when it was last looked at, and is then set
/// to the true end if that is later.
#[derive(Default)]
struct Clock {
    timer: Option<Pin<Box<Sleep>>>,
    /// What is waited for, and until when.
    running: Option<(u8, Instant)>,
}

impl Clock {
    /// Starts the clock for a phase, unless it runs for that phase already; ready when the limit
    /// is over.
    fn poll(&mut self, phase: u8, limit: Duration, context: &mut Context<'_>) -> Poll<()> {
        let end = match self.running {
            Some((running, end)) if running == phase => end,
            _ => Instant::now() + limit,
        };
        self.running = Some((phase, end));
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if timer.deadline() > end {
            timer.as_mut().reset(end);
        }
        loop {
            ready!(timer.as_mut().poll(context));
            if timer.deadline() >= end {
                return Poll::Ready(());
            }
            timer.as_mut().reset(end);
        }
    }

    fn stop(&mut self) {
        self.running = None;
    }
}
