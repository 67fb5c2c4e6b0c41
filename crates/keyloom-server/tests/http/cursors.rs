//! Cursors that were altered, that are somebody else's, or that come a second time.

use serde_json::{Value, json};

use crate::people::{Guarded, jwt};
use crate::support::Answer;

const NOTES: &str = "/v1/collections/note/records";
const TICKETS: &str = "/v1/collections/ticket/records";

fn next(answer: &Answer) -> String {
    answer.expect(200)["next"].as_str().unwrap().to_owned()
}

#[track_caller]
fn refused(answer: Answer) {
    assert_eq!(answer.expect(409)["type"], "/problems/invalid-cursor");
}

/// Three notes for each of two users, and three tickets.
fn filled() -> Guarded {
    let guarded = Guarded::start();
    for number in 1..=3 {
        for user in ["ana", "ben"] {
            let title = json!({ "title": format!("{user}{number}") });
            guarded.put(&jwt(user), &format!("{NOTES}/n{number}"), title);
        }
        guarded.put(&guarded.admin, &format!("{TICKETS}/t{number}"), json!({ "state": "open" }));
    }
    guarded
}

#[test]
fn tampered_cursors_are_refused() {
    let guarded = filled();
    let page = |cursor: &str| {
        guarded.get(&guarded.admin, &format!("{TICKETS}?where.state=open&limit=1&cursor={cursor}"))
    };
    let first = guarded.get(&guarded.admin, &format!("{TICKETS}?where.state=open&limit=1"));
    let cursor = next(&first);
    page(&cursor).expect(200);
    for at in 0..cursor.len() {
        let mut bytes = cursor.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        refused(page(&String::from_utf8(bytes).unwrap()));
    }
    for broken in [
        "",
        "x",
        "..",
        &cursor[1..],
        &cursor[..cursor.len() - 1],
        &format!("{cursor}A"),
        "%00",
        &"A".repeat(5_000),
    ] {
        refused(page(broken));
    }
}

#[test]
fn the_cursor_of_another_question_is_refused() {
    let guarded = filled();
    let cursor = next(&guarded.get(&guarded.admin, &format!("{TICKETS}?where.state=open&limit=1")));
    for question in [
        format!("{TICKETS}?where.state=done&limit=1"),
        format!("{TICKETS}?scan=true&limit=1"),
        format!("{NOTES}?scan=true&limit=1"),
        format!("/s/other{TICKETS}?where.state=open&limit=1"),
    ] {
        let answer = guarded.get(&guarded.admin, &format!("{question}&cursor={cursor}"));
        assert!(matches!(answer.status, 404 | 409), "{question}: {answer:?}");
    }
}

/// A cursor is bound to the user to whom it was given, however they come in.
#[test]
fn the_cursor_of_another_user_is_refused() {
    let guarded = filled();
    let anas = next(&guarded.get(&jwt("ana"), &format!("{NOTES}?limit=1")));
    let page = format!("{NOTES}?limit=1&cursor={anas}");
    refused(guarded.get(&jwt("ben"), &page));
    refused(guarded.ask_as(&guarded.bot, Some("ben"), "GET", &page, &Value::Null));
    // Nobody's cursor is no more than somebody's.
    let whole = guarded.get(&guarded.admin, &format!("{page}&scan=true"));
    assert_eq!(whole.status, 409, "{whole:?}");
    // The same user by another way in is the same user.
    let own = guarded.ask_as(&guarded.bot, Some("ana"), "GET", &page, &Value::Null).expect(200);
    assert_eq!(own["records"][0]["record"]["title"], "ana2");
}

#[test]
fn a_cursor_that_comes_again_gives_the_same_place_and_no_more() {
    let guarded = filled();
    let cursor = next(&guarded.get(&jwt("ana"), &format!("{NOTES}?limit=1")));
    let page = |limit: usize| {
        let path = format!("{NOTES}?limit={limit}&cursor={cursor}");
        guarded.get(&jwt("ana"), &path).expect(200)["records"].clone()
    };
    assert_eq!(page(1), page(1));
    let rest = page(100);
    assert_eq!(rest.as_array().unwrap().len(), 2);
    assert!(!rest.to_string().contains("ben"), "{rest}");
    // What a user may no longer see, an old cursor does not show.
    guarded.ask(&jwt("ana"), "DELETE", &format!("{NOTES}/n2"), &Value::Null).expect(204);
    assert_eq!(page(100).as_array().unwrap().len(), 1);
}
