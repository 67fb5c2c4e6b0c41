//! Brings requests in from a socket.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use crate::app::App;

/// A server that is bound to its address and not yet answering.
pub struct Server {
    listener: TcpListener,
    app: App,
}

/// Binds an address. Port 0 takes a free one.
pub async fn serve(app: App, address: SocketAddr) -> io::Result<Server> {
    Ok(Server { listener: TcpListener::bind(address).await?, app })
}

impl Server {
    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop` is over, then lets requests that have begun end, within the
    /// configured grace, and closes the store.
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let limits = self.app.config().limits.clone();
        let router = self.app.router();
        let open = GracefulShutdown::new();
        let mut connection = hyper::server::conn::http1::Builder::new();
        connection.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
        let mut stop = std::pin::pin!(stop);
        loop {
            let stream = tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        continue;
                    }
                },
                () = &mut stop => break,
            };
            let service = TowerToHyperService::new(router.clone());
            let counted = self.app.metrics().connection();
            let serving = open.watch(connection.serve_connection(TokioIo::new(stream), service));
            tokio::spawn(async move {
                if let Err(error) = serving.await {
                    tracing::debug!(%error, "a connection ended early");
                }
                drop(counted);
            });
        }
        drop(self.listener);
        self.app.stop();
        if tokio::time::timeout(limits.shutdown_grace, open.shutdown()).await.is_err() {
            tracing::warn!("requests were still running at the end of the grace");
        }
        self.app.store().close().await.map_err(io::Error::other)
    }
}
