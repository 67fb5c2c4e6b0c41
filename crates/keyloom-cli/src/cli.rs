//! The command line: what can be asked, and its help.

use clap::{Args, Parser, Subcommand};

use crate::commands;

/// Records and every index over them, kept consistent on a key-value store.
#[derive(Debug, Parser)]
#[command(name = "keyloom", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where the records are, and how answers look.
#[derive(Clone, Debug, Args)]
pub(crate) struct Place {
    /// The store: file:PATH or memory:
    #[arg(long, global = true, env = "KEYLOOM_STORE", default_value = "file:./keyloom-data")]
    pub(crate) store: String,
    /// A running server to ask instead of a store, such as http://127.0.0.1:7117
    #[arg(long, global = true, env = "KEYLOOM_SERVER", value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The token for the server
    #[arg(long, global = true, env = "KEYLOOM_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// The space
    #[arg(long, global = true, default_value = "main")]
    pub(crate) space: String,
    /// The acting user
    #[arg(long, global = true, value_name = "USER")]
    pub(crate) act_as: Option<String>,
    /// JSON lines also on a terminal
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print a record
    Get(commands::get::Get),
}
