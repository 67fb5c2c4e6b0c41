//! The places for connections: the ordinary ones, and a reserve.
//!
//! When everybody is busy, a new connection gets a place of the reserve. There it is told at once
//! that the server is full; `/health` and `/ready` are answered, so that whoever watches over the
//! server learns that it lives. Nothing else is done for it, so that such a place is soon free.

use std::net::IpAddr;
use std::sync::Arc;

use super::phase::State;
use super::register::{Place, Register};
use crate::guard::Peer;
use crate::repeats::Repeats;

/// How many connections may be in the reserve.
const RESERVE: usize = 32;

/// How many percent of the reserve one address may have when it runs short.
const RESERVE_SHARE_PERCENT: usize = 25;

/// All places of a server.
pub(super) struct Seats {
    ordinary: Arc<Register>,
    reserve: Arc<Register>,
    told: Repeats,
}

/// A connection's place, until it is dropped.
pub(super) struct Seat {
    place: Place,
    pub(super) peer: Peer,
}

impl Seats {
    pub(super) fn new(places: usize, share_percent: usize) -> Self {
        Seats {
            ordinary: Register::new(places, share_percent),
            reserve: Register::new(RESERVE, RESERVE_SHARE_PERCENT),
            told: Repeats::default(),
        }
    }

    /// A place for a connection from this address.
    pub(super) fn take(&self, address: IpAddr) -> Option<Seat> {
        let ordinary = self.ordinary.enter(address);
        let is_reserved = ordinary.is_none();
        let place = ordinary.or_else(|| self.reserve.enter(address));
        match &place {
            Some(place) if is_reserved => {
                self.tell("connections are told to come back: all are busy")
            }
            Some(place) if place.is_exchanged => {
                self.tell("idle connections are closed for new ones")
            }
            Some(_) => {}
            None => self.tell("connections are closed unanswered: all are busy"),
        }
        Some(Seat { place: place?, peer: Peer { address, is_reserved } })
    }

    /// Tells what strangers bring about, and not as often as they do.
    fn tell(&self, what: &'static str) {
        if let Some(before) = self.told.come(what) {
            tracing::warn!(since_last_told = before, "{what}");
        }
    }
}

impl Seat {
    /// What the connection is doing.
    pub(super) fn state(&self) -> Arc<State> {
        self.place.state.clone()
    }
}
