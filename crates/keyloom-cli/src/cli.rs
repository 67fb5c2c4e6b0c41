//! The command line: subcommands, options, and help.

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands as c;
use crate::exit::{EXIT_CODES, Failure, USAGE};

/// The store that is used unless another is named.
pub(crate) const DEFAULT_STORE: &str = "file:./keyloom-data";

/// Records and every index over them, kept consistent on a key-value store
#[derive(Debug, Parser)]
#[command(
    name = "keyloom",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Begin with `keyloom demo`. Every command has examples in its --help.",
    after_long_help = EXIT_CODES
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) place: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// The command line of this process, or the exit code if it is invalid. A value that begins
    /// with a minus and a digit is never taken for an option: it may be a key, or a number that its
    /// option refuses.
    pub(crate) fn from_command_line() -> Result<Self, u8> {
        let matches = command().try_get_matches();
        matches.and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|error| refuse(&error))
    }
}

/// Prints what is wrong with the command line, and gives the exit code. If the caller asked for
/// help, it prints the help and exits.
fn refuse(error: &clap::Error) -> u8 {
    let is_json = std::env::args_os().skip(1).take_while(|it| it != "--").any(|it| it == "--json");
    if !(error.use_stderr() && is_json) {
        error.exit();
    }
    let text = error.render().to_string();
    let failure = Failure::new(USAGE, text.strip_prefix("error: ").unwrap_or(&text).trim());
    failure.report(true)
}

fn command() -> clap::Command {
    Cli::command().mut_subcommands(|known| known.allow_negative_numbers(true))
}

/// Where the records are, and how answers look.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Where, who and how")]
pub(crate) struct GlobalOptions {
    /// The store: a folder (./data, file:./data) or memory: [env: KEYLOOM_STORE] [default:
    /// file:./keyloom-data]
    #[arg(long, global = true, value_name = "ADDRESS", conflicts_with = "server")]
    pub(crate) store: Option<String>,
    /// A running server to ask instead of a store [env: KEYLOOM_SERVER]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The token for the server; safer in the environment than here
    #[arg(long, global = true, env = "KEYLOOM_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// The space: one tenant, one application
    #[arg(long, global = true, default_value = "main")]
    pub(crate) space: String,
    /// Act for this user, who reaches only their own and shared records
    #[arg(long, global = true, value_name = "USER")]
    pub(crate) act_as: Option<String>,
    /// Print JSON lines, even on a terminal, and errors as JSON on stderr
    #[arg(long, global = true, conflicts_with = "table")]
    pub(crate) json: bool,
    /// Print tables, even in a pipe
    #[arg(long, global = true)]
    pub(crate) table: bool,
}

impl GlobalOptions {
    /// The store's address: the named one, that of the environment, or the default.
    pub(crate) fn address(&self) -> String {
        let named = self.store.clone().or_else(|| variable("KEYLOOM_STORE"));
        named.map_or_else(|| DEFAULT_STORE.to_owned(), with_scheme)
    }

    /// The server to use. A named store takes precedence over a server from the environment.
    pub(crate) fn server(&self) -> Option<String> {
        let named = self.server.clone();
        named.or_else(|| variable("KEYLOOM_SERVER").filter(|_| self.store.is_none()))
    }
}

/// The address of a store. A bare path means its folder.
fn with_scheme(address: String) -> String {
    let is_scheme =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let has_scheme = address.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme));
    if has_scheme || address.is_empty() { address } else { format!("file:{address}") }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(c::demo::Demo),
    Serve(c::serve::Serve),
    Check(c::check::Check),
    Schema(c::schema::PrintSchema),
    Get(c::get::Get),
    Put(c::put::Put),
    Patch(c::patch::Patch),
    Delete(c::delete::Delete),
    Increment(c::increment::Increment),
    Query(c::query::Query),
    Near(c::near::Near),
    Count(c::count::Count),
    Groups(c::groups::Groups),
    Keys(c::keys::Keys),
    Entries(c::entries::Entries),
    History(c::history::History),
    Watch(c::watch::Watch),
    Import(c::import::Import),
    Export(c::export::Export),
    Backup(c::backup::Backup),
    Restore(c::restore::Restore),
    Build(c::build::Build),
    Verify(c::verify::Verify),
    Repair(c::repair::Repair),
    Stats(c::stats::Stats),
    Token(c::token::Token),
    Completions(c::completions::Completions),
    ExitCodes(c::exit_codes::ExitCodes),
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use super::*;

    /// Every option that takes a number, by its type: `serve --page-max`.
    fn numeric() -> Vec<(String, String)> {
        let types = [
            TypeId::of::<usize>(),
            TypeId::of::<u64>(),
            TypeId::of::<u32>(),
            TypeId::of::<u16>(),
            TypeId::of::<i64>(),
            TypeId::of::<f64>(),
        ];
        let mut found = Vec::new();
        for known in command().get_subcommands() {
            for option in known.get_arguments().filter_map(|argument| {
                let kind = argument.get_value_parser().type_id();
                argument.get_long().filter(|_| types.iter().any(|of| kind == *of))
            }) {
                found.push((known.get_name().to_owned(), format!("--{option}")));
            }
        }
        found
    }

    #[test]
    fn every_option_with_a_number_says_what_it_takes() {
        let found = numeric();
        assert!(found.len() > 25, "{found:?}");
        for (name, option) in found {
            // Any distance may be larger than the globe.
            let large = if option == "--radius" { "1e400" } else { "99999999999999999999999" };
            for wrong in ["", "-1", "1.5x", "many", large] {
                let parsed = command().try_get_matches_from(["keyloom", &name, &option, wrong]);
                let told = parsed.map_or_else(|error| error.to_string(), |_| String::new());
                assert!(
                    told.contains(": it takes ") || told.contains("is no distance"),
                    "{name} {option} {wrong}: {told}"
                );
            }
        }
    }

    #[test]
    fn a_path_is_the_address_of_a_folder() {
        for (named, address) in [
            ("./data", "file:./data"),
            ("data", "file:data"),
            ("/var/lib/x", "file:/var/lib/x"),
            ("../a:b/c", "file:../a:b/c"),
            ("./a:b", "file:./a:b"),
            ("file:data", "file:data"),
            ("memory:", "memory:"),
            ("redis://x", "redis://x"),
            ("", ""),
        ] {
            assert_eq!(with_scheme(named.to_owned()), address);
        }
    }

    #[test]
    fn keys_may_be_negative_numbers() {
        let parsed = command().try_get_matches_from(["keyloom", "get", "reading", "-5"]);
        assert!(parsed.is_ok(), "{parsed:?}");
    }
}
