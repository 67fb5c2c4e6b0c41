//! System 5, point by point.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use keyloom::engine::{Area, Direction, Range, Space};
use keyloom::{ErrorKind, Query, Store};
use patterns::Patterns;
use serde_json::json;

async fn everywhere() -> (Vec<(Store, Patterns)>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for address in ["memory:".to_owned(), format!("file:{}", folder.path().display())] {
        let store = Store::open(&address).await.unwrap();
        let patterns = Patterns::open(&store).await.unwrap();
        all.push((store, patterns));
    }
    (all, folder)
}

/// Every key of the default area with its value.
async fn keys(store: &Store) -> Vec<(String, String)> {
    let range = Range::all(Area::default_area());
    let found = store.engine().scan(&Space::main(), &[range], 1_000, Direction::Forward).await;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    found.unwrap()[0]
        .rows
        .iter()
        .map(|row| (text(&row.key), text(row.cell.bytes().unwrap())))
        .collect()
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[tokio::test]
async fn a_post_is_owned_by_one_and_found_by_all() {
    for (store, it) in everywhere().await.0 {
        let post =
            it.publish(("ana", "p1"), 1_700_000_000_000, &["rust", "keys"], "text").await.unwrap();
        let entry = r#"{"postId":"p1","userId":"ana"}"#;
        assert_eq!(
            keys(&store).await,
            [
                pair("shared:posts:by_tag:keys:p1", entry),
                pair("shared:posts:by_tag:rust:p1", entry),
                pair("shared:posts:recent:1700000000000:p1", entry),
                pair("user:ana:posts:p1", std::str::from_utf8(post.text()).unwrap()),
            ]
        );
        assert_eq!(it.tagged("rust").await.unwrap().records[0].key, "user:ana:posts:p1");
        it.retract("ana", "p1").await.unwrap();
        assert!(keys(&store).await.is_empty(), "deleting a record leaves no entry");
    }
}

#[tokio::test]
async fn two_users_posts_with_one_id_never_overwrite_each_other() {
    for (store, it) in everywhere().await.0 {
        it.publish(("ana", "p1"), 1_700_000_000_000, &["rust"], "Ana's").await.unwrap();
        let before = keys(&store).await;
        for (timestamp, tags) in [(1_700_000_000_000, &[][..]), (5, &["rust"])] {
            let clash = it.publish(("ben", "p1"), timestamp, tags, "Ben's").await.unwrap_err();
            assert_eq!(clash.kind(), ErrorKind::UniqueConflict);
            assert_eq!(clash.context_value("held by"), Some("user:ana:posts:p1"));
        }
        assert_eq!(keys(&store).await, before);
    }
}

#[tokio::test]
async fn listing_is_paged_by_cursor() {
    for (_, it) in everywhere().await.0 {
        for n in 0..25 {
            it.publish(("ana", &format!("p{n}")), 1_000 + n, &[], "").await.unwrap();
        }
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page = it.recent(10, cursor.as_deref()).await.unwrap();
            found.extend(page.records.iter().map(|post| post.value["timestamp"].as_u64().unwrap()));
            match page.next {
                Some(next) => cursor = Some(next.to_string()),
                None => break,
            }
        }
        assert_eq!(found, (1_000..1_025).rev().collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn changing_the_e_mail_moves_the_claim() {
    for (store, it) in everywhere().await.0 {
        it.users.insert(&json!({ "userId": "ana", "email": "old@x" })).await.unwrap();
        assert!(keys(&store).await.contains(&pair("index:email:old@x", "\"ana\"")));
        it.users.replace(&json!({ "userId": "ana", "email": "new@x" })).await.unwrap();
        assert!(it.by_email("old@x").await.unwrap().is_none());
        assert_eq!(it.by_email("new@x").await.unwrap().unwrap().key, "user:ana");
        it.users.insert(&json!({ "userId": "ben", "email": "old@x" })).await.unwrap();
        let taken =
            it.users.insert(&json!({ "userId": "eve", "email": "new@x" })).await.unwrap_err();
        assert_eq!(taken.context_value("held by"), Some("user:ana"));
    }
}

#[tokio::test]
async fn the_range_of_one_owner_never_holds_a_key_of_another() {
    let hostile = [
        "ana",
        "ana:",
        "ana:notes",
        "ana%3A",
        "ana:notes:n1",
        "an",
        "anb",
        ".",
        "..",
        "",
        "%",
        "\u{0}",
    ];
    for (_, it) in everywhere().await.0 {
        for user in hostile {
            for note in ["n1", "n:2"] {
                let note = json!({ "userId": user, "noteId": note });
                it.notes.insert(&note).await.unwrap();
            }
        }
        for user in hostile {
            let own = it.notes.page(&Query::new().equal("userId", user)).await.unwrap().records;
            assert_eq!(own.len(), 2, "{user:?}");
            assert!(own.iter().all(|note| note.value["userId"] == user));
        }
    }
}

#[tokio::test]
async fn the_plain_layouts_are_byte_for_byte() {
    for (store, it) in everywhere().await.0 {
        it.users.insert(&json!({ "userId": "ana" })).await.unwrap();
        it.notes.insert(&json!({ "userId": "ana", "noteId": "n1" })).await.unwrap();
        for (collection, record) in [
            ("preferences", json!({ "userId": "ana", "dark": true })),
            ("session", json!({ "userId": "ana", "sessionId": "s1" })),
            ("template", json!({ "name": "welcome" })),
            ("config", json!({ "name": "limits" })),
            ("stats", json!({ "name": "daily" })),
        ] {
            store.documents(collection).await.unwrap().insert(&record).await.unwrap();
        }
        let found: Vec<String> = keys(&store).await.into_iter().map(|(key, _)| key).collect();
        assert_eq!(
            found,
            [
                "shared:config:limits",
                "shared:stats:daily",
                "shared:templates:welcome",
                "user:ana",
                "user:ana:notes:n1",
                "user:ana:preferences",
                "user:ana:sessions:s1",
            ]
        );
    }
}

#[tokio::test]
async fn nearby_looks_across_the_borders_of_cells() {
    for (store, it) in everywhere().await.0 {
        for (id, lat, lng) in
            [("west", 48.8566, 2.3510), ("east", 48.8566, 2.3560), ("far", 49.5, 2.35)]
        {
            let place = json!({ "id": id, "position": { "lat": lat, "lng": lng } });
            it.locations.insert(&place).await.unwrap();
        }
        let cells: Vec<String> = keys(&store)
            .await
            .into_iter()
            .filter_map(|(key, value)| {
                let cell = key.strip_prefix("index:geo:")?;
                assert_eq!(value, format!("{:?}", cell[7..].to_owned()));
                Some(cell[..6].to_owned())
            })
            .collect();
        assert_eq!(cells.len(), 3);
        let near = it.nearby(48.8566, 2.3512, 1_000.0).await.unwrap().records;
        let ids: Vec<&str> =
            near.iter().map(|place| place.record.value["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["west", "east"]);
        assert!(near[0].distance_m < near[1].distance_m);
    }
}

#[tokio::test]
async fn a_user_never_reaches_anothers_keys() {
    for (store, it) in everywhere().await.0 {
        let ana = json!({ "userId": "ana", "noteId": "n1", "text": "secret" });
        it.notes.insert(&ana).await.unwrap();
        it.publish(("ana", "p1"), 5, &[], "for all").await.unwrap();
        let before = keys(&store).await;
        let ids = ["n1", "../ana/n1", "ana:notes:n1", "user:ana:notes:n1", "%3A", "", "\0"];
        for user in ["ben", "an", "ana1", "ana:notes", "ana%3Anotes", ".", "..", "\0", "аna"] {
            let notes = it.notes.acting_as(user).unwrap();
            for id in ids {
                for key in [vec![json!(id)], vec![json!("ana"), json!(id)]] {
                    assert!(notes.get(key.clone()).await.unwrap().is_none(), "{user:?} {id:?}");
                    assert!(notes.delete(key).await.unwrap().is_none(), "{user:?} {id:?}");
                }
            }
            assert!(it.notes_of(user).await.unwrap().records.is_empty());
            assert_eq!(notes.insert(&ana).await.unwrap_err().kind(), ErrorKind::Forbidden);
            let error = it.posts.acting_as(user).unwrap().delete(("ana", "p1")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Forbidden);
            let seen = store.acting_as(user).unwrap().plain().list("user:", 9, None).await.unwrap();
            let seen: Vec<_> = seen.entries.iter().map(|entry| &entry.key[..]).collect();
            assert_eq!(seen, [b"user:ana:posts:p1"], "{user:?}");
        }
        assert_eq!(keys(&store).await, before);
    }
}
