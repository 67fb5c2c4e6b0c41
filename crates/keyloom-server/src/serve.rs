//! Accepts connections and passes on their requests.

mod clock;
mod drain;
mod files;
mod line;
mod pace;
mod phase;
mod register;
mod seats;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use self::drain::Drained;
use self::line::Line;
use self::seats::{Seat, Seats};
use crate::app::App;
use crate::config::Limits;
use crate::repeats;

/// The smallest buffer of a connection. Bodies pass through it piece by piece.
const BUFFER_BYTES_MIN: usize = 128 << 10;

/// How many unsent bytes of an answer the operating system accepts.
#[cfg(target_os = "linux")]
const UNSENT_BYTES_MAX: u32 = 128 << 10;

/// The pause before trying again when no connection can be accepted, for instance because the
/// process cannot open more files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// A server that is bound to its address but does not answer yet.
pub struct Server {
    listener: TcpListener,
    app: App,
}

/// Binds an address. Port 0 chooses a free one.
///
/// If access control is off, only an address of the loopback interface is bound, unless
/// [`Config::open_to_all`](crate::Config::open_to_all) confirms that the server is open to
/// everyone.
pub async fn serve(app: App, address: SocketAddr) -> io::Result<Server> {
    if app.config().is_open_beyond_this_machine(address) {
        let message = format!(
            "access control is off, and everyone who reaches {address} could read and change \
             everything: give the configuration an authority, listen on loopback, or set \
             open_to_all"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(Server { listener: TcpListener::bind(address).await?, app })
}

impl Server {
    /// The address that it listens on.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until `stop` is ready. Then lets running requests finish, within the
    /// configured grace period, and closes the store.
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let Server { listener, app } = self;
        let limits = app.config().limits.clone();
        app.resume_jobs().await;
        let mut open = JoinSet::new();
        tokio::select! {
            () = accept(&listener, &app, &mut open) => {}
            () = stop => {}
        }
        drop(listener);
        app.stop();
        let cut_off = end(&mut open, limits.shutdown_grace).await;
        if cut_off > 0 {
            tracing::warn!(connections = cut_off, "requests were cut off at the end of the grace");
        }
        app.store().close().await.map_err(io::Error::other)
    }
}

/// Waits for the connections to end, and aborts those that are left after the grace period. None is
/// left when it returns, so no request meets a closed store. Gives the number of aborted ones.
async fn end(open: &mut JoinSet<()>, grace: Duration) -> usize {
    let ended = tokio::time::timeout(grace, async { while open.join_next().await.is_some() {} });
    if ended.await.is_ok() {
        return 0;
    }
    let cut_off = open.len();
    open.shutdown().await;
    cut_off
}

/// Accepts connections forever, and closes those without a place.
async fn accept(listener: &TcpListener, app: &App, open: &mut JoinSet<()>) {
    let limits = &app.config().limits;
    let router = app.router();
    let builder = builder(limits);
    let places = files::connections(limits.connections_max);
    let seats = Seats::new(places, limits.address_share_percent);
    loop {
        let (stream, address) = match listener.accept().await {
            Ok((stream, from)) => (stream, from.ip()),
            Err(error) => {
                repeats::warn(&format!("a connection could not be accepted: {error}"));
                if let Some(pause) = pause_after(&error) {
                    tokio::time::sleep(pause).await;
                }
                continue;
            }
        };
        while open.try_join_next().is_some() {}
        let Some(seat) = seats.take(address) else { continue };
        let (app, router) = (app.clone(), router.clone());
        let mut builder = builder.clone();
        // A place of the reserve is for one answer only.
        builder.keep_alive(!seat.peer.is_reserved);
        let counted = app.metrics().connection();
        open.spawn(async move {
            if let Err(error) = converse(stream, &seat, &app, router, &builder).await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(counted);
        });
    }
}

fn builder(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    // The guards refuse a large head with an explanation. This limit is for callers who send even
    // more.
    let head_bytes_max = limits.head_bytes_max.saturating_mul(2);
    builder
        // The connection has its own clocks, which distinguish the head from the idle time before
        // it.
        .header_read_timeout(None)
        .max_header_size(head_bytes_max)
        .max_buf_size(head_bytes_max.max(BUFFER_BYTES_MIN));
    builder
}

/// Answers the requests of one connection, one after another.
async fn converse(
    stream: TcpStream,
    seat: &Seat,
    app: &App,
    router: Router,
    builder: &http1::Builder,
) -> hyper::Result<()> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection stays with delayed packets");
    }
    if let Err(error) = keep_little_unsent(&stream) {
        tracing::debug!(%error, "a connection has buffers of the usual size");
    }
    let line = Line::new(seat.state(), &app.config().limits);
    let answer = service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
        let busy = line.busy();
        request.extensions_mut().insert(seat.peer);
        let answering = router.clone().oneshot(request.map(Drained::body));
        async move {
            // A connection that was closed for another one does nothing for its request.
            let Some(busy) = busy else { return std::future::pending().await };
            answering.await.map(|response| response.map(|body| busy.until_end(body)))
        }
    });
    let io = TokioIo::new(line.over(stream));
    let mut conversation = std::pin::pin!(builder.serve_connection(io, answer));
    tokio::select! {
        biased;
        () = line.closed() => return Ok(()),
        ended = conversation.as_mut() => return ended,
        () = app.stopped() => {}
    }
    line.stop();
    conversation.as_mut().graceful_shutdown();
    tokio::select! {
        biased;
        () = line.closed() => Ok(()),
        ended = conversation => ended,
    }
}

/// Limits how much of an answer the operating system buffers. Otherwise it would accept megabytes:
/// these would hide how fast the caller is, and each slow caller would hold as much.
fn keep_little_unsent(stream: &TcpStream) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
    Ok(())
}

/// The pause before the next try, if the error concerns more than one connection.
fn pause_after(error: &io::Error) -> Option<Duration> {
    let is_of_connection = matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    );
    (!is_of_connection).then_some(ACCEPT_PAUSE)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Longer than any machine needs; only a failing test waits for it.
    const LONG: Duration = Duration::from_secs(60);

    /// A request that never ends. The result shows whether it was dropped.
    fn endless(open: &mut JoinSet<()>) -> Arc<()> {
        let held = Arc::new(());
        let kept = held.clone();
        open.spawn(async move {
            std::future::pending::<()>().await;
            drop(kept);
        });
        held
    }

    #[tokio::test]
    async fn requests_that_never_end_are_gone_after_the_grace() {
        let mut open = JoinSet::new();
        let held = [endless(&mut open), endless(&mut open)];
        open.spawn(async {});
        let ended = tokio::time::timeout(LONG, end(&mut open, Duration::from_millis(1))).await;
        assert!(ended.is_ok_and(|cut_off| cut_off >= 2), "nobody was cut off");
        assert!(open.is_empty(), "{} connections are left", open.len());
        for held in held {
            assert_eq!(Arc::strong_count(&held), 1, "a request still runs");
        }
    }

    #[tokio::test]
    async fn within_the_grace_nobody_is_cut_off() {
        let mut open = JoinSet::new();
        let (finish, finished) = tokio::sync::oneshot::channel::<()>();
        let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let is_done = done.clone();
        open.spawn(async move {
            drop(finished.await);
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let (cut_off, sent) = tokio::join!(end(&mut open, LONG), async { finish.send(()) });
        assert_eq!((cut_off, sent), (0, Ok(())));
        assert!(done.load(std::sync::atomic::Ordering::Relaxed), "the request did not end");
    }

    #[test]
    fn a_process_without_files_waits_and_a_broken_connection_does_not() {
        const EMFILE: i32 = 24;
        assert!(pause_after(&io::Error::from_raw_os_error(EMFILE)).is_some());
        assert!(pause_after(&io::ErrorKind::ConnectionAborted.into()).is_none());
    }
}
