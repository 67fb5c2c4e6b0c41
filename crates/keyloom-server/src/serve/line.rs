//! One connection, with time limits on the other side.
//!
//! | phase | how long it may last |
//! | --- | --- |
//! | head | `head_timeout` |
//! | busy, sending | as long as the answer takes; the body has a limit of its own, and the caller must receive the answer at a rate of `send_rate_min` (`pace.rs`) |
//! | idle | `idle_timeout` |
//!
//! `phase.rs` says when each phase begins. The HTTP implementation has a single limit for head and
//! idle together, and none for writing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::clock::Clock;
use super::pace::Pace;
use super::phase::{Phase, State};
use crate::config::Limits;

/// The shared state of a connection.
#[derive(Clone)]
pub(super) struct Line {
    state: Arc<State>,
    is_stopping: Arc<AtomicBool>,
    head_timeout: Duration,
    idle_timeout: Duration,
    write_timeout: Duration,
    send_rate_min: usize,
}

impl Line {
    pub(super) fn new(state: Arc<State>, limits: &Limits) -> Self {
        Line {
            state,
            is_stopping: Arc::default(),
            head_timeout: limits.head_timeout,
            idle_timeout: limits.idle_timeout,
            write_timeout: limits.write_timeout,
            send_rate_min: limits.send_rate_min,
        }
    }

    /// The stream with time limits.
    pub(super) fn over<S>(&self, stream: S) -> Timed<S> {
        let sending = Pace::new(self.write_timeout, self.send_rate_min);
        Timed { stream, line: self.clone(), reading: Clock::default(), sending }
    }

    /// Starts answering a request. Gives nothing if the connection is being closed.
    pub(super) fn busy(&self) -> Option<Busy> {
        self.state.begin_request().then(|| Busy(self.state.clone()))
    }

    /// From now on, a connection without the head of a request is closed.
    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// Waits until somebody closes the connection.
    pub(super) async fn closed(&self) {
        self.state.closed().await;
    }
}

/// A request that is being answered, until this is dropped.
pub(super) struct Busy(Arc<State>);

impl Busy {
    /// The body of the answer. The request ends when the body was passed on.
    pub(super) fn until_end(self, body: Body) -> Answer {
        Answer { body, _busy: self }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.end_request();
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

/// A stream with a clock in each direction.
pub(super) struct Timed<S> {
    stream: S,
    line: Line,
    reading: Clock,
    sending: Pace,
}

impl<S> Timed<S> {
    /// Wakes the task when the phase has lasted too long, and says whether it has.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        let phase = self.line.state.phase();
        let limit = match phase {
            Phase::Head => self.line.head_timeout,
            Phase::Idle => self.line.idle_timeout,
            Phase::Busy | Phase::Sending | Phase::Gone => {
                self.reading.stop();
                return false;
            }
        };
        self.reading.poll(phase, limit, context).is_ready()
    }

    /// Ends the connection. Its place is free before the other side can notice.
    fn late<T>(&self) -> Poll<io::Result<T>> {
        self.line.state.give_up();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn written(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(bytes)) => self.sending.took(*bytes),
            Poll::Ready(Err(_)) => {}
            Poll::Pending if self.sending.poll_late(context).is_ready() => return self.late(),
            Poll::Pending => {}
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            if buffer.filled().len() > before {
                // The first byte after an answer begins the head of the next request.
                self.line.state.begin_head();
            }
            return read;
        }
        let is_head = self.line.state.phase() == Phase::Head;
        if is_head && self.line.is_stopping.load(Ordering::Acquire) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if self.is_late(context) {
            return self.late();
        }
        Poll::Pending
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
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

    /// Called when all data was written. After the last byte of an answer, nobody may read until
    /// new data arrives, so the clock for the idle phase starts here.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.line.state.sent();
        if self.is_late(context) {
            return self.late();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::time::{Instant, sleep_until};

    use super::*;

    /// A connection that buffers 400 bytes, and its other side.
    fn connection(limits: &Limits) -> (Timed<DuplexStream>, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(400);
        let state = Arc::new(State::new(Instant::now()));
        state.begin_request();
        (Line::new(state, limits).over(ours), theirs)
    }

    /// Receives this many bytes each second, until the other side has no more.
    async fn take(mut stream: DuplexStream, bytes_a_second: usize) -> usize {
        let (begun, mut taken) = (Instant::now(), 0);
        let mut piece = vec![0; bytes_a_second];
        for second in 1.. {
            let mut part = 0;
            while part < piece.len() {
                match stream.read(&mut piece[part..]).await.unwrap() {
                    0 => return taken + part,
                    bytes => part += bytes,
                }
            }
            taken += part;
            sleep_until(begun + Duration::from_secs(second)).await;
        }
        taken
    }

    /// Sends an answer of this many bytes to a caller who receives it at this rate.
    async fn sent(limits: &Limits, bytes: usize, bytes_a_second: usize) -> io::Result<usize> {
        let (mut ours, theirs) = connection(limits);
        let taking = tokio::spawn(take(theirs, bytes_a_second));
        ours.write_all(&vec![b'x'; bytes]).await?;
        drop(ours);
        Ok(taking.await.unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_of_400_bytes_a_second_is_cut_and_one_who_is_fast_enough_is_not() {
        let limits = Limits::default();
        let begun = Instant::now();
        let error = sent(&limits, 8 << 20, 400).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() <= 2 * limits.write_timeout, "{:?}", begun.elapsed());
        let enough = limits.send_rate_min + 400;
        assert_eq!(sent(&limits, 1 << 20, enough).await.unwrap(), 1 << 20);
    }

    /// Without a least rate, a caller who receives anything at all within the time may continue.
    #[tokio::test(start_paused = true)]
    async fn the_rate_is_an_option() {
        let limits = Limits { send_rate_min: 0, ..Limits::default() };
        assert_eq!(sent(&limits, 1 << 20, 400).await.unwrap(), 1 << 20);
        let (mut ours, theirs) = connection(&limits);
        let error = ours.write_all(&[b'x'; 1_000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(theirs);
    }

    /// A stream of changes sends little, and its reader receives all of it: for days.
    #[tokio::test(start_paused = true)]
    async fn a_stream_without_news_costs_its_reader_nothing() {
        let (mut ours, mut theirs) = connection(&Limits::default());
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).await.unwrap();
            all.len()
        });
        let mut next = Instant::now();
        for _ in 0..20_000 {
            ours.write_all(b": it lives\n\n").await.unwrap();
            ours.flush().await.unwrap();
            next += Duration::from_secs(15);
            sleep_until(next).await;
        }
        // Nor does it count against the reader if much comes at once and is received in time.
        ours.write_all(&[b'x'; 100_000]).await.unwrap();
        drop(ours);
        assert_eq!(reading.await.unwrap(), 20_000 * 12 + 100_000);
    }

    /// Time without data to send does not count against a reader who pauses briefly afterwards.
    #[tokio::test(start_paused = true)]
    async fn waiting_counts_only_while_there_is_something_to_send() {
        let limits = Limits::default();
        let (mut ours, mut theirs) = connection(&limits);
        let mut next = Instant::now();
        for _ in 0..100 {
            // The connection buffers 400 bytes; one byte waits until somebody reads.
            let (written, read) = tokio::join!(ours.write_all(&[b'x'; 401]), async {
                sleep_until(next + limits.write_timeout / 200).await;
                theirs.read_exact(&mut [0; 401]).await
            });
            written.unwrap();
            read.unwrap();
            next += Duration::from_secs(60);
            sleep_until(next).await;
        }
    }
}
