//! What people type after `/approve`.

use super::client::Refusal;
use crate::Decision;

/// What can be typed.
pub(super) const HELP: &str = "\
/approve request @name what you need
/approve list [mine | todo]
/approve get CODE
/approve approve CODE
/approve deny CODE
/approve cancel CODE";

/// What a user asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// What can be typed.
    Help,
    /// Asks somebody for something.
    Request {
        /// Who decides, without the `@`.
        approver: String,
        /// What is asked for.
        text: String,
    },
    /// Shows approvals, newest first.
    List(Which),
    /// Shows one, by its code or its id.
    Get(String),
    /// Decides one, by its code or its id.
    Decide(Decision, String),
}

/// Which approvals to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that the user asked for.
    Mine,
    /// Those that the user must decide.
    Todo,
    /// Both.
    All,
}

impl Command {
    /// Reads what was typed.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let (word, rest) = first_word(text);
        match (word, rest) {
            ("" | "help", _) => Ok(Command::Help),
            ("request", rest) => request(rest),
            ("list", "") => Ok(Command::List(Which::All)),
            ("list", "mine") => Ok(Command::List(Which::Mine)),
            ("list", "todo") => Ok(Command::List(Which::Todo)),
            ("get", name) => Ok(Command::Get(one_name(name)?)),
            ("approve", name) => Ok(Command::Decide(Decision::Approve, one_name(name)?)),
            ("deny", name) => Ok(Command::Decide(Decision::Deny, one_name(name)?)),
            ("cancel", name) => Ok(Command::Decide(Decision::Cancel, one_name(name)?)),
            _ => Err(Refusal::new(format!("this is not understood. You can say:\n{HELP}"))),
        }
    }
}

fn request(rest: &str) -> Result<Command, Refusal> {
    let (approver, text) = first_word(rest);
    match approver.strip_prefix('@') {
        Some(approver) if !approver.is_empty() && !text.is_empty() => {
            Ok(Command::Request { approver: approver.to_owned(), text: text.to_owned() })
        }
        _ => Err(Refusal::new("say who decides and what you need: request @name what you need")),
    }
}

fn one_name(text: &str) -> Result<String, Refusal> {
    match first_word(text) {
        ("", _) => Err(Refusal::new("say which one, by its code, such as A-X7K9Q2")),
        (name, "") => Ok(name.to_owned()),
        _ => Err(Refusal::new("one code at a time")),
    }
}

/// The first word, and what follows it.
fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn words_become_commands() {
        let request = Command::parse("  request @ben  a new laptop ").unwrap();
        let approver = "ben".to_owned();
        assert_eq!(request, Command::Request { approver, text: "a new laptop".to_owned() });
        assert_eq!(Command::parse("list todo").unwrap(), Command::List(Which::Todo));
        let approve = Command::Decide(Decision::Approve, "A-X7K9Q2".to_owned());
        assert_eq!(Command::parse("approve A-X7K9Q2").unwrap(), approve);
        assert_eq!(Command::parse("").unwrap(), Command::Help);
    }

    #[test]
    fn what_is_not_understood_is_told_with_what_can_be_said() {
        for wrong in
            ["dance", "list all of it", "request ben x", "request @ben", "approve", "deny a b"]
        {
            assert!(Command::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Command::parse("dance").unwrap_err().to_string().contains("/approve request"));
    }
}
