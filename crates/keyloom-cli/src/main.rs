//! The `keyloom` command: serves a store, inspects it, and moves data in and out.

mod cli;
mod commands;
mod conditions;
mod exit;
mod fields;
mod input;
mod interrupt;
mod jobs;
mod numbers;
mod output;
mod pages;
mod schema_files;
mod target;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Requests make many small allocations on one thread that another thread frees.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let cli = match cli::Cli::from_command_line() {
        Ok(cli) => cli,
        Err(code) => return code.into(),
    };
    let as_json = cli.place.json;
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(as_json).into(),
    }
}
