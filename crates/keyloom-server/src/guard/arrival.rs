//! What is known of a request to all who work on it.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::http::Uri;

use super::Side;
use crate::auth::Grant;

/// Over which connection a request came. One that the process asks itself has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// The other side, which may be a proxy.
    pub(crate) address: IpAddr,
    /// Whether the connection has a place of the reserve, and is answered as little as possible.
    pub(crate) is_reserved: bool,
}

/// A request that came in. The guards leave it with the request for those who answer.
#[derive(Clone)]
pub(crate) struct Arrival(Arc<Known>);

struct Known {
    side: Side,
    /// As it was sent; nested routes see only its end.
    uri: Uri,
    peer: Option<Peer>,
    grant: OnceLock<Arc<Grant>>,
}

impl Arrival {
    pub(super) fn new(uri: Uri, peer: Option<Peer>) -> Self {
        let side = Side::of(uri.path());
        Arrival(Arc::new(Known { side, uri, peer, grant: OnceLock::new() }))
    }

    /// To which side of the server it came.
    pub(crate) fn side(&self) -> Side {
        self.0.side
    }

    /// What was asked for, as it was sent.
    pub(crate) fn uri(&self) -> &Uri {
        &self.0.uri
    }

    /// Over which connection it came.
    pub(super) fn peer(&self) -> Option<Peer> {
        self.0.peer
    }

    /// Whoever recognises the caller tells it here.
    pub(crate) fn recognised(&self, grant: &Arc<Grant>) {
        // The first one stays: a request has one caller.
        drop(self.0.grant.set(grant.clone()));
    }

    /// The caller's name for the log.
    pub(super) fn caller(&self) -> &str {
        self.0.grant.get().map_or("-", |grant| &grant.name)
    }
}
