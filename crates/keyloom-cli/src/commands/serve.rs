//! `keyloom serve`: the API and the console on a store.

use std::future::Future;
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use keyloom::{MaintainOptions, Schema, Store};
use keyloom_server::{App, Authority, Config, Limits};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::cli::Place;
use crate::exit::{FAILED, Failure, UNREACHABLE, USAGE};
use crate::output::{Screen, line, note};
use crate::schema_files::{DEFAULT_SCHEMA, load_named, tell_applied};
use crate::target::{open_store, runtime};

/// Serve a store over HTTP, with a console for the browser
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// The schema: a file, or a folder of .toml and .json files [default: keyloom.toml, if it is
    /// there]
    #[arg(long, value_name = "PATH")]
    schema: Option<PathBuf>,
    /// Do not build new indexes; say how instead
    #[arg(long)]
    no_build: bool,
    #[command(flatten)]
    pub(crate) listening: Listening,
}

/// How a server listens, and what it allows.
#[derive(Clone, Debug, Args)]
pub(crate) struct Listening {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7117")]
    listen: String,
    /// Who may do what: an access file; everyone may do everything without it
    #[arg(long, value_name = "FILE")]
    access: Option<PathBuf>,
    /// A further name by which the server may be called, as in the Host header; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// An origin whose pages may use the API from a browser; may be repeated
    #[arg(long = "origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// Connections at one time
    #[arg(long, value_name = "N", help_heading = "Limits")]
    connections_max: Option<usize>,
    /// Requests that are worked on at one time
    #[arg(long, value_name = "N", help_heading = "Limits")]
    requests_max: Option<usize>,
    /// Bytes of a request's body
    #[arg(long, value_name = "BYTES", help_heading = "Limits")]
    body_bytes_max: Option<usize>,
    /// Records, keys or changes of one page
    #[arg(long, value_name = "N", help_heading = "Limits")]
    page_max: Option<usize>,
    /// Records or entries that one request may read
    #[arg(long, value_name = "N", help_heading = "Limits")]
    read_max: Option<usize>,
    /// Operations of one transaction or batch
    #[arg(long, value_name = "N", help_heading = "Limits")]
    operations_max: Option<usize>,
    /// Seconds that an answer may take
    #[arg(long, value_name = "SECONDS", help_heading = "Limits")]
    answer_timeout: Option<u64>,
    /// Seconds that a shutdown waits for requests that have begun
    #[arg(long, value_name = "SECONDS", help_heading = "Limits")]
    shutdown_grace: Option<u64>,
}

const EXAMPLES: &str = "\
Examples:
  keyloom serve
  keyloom serve --schema schemas/ --store file:/var/lib/keyloom
  keyloom serve --listen 0.0.0.0:7117 --access access.toml
  keyloom serve --store memory: --listen 127.0.0.1:0 --json

Applies the schema, builds new indexes in the background, and serves until it is told to stop by
Ctrl-C or SIGTERM: then requests that have begun may end, and nothing acknowledged is lost.
A second Ctrl-C does not wait: what has begun is cut off, and what was acknowledged is kept. Both
end with 0. In a pipe it prints its URLs as one JSON line.";

/// How long maintenance pauses between two passes.
const PAUSE: Duration = Duration::from_secs(60);

impl Serve {
    pub(crate) fn run(self, place: &Place) -> Result<(), Failure> {
        refuse_server(place)?;
        let schema = load_named(self.schema.as_deref())?;
        let prepared = self.listening.prepare()?;
        let runtime = runtime()?;
        let address = place.address();
        let store = open_store(&runtime, &address, true)?;
        let to_build = match &schema {
            Some(schema) => runtime.block_on(apply(&store.space(&place.space)?, schema))?,
            None => {
                note(&format!("no schema was named, and there is no ./{DEFAULT_SCHEMA}"));
                Vec::new()
            }
        };
        let in_space = store.space(&place.space)?;
        for (collection, index) in to_build {
            match self.no_build {
                true => note(&format!("to build: keyloom build {collection} {index} --server URL")),
                false => drop(runtime.spawn(build(in_space.clone(), collection, index))),
            }
        }
        let mut spaces = vec!["main", &place.space];
        spaces.dedup();
        prepared.serve(&runtime, store, &spaces, Screen::of(place), |announced| {
            announced.tell(&format!("store {address}"))
        })
    }
}

/// Serving is done on a store.
pub(super) fn refuse_server(place: &Place) -> Result<(), Failure> {
    match &place.server {
        Some(_) => Err(Failure::new(USAGE, "a server serves a store, not another server")
            .with_hint("--store names the store")),
        None => Ok(()),
    }
}

async fn apply(store: &Store, schema: &Schema) -> Result<Vec<(String, String)>, Failure> {
    let applied = store.apply(schema).await?;
    tell_applied(schema, &applied);
    Ok(applied.to_build)
}

async fn build(store: Store, collection: String, index: String) {
    note(&format!("building {collection}.{index} in the background"));
    match store.build(&collection, &index).await {
        Ok(_) => note(&format!("{collection}.{index} is ready")),
        // What else the error says may quote records, which are not for a log.
        Err(error) => note(&format!(
            "{collection}.{index} could not be built: {}; `keyloom schema --table` tells why",
            error.message()
        )),
    }
}

/// A server that is configured and not yet listening.
pub(super) struct Prepared {
    address: SocketAddr,
    config: Config,
}

/// What a server that listens says about itself.
pub(super) struct Announced {
    screen: Screen,
    /// The root of every URL.
    pub(super) url: String,
}

impl Listening {
    /// Reads what was said, before anything is opened.
    pub(super) fn prepare(&self) -> Result<Prepared, Failure> {
        let address = resolve(&self.listen)?;
        let authority = match &self.access {
            Some(path) => Authority::from_file(path)?,
            None => Authority::open(),
        };
        if authority.is_open() && !address.ip().is_loopback() {
            note("WARNING: access control is off, and this is not only for this machine:");
            note("WARNING: everyone who reaches the port may read and change everything.");
            note("hint: `keyloom token new` makes a token, --access FILE says who may do what");
        }
        let mut config = Config::default();
        config.authority = authority;
        config.hosts = self.hosts.clone();
        config.origins = self.origins.clone();
        config.limits = self.limits(config.limits.clone());
        Ok(Prepared { address, config })
    }

    fn limits(&self, usual: Limits) -> Limits {
        let seconds = |set: Option<u64>, usual| set.map_or(usual, Duration::from_secs);
        Limits {
            connections_max: self.connections_max.unwrap_or(usual.connections_max),
            requests_max: self.requests_max.unwrap_or(usual.requests_max),
            body_bytes_max: self.body_bytes_max.unwrap_or(usual.body_bytes_max),
            page_max: self.page_max.unwrap_or(usual.page_max),
            read_max: self.read_max.unwrap_or(usual.read_max),
            operations_max: self.operations_max.unwrap_or(usual.operations_max),
            answer_timeout: seconds(self.answer_timeout, usual.answer_timeout),
            shutdown_grace: seconds(self.shutdown_grace, usual.shutdown_grace),
            ..usual
        }
    }
}

impl Prepared {
    /// Serves until a signal says stop. The spaces that are named are maintained:
    /// what has expired and what is kept long enough goes.
    pub(super) fn serve(
        self,
        runtime: &Runtime,
        store: Store,
        spaces: &[&str],
        screen: Screen,
        announce: impl FnOnce(Announced) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Prepared { address, config } = self;
        tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_max_level(tracing::Level::WARN)
            .with_ansi(screen.is_colored())
            .init();
        runtime.block_on(async {
            let maintainers = spaces
                .iter()
                .map(|name| store.space(name)?.maintain_every(PAUSE, MaintainOptions::default()))
                .collect::<Result<Vec<_>, _>>()?;
            let app = App::new(store.clone(), config);
            let server =
                keyloom_server::serve(app, address).await.map_err(|error| unbound(address, &error))?;
            let bound = server.address().map_err(|error| unbound(address, &error))?;
            // Whoever was told the URLs may stop the server at once, and is heard.
            let (stop, at_once) = (signals(1)?, signals(2)?);
            announce(Announced { screen, url: format!("http://{bound}") })?;
            let served = tokio::select! {
                served = server.run(async { stop.await; note("stopping; Ctrl-C again does not wait") }) => served,
                () = at_once => Ok(()),
            };
            for maintainer in maintainers {
                maintainer.stop().await;
            }
            store.close().await?;
            served.map_err(|error| Failure::new(FAILED, format!("the server failed: {error}")))
        })
    }
}

impl Announced {
    /// Prints the URLs, with what is special about this server.
    pub(super) fn tell(&self, what: &str) -> Result<(), Failure> {
        let Announced { screen, url } = self;
        let (console, api) = (format!("{url}/console/"), format!("{url}/v1/"));
        if !screen.is_for_people() {
            return screen.json(&json!({ "url": url, "console": console, "api": api }));
        }
        line(&format!("{}  {what}", screen.bold("keyloom")))?;
        line(&format!("  console  {}", screen.bold(&console)))?;
        line(&format!("  API      {api}"))?;
        line(&screen.dim("  Ctrl-C stops it"))
    }
}

/// Ends when the signal to stop came so many times. Listens from the call on.
fn signals(times: usize) -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |error| Failure::new(FAILED, format!("no signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    Ok(async move {
        for _ in 0..times {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
    })
}

fn resolve(listen: &str) -> Result<SocketAddr, Failure> {
    let found = listen.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| {
        Failure::new(USAGE, format!("{listen:?} is no address to listen at"))
            .with_hint("as in --listen 127.0.0.1:7117, or 0.0.0.0:7117 for every interface")
    })
}

fn unbound(address: SocketAddr, error: &std::io::Error) -> Failure {
    let failure = Failure::new(UNREACHABLE, format!("cannot listen at {address}: {error}"));
    match error.kind() {
        ErrorKind::AddrInUse => failure.with_hint(
            "something listens there already: stop it, or choose another port, or 0 for a free one",
        ),
        ErrorKind::PermissionDenied => failure.with_hint("ports below 1024 need rights"),
        ErrorKind::AddrNotAvailable => failure.with_hint("this machine has no such address"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        listening: Listening,
    }

    fn limits(args: &[&str]) -> Limits {
        let Only { listening } = Only::parse_from([&["serve"], args].concat());
        listening.limits(Limits::default())
    }

    #[test]
    fn every_option_sets_its_own_limit_and_no_other() {
        let usual = Limits::default();
        let seconds = Duration::from_secs(7);
        assert_eq!(limits(&[]), usual);
        for (option, wanted) in [
            ("--connections-max", Limits { connections_max: 7, ..usual.clone() }),
            ("--requests-max", Limits { requests_max: 7, ..usual.clone() }),
            ("--body-bytes-max", Limits { body_bytes_max: 7, ..usual.clone() }),
            ("--page-max", Limits { page_max: 7, ..usual.clone() }),
            ("--read-max", Limits { read_max: 7, ..usual.clone() }),
            ("--operations-max", Limits { operations_max: 7, ..usual.clone() }),
            ("--answer-timeout", Limits { answer_timeout: seconds, ..usual.clone() }),
            ("--shutdown-grace", Limits { shutdown_grace: seconds, ..usual.clone() }),
        ] {
            assert_eq!(limits(&[option, "7"]), wanted, "{option}");
        }
    }
}
