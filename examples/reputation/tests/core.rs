//! System 2, point by point.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use keyloom::{ErrorKind, Store};
use reputation::Reputations;
use serde_json::json;

const U1: &str = "b068e9ee1c224edf9878440ab8b6c001";
const U2: &str = "b068e9ee1c224edf9878440ab8b6c002";
const T1: &str = "0c0ffee0c0ff4e0e80ffee0c0ffee0c0";
const T2: &str = "1c0ffee0c0ff4e0eb0ffee0c0ffee0c0";
const K1: &str = "aaaaaaaaaaaa4aaaaaaaaaaaaaaaaaaa";
const K2: &str = "bbbbbbbbbbbb4bbbbbbbbbbbbbbbbbbb";

async fn everywhere() -> (Vec<Reputations>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for address in ["memory:".to_owned(), format!("file:{}", folder.path().display())] {
        let store = Store::open(&address).await.unwrap();
        all.push(Reputations::open(&store).await.unwrap());
    }
    (all, folder)
}

#[tokio::test]
async fn keys_are_as_the_layout_says() {
    for it in everywhere().await.0 {
        let user = it.users.insert(&json!({ "user": U1 })).await.unwrap();
        assert_eq!(user.key, format!("usr_{U1}"));
        let tag = it.tags.insert(&json!({ "user": U1, "tag": T1 })).await.unwrap();
        assert_eq!(tag.key, format!("usr_{U1}_tag_{T1}"));
        // The same key text in another area is another document.
        let reputation = it.reputations.insert(&json!({ "user": U1, "tag": T1 })).await.unwrap();
        assert_eq!(reputation.key, tag.key);
        let vote = json!({ "user": U1, "tag": T1, "target": U2, "key": K1 });
        let vote = it.votes.insert(&vote).await.unwrap();
        assert_eq!(vote.key, format!("usr_{U1}_tag_{T1}_tar_{U2}_key_{K1}"));
    }
}

#[tokio::test]
async fn one_reputation_per_user_and_tag() {
    for it in everywhere().await.0 {
        it.reputations.insert(&json!({ "user": U1, "tag": T1, "points": 1 })).await.unwrap();
        let again = it.reputations.insert(&json!({ "user": U1, "tag": T1, "points": 2 })).await;
        assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(it.reputations.get((U1, T1)).await.unwrap().unwrap().value["points"], 1);
    }
}

#[tokio::test]
async fn anything_but_a_version_4_uuid_is_refused_with_its_place() {
    for it in everywhere().await.0 {
        for (wrong, place) in [
            ("b068e9ee1422edf7878440ab8b6", "32"),
            ("b068e9ee1c221edf9878440ab8b6c001", "13"),
            ("b068e9ee1c224edfc878440ab8b6c001", "17"),
            ("B068e9ee1c224edf9878440ab8b6c001", "lower-case"),
            ("b068e9ee-1c22-4edf-9878-440ab8b6c001", "32"),
            ("", "32"),
        ] {
            let written = it.users.insert(&json!({ "user": wrong })).await.unwrap_err();
            assert_eq!(written.kind(), ErrorKind::InvalidRecord);
            let asked = it.votes_by(wrong, T1).await.unwrap_err();
            assert_eq!(asked.kind(), ErrorKind::InvalidQuery);
            for error in [written, asked] {
                assert_eq!(error.context_value("field"), Some("user"));
                let reason = error.context_value("reason").unwrap();
                assert!(reason.contains(place), "{wrong}: {reason}");
            }
        }
    }
}

#[tokio::test]
async fn votes_by_a_user_and_votes_for_a_target() {
    for it in everywhere().await.0 {
        for (user, tag, target, key) in [
            (U1, T1, U2, K1),
            (U1, T1, U2, K2),
            (U1, T2, U2, K1),
            (U2, T1, U1, K1),
            (U2, T1, U2, K1),
        ] {
            let vote = json!({ "user": user, "tag": tag, "target": target, "key": key });
            it.votes.insert(&vote).await.unwrap();
        }
        assert_eq!(it.votes_by(U1, T1).await.unwrap().records.len(), 2);
        assert_eq!(it.votes_by(U2, T1).await.unwrap().records.len(), 2);
        assert_eq!(it.votes_by(U2, T2).await.unwrap().records.len(), 0);
        assert_eq!(it.votes_for(U2, T1).await.unwrap().records.len(), 3);
        assert_eq!(it.votes_for(U2, T2).await.unwrap().records.len(), 1);
        assert_eq!(it.votes_for(U1, T1).await.unwrap().records.len(), 1);
    }
}
