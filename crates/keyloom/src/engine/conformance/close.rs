//! Closing: acknowledged writes are kept, and later calls say that the store is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Barrier;

use super::super::{Area, Batch, Committed, Direction, Outcome, Range, Recipe, Trail};
use super::runner::{Check, checks};
use super::subject::{Subject, at, at_once, put, refused, space};
use crate::error::ErrorKind;

pub(super) fn checks() -> Vec<Check> {
    checks![every_call_fails_once_closed, writers_and_a_close_at_once]
}

async fn every_call_fails_once_closed(it: Subject) {
    it.apply(vec![put(at("k"), "v")]).await;
    it.engine.close().await.expect("closing succeeds");
    let range = [Range::all(Area::default_area())];
    let recipe = Recipe { area: Area::default_area(), cuts: Vec::new(), parts: Vec::new() };
    let trails = [Trail { range: range[0].clone(), recipe: &recipe }];
    let (space, forward) = (space(), Direction::Forward);
    for _ in 0..2 {
        refused(it.engine.get(&space, &[at("k")]).await, ErrorKind::Closed);
        refused(it.engine.scan(&space, &range, 1, forward).await, ErrorKind::Closed);
        refused(it.engine.follow(&space, &trails, 1, forward).await, ErrorKind::Closed);
        refused(it.try_commit(vec![put(at("k"), "w")]).await, ErrorKind::Closed);
        refused(it.engine.commit(Batch::new(space.clone())).await, ErrorKind::Closed);
        it.engine.close().await.expect("closing again succeeds");
    }
}

/// Each commit is either acknowledged or refused as closed; none hangs, and none is uncertain.
async fn writers_and_a_close_at_once(it: Subject) {
    const WRITERS: usize = 8;
    let start = Arc::new(Barrier::new(WRITERS + 1));
    let is_closed = Arc::new(AtomicBool::new(false));
    let writers = at_once((0..WRITERS).map(|writer| {
        let (engine, start, is_closed) = (it.engine.clone(), start.clone(), is_closed.clone());
        async move {
            start.wait().await;
            loop {
                let begins_after = is_closed.load(Ordering::Acquire);
                let mut batch = Batch::new(space());
                batch.entries.push(put(at(format!("{writer}")), "v"));
                match engine.commit(batch).await {
                    Ok(outcome) => {
                        assert_eq!(outcome, Outcome::Committed(Committed::default()));
                        assert!(!begins_after, "a closed store took a batch");
                    }
                    refusal => {
                        refused(refusal, ErrorKind::Closed);
                        return;
                    }
                }
                tokio::task::yield_now().await;
            }
        }
    }));
    let close = async {
        start.wait().await;
        it.engine.close().await.expect("closing succeeds");
        is_closed.store(true, Ordering::Release);
    };
    tokio::join!(writers, close);
}
