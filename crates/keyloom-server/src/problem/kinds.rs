//! All types of problems: status, title, and the content of their pages.

use keyloom::ErrorKind;

/// One type of problem.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// The last part of its URL.
    pub name: &'static str,
    /// The status of the answer.
    pub status: u16,
    /// What it is called.
    pub title: &'static str,
    /// What happened.
    pub(crate) meaning: &'static str,
    /// What the caller can do.
    pub(crate) advice: &'static str,
}

const fn kind(
    name: &'static str,
    status: u16,
    title: &'static str,
    meaning: &'static str,
    advice: &'static str,
) -> Kind {
    Kind { name, status, title, meaning, advice }
}

/// Every type that the server sends, by status.
#[rustfmt::skip] // One subject a paragraph reads better than one argument a line.
pub(crate) const KINDS: &[Kind] = &[
    kind("invalid-request", 400, "The request cannot be understood",
        "A parameter, a header or the path is not known here, came twice, or is malformed.",
        "Compare the request with the description of the API. The detail names the part."),
    kind("invalid-key", 400, "This cannot be a key",
        "A part of the key does not fit its place in the key's template.",
        "The detail names the field and what it takes. Escape reserved characters as %XX."),
    kind("invalid-argument", 400, "A value is outside what is allowed",
        "A value of the request is well-formed and not possible here.",
        "Correct what the detail names."),
    kind("unauthenticated", 401, "A valid token is needed",
        "The request has no token, or one that is not valid.",
        "Send Authorization: Bearer with a valid token."),
    kind("forbidden", 403, "The caller may not do this",
        "The token, or the acting user, has no right to do this.",
        "Use a token with the right, or act on records of your own."),
    kind("not-found", 404, "There is nothing here",
        "There is no such record, collection or page; or the caller may not see it.",
        "Check the path. Keys in paths are percent-encoded."),
    kind("method-not-allowed", 405, "The path does not take this method",
        "The path exists, and does something else.",
        "Use one of the methods in the header Allow."),
    kind("not-acceptable", 406, "The answer has no form that the caller accepts",
        "The header Accept leaves out application/json.",
        "Accept application/json, or leave the header out."),
    kind("request-timeout", 408, "The request did not arrive in time",
        "The connection was too slow, or broke off.",
        "Send it again."),
    kind("no-index", 409, "No index serves this query",
        "The query would have to read the whole collection.",
        "Declare an index that begins with the fields asked for, or allow the reading with \
         scan=true. /explain with the same parameters shows what is possible."),
    kind("invalid-query", 409, "The query cannot be asked in this form",
        "The request is well-formed, and its conditions do not go together, or not with the \
         collection: two ranges, an order by another field than the range, a value that the \
         field cannot have.",
        "Change what the detail names. /explain with the same parameters shows what is possible."),
    kind("invalid-cursor", 409, "The cursor was altered or belongs to another query",
        "A cursor fits only the query, the space and the user that it came from.",
        "Start without a cursor, and send the other parameters unchanged with each page."),
    kind("already-exists", 409, "A record with this key is there already",
        "An insert found a record at its key, and changed nothing.",
        "Choose another key, or replace the record with PUT."),
    kind("already-running", 409, "A job of this kind is running",
        "Only one job of a kind runs in a space at one time.",
        "Wait for the one that runs, or stop it."),
    kind("unknown-batch", 409, "The store does not know the batch before this one",
        "The answer to the batch that `after` names is not kept here: the store is another one, \
         or an older copy, or the time in [idempotency] keep is over. Nothing was written.",
        "Look at which lines are there, and import the others."),
    kind("belongs-to-index", 409, "The key belongs to an index",
        "Entries follow their records and are not written by themselves.",
        "Change the record that the entry leads to."),
    kind("unique-conflict", 409, "Another record holds this unique value",
        "A unique index, or one that claims its entries, has the value already.",
        "Choose another value. The context names the index and the value; holder names the \
         record, to those who may read it."),
    kind("illegal-transition", 409, "The declared transitions do not allow this",
        "The field may not change from its present value to this one.",
        "Read the record again. The detail names both values."),
    kind("out-of-bounds", 409, "The addition would leave the counter's bounds",
        "A counter has declared bounds, or 64 bits. Nothing was added.",
        "Add less, or change the bounds in the schema."),
    kind("lease-lost", 409, "The lease is over",
        "The work was given to another worker, or is done.",
        "Take the next piece of work."),
    kind("incompatible-schema", 409, "The schema contradicts the stored one",
        "The store has records that the new schema does not fit.",
        "The detail lists what differs."),
    kind("aborted", 409, "The transaction was given up",
        "A condition of the transaction did not hold. Nothing was changed.",
        "Read again what it rests on."),
    kind("log-trimmed", 410, "The log does not go back so far",
        "The changes from this position on are not kept any more.",
        "Read the records anew, and follow the log from now on."),
    kind("not-kept", 410, "This is older than what is kept",
        "The history does not reach back to this version or time.",
        "Ask for something later, or keep more history in the schema."),
    kind("version-conflict", 412, "The record has changed since",
        "The record is not in a version that If-Match names. Nothing was changed.",
        "Apply the change to the record in current, and send it with its version."),
    kind("precondition-failed", 412, "A condition of the request does not hold",
        "If-Match, If-None-Match or a guard (if.FIELD) does not hold. Nothing was changed.",
        "Read the record, and decide anew."),
    kind("limit-exceeded", 413, "Something is larger than the limit",
        "A body, a record, a key or an answer is larger than allowed.",
        "Send or ask for less. The detail has the limit."),
    kind("unsupported-media-type", 415, "The body is of a kind that is not taken here",
        "Bodies are JSON, in no Content-Encoding; patches are application/merge-patch+json.",
        "Set Content-Type, and do not compress."),
    kind("invalid-record", 422, "The record breaks its schema",
        "A field is missing, of another type, or not allowed.",
        "Correct the fields that the detail names."),
    kind("idempotency-conflict", 422, "The idempotency key belongs to another request",
        "The key was sent before, with something else.",
        "Use a new key for each write, and the same key only to repeat it."),
    kind("invalid-schema", 422, "The schema cannot be loaded",
        "The schema has mistakes.",
        "The detail lists all of them."),
    kind("misdirected", 421, "The server is not called by this name",
        "The name in the header Host is not one that the server answers to.",
        "Use localhost, or let the operator add the name to the hosts of the server."),
    kind("too-large-headers", 431, "The head of the request is too large",
        "The path and the headers together are larger than allowed.",
        "Send shorter ones."),
    kind("corrupt", 500, "What is stored cannot be understood",
        "A record or an entry in the store is damaged, or was written by something else.",
        "Tell the operator, who can run verify and repair."),
    kind("internal", 500, "Keyloom has a defect",
        "Something happened that should not be possible.",
        "Tell the operator. The server's log has more."),
    kind("unknown-format", 500, "The store has an unknown format",
        "The store was written by a newer version.",
        "Tell the operator to update the server."),
    kind("unsupported", 501, "The engine underneath cannot do this",
        "Not every engine can do everything.",
        "Tell the operator, who can move the store to another engine."),
    kind("contention", 503, "Other writers won every attempt",
        "The record changed at each attempt. Nothing was written.",
        "Try again after a pause. Counters never contend."),
    kind("stale-schema", 503, "The schema changed under the request",
        "The schema was changed while the request was running. Nothing was written.",
        "Try again."),
    kind("index-not-ready", 503, "The index may not be read now",
        "The index is being built, is disabled, or could not be built.",
        "Wait for the build, or ask the operator for the index's state."),
    kind("read-only", 503, "The store is read-only",
        "The store met an I/O error and takes no writes, or was opened so.",
        "Tell the operator, who opens the store anew when its disk is well. Reads go on."),
    kind("locked", 503, "Another process holds the store",
        "A folder is held by one process at a time.",
        "Tell the operator."),
    kind("closed", 503, "The store is closed",
        "The server is shutting down.",
        "Try again in a moment."),
    kind("unavailable", 503, "The store cannot be reached",
        "The store failed to read or to write. Nothing was written.",
        "Try again after a pause."),
    kind("overloaded", 503, "The server has too much to do",
        "The request was refused so that others can be answered.",
        "Try again after the time in Retry-After."),
    kind("outcome-unknown", 504, "The write may have happened",
        "The store did not say whether the write was made.",
        "Read before you repeat it; or repeat it with the same Idempotency-Key, which is safe."),
];

/// The type of each kind of error.
#[rustfmt::skip] // A table.
pub(crate) const OF_ERRORS: &[(ErrorKind, &str)] = &[
    (ErrorKind::InvalidSchema, "invalid-schema"),
    (ErrorKind::IncompatibleSchema, "incompatible-schema"),
    (ErrorKind::InvalidKey, "invalid-key"),
    (ErrorKind::InvalidRecord, "invalid-record"),
    (ErrorKind::InvalidQuery, "invalid-query"),
    (ErrorKind::InvalidCursor, "invalid-cursor"),
    (ErrorKind::InvalidArgument, "invalid-argument"),
    (ErrorKind::NoIndex, "no-index"),
    (ErrorKind::IndexNotReady, "index-not-ready"),
    (ErrorKind::Forbidden, "forbidden"),
    (ErrorKind::NotFound, "not-found"),
    (ErrorKind::AlreadyExists, "already-exists"),
    (ErrorKind::UniqueConflict, "unique-conflict"),
    (ErrorKind::VersionConflict, "version-conflict"),
    (ErrorKind::LeaseLost, "lease-lost"),
    (ErrorKind::IllegalTransition, "illegal-transition"),
    (ErrorKind::OutOfBounds, "out-of-bounds"),
    (ErrorKind::LimitExceeded, "limit-exceeded"),
    (ErrorKind::Contention, "contention"),
    (ErrorKind::StaleSchema, "stale-schema"),
    (ErrorKind::Locked, "locked"),
    (ErrorKind::UnknownFormat, "unknown-format"),
    (ErrorKind::ReadOnly, "read-only"),
    (ErrorKind::Corrupt, "corrupt"),
    (ErrorKind::LogTrimmed, "log-trimmed"),
    (ErrorKind::Unsupported, "unsupported"),
    (ErrorKind::Closed, "closed"),
    (ErrorKind::Unavailable, "unavailable"),
    (ErrorKind::IdempotencyConflict, "idempotency-conflict"),
    (ErrorKind::NotKept, "not-kept"),
    (ErrorKind::Aborted, "aborted"),
    (ErrorKind::Internal, "internal"),
];

/// Sent for a type without a page. A test makes sure that there is none.
const INTERNAL: Kind = kind("internal", 500, "Keyloom has a defect", "", "");

/// All types of problems that a server sends.
pub fn problem_types() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter()
}

/// The type with this name.
pub(crate) fn named(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// The type of problem for a kind of error.
pub fn of_error(error: ErrorKind) -> &'static Kind {
    let name = OF_ERRORS.iter().find(|(known, _)| *known == error).map(|(_, name)| *name);
    name.and_then(named).unwrap_or(&INTERNAL)
}
