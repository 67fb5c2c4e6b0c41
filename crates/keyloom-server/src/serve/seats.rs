//! The places for connections: the ordinary ones, and a reserve.
//!
//! When everybody is busy, a new connection gets a place of the reserve. There it is told at once
//! that the server is full; `/health` and `/ready` are answered, so that whoever watches over the
//! server learns that it lives. Nothing else is done for it, so that such a place is soon free.

use std::net::IpAddr;
use std::sync::Arc;

use super::phase::State;
use super::register::{Register, Registration};
use crate::guard::Peer;
use crate::repeats;

/// How many connections may be in the reserve.
const RESERVE: usize = 32;

/// How many percent of the reserve one address may have when it runs short.
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

    /// A place for a connection from this address.
    pub(super) fn take(&self, address: IpAddr) -> Option<Seat> {
        let ordinary = self.ordinary.enter(address);
        let is_reserved = ordinary.is_none();
        let place = ordinary.or_else(|| self.reserve.enter(address));
        // What strangers bring about is not told as often as they do.
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
    /// What the connection is doing.
    pub(super) fn state(&self) -> Arc<State> {
        self.place.state.clone()
    }
}
