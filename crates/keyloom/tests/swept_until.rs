//! Answers that may hold what has expired say up to when their collection was swept.

#![cfg(feature = "embedded")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod time_support;

use keyloom::{Collection, GroupQuery, GroupTotal, Query, SweepOptions};
use serde_json::{Value, json};
use time_support::{START, Subject};

const SCHEMA: &str = r#"
[collection.seat]
key        = "seat:{user}:{id}"
expires_at = "ends"
access     = "owned"
owner      = "user"
[collection.seat.fields]
user  = "text"
id    = "text"
price = "integer"
ends  = "timestamp"
[collection.seat.count.by_user]
group = ["user"]
[collection.seat.sum.worth]
field = "price"
group = ["user"]

[collection.hall]
key = "hall:{id}"
fields = { id = "text" }
[collection.hall.count.all]
group = []
"#;

fn seat(user: &str, id: u64, ends: u64) -> Value {
    json!({ "user": user, "id": id.to_string(), "price": 10, "ends": START + ends })
}

/// Six seats of two users, one ending after the other.
async fn seats(subject: &Subject) -> Collection<Value> {
    let seats = subject.store.documents("seat").await.unwrap();
    for id in 0..3 {
        seats.insert(&seat("ana", id, 10 + id)).await.unwrap();
        seats.insert(&seat("ben", id, 100 + id)).await.unwrap();
    }
    seats
}

#[tokio::test]
async fn groups_tell_up_to_when_they_were_swept() {
    for subject in Subject::all(SCHEMA).await {
        let seats = seats(&subject).await;
        let of_ana = |count, swept_until| GroupTotal {
            count,
            sum: Some(10 * count),
            swept_until: Some(START + swept_until),
        };
        let all = GroupQuery::new("worth");
        // Each step: the time that passes, how many are swept, what ana's group is then.
        for (pass, sweeps, count, until) in
            [(5, 0, 3, 5), (6, 0, 3, 10), (0, 1, 2, 11), (99, 9, 0, 110)]
        {
            subject.clock.pass(pass);
            let options = SweepOptions { records_max: sweeps, ..SweepOptions::default() };
            subject.store.sweep(&options).await.unwrap();
            assert_eq!(seats.group("worth", "ana").await.unwrap(), of_ana(count, until));
            let counted = seats.group("by_user", "ana").await.unwrap();
            assert_eq!(counted, GroupTotal { sum: None, ..of_ana(count, until) });
            assert_eq!(seats.counted("by_user", "ana").await.unwrap(), count);
            assert_eq!(seats.summed("worth", "ana").await.unwrap(), 10 * count);
            let page = seats.groups(&all).await.unwrap();
            let top = seats.top_groups(&all, 9).await.unwrap();
            assert_eq!(page.swept_until, Some(START + until), "{}", subject.name);
            assert_eq!(top.swept_until, Some(START + until), "{}", subject.name);
            assert_eq!(page.groups.iter().any(|group| group.values == [json!("ana")]), count > 0);
            let read = seats.count(&Query::new().equal("user", "ana").scan()).await.unwrap();
            assert!(usize::try_from(count).unwrap() >= read);
        }
    }
}

#[tokio::test]
async fn groups_of_what_never_expires_say_nothing_of_it() {
    let subject = Subject::all(SCHEMA).await.remove(0);
    let halls = subject.store.documents("hall").await.unwrap();
    halls.insert(&json!({ "id": "h" })).await.unwrap();
    let total = GroupTotal { count: 1, sum: None, swept_until: None };
    assert_eq!(halls.group("all", ()).await.unwrap(), total);
    assert_eq!(halls.groups(&GroupQuery::new("all")).await.unwrap().swept_until, None);
    assert_eq!(halls.top_groups(&GroupQuery::new("all"), 1).await.unwrap().swept_until, None);
}

#[tokio::test]
async fn an_owner_learns_nothing_of_the_ends_of_others() {
    for subject in Subject::all(SCHEMA).await {
        let program = seats(&subject).await;
        subject.clock.pass(50);
        assert_eq!(program.keys(&Query::new().scan()).await.unwrap().swept_until, Some(START + 10));
        let ben = program.acting_as("ben").unwrap();
        let own = Query::new().scan();
        let swept_until = [
            ben.keys(&own).await.unwrap().swept_until,
            ben.count_entries(&own).await.unwrap().swept_until,
            ben.group("by_user", "ben").await.unwrap().swept_until,
            ben.groups(&GroupQuery::new("worth").within("ben")).await.unwrap().swept_until,
        ];
        assert_eq!(swept_until, [Some(0); 4], "{}", subject.name);
    }
}
