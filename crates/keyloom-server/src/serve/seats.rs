//! The places for connections: ordinary ones, and a reserve.
//!
//! If all ordinary places are busy, a new connection gets a place of the reserve. There it is told
//! at once that the server is full. Only `/health` and `/ready` are answered, so that a monitor
//! sees that the server is alive. The server does nothing else for such a connection, so its place
//! is soon free again.

use std::net::IpAddr;
use std::sync::Arc;

use super::phase::State;
use super::register::{Register, Registration};
use crate::guard::Peer;
use crate::repeats;

/// How many connections may be in the reserve.
const RESERVE: usize = 32;

/// The percentage of the reserve that one address may have when the reserve runs short.
const RESERVE_SHARE_PERCENT: usize = 25;

/// All places of a server.
pub(super) struct Seats {
    ordinary: Arc<Register>,
    reserve: Arc<Register>,
}

/// A connection's place, until it is dropped.
pub(super) struct Seat {
    place: Registration,
    pub(super) peer: Peer,
}

impl Seats {
    pub(super) fn new(places: usize, share_percent: usize) -> Self {
        Seats {
            ordinary: Register::new(places, share_percent),
            reserve: Register::new(RESERVE, RESERVE_SHARE_PERCENT),
        }
    }

    /// Takes a place for a connection from this address.
    pub(super) fn take(&self, address: IpAddr) -> Option<Seat> {
        let ordinary = self.ordinary.enter(address);
        let is_reserved = ordinary.is_none();
        let place = ordinary.or_else(|| self.reserve.enter(address));
        // Strangers can cause this as often as they like, so it is not logged each time.
        match &place {
            Some(_) if is_reserved => {
                repeats::warn("callers are told to come back: no connection is free")
            }
            Some(place) if place.is_exchanged => {
                repeats::warn("idle connections are closed for new ones")
            }
            Some(_) => {}
            None => repeats::warn("connections are closed unanswered: none is free"),
        }
        Some(Seat { place: place?, peer: Peer { address, is_reserved } })
    }
}

impl Seat {
    /// The phase of the connection.
    pub(super) fn state(&self) -> Arc<State> {
        self.place.state.clone()
    }
}
