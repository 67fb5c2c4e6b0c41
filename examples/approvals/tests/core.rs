//! System 1, point by point.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use approvals::{Approval, Approvals, Decision, Status};
use keyloom::engine::{
    Address, Area, Batch, Direction, Effect, Embedded, EmbeddedOptions, Engine, EngineExt, Memory,
    Metered, Range, Space, Stamp, Usage,
};
use keyloom::{ErrorKind, Id, Store};

struct Subject {
    approvals: Approvals,
    meter: Arc<Metered>,
    _folder: tempfile::TempDir,
}

impl Subject {
    async fn all() -> Vec<Subject> {
        let mut all = Vec::new();
        for embedded in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let engine: Arc<dyn Engine> = match embedded {
                true => {
                    Arc::new(Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap())
                }
                false => Arc::new(Memory::new()),
            };
            let meter = Arc::new(Metered::new(engine));
            let approvals = Approvals::open(&Store::on(meter.clone())).await.unwrap();
            meter.take();
            all.push(Subject { approvals, meter, _folder: folder });
        }
        all
    }

    /// What the engine did since it was last asked.
    fn usage(&self) -> (u64, u64, u64, u64) {
        let Usage { commits, gets, follows, scans, .. } = self.meter.take();
        (commits, gets, follows, scans)
    }

    async fn keys(&self) -> Vec<(String, String)> {
        let all = Range::all(Area::default_area());
        let rows =
            self.meter.scan_all(&Space::main(), &all, 1_000, Direction::Forward).await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        rows.iter().map(|row| (text(&row.key), text(row.cell.bytes().unwrap()))).collect()
    }
}

fn approval(number: u32, requester: &str, approver: &str) -> Approval {
    Approval {
        id: format!("{number:026}").parse::<Id>().unwrap(),
        requester_id: requester.to_owned(),
        approver_id: approver.to_owned(),
        created_at: (1_674_950_787_234 + i64::from(number)).into(),
        code: None,
        status: Status::Pending,
        text: "please".to_owned(),
    }
}

#[tokio::test]
async fn saving_writes_the_four_keys_exactly_in_one_commit_without_a_read() {
    for it in Subject::all().await {
        let mut asked = approval(0, "ana", "ben");
        asked.code = Some("A-X7K9Q2".to_owned());
        it.approvals.save(&asked).await.unwrap();
        assert_eq!(it.usage(), (1, 0, 0, 0));
        let id = "00000000000000000000000000";
        let record = format!(
            r#"{{"id":"{id}","requester_id":"ana","approver_id":"ben","created_at":1674950787234,"code":"A-X7K9Q2","status":"pending","text":"please"}}"#
        );
        let held = format!("\"{id}\"");
        assert_eq!(
            it.keys().await,
            [
                ("approval:code:A-X7K9Q2".to_owned(), held.clone()),
                (format!("approval:index:approver:ben:8325049212765:{id}"), held.clone()),
                (format!("approval:index:requester:ana:8325049212765:{id}"), held),
                (format!("approval:record:{id}"), record),
            ]
        );
    }
}

#[tokio::test]
async fn each_list_is_one_follow_newest_first() {
    for it in Subject::all().await {
        for number in 0..30 {
            let (requester, approver) =
                [("ana", "ben"), ("ben", "ana"), ("ana", "ana")][number as usize % 3];
            it.approvals.save(&approval(number, requester, approver)).await.unwrap();
        }
        it.meter.take();
        let requests = it.approvals.requests_of("ana", None).await.unwrap();
        assert_eq!(it.usage(), (0, 0, 1, 0));
        let decisions = it.approvals.decisions_of("ana", None).await.unwrap();
        assert_eq!(it.usage(), (0, 0, 1, 0));
        let first = it.approvals.all_of("ana", None).await.unwrap();
        assert_eq!(it.usage(), (0, 0, 1, 0), "a union of two indexes is one round trip too");
        let second = it.approvals.all_of("ana", first.next.clone()).await.unwrap();
        for (records, count) in [(requests.records, 20), (decisions.records, 20)] {
            assert_eq!(records.len(), count);
            assert!(records.is_sorted_by(|a, b| a.created_at > b.created_at));
        }
        let merged: Vec<_> = first.records.into_iter().chain(second.records).collect();
        assert_eq!(merged.len(), 30, "no duplicates, none missing");
        assert!(merged.is_sorted_by(|a, b| a.created_at > b.created_at));
    }
}

#[tokio::test]
async fn a_list_costs_what_the_user_has_not_what_the_store_holds() {
    for it in Subject::all().await {
        for number in 0..500 {
            it.approvals
                .save(&approval(number, &format!("u{}", number % 100), "boss"))
                .await
                .unwrap();
        }
        it.meter.take();
        assert_eq!(it.approvals.requests_of("u7", None).await.unwrap().records.len(), 5);
        let usage = it.meter.take();
        assert_eq!(usage.cells_read, 11, "five entries, five records, and the schema's epoch");
    }
}

#[tokio::test]
async fn by_code_and_by_id_take_one_read_each() {
    for it in Subject::all().await {
        let saved = it.approvals.save(&approval(1, "ana", "ben")).await.unwrap();
        let code = saved.code.clone().unwrap();
        let drawn = code.strip_prefix("A-").unwrap();
        assert!(
            drawn.len() == 6
                && drawn.bytes().all(|byte| b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ".contains(&byte))
        );
        it.meter.take();
        assert_eq!(it.approvals.by_code(&code).await.unwrap().unwrap().value, saved);
        assert_eq!(it.usage(), (0, 0, 1, 0), "a walk that follows one key");
        assert_eq!(it.approvals.by_id(saved.id.as_str()).await.unwrap().unwrap().value, saved);
        assert_eq!(it.usage(), (0, 1, 0, 0));
        assert!(it.approvals.by_code("A-222222").await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_status_change_rewrites_the_record_only() {
    for it in Subject::all().await {
        let saved = it.approvals.save(&approval(1, "ana", "ben")).await.unwrap();
        let code = saved.code.unwrap();
        let before = it.keys().await;
        it.meter.take();
        it.approvals.decide("ben", &code, Decision::Approve).await.unwrap();
        let usage = it.meter.take();
        assert_eq!((usage.commits, usage.entries_written), (1, 1));
        let after = it.keys().await;
        let keys = |pairs: &[(String, String)]| {
            pairs.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>()
        };
        assert_eq!(keys(&before), keys(&after));
        assert_eq!(before[..3], after[..3]);
        let listed = it.approvals.requests_of("ana", None).await.unwrap();
        assert_eq!(listed.records[0].status, Status::Approved);
    }
}

#[tokio::test]
async fn only_pending_ones_change_and_only_by_whom_it_concerns() {
    for it in Subject::all().await {
        let code = it.approvals.save(&approval(1, "ana", "ben")).await.unwrap().code.unwrap();
        for (user, decision) in
            [("ana", Decision::Approve), ("eve", Decision::Deny), ("ben", Decision::Cancel)]
        {
            let refused = it.approvals.decide(user, &code, decision).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Aborted);
        }
        it.approvals.decide("ana", &code, Decision::Cancel).await.unwrap();
        for decision in [Decision::Approve, Decision::Deny] {
            let late = it.approvals.decide("ben", &code, decision).await.unwrap_err();
            assert_eq!(late.kind(), ErrorKind::IllegalTransition);
        }
    }
}

#[tokio::test]
async fn a_code_that_the_caller_chose_and_that_is_taken_is_a_conflict() {
    for it in Subject::all().await {
        let first = it.approvals.save(&approval(1, "ana", "ben")).await.unwrap();
        let again = Approval { code: first.code, ..approval(2, "ana", "ben") };
        let taken = it.approvals.save(&again).await.unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::UniqueConflict);
        let held_by = format!("approval:record:{}", first.id);
        assert_eq!(taken.context_value("held by"), Some(held_by.as_str()));
    }
}

#[tokio::test]
async fn a_list_goes_on_past_a_record_that_cannot_be_read_and_says_so() {
    for it in Subject::all().await {
        for number in 0..3 {
            it.approvals.save(&approval(number, "ana", "ben")).await.unwrap();
        }
        let broken = "approval:record:00000000000000000000000001";
        let mut batch = Batch::new(Space::main());
        let garbage = Effect::Put { stamp: Stamp([1; 24]), bytes: "{not json".into() };
        batch.push(Address::new(Area::default_area(), broken), None, Some(garbage));
        it.meter.commit(batch).await.unwrap();
        let listed = it.approvals.requests_of("ana", None).await.unwrap();
        assert_eq!(listed.records.len(), 2);
        assert_eq!(listed.problems.len(), 1);
        assert_eq!(listed.problems[0].key, broken);
    }
}
