//! What an operator may set, each with a default that is safe.

use std::net::SocketAddr;
use std::time::Duration;

use crate::auth::Authority;

/// How a server behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who may do what.
    pub authority: Authority,
    /// How much one caller may ask for.
    pub limits: Limits,
    /// Names by which the server may be called besides those of the loopback interface, as in the
    /// `Host` header, without the port. Empty: any name, unless access control is off.
    pub hosts: Vec<String>,
    /// Origins whose pages may use the API from a browser, such as `https://app.example.org`.
    /// Empty: none.
    pub origins: Vec<String>,
    /// Whether the server may listen beyond this machine while access control is off, so that
    /// everyone who reaches it may read and change everything.
    pub open_to_all: bool,
    /// Whether jobs are kept in the store while they are under way, so that the next server goes on
    /// with them.
    pub keeps_jobs: bool,
}

impl Config {
    /// Whether a server at this address would be open to everyone, and nobody said so.
    pub fn is_open_beyond_this_machine(&self, address: SocketAddr) -> bool {
        let is_this_machine = address.ip().to_canonical().is_loopback();
        self.authority.is_open() && !is_this_machine && !self.open_to_all
    }
}

/// How much one caller may ask for. Everything is on by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at one time. Further ones take the places of those that have waited longest for
    /// a request; if all are busy, they are told to come back, and are still answered `/health` and
    /// `/ready`. Never more than half of the files that the process may open, so that the store
    /// always finds some.
    pub connections_max: usize,
    /// How many percent of them one address may have when no more than a quarter is free. An
    /// address is one of IPv4, or a /64 of IPv6.
    pub address_share_percent: usize,
    /// Requests that are worked on at one time; further ones are refused, to be sent again.
    pub requests_max: usize,
    /// How long a connection may take to send the head of a request.
    pub head_timeout: Duration,
    /// How long a request's body may take to arrive.
    pub body_timeout: Duration,
    /// How long an answer may take to be made. Streams are not bound by it.
    pub answer_timeout: Duration,
    /// How long a caller may keep an answer waiting that is being sent, before it is looked at how
    /// much of it was taken in that time.
    pub write_timeout: Duration,
    /// The fewest bytes a second that a caller must take of an answer that is being sent. Time in
    /// which there is nothing to send does not count.
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
    /// The most exports and backups at one time, each of which holds a moment of the store.
    pub moments_max: usize,
    /// How long an export or a backup may take. While a moment is held, files stay that would be
    /// gone.
    pub moment_timeout: Duration,
    /// After how long without news a stream gives a sign of life.
    pub stream_pulse: Duration,
    /// The most bytes of one line of an import.
    pub line_bytes_max: usize,
    /// The most bytes of one answer. Pages end before, with a cursor; the same for what a batch or
    /// a transaction answers.
    pub answer_bytes_max: usize,
    /// The most bytes that all requests in flight hold together: bodies, what is read from them,
    /// and answers until their callers have taken them. Further ones wait for their turn.
    pub memory_bytes_max: usize,
    /// The most bytes of pages that are kept in memory to be given out again; 0 for none.
    pub kept_pages_bytes_max: usize,
    /// How long a shutdown waits for requests that have begun.
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
