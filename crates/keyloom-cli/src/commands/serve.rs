//! `keyloom serve`: serves the API and the console of a store.

use std::future::Future;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use keyloom::{MaintainOptions, Schema, Store};
use keyloom_server::{App, Authority, Config};
use serde_json::json;
use tokio::runtime::Runtime;

use super::limits::LimitOptions;
use super::log::{Log, LogOptions};
use crate::cli::GlobalOptions;
use crate::exit::{FAILED, Failure, UNREACHABLE, USAGE};
use crate::output::{Screen, line, note};
use crate::schema_files::{DEFAULT_SCHEMA, load_named, tell_applied};
use crate::target::{open_store, runtime};

/// Serve a store over HTTP, with a console for the browser
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// The schema: a file, or a folder of .toml and .json files [default: keyloom.toml, if it
    /// exists]
    #[arg(long, value_name = "PATH")]
    schema: Option<PathBuf>,
    /// Do not build new indexes; print how to
    #[arg(long)]
    no_build: bool,
    #[command(flatten)]
    pub(crate) listening: Listening,
}

/// How a server listens, and what it allows.
#[derive(Clone, Debug, Args)]
pub(crate) struct Listening {
    /// Where to listen; port 0 takes any free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7117")]
    listen: String,
    /// The access file, which says who may do what; without it everyone may do everything
    #[arg(long, value_name = "FILE")]
    access: Option<PathBuf>,
    /// Another name of the server, as in the Host header; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// An origin whose pages may use the API from a browser; may be repeated
    #[arg(long = "origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// Let everyone who reaches the server read and change everything; needed to --listen beyond
    /// this machine without --access
    #[arg(long)]
    open_to_all: bool,
    #[command(flatten)]
    log: LogOptions,
    #[command(flatten)]
    limits: LimitOptions,
}

const EXAMPLES: &str = "\
Examples:
  keyloom serve
  keyloom serve --schema schemas/ --store file:/var/lib/keyloom
  keyloom serve --listen 0.0.0.0:7117 --access access.toml --log info --log-format json
  keyloom serve --store memory: --listen 127.0.0.1:0 --json

Applies the schema, builds new indexes in the background, and serves until it is told to stop by
Ctrl-C or SIGTERM: then requests that have begun may end, and nothing acknowledged is lost.
A second Ctrl-C does not wait: what has begun is cut off, and what was acknowledged is kept. Both
end with 0. In a pipe it prints its URLs as one JSON line.";

/// The pause between two passes of maintenance.
const PAUSE: Duration = Duration::from_secs(60);

impl Serve {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        refuse_server(place)?;
        let schema = load_named(self.schema.as_deref())?;
        let mut prepared = self.listening.prepare()?;
        prepared.begin_log(Screen::of(place));
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

/// Refuses `--server`: a server needs a store.
pub(super) fn refuse_server(place: &GlobalOptions) -> Result<(), Failure> {
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
        // The rest of the error may quote records, which must not be logged.
        Err(error) => note(&format!(
            "{collection}.{index} could not be built: {}; `keyloom schema --table` tells why",
            error.message()
        )),
    }
}

/// A server that is configured but does not listen yet.
pub(super) struct Prepared {
    address: SocketAddr,
    config: Config,
    log: Option<Log>,
}

/// A listening server, to be announced.
pub(super) struct Announced {
    screen: Screen,
    /// The root of every URL.
    pub(super) url: String,
}

impl Listening {
    /// Checks all options before anything is opened.
    pub(super) fn prepare(&self) -> Result<Prepared, Failure> {
        let address = resolve(&self.listen)?;
        self.hosts.iter().try_for_each(|host| check_host(host))?;
        self.origins.iter().try_for_each(|origin| check_origin(origin))?;
        let authority = match &self.access {
            Some(path) => Authority::from_file(path)?,
            None => Authority::open(),
        };
        let mut config = Config::default();
        config.authority = authority;
        config.open_to_all = self.open_to_all;
        config.hosts = self.hosts.clone();
        config.origins = self.origins.clone();
        config.limits = self.limits.over(config.limits.clone());
        if config.is_open_beyond_this_machine(address) {
            return Err(open_by_mistake(address));
        }
        if config.authority.is_open() && !address.ip().to_canonical().is_loopback() {
            note("WARNING: access control is off, and this is not only for this machine:");
            note("WARNING: everyone who reaches the port may read and change everything.");
            if config.hosts.is_empty() {
                note("hint: only requests to localhost are answered; --host NAME adds a name");
            }
        }
        Ok(Prepared { address, config, log: Some(self.log.prepare()?) })
    }
}

/// The failure for a server that would be open to everyone, if nobody said that this is intended.
fn open_by_mistake(address: SocketAddr) -> Failure {
    let message = format!(
        "there is no --access, and {address} is not only for this machine: everyone who reaches it \
         could read and change everything"
    );
    Failure::new(USAGE, message).with_hint(
        "--access FILE says who may do what, and `keyloom token new` makes a token for it; \
         --open-to-all says that everyone is meant",
    )
}

impl Prepared {
    /// From here on, the log records what the process does, and the reasons of defects.
    pub(super) fn begin_log(&mut self, screen: Screen) {
        if let Some(log) = self.log.take() {
            log.begin(screen.is_colored());
        }
    }

    /// Serves until a signal stops it. It maintains the named spaces: expired records, and
    /// everything that was kept long enough, are removed.
    pub(super) fn serve(
        self,
        runtime: &Runtime,
        store: Store,
        spaces: &[&str],
        screen: Screen,
        announce: impl FnOnce(Announced) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Prepared { address, config, .. } = self;
        runtime.block_on(async {
            let maintainers = spaces
                .iter()
                .map(|name| store.space(name)?.maintain_every(PAUSE, MaintainOptions::default()))
                .collect::<Result<Vec<_>, _>>()?;
            let app = App::new(store.clone(), config);
            let server =
                keyloom_server::serve(app, address).await.map_err(|error| unbound(address, &error))?;
            let bound = server.address().map_err(|error| unbound(address, &error))?;
            // Listens for signals first: whoever reads the URLs may stop the server at once.
            let (stop, at_once) = (signals(1)?, signals(2)?);
            store.engine().announce(&format!("http://{}", reached_at(bound)));
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
    /// Prints the URLs, and what is special about this server.
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

/// Ends when a stop signal has come this many times. Listens from the call on.
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

/// The address by which programs on this machine reach a server that listens there.
fn reached_at(mut bound: SocketAddr) -> SocketAddr {
    match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => bound.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => bound.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    bound
}

fn resolve(listen: &str) -> Result<SocketAddr, Failure> {
    let found = listen.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| {
        Failure::new(USAGE, format!("{listen:?} is no address to listen at"))
            .with_hint("as in --listen 127.0.0.1:7117, or 0.0.0.0:7117 for every interface")
    })
}

/// Refuses a host name with a port: ports are not compared, so it would never match.
fn check_host(host: &str) -> Result<(), Failure> {
    let has_port = host.matches(':').count() == 1;
    if !host.is_empty() && !has_port && !host.contains(['/', ' ', ',']) {
        return Ok(());
    }
    let message = format!("{host:?} is no name of a server");
    Err(Failure::new(USAGE, message).with_hint("as in --host db.example.org, without a port"))
}

/// Checks an origin, which is compared byte by byte with what browsers send.
fn check_origin(origin: &str) -> Result<(), Failure> {
    let name = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    let is_whole = |name: &str| {
        !name.is_empty() && !name.contains(['/', ' ', ',']) && name == name.to_ascii_lowercase()
    };
    if name.is_some_and(is_whole) {
        return Ok(());
    }
    let message = format!("{origin:?} is no origin");
    let hint = "as in --origin https://app.example.org, in lower case and without a path";
    Err(Failure::new(USAGE, message).with_hint(hint))
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
