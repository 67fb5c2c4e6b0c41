//! Entries that somebody else wrote into the range of an index: no page takes a record by them.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod index_support;

use std::collections::BTreeSet;

use bytes::Bytes;
use index_support::{Subject, dump, is_record, plant};
use keyloom::{ErrorKind, Near, Page, ProblemKind, Query, RepairOptions, Stored, Transaction};
use serde_json::{Value, json};

/// The indexes that lead to a record, each with what its keys begin with and how many entries the
/// user has in it.
const INDEXES: [(&str, &str, usize); 7] = [
    ("email", "index:email:", 1),
    ("score", "index:score:", 1),
    ("tag", "index:tag:", 2),
    ("step", "index:step:", 1),
    ("active", "index:active:", 1),
    ("card", "card:", 1),
    ("place", "index:geo:", 1),
];

impl Subject {
    /// Every entry that leads to a record, with its area and what it holds.
    async fn entries(&self) -> BTreeSet<(String, String, Bytes)> {
        let cells = dump(&self.store).await.into_iter();
        let entries = cells.filter(|((area, key), _)| !is_record(area, key));
        let texts = entries
            .map(|((area, key), value)| (area, String::from_utf8(key.to_vec()).unwrap(), value));
        texts.filter(|(_, key, _)| !key.starts_with("full:")).collect()
    }

    /// Every entry leads to the user, and nothing else is found.
    async fn assert_all_lead(&self) {
        for (index, _, entries) in INDEXES {
            let page = self.page(index).await;
            assert_eq!((page.records.len(), &*page.problems), (entries, &[][..]), "{index}");
        }
    }

    async fn page(&self, index: &str) -> Page<Stored<Value>> {
        self.users.page(&Query::new().index(index)).await.unwrap()
    }
}

fn user(n: u32) -> Value {
    json!({
        "id": "u", "email": format!("{n}@x"), "name": format!("name {n}"), "score": n,
        "status": "active", "tags": [format!("a{n}"), format!("b{n}")],
        "steps": { "s": { "at": n } }, "place": { "lat": 1.5 * f64::from(n), "lng": 2 },
    })
}

#[tokio::test]
async fn a_record_is_not_taken_by_an_entry_that_it_does_not_have() {
    for it in Subject::all().await {
        it.users.insert(&user(1)).await.unwrap();
        let foreign = it.entries().await;
        it.users.replace(&user(2)).await.unwrap();
        let own = it.entries().await;
        assert!(foreign.is_disjoint(&own));
        for (area, key, value) in &foreign {
            let value = str::from_utf8(value).unwrap();
            plant(&it.store, area, key.clone(), Some(value)).await;
        }
        for (index, begins, entries) in INDEXES {
            let page = it.page(index).await;
            assert_eq!(page.records.len(), entries, "{index}: {page:?}");
            let told: Vec<&str> = page.problems.iter().map(|problem| &*problem.key).collect();
            let keys = foreign.iter().map(|(_, key, _)| &**key);
            let planted: Vec<&str> = keys.filter(|key| key.starts_with(begins)).collect();
            assert_eq!(BTreeSet::from_iter(&told), BTreeSet::from_iter(&planted), "{index}");
            assert!(page.problems.iter().all(|problem| problem.kind == ProblemKind::Wrong));
        }
        let near = it.users.near(&Near::new(0.0, 0.0).index("place")).await.unwrap();
        assert_eq!((near.records.len(), near.problems.len()), (1, 1), "{near:?}");
        let error = it.users.get_by("email", "1@x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);

        it.store.repair(&RepairOptions::default()).await.unwrap();
        assert_eq!(it.entries().await, own);
    }
}

/// What leads to a record need not have its version: it only has to be its own.
#[tokio::test]
async fn a_records_own_entries_lead_to_it_whenever_they_were_written() {
    for it in Subject::all().await {
        it.users.insert(&user(1)).await.unwrap();
        it.assert_all_lead().await;
        // A later revision, which leaves the entries as they are; and a new incarnation that does.
        it.users.update_with_retry("u", &json!({ "note": "changed" })).await.unwrap();
        it.assert_all_lead().await;
        let anew = it.store.transaction(async |tx: Transaction| {
            let users = tx.documents("user")?;
            users.delete("u").await?;
            users.insert(&user(1)).await.map(drop)
        });
        anew.await.unwrap();
        it.assert_all_lead().await;
        // Written by another tool, and right.
        for (area, key, value) in it.entries().await {
            plant(&it.store, &area, key, Some(str::from_utf8(&value).unwrap())).await;
        }
        it.assert_all_lead().await;
    }
}

/// A union comes to a record by several entries: one that is wrong does not hide the others.
#[tokio::test]
async fn a_wrong_entry_of_a_union_does_not_hide_the_right_one() {
    for it in Subject::all().await {
        it.users.insert(&user(1)).await.unwrap();
        for union in [["a1", "b1", "c"], ["c", "b1", "a1"]] {
            let union = union.iter().fold(Query::new(), |union, tag| union.any("tags.*", *tag));
            plant(&it.store, "", "index:tag:c:u", Some("\"u\"")).await;
            let page = it.users.page(&union).await.unwrap();
            assert_eq!((page.records.len(), page.read), (1, 1));
            let wrong: Vec<&str> = page.problems.iter().map(|problem| &*problem.key).collect();
            assert!(wrong.is_empty() || wrong == ["index:tag:c:u"], "{wrong:?}");
        }
        let only_wrong = Query::new().any("tags.*", "c").any("tags.*", "d");
        let page = it.users.page(&only_wrong).await.unwrap();
        assert_eq!((page.records.len(), page.problems.len()), (0, 1));
    }
}
