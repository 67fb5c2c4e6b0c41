//! The configuration of a server. Every setting has a safe default.

use std::net::SocketAddr;
use std::time::Duration;

use crate::auth::Authority;

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The source of all rights.
    pub authority: Authority,
    /// The limits on callers.
    pub limits: Limits,
    /// Names of the server besides those of the loopback interface, as in the `Host` header,
    /// without the port. If empty, any name is accepted, unless access control is off.
    pub hosts: Vec<String>,
    /// Origins whose pages may use the API from a browser, such as `https://app.example.org`. None
    /// if empty.
    pub origins: Vec<String>,
    /// Whether the server may listen beyond this machine while access control is off, so that
    /// everyone who reaches it may read and change everything.
    pub open_to_all: bool,
    /// Whether jobs are kept in the store while they are under way, so that the next server goes on
    /// with them.
    pub keeps_jobs: bool,
}

impl Config {
    /// Whether a server at this address would be open to everyone without `open_to_all`.
    pub fn is_open_beyond_this_machine(&self, address: SocketAddr) -> bool {
        let is_this_machine = address.ip().to_canonical().is_loopback();
        self.authority.is_open() && !is_this_machine && !self.open_to_all
    }
}

/// The limits on callers. All of them are on by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at one time. Further ones replace those that have waited longest for a request.
    /// If all are busy, further callers are told to come back, but `/health` and `/ready` are still
    /// answered. Never more than half of the files that the process may open, so that the store can
    /// always open files.
    pub connections_max: usize,
    /// The percentage of connections that one address may have when at most a quarter is free. An
    /// address is an IPv4 address, or a /64 of IPv6.
    pub address_share_percent: usize,
    /// Requests in progress at one time; further ones are refused, and can be sent again.
    pub requests_max: usize,
    /// How long a connection may take to send the head of a request.
    pub head_timeout: Duration,
    /// How long a request's body may take to arrive.
    pub body_timeout: Duration,
    /// How long computing an answer may take. Streams are exempt.
    pub answer_timeout: Duration,
    /// How long a caller may keep an answer waiting before the server checks how much of it was
    /// received in that time.
    pub write_timeout: Duration,
    /// The least bytes per second at which a caller must receive an answer. Time without anything
    /// to send does not count.
    pub send_rate_min: usize,
    /// How long a connection may wait for its next request.
    pub idle_timeout: Duration,
    /// The most bytes of a request's body.
    pub body_bytes_max: usize,
    /// The most bytes of a request's head.
    pub head_bytes_max: usize,
    /// The most records, keys or changes of one page.
    pub page_max: usize,
    /// The most records or entries that one request may read.
    pub read_max: usize,
    /// The most operations of one transaction or batch.
    pub operations_max: usize,
    /// The most streams of changes at one time.
    pub streams_max: usize,
    /// The most exports and backups at one time. Each of them pins a snapshot of the store.
    pub moments_max: usize,
    /// How long an export or a backup may take. While it pins a snapshot, files stay that would
    /// otherwise be deleted.
    pub moment_timeout: Duration,
    /// After how long without news a stream sends a sign of life.
    pub stream_pulse: Duration,
    /// The most bytes of one line of an import.
    pub line_bytes_max: usize,
    /// The most bytes of one answer. A page ends before that, with a cursor. The limit also applies
    /// to all answers of a batch or a transaction together.
    pub answer_bytes_max: usize,
    /// The most bytes that all requests in progress hold together: bodies, the values parsed from
    /// them, and answers until their callers have received them. Further requests wait for their
    /// turn.
    pub memory_bytes_max: usize,
    /// The most bytes of cached pages; 0 for none.
    pub kept_pages_bytes_max: usize,
    /// How long a shutdown waits for running requests.
    pub shutdown_grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            authority: Authority::open(),
            limits: Limits::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
            open_to_all: false,
            keeps_jobs: true,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 4096,
            address_share_percent: 25,
            requests_max: 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            send_rate_min: 4 << 10,
            idle_timeout: Duration::from_secs(75),
            body_bytes_max: 8 << 20,
            head_bytes_max: 32 << 10,
            page_max: 1_000,
            read_max: 100_000,
            operations_max: 1_000,
            streams_max: 256,
            moments_max: 8,
            moment_timeout: Duration::from_secs(6 * 60 * 60),
            stream_pulse: Duration::from_secs(15),
            line_bytes_max: 1 << 20,
            answer_bytes_max: 8 << 20,
            memory_bytes_max: 512 << 20,
            kept_pages_bytes_max: 32 << 20,
            shutdown_grace: Duration::from_secs(20),
        }
    }
}
