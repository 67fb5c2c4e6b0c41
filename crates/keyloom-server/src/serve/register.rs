//! The register of connections, which decides who makes room when there are too many.
//!
//! | when | who gets the place |
//! | --- | --- |
//! | more than a quarter of the places is free | everyone |
//! | fewer are free, and the address has its share | the new connection, if another connection of that address waits: the one that has waited longest is closed |
//! | none is free | the new connection: of the waiting connections, the one that has waited longest is closed, first among those of addresses that have more than their share |
//!
//! An address is an IPv4 address, or a /64 of IPv6, which is what one customer gets. So one address
//! alone can never take the last quarter, whatever its connections do. Behind a proxy everyone has
//! the same address. It can still use the other three quarters, and its idle connections are closed
//! first.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::phase::State;

/// The connections of one server.
#[derive(Debug)]
pub(super) struct Register {
    places: usize,
    /// How many places one address may have when they run short.
    share: usize,
    epoch: Instant,
    connected: Mutex<Connected>,
}

#[derive(Debug, Default)]
struct Connected {
    next: u64,
    /// By their numbers, which increase with each connection.
    all: HashMap<u64, Connection>,
    by_source: HashMap<Source, usize>,
}

#[derive(Debug)]
struct Connection {
    source: Source,
    state: Arc<State>,
}

/// The origin of a connection, reduced to the part that a caller cannot choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Source(IpAddr);

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    register: Arc<Register>,
    number: u64,
    /// The phase of the connection.
    pub(super) state: Arc<State>,
    /// Whether another connection was closed to make room.
    pub(super) is_exchanged: bool,
}

impl Register {
    /// A register with this many places. When they run short, one address may have at most this
    /// percentage.
    pub(super) fn new(places: usize, share_percent: usize) -> Arc<Self> {
        let share = places.saturating_mul(share_percent) / 100;
        let (epoch, connected) = (Instant::now(), Mutex::default());
        Arc::new(Register { places, share: share.max(1), epoch, connected })
    }

    /// A place for a connection from this address, unless all connections that could make room are
    /// busy.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Registration> {
        let source = Source::of(address);
        let mut connected = self.connected();
        let has_share = connected.held_by(source) >= self.share;
        let is_exchanged = match self.places.saturating_sub(connected.all.len()) {
            free if free <= self.places / 4 && has_share => {
                connected.close_one(self.share, |other| other == source).then_some(true)
            }
            0 => connected.close_one(self.share, |_| true).then_some(true),
            _ => Some(false),
        }?;
        let state = Arc::new(State::new(self.epoch));
        let number = connected.add(source, state.clone());
        drop(connected);
        Some(Registration { register: self.clone(), number, state, is_exchanged })
    }

    /// Each change leaves the register consistent before anything can panic.
    fn connected(&self) -> MutexGuard<'_, Connected> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connected {
    fn held_by(&self, source: Source) -> usize {
        self.by_source.get(&source).copied().unwrap_or(0)
    }

    fn add(&mut self, source: Source, state: Arc<State>) -> u64 {
        self.next += 1;
        self.all.insert(self.next, Connection { source, state });
        *self.by_source.entry(source).or_default() += 1;
        self.next
    }

    fn remove(&mut self, number: u64) {
        // A connection that was closed for another one has no place any more.
        let Some(Connection { source, .. }) = self.all.remove(&number) else { return };
        if let Some(count) = self.by_source.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.by_source.remove(&source);
            }
        }
    }

    /// Closes the connection of these sources that should go first. Says whether there was one.
    fn close_one(&mut self, share: usize, is_asked: impl Fn(Source) -> bool) -> bool {
        let has_more = |held: &&usize| **held > share;
        let greedy: Vec<Source> =
            self.by_source.iter().filter(|(_, held)| has_more(held)).map(|(it, _)| *it).collect();
        loop {
            let asked = self.all.iter().filter(|(_, it)| is_asked(it.source));
            let waiting = asked.filter_map(|(number, it)| {
                let is_within_share = !greedy.contains(&it.source);
                Some((is_within_share, it.state.waiting()?, *number))
            });
            let Some((_, seen, number)) = waiting.min() else { return false };
            // A request may have begun on it since it was checked; then the next candidate is
            // tried.
            if self.all.get(&number).is_some_and(|it| it.state.close(seen)) {
                self.remove(number);
                return true;
            }
        }
    }
}

impl Source {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Source(address.into()),
            IpAddr::V6(address) => {
                const NETWORK: u128 = !0 << 64;
                Source(Ipv6Addr::from_bits(address.to_bits() & NETWORK).into())
            }
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.register.connected().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::phase::Phase;
    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    const C: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 3));

    async fn later() {
        tokio::time::advance(Duration::from_millis(1)).await;
    }

    /// Opens this many connections, each a little later than the one before.
    async fn enter(register: &Arc<Register>, address: IpAddr, count: usize) -> Vec<Registration> {
        let mut places = Vec::new();
        for _ in 0..count {
            places.push(register.enter(address).unwrap());
            later().await;
        }
        places
    }

    fn is_closed(place: &Registration) -> bool {
        place.state.phase() == Phase::Gone
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_limit_the_one_that_waited_longest_goes() {
        let register = Register::new(3, 100);
        let places = enter(&register, A, 3).await;
        // The first connection has served a request since, so the second has waited longest.
        places[0].state.begin_request();
        places[0].state.end_request();
        places[0].state.sent();
        let fourth = register.enter(B).unwrap();
        assert!(fourth.is_exchanged);
        assert_eq!(places.iter().map(is_closed).collect::<Vec<_>>(), [false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_closed_who_is_being_answered() {
        let register = Register::new(2, 100);
        let places = enter(&register, A, 2).await;
        assert!(places[0].state.begin_request() && places[1].state.begin_request());
        assert!(register.enter(B).is_none());
        places[1].state.end_request();
        assert!(register.enter(B).is_none(), "its answer is on its way");
        places[1].state.sent();
        assert!(register.enter(B).is_some());
        assert!(is_closed(&places[1]) && !is_closed(&places[0]));
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_more_than_a_share_makes_room_before_others() {
        let register = Register::new(8, 25);
        let patient = enter(&register, B, 1).await;
        let greedy = enter(&register, A, 5).await;
        // A quarter is still free, but not for an address that has its share.
        let sixth = register.enter(A).unwrap();
        assert!(sixth.is_exchanged && is_closed(&greedy[0]));
        // Other addresses fill the places, and one more connection comes from one of them.
        let others = [enter(&register, B, 1).await, enter(&register, C, 1).await];
        assert!(others.iter().flatten().all(|place| !place.is_exchanged));
        assert!(register.enter(C).unwrap().is_exchanged);
        assert!(is_closed(&greedy[1]));
        assert!(!is_closed(&patient[0]), "it has waited longest, and is within its share");
        drop(sixth);
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_never_has_the_last_quarter() {
        let register = Register::new(100, 25);
        let mut busy = Vec::new();
        while let Some(place) = register.enter(A) {
            place.state.begin_request();
            busy.push(place);
        }
        assert_eq!(busy.len(), 75);
        for _ in 0..25 {
            let other = register.enter(B).unwrap();
            assert!(!other.is_exchanged);
            other.state.begin_request();
            busy.push(other);
        }
        assert!(register.enter(B).is_none() && register.enter(A).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn alone_an_address_may_have_more_than_its_share() {
        let register = Register::new(100, 1);
        let places = enter(&register, A, 75).await;
        assert!(places.iter().all(|place| !place.is_exchanged && !is_closed(place)));
    }

    #[test]
    fn an_address_is_one_of_ipv4_or_a_network_of_ipv6() {
        let source = |text: &str| Source::of(text.parse().unwrap());
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:1:2:3"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
        assert_ne!(source("192.0.2.1"), source("192.0.2.2"));
    }

    /// A step of a connection or of its environment.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Connect(u8),
        Ask(usize),
        Answer(usize),
        Leave(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let place = 0_usize..64;
        let step = prop_oneof![
            4 => (0_u8..4).prop_map(Step::Connect),
            2 => place.clone().prop_map(Step::Ask),
            1 => place.clone().prop_map(Step::Answer),
            1 => place.prop_map(Step::Leave),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// In every case, the limit on places holds, no connection with a running request is
        /// closed, none is closed without need, and the counts are right.
        #[test]
        fn no_step_breaks_a_promise(places in 1_usize..12, share in 1_usize..=100, steps in steps()) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _entered = runtime.enter();
            let register = Register::new(places, share);
            let mut open: Vec<Registration> = Vec::new();
            for step in steps {
                let at = |place: usize, open: &Vec<Registration>| place.checked_rem(open.len());
                match step {
                    Step::Connect(last) => {
                        let was_closed = open.iter().filter(|place| is_closed(place)).count();
                        let was = open.len() - was_closed;
                        let entered = register.enter([192, 0, 2, last].into());
                        let closed = open.iter().filter(|place| is_closed(place)).count();
                        match &entered {
                            Some(place) => {
                                prop_assert_eq!(closed - was_closed, usize::from(place.is_exchanged));
                            }
                            None => {
                                prop_assert_eq!(closed, was_closed);
                                prop_assert!(was + places / 4 >= places, "there was room");
                            }
                        }
                        open.extend(entered);
                    }
                    Step::Ask(place) => if let Some(at) = at(place, &open) {
                        let was_open = !is_closed(&open[at]);
                        prop_assert_eq!(open[at].state.begin_request(), was_open);
                    },
                    Step::Answer(place) => if let Some(at) = at(place, &open) {
                        open[at].state.end_request();
                        open[at].state.sent();
                    },
                    Step::Leave(place) => if let Some(at) = at(place, &open) {
                        drop(open.swap_remove(at));
                    },
                }
                let living = open.iter().filter(|place| !is_closed(place)).count();
                prop_assert!(living <= places);
                let connected = register.connected();
                prop_assert_eq!(connected.all.len(), living);
                prop_assert_eq!(connected.by_source.values().sum::<usize>(), living);
            }
        }
    }
}
