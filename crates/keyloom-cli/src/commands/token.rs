//! `keyloom token`: tokens for access files.

use clap::{Args, Subcommand, ValueEnum};
use keyloom_server::{Authority, new_token};
use serde_json::json;

use crate::cli::GlobalOptions;
use crate::exit::{Failure, USAGE};
use crate::output::{Screen, line, note};

/// Make tokens for an access file
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Token {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    New(NewToken),
}

/// Make a token, and the entry that lets a server know it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct NewToken {
    /// The token's name in logs: letters, digits, - _ .
    name: String,
    /// What its holder may do
    #[arg(long, value_enum, default_value_t = Role::Admin)]
    role: Role,
    /// A collection that the service may use; may be repeated; * is every one
    #[arg(long = "collection", value_name = "NAME", required_if_eq("role", "service"))]
    collections: Vec<String>,
    /// What the service may do with them; may be repeated
    #[arg(long = "verb", value_enum, value_name = "VERB", required_if_eq("role", "service"))]
    verbs: Vec<Verb>,
    /// A space that the service may enter; may be repeated [default: main]
    #[arg(long = "in-space", value_name = "SPACE")]
    spaces: Vec<String>,
    /// Let the service name the user for whom it acts
    #[arg(long)]
    may_act_as: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Everything
    Admin,
    /// Only what it is given; for a program
    Service,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Verb {
    /// Read, query and count
    Read,
    /// Insert, replace, change and increment
    Write,
    /// Delete
    Delete,
}

const EXAMPLES: &str = "\
Examples:
  keyloom token new ops >> access.toml
  keyloom token new chat --role service --collection approval --verb read --verb write >> access.toml
  keyloom serve --access access.toml

The entry for the access file goes to stdout, and has only the token's SHA-256. The token itself
goes to stderr, once: nothing keeps it. With --json both are one line on stdout.";

/// The reason of a problem with an entry, without the line: no file has that line yet.
fn without_line(problem: &str) -> &str {
    match problem.strip_prefix("line ").and_then(|rest| rest.split_once(": ")) {
        Some((number, reason)) if number.bytes().all(|byte| byte.is_ascii_digit()) => reason,
        _ => problem,
    }
}

impl Token {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let TokenCommand::New(new) = self.command;
        new.run(place)
    }
}

impl NewToken {
    fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let (token, sha256) = new_token();
        let entry = self.entry(&sha256);
        // Refuses now what the server would refuse in the file, since it came from the command
        // line.
        Authority::from_toml(&entry).map_err(|error| {
            let reasons = error.context().map(|(_, reason)| without_line(reason));
            let reasons: Vec<&str> = reasons.collect();
            Failure::new(USAGE, format!("no such token can be made: {}", reasons.join("; ")))
        })?;
        if place.json {
            return Screen::of(place).json(&json!({ "token": token, "entry": entry }));
        }
        line(entry.trim_end())?;
        note(&format!("the token, which is shown only now: {token}"));
        Ok(())
    }

    /// The entry for the access file. Every JSON string is also a TOML string.
    fn entry(&self, sha256: &str) -> String {
        let role = if self.role == Role::Admin { "admin" } else { "service" };
        let mut entry = format!("[[token]]\nname = {}\nrole = {}\n", json!(self.name), json!(role));
        if self.role == Role::Service {
            let verbs = self.verbs.iter().map(|verb| match verb {
                Verb::Read => "read",
                Verb::Write => "write",
                Verb::Delete => "delete",
            });
            let verbs: Vec<&str> = verbs.collect();
            entry +=
                &format!("collections = {}\nverbs = {}\n", json!(self.collections), json!(verbs));
            if !self.spaces.is_empty() {
                entry += &format!("spaces = {}\n", json!(self.spaces));
            }
            if self.may_act_as {
                entry += "act_as = true\n";
            }
        }
        entry + &format!("sha256 = {}\n\n", json!(sha256))
    }
}
