//! `keyloom completions`: completions for shells.

use std::io::{Write, stdout};

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::cli::Cli;
use crate::exit::Failure;
use crate::output::written;

/// Print the completions for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  keyloom completions bash > ~/.local/share/bash-completion/completions/keyloom
  keyloom completions zsh > ~/.zfunc/_keyloom
  keyloom completions fish > ~/.config/fish/completions/keyloom.fish";

impl Completions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "keyloom", &mut script);
        written(stdout().write_all(&script))
    }
}
