//! Verify finds every planted fault and nothing else; repair mends what can be mended.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod index_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use index_support::{Clients, Dice, Meddled, dump, is_record, memory_store, peek, plant, schema};
use keyloom::engine::{
    Address, Area, Batch, Effect, Embedded, EmbeddedOptions, Engine, EngineExt, Memory, Space,
    Stamp, Torn,
};
use keyloom::{
    Finding, FindingKind, Query, Repair, RepairOptions, Store, Verification, VerifyOptions,
};
use proptest::prelude::*;
use serde_json::json;

async fn ana(store: &Store) {
    let users = store.documents("user").await.unwrap();
    let ana = json!({
        "id": "u1", "email": "ana@example.org", "name": "ana", "score": 1.5, "status": "active",
        "tags": ["x", "y", "x"], "steps": { "wait": { "at": 1_000 } },
        "place": { "lat": 52.5, "lng": 13.4 },
    });
    users.insert(&ana).await.unwrap();
    let ben = json!({ "id": "u2", "email": "ben@example.org", "name": "ben" });
    users.insert(&ben).await.unwrap();
}

/// The one finding of a store that has one fault.
async fn only_finding(store: &Store) -> Finding {
    let verification = store.verify().await.unwrap();
    assert_eq!(verification.counts.total(), 1, "{:?}", verification.findings);
    assert_eq!(verification.counts.of(verification.findings[0].kind), 1);
    verification.findings.into_iter().next().unwrap()
}

async fn assert_clean(store: &Store) -> Verification {
    let verification = store.verify().await.unwrap();
    assert!(verification.is_clean(), "{:#?}", verification.findings);
    verification
}

/// Mends the one fault, and gives what the repair said.
async fn mend(store: &Store) -> Repair {
    let before = dump(store).await;
    let dry = RepairOptions { dry_run: true, ..RepairOptions::default() };
    let would = store.repair(&dry).await.unwrap();
    assert_eq!(dump(store).await, before, "a dry run writes nothing");
    let did = store.repair(&RepairOptions::default()).await.unwrap();
    assert_eq!((&would.mended, &would.left), (&did.mended, &did.left), "a dry run tells the same");
    did
}

#[tokio::test]
async fn a_clean_store_is_clean() {
    let store = memory_store().await;
    assert_eq!(assert_clean(&store).await.records, 0);
    ana(&store).await;
    let verification = assert_clean(&store).await;
    assert_eq!((verification.records, verification.entries), (2, 9 + 3));
    assert_eq!(verification.unsettled, 0);
}

#[tokio::test]
async fn a_store_without_a_schema_is_clean() {
    let store = Store::on(Arc::new(Memory::new()));
    assert_clean(&store).await;
    let repair = store.repair(&RepairOptions::default()).await.unwrap();
    assert_eq!(repair.mended_counts.total() + repair.left_counts.total(), 0);
}

/// One fault of every form that can be mended, in every kind of index.
#[tokio::test]
async fn every_fault_is_found_and_mended() {
    use FindingKind::{Dangling, Missing, Wrong};
    let geo = "index:geo:u33d8v:u1";
    let full = r#"{"id":"u1","name":"ana","old":true}"#;
    let faults: &[(&str, &str, Option<&str>, FindingKind, &str)] = &[
        ("", "index:email:ana@example.org", None, Missing, "email"),
        ("", "index:tag:x:u1", None, Missing, "tag"),
        ("", "index:step:0000000001000:u1:wait", None, Missing, "step"),
        ("", geo, None, Missing, "place"),
        ("cards", "card:ana:u1", None, Missing, "card"),
        ("cards", "full:ana:u1", None, Missing, "full"),
        ("", "index:email:old@example.org", Some(r#""u1""#), Wrong, "email"),
        ("", "index:email:old@example.org", Some(r#""u9""#), Dangling, "email"),
        ("", "index:tag:z:u1", Some(r#""u1""#), Wrong, "tag"),
        ("", "index:tag:x:u9", Some(r#""u9""#), Dangling, "tag"),
        ("", "index:tag:x:u1", Some(r#""u2""#), Wrong, "tag"),
        ("", "index:tag:x:u1", Some("not JSON"), Wrong, "tag"),
        ("", "index:step:0000000001000:u1:other", Some(r#""u1""#), Wrong, "step"),
        ("", "index:geo:u33d8p:u1", Some(r#""u1""#), Wrong, "place"),
        ("cards", "card:ana:u1", Some(r#"{"id":"u1","name":"old","status":null}"#), Wrong, "card"),
        ("cards", "full:ana:u1", Some(full), Wrong, "full"),
        ("cards", "full:ana:u3", Some(r#"{"id":"u3","name":"ana"}"#), Dangling, "full"),
        ("events-index", "day:2024-01-01:arn:x", Some(r#""arn:x""#), Dangling, "day"),
    ];
    for (area, key, value, kind, index) in faults {
        let store = memory_store().await;
        ana(&store).await;
        let sound = dump(&store).await;
        plant(&store, area, *key, *value).await;
        let finding = only_finding(&store).await;
        assert_eq!(
            (finding.kind, finding.area.as_str(), finding.key.as_str(), finding.index.as_deref()),
            (*kind, *area, *key, Some(*index)),
            "{finding}"
        );
        let repair = mend(&store).await;
        assert_eq!((repair.mended, repair.left), (vec![finding], vec![]));
        assert_clean(&store).await;
        assert_eq!(dump(&store).await, sound, "{key}");
        let again = store.repair(&RepairOptions::default()).await.unwrap();
        assert_eq!(again.mended_counts.total(), 0, "nothing is left to mend");
    }
}

/// An entry that carries the record is read instead of it, and its stamp is given out as the
/// record's version: with another one nobody could write what a page showed.
#[tokio::test]
async fn an_entry_that_carries_the_record_has_its_version() {
    let (key, area) = ("full:ana:u1", Area::new("cards").unwrap());
    for is_stamped in [true, false] {
        for is_whole in [true, false] {
            if is_stamped && is_whole {
                continue;
            }
            let store = memory_store().await;
            ana(&store).await;
            let address = Address::new(area.clone(), key);
            let cell = store.engine().get_one(&Space::main(), &address).await.unwrap().unwrap();
            let whole = cell.bytes().unwrap().clone();
            let old = r#"{"id":"u1","name":"ana","old":true}"#.into();
            let stamp = if is_stamped { cell.stamp } else { Stamp([7; Stamp::BYTES]) };
            let bytes = if is_whole { whole } else { old };
            let mut batch = Batch::new(Space::main());
            batch.push(address.clone(), None, Some(Effect::Put { stamp, bytes }));
            store.engine().commit(batch).await.unwrap();

            let finding = only_finding(&store).await;
            assert_eq!((finding.kind, finding.key.as_str()), (FindingKind::Wrong, key));
            let repair = mend(&store).await;
            assert_eq!((repair.mended, repair.left), (vec![finding], vec![]));
            assert_clean(&store).await;
            let mended = store.engine().get_one(&Space::main(), &address).await.unwrap();
            assert_eq!(mended, Some(cell), "{is_stamped} {is_whole}");
            let users = store.documents("user").await.unwrap();
            let query = Query::new().index("full").equal("name", "ana");
            let shown = users.page(&query).await.unwrap().records.remove(0);
            users.replace_if(&shown.value, shown.version).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_partial_index_wants_entries_of_its_records_only() {
    let store = memory_store().await;
    let users = store.documents("user").await.unwrap();
    users.insert(&json!({ "id": "u1", "name": "ana", "status": "blocked" })).await.unwrap();
    let active: Vec<String> = {
        let other = memory_store().await;
        let users = other.documents("user").await.unwrap();
        users.insert(&json!({ "id": "u1", "name": "ana", "status": "active" })).await.unwrap();
        let keys = dump(&other).await.into_keys().map(|(_, key)| key);
        keys.map(|key| String::from_utf8(key.to_vec()).unwrap())
            .filter(|key| key.starts_with("index:active"))
            .collect()
    };
    plant(&store, "", active[0].clone(), Some(r#""u1""#)).await;
    let finding = only_finding(&store).await;
    assert_eq!((finding.kind, finding.index.as_deref()), (FindingKind::Wrong, Some("active")));
    assert_eq!(finding.record.as_deref(), Some("user:u1"));
    mend(&store).await;
    assert_clean(&store).await;
}

/// What nobody can put right by itself is told and let be.
#[tokio::test]
async fn what_cannot_be_judged_is_reported_and_left() {
    use FindingKind::{Unknown, Unreadable};
    let faults = [
        ("", "user:u3", "not JSON", Unreadable),
        ("", "user:u3", "[]", Unreadable),
        ("", "user:u3", r#"{"id":"u4"}"#, Unreadable),
        ("", "user:u3", "{}", Unreadable),
        ("", "user:u3", r#"{"id":"u3","tags":"x"}"#, Unreadable),
        ("", "index:email:x", "not JSON", Unreadable),
        ("", "index:email:x", "7", Unreadable),
        ("", "shared:title:x", r#"{"id":"u1"}"#, Unreadable),
        ("", "user:u1:nodes:1", "{}", Unknown),
        ("", "user:u1:notes:x", "{}", Unknown),
        ("", "index:score:x", "{}", Unknown),
        ("", "index:geo:u33:u1", "{}", Unknown),
        ("cards", "card:", "{}", Unknown),
    ];
    for (area, key, value, kind) in faults {
        let store = memory_store().await;
        ana(&store).await;
        plant(&store, area, key, Some(value)).await;
        let planted = dump(&store).await;
        let finding = only_finding(&store).await;
        assert_eq!((finding.kind, finding.key.as_str()), (kind, key), "{finding}");
        let repair = mend(&store).await;
        assert_eq!((repair.mended, repair.left), (vec![], vec![finding]));
        assert_eq!(dump(&store).await, planted);
    }
}

#[tokio::test]
async fn keys_that_no_template_comes_near_are_nobodys_business() {
    let store = memory_store().await;
    for (area, key) in [("", "elsewhere"), ("", "index:"), ("cards", "user:u1"), ("x", "user:u1")] {
        plant(&store, area, key, Some("anything")).await;
    }
    let verification = assert_clean(&store).await;
    assert_eq!((verification.records, verification.entries), (0, 0));
}

#[tokio::test]
async fn a_record_that_vanished_leaves_dangling_entries() {
    let store = memory_store().await;
    ana(&store).await;
    plant(&store, "", "user:u1", None).await;
    let verification = store.verify().await.unwrap();
    assert_eq!((verification.counts.dangling, verification.counts.total()), (9, 9));
    let repair = mend(&store).await;
    assert_eq!(repair.mended_counts.dangling, 9);
    assert_eq!(assert_clean(&store).await.entries, 3);
}

#[tokio::test]
async fn a_record_that_changed_unseen_moves_its_entries() {
    let store = memory_store().await;
    ana(&store).await;
    let changed = r#"{"id":"u2","email":"new@example.org","name":"ben"}"#;
    plant(&store, "", "user:u2", Some(changed)).await;
    let counts = store.verify().await.unwrap().counts;
    // The claim is at another key, and the entry that holds the record holds the old one.
    assert_eq!((counts.missing, counts.wrong, counts.total()), (1, 2, 3));
    mend(&store).await;
    assert_clean(&store).await;
    let users = store.documents("user").await.unwrap();
    assert!(users.get_by("email", "new@example.org").await.unwrap().is_some());
    assert!(users.get_by("email", "ben@example.org").await.unwrap().is_none());
}

#[tokio::test]
async fn of_two_records_with_one_unique_value_one_is_left_without() {
    let store = memory_store().await;
    ana(&store).await;
    plant(&store, "", "user:u3", Some(r#"{"id":"u3","email":"ana@example.org"}"#)).await;
    let finding = only_finding(&store).await;
    assert_eq!(finding.kind, FindingKind::Missing);
    assert_eq!(finding.record.as_deref(), Some("user:u3"));
    assert!(finding.reason.contains("user:u1 holds"), "{finding}");
    let repair = mend(&store).await;
    assert_eq!((repair.mended, repair.left), (vec![], vec![finding]));
    // Once the first gives the value up, the second gets it.
    store.documents("user").await.unwrap().delete("u1").await.unwrap();
    mend(&store).await;
    assert_clean(&store).await;
    assert_eq!(
        peek(&store, "", "index:email:ana@example.org").await.unwrap().bytes().unwrap().as_ref(),
        br#""u3""#
    );
}

/// A claim that names a record without it does not keep the rightful one out.
#[tokio::test]
async fn a_stale_claim_passes_to_the_record_that_has_it() {
    for holder in ["u2", "u9"] {
        let store = memory_store().await;
        ana(&store).await;
        let sound = dump(&store).await;
        let stale = format!("{holder:?}");
        plant(&store, "", "index:email:ana@example.org", Some(&stale)).await;
        let counts = store.verify().await.unwrap().counts;
        assert_eq!((counts.missing, counts.total()), (1, 2), "{counts}");
        let repair = store.repair(&RepairOptions::default()).await.unwrap();
        assert!(repair.left.is_empty(), "{:?}", repair.left);
        assert_clean(&store).await;
        assert_eq!(dump(&store).await, sound);
    }
}

#[tokio::test]
async fn disabled_indexes_are_not_looked_at() {
    let store = memory_store().await;
    ana(&store).await;
    store.disable("user", "email").await.unwrap();
    plant(&store, "", "index:email:ana@example.org", None).await;
    plant(&store, "", "index:email:old@example.org", Some(r#""u9""#)).await;
    assert_eq!(assert_clean(&store).await.entries, 12 - 2);
    store.build("user", "email").await.unwrap();
    assert_eq!(assert_clean(&store).await.entries, 12);
}

#[tokio::test]
async fn findings_are_bounded_and_counted_and_can_be_streamed() {
    let store = memory_store().await;
    for n in 0..50 {
        plant(&store, "", format!("index:tag:x:u{n}"), Some(&format!(r#""u{n}""#))).await;
    }
    let options = VerifyOptions { findings_max: 7, chunk_keys: 4 };
    let verification = store.verify_with(&options).await.unwrap();
    assert_eq!((verification.findings.len(), verification.counts.dangling), (7, 50));
    let mut verifier = store.verifier(&options).await.unwrap();
    let (mut found, mut largest) = (0, 0);
    while let Some(chunk) = verifier.next_chunk().await.unwrap() {
        found += chunk.findings.len();
        largest = largest.max(chunk.findings.len());
    }
    assert_eq!((found, largest), (50, 4));
    let options = RepairOptions { verify: options, ..RepairOptions::default() };
    let repair = store.repair(&options).await.unwrap();
    assert_eq!((repair.mended.len(), repair.mended_counts.dangling), (7, 50));
    assert_clean(&store).await;
}

/// Operators run these beside everything else.
#[tokio::test]
async fn verify_and_repair_can_run_in_tasks() {
    let store = memory_store().await;
    ana(&store).await;
    plant(&store, "", "index:tag:x:u9", Some(r#""u9""#)).await;
    let other = store.clone();
    let repair =
        tokio::spawn(async move { other.repair(&RepairOptions::default()).await }).await.unwrap();
    assert_eq!(repair.unwrap().mended_counts.dangling, 1);
    let verification = tokio::spawn(async move { store.verify().await }).await.unwrap();
    assert!(verification.unwrap().is_clean());
}

fn on_one_thread(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever is written, the store is clean; whatever happens to entries, verify counts it
    /// exactly and repair brings every byte back.
    #[test]
    fn repair_restores_every_entry(seed: u64, times in 1_u64..120, chunk_keys in 1_usize..40) {
        on_one_thread(async {
            let store = memory_store().await;
            Clients::new(&store).await.act_often(seed, times, 30).await;
            let options = VerifyOptions { chunk_keys, ..VerifyOptions::default() };
            let verification = store.verify_with(&options).await.unwrap();
            assert!(verification.is_clean(), "{:#?}", verification.findings);
            let sound = dump(&store).await;
            let records = sound.keys().filter(|(area, key)| is_record(area, key)).count() as u64;
            assert_eq!(verification.records, records);
            assert_eq!(verification.entries, sound.len() as u64 - records);

            let mut dice = Dice::new(seed ^ 1);
            let (mut missing, mut wrong, mut dangling) = (0, 0, 0);
            for ((area, key), value) in &sound {
                if is_record(area, key) {
                    continue;
                }
                match dice.below(4) {
                    0 => {
                        plant(&store, area, key.clone(), None).await;
                        missing += 1;
                    }
                    // The entries of these name their record by the key alone.
                    1 if key.starts_with(b"index:tag") || key.starts_with(b"card:") => {
                        plant(&store, area, key.clone(), Some(r#""bogus""#)).await;
                        wrong += 1;
                    }
                    2 if key.starts_with(b"index:tag") || key.starts_with(b"index:geo") => {
                        let ghost = [key, &b"-ghost"[..]].concat();
                        let value = String::from_utf8_lossy(value).into_owned();
                        plant(&store, area, ghost, Some(&value)).await;
                        dangling += 1;
                    }
                    _ => {}
                }
            }
            let counts = store.verify_with(&options).await.unwrap().counts;
            assert_eq!((counts.missing, counts.wrong, counts.dangling), (missing, wrong, dangling));
            let options = RepairOptions { verify: options, ..RepairOptions::default() };
            let repair = store.repair(&options).await.unwrap();
            assert_eq!((repair.mended_counts, repair.left.len()), (counts, 0));
            assert_eq!(dump(&store).await, sound);
            assert_clean(&store).await;
        });
    }

    /// Entries that fit no record never survive, whatever happens to records.
    #[test]
    fn repair_follows_records_that_changed_unseen(seed: u64, times in 1_u64..80) {
        on_one_thread(async {
            let store = memory_store().await;
            Clients::new(&store).await.act_often(seed, times, 30).await;
            let mut dice = Dice::new(seed ^ 2);
            for (area, key) in dump(&store).await.into_keys() {
                if !is_record(&area, &key) || !key.starts_with(b"user:u") {
                    continue;
                }
                let id = std::str::from_utf8(&key["user:".len()..]).unwrap();
                if id.contains([':', '%']) {
                    continue;
                }
                let mut other = index_support::user(&mut dice, 30);
                other["id"] = id.into();
                // Two with one e-mail cannot be mended, and are not what this is about.
                other["email"] = format!("{id}@elsewhere.org").into();
                let text = other.to_string();
                plant(&store, "", key, (dice.below(3) > 0).then_some(text.as_str())).await;
            }
            let repair = store.repair(&RepairOptions::default()).await.unwrap();
            assert_eq!(repair.left, []);
            assert_clean(&store).await;
        });
    }
}

/// Two handles on one store: what happens through the second happens before the next commit of
/// the first.
async fn meddled() -> (Arc<Meddled>, Store, Store) {
    let memory: Arc<dyn Engine> = Arc::new(Memory::new());
    let meddled = Arc::new(Meddled::new(memory.clone()));
    let (first, second) = (Store::on(meddled.clone()), Store::on(memory));
    first.apply(&schema()).await.unwrap();
    ana(&first).await;
    (meddled, first, second)
}

/// Between the look and the mend the record changes, so that the mend would be a fault itself.
#[tokio::test]
async fn a_mend_rests_on_the_record_that_was_judged() {
    let faults = [
        // The entry is missing, and the record gives it up.
        ("index:tag:x:u1", None, json!({ "id": "u1", "tags": ["y"] })),
        // The entry is wrong, and the record takes it.
        ("index:tag:z:u1", Some(r#""u1""#), json!({ "id": "u1", "tags": ["z"] })),
        // The entry dangles, and its record is created.
        ("index:tag:z:u9", Some(r#""u9""#), json!({ "id": "u9", "tags": ["z"] })),
    ];
    for (key, value, record) in faults {
        let (meddled, first, second) = meddled().await;
        plant(&first, "", key, value).await;
        only_finding(&first).await;
        meddled.before_next_commit(async move {
            second.documents("user").await.unwrap().upsert(&record).await.unwrap();
        });
        let repair = first.repair(&RepairOptions::default()).await.unwrap();
        assert!(meddled.has_meddled(), "{key}");
        assert_eq!(repair.mended_counts.total() + repair.left_counts.total(), 0, "{key}");
        assert_clean(&first).await;
    }
}

/// Between the look and the mend somebody else takes the key.
#[tokio::test]
async fn a_mend_rests_on_the_entry_that_was_judged() {
    let (meddled, first, second) = meddled().await;
    plant(&first, "", "index:email:ana@example.org", None).await;
    meddled.before_next_commit(async move {
        let rival = json!({ "id": "u9", "email": "ana@example.org" });
        second.documents("user").await.unwrap().insert(&rival).await.unwrap();
    });
    let repair = first.repair(&RepairOptions::default()).await.unwrap();
    assert!(meddled.has_meddled());
    assert_eq!((repair.mended_counts.total(), repair.left_counts.missing), (0, 1));
    let finding = only_finding(&first).await;
    assert!(finding.reason.contains("user:u9 holds"), "{finding}");
}

/// The schema changes between the look and the mend, and the entry is no longer anybody's duty.
#[tokio::test]
async fn a_mend_rests_on_the_schema_that_was_judged_by() {
    let (meddled, first, second) = meddled().await;
    plant(&first, "", "index:tag:x:u1", None).await;
    meddled.before_next_commit(async move { second.disable("user", "tag").await.unwrap() });
    let repair = first.repair(&RepairOptions::default()).await.unwrap();
    assert!(meddled.has_meddled());
    assert_eq!(repair.mended_counts.total() + repair.left_counts.total(), 0);
    assert!(peek(&first, "", "index:tag:x:u1").await.is_none());
}

/// A record that comes before its entries in the order of keys meets a stale claim first.
#[tokio::test]
async fn a_stale_claim_gives_way_in_one_pass() {
    let text = "[collection.user]\nkey = \"a:{id}\"\nfields = { id = \"text\", email = \"text\" }\n\
                unique.email = { key = \"b:{email}\" }";
    for holder in [r#""u2""#, r#""u9""#] {
        let store = Store::on(Arc::new(Memory::new()));
        store.apply(&keyloom::Schema::from_toml(text).unwrap()).await.unwrap();
        let users = store.documents("user").await.unwrap();
        users.insert(&json!({ "id": "u1", "email": "x" })).await.unwrap();
        users.insert(&json!({ "id": "u2", "email": "y" })).await.unwrap();
        plant(&store, "", "b:x", Some(holder)).await;
        let repair = store.repair(&RepairOptions::default()).await.unwrap();
        assert_eq!((repair.mended_counts.total(), repair.left), (1, vec![]));
        assert_clean(&store).await;
        assert_eq!(users.get_by("email", "x").await.unwrap().unwrap().value["id"], "u1");
    }
}

/// Verifies again and again while writers go on; then repairs a store under the same load.
async fn live_with_writers(engine: Arc<dyn Engine>, times: u64) {
    let store = Store::on(engine);
    store.apply(&schema()).await.unwrap();
    let clients = Arc::new(Clients::new(&store).await);
    clients.act_often(0, times / 2, 40).await;
    let working = Arc::new(AtomicU64::new(3));
    let writers: Vec<_> = (1..=3)
        .map(|seed| {
            let (clients, working) = (clients.clone(), working.clone());
            tokio::spawn(async move {
                clients.act_often(seed, times, 40).await;
                working.fetch_sub(1, Ordering::Release);
            })
        })
        .collect();
    let options = VerifyOptions { chunk_keys: 16, ..VerifyOptions::default() };
    let mut rounds = 0;
    while working.load(Ordering::Acquire) > 0 {
        let verification = store.verify_with(&options).await.unwrap();
        assert!(verification.is_clean(), "{:#?}", verification.findings);
        rounds += 1;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(rounds > 1, "the writers were done before anything was verified");
    assert_clean(&store).await;
}

/// Plants faults and repairs them while writers go on: in the end nothing is wrong.
async fn mend_with_writers(engine: Arc<dyn Engine>, times: u64) {
    let store = Store::on(engine);
    store.apply(&schema()).await.unwrap();
    let clients = Arc::new(Clients::new(&store).await);
    clients.act_often(0, times, 40).await;
    for ((area, key), _) in dump(&store).await.into_iter().filter(|((area, key), _)| {
        !is_record(area, key) && key.len() % 2 == 0 && !key.starts_with(b"shared:")
    }) {
        plant(&store, &area, key, None).await;
    }
    for n in 0..40 {
        plant(&store, "", format!("index:tag:odd:u{n}"), Some(&format!(r#""u{n}""#))).await;
    }
    assert!(!store.verify().await.unwrap().is_clean());
    let writers: Vec<_> = (1..=3)
        .map(|seed| {
            let clients = clients.clone();
            tokio::spawn(async move { clients.act_often(seed, times, 40).await })
        })
        .collect();
    let options = RepairOptions {
        verify: VerifyOptions { chunk_keys: 16, ..VerifyOptions::default() },
        ..RepairOptions::default()
    };
    store.repair(&options).await.unwrap();
    for writer in writers {
        writer.await.unwrap();
    }
    // While an entry is missing, somebody else may take a unique value. Without such a clash one
    // more repair, with nobody in its way, leaves nothing.
    let last = store.repair(&options).await.unwrap();
    for finding in &last.left {
        assert_eq!(finding.kind, FindingKind::Missing, "{finding}");
        assert!(finding.reason.contains(" holds"), "{finding}");
    }
    let left = store.verify().await.unwrap();
    assert_eq!(left.findings, last.left);
}

fn embedded(folder: &tempfile::TempDir) -> Arc<dyn Engine> {
    Arc::new(Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_cause_no_false_alarm_in_memory() {
    live_with_writers(Arc::new(Memory::new()), 3_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_cause_no_false_alarm_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    live_with_writers(embedded(&folder), 300).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repair_converges_under_writers_in_memory() {
    mend_with_writers(Arc::new(Memory::new()), 2_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repair_converges_under_writers_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    mend_with_writers(embedded(&folder), 200).await;
}

/// Batches show cell by cell here, so that every look may see half of one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_cause_no_false_alarm_where_batches_are_torn() {
    live_with_writers(Arc::new(Torn::new(Arc::new(Memory::new()), 1)), 500).await;
}

#[tokio::test]
async fn writers_cause_no_false_alarm_where_batches_are_torn_on_one_thread() {
    live_with_writers(Arc::new(Torn::new(Arc::new(Memory::new()), 2)), 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repair_converges_under_writers_where_batches_are_torn() {
    mend_with_writers(Arc::new(Torn::new(Arc::new(Memory::new()), 3)), 300).await;
}
