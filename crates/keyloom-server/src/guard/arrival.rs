//! What is known of a request to all who work on it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::http::Uri;
use tokio::sync::Notify;

use super::Side;
use crate::auth::Grant;
use crate::memory::{Held, Holding, JSON_BYTES, Memory};

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
    /// The room in memory that it has taken.
    holding: Mutex<Holding>,
    is_aside: AtomicBool,
    wants_aside: Notify,
}

impl Arrival {
    pub(super) fn new(uri: Uri, peer: Option<Peer>) -> Self {
        let side = Side::of(uri.path());
        Arrival(Arc::new(Known {
            side,
            uri,
            peer,
            grant: OnceLock::new(),
            holding: Mutex::default(),
            is_aside: AtomicBool::new(false),
            wants_aside: Notify::new(),
        }))
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

    /// Keeps room for what was asked until the request is answered.
    pub(crate) fn hold_asked(&self, held: Held) {
        self.holding().asked.push(held);
    }

    /// Keeps the room that every request has which is worked on.
    pub(crate) fn hold_request(&self, held: Held) {
        self.holding().request = Some(held);
    }

    /// Takes room for a large answer, in turn, and keeps it until the answer is taken.
    pub(crate) async fn expect_large(&self, memory: &Memory, bytes: usize) {
        if let Some(request) = &mut self.holding().request {
            // Small requests need it while this one waits.
            request.shrink_to(JSON_BYTES);
        }
        let held = memory.large_answer(bytes).await;
        self.holding().answer = Some(held);
    }

    /// What the request holds, and does not hold any more.
    pub(super) fn take_holding(&self) -> Holding {
        std::mem::take(&mut *self.holding())
    }

    /// Each change is one assignment, so that it is right even after a panic.
    fn holding(&self) -> MutexGuard<'_, Holding> {
        self.0.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before something that takes a thread for long: goes on with the request on threads that
    /// serve nobody else. Once it is there it stays there.
    pub(crate) async fn go_aside(&self) {
        if !self.0.is_aside.swap(true, Ordering::Relaxed) {
            self.0.wants_aside.notify_one();
            // The guards look before they go on with the request.
            tokio::task::yield_now().await;
        }
    }

    /// Is over when the request wants to go on aside.
    pub(super) async fn wants_aside(&self) {
        self.0.wants_aside.notified().await;
    }

    /// The caller's name for the log.
    pub(super) fn caller(&self) -> &str {
        self.0.grant.get().map_or("-", |grant| &grant.name)
    }
}
