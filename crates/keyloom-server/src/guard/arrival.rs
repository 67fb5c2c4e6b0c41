//! The shared state of a request.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::http::Uri;
use tokio::sync::Notify;

use super::Side;
use crate::auth::Grant;
use crate::memory::{Held, Holding, JSON_BYTES, Memory};

/// The connection of a request. A request from this process itself has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// The address of the other side, which may be a proxy.
    pub(crate) address: IpAddr,
    /// Whether the connection has a place of the reserve, and gets only the most necessary answers.
    pub(crate) is_reserved: bool,
}

/// A request that has arrived. The guards attach it to the request for the handlers.
#[derive(Clone)]
pub(crate) struct Arrival(Arc<Known>);

struct Known {
    side: Side,
    /// The URI as sent; nested routes see only its end.
    uri: Uri,
    peer: Option<Peer>,
    grant: OnceLock<Arc<Grant>>,
    /// The memory that the request holds.
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

    /// The side of the server that it is for.
    pub(crate) fn side(&self) -> Side {
        self.0.side
    }

    /// The URI as sent.
    pub(crate) fn uri(&self) -> &Uri {
        &self.0.uri
    }

    /// The connection that it came over.
    pub(super) fn peer(&self) -> Option<Peer> {
        self.0.peer
    }

    /// Called when the caller was recognised.
    pub(crate) fn recognised(&self, grant: &Arc<Grant>) {
        // The first grant stays: a request has one caller.
        drop(self.0.grant.set(grant.clone()));
    }

    /// Holds memory for the request's data until it is answered.
    pub(crate) fn hold_asked(&self, held: Held) {
        self.holding().asked.push(held);
    }

    /// Holds the memory that every running request has.
    pub(crate) fn hold_request(&self, held: Held) {
        self.holding().request = Some(held);
    }

    /// Waits for the memory of a large answer, and holds it until the answer was received.
    pub(crate) async fn expect_large(&self, memory: &Memory, bytes: usize) {
        if let Some(request) = &mut self.holding().request {
            // Frees most of its own memory for small requests while it waits.
            request.shrink_to(JSON_BYTES);
        }
        let held = memory.large_answer(bytes).await;
        self.holding().answer = Some(held);
    }

    /// Takes over the memory that the request holds.
    pub(super) fn take_holding(&self) -> Holding {
        std::mem::take(&mut *self.holding())
    }

    /// Each change is a single assignment, so the state is valid even after a panic.
    fn holding(&self) -> MutexGuard<'_, Holding> {
        self.0.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called before a long computation: moves the request to threads that serve nobody else, where
    /// it stays.
    pub(crate) async fn go_aside(&self) {
        if !self.0.is_aside.swap(true, Ordering::Relaxed) {
            self.0.wants_aside.notify_one();
            // The guards check for this before they continue the request.
            tokio::task::yield_now().await;
        }
    }

    /// Ready when the request wants to be moved aside.
    pub(super) async fn wants_aside(&self) {
        self.0.wants_aside.notified().await;
    }

    /// The caller's name for the log.
    pub(super) fn caller(&self) -> &str {
        self.0.grant.get().map_or("-", |grant| &grant.name)
    }
}
