//! The keys of answers, for people.

use super::kept::{Answer, Kept};
use crate::engine::ShowKey;
use crate::own::{OwnKey, OwnKind};
use crate::side::kind::{EXAMPLE_MS, OwnPattern};

/// The digest of a request that nobody sent.
const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

pub(super) fn describe() -> Vec<OwnPattern> {
    let (request, answer) = (DIGEST.to_owned(), Answer::Done);
    let kept = Kept { at: EXAMPLE_MS, request, answer, text: None };
    let value = kept.to_bytes().map(|bytes| ShowKey(&bytes).to_string()).unwrap_or_default();
    vec![OwnPattern {
        template: format!("{}{{user}}:{{key}}", OwnKind::Answer.words()),
        index: None,
        what: "That a write with an idempotency key happened, and its answer.".to_owned(),
        holds: "a line of JSON, then the record in the answer",
        key: OwnKey::answer("ana", "order-17").encode(),
        value,
        read_by: "a write that is sent again with its key".to_owned(),
    }]
}
