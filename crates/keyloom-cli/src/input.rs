//! Records from the command line: the JSON itself, `@FILE`, or `-` for stdin.

use std::fs;
use std::io::{Read, stdin};

use keyloom::read_json;

use crate::exit::{Failure, WRONG_INPUT};

const HINT: &str = "a record is JSON text, @FILE, or - for stdin; quote it for the shell";

/// The bytes of a JSON argument, checked to be JSON.
pub(crate) fn json(argument: &str) -> Result<Vec<u8>, Failure> {
    let (bytes, source) = match argument.strip_prefix('@') {
        _ if argument == "-" => (read_stdin()?, "stdin"),
        Some("") => {
            return Err(Failure::new(WRONG_INPUT, "there is no name behind the @").with_hint(HINT));
        }
        Some(path) => (read_file(path)?, path),
        None => (argument.as_bytes().to_vec(), "the argument"),
    };
    match read_json(&bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => {
            let said = |name| error.context_value(name).unwrap_or_default();
            let (line, column, reason) = (said("line"), said("column"), said("reason"));
            let message = format!("{source} is not JSON: line {line}, column {column}: {reason}");
            Err(Failure::new(WRONG_INPUT, message).with_hint(HINT))
        }
    }
}

fn read_stdin() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    stdin().read_to_end(&mut bytes).map_err(|error| unreadable("stdin", &error))?;
    Ok(bytes)
}

/// The content of a file.
pub(crate) fn read_file(path: &str) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| unreadable(path, &error))
}

/// The failure for an input that cannot be read.
pub(crate) fn unreadable(source: &str, error: &std::io::Error) -> Failure {
    Failure::new(WRONG_INPUT, format!("{source} cannot be read: {error}"))
}
