//! Witnesses: while one stands, another read gives the same. An engine may give none.

use bytes::Bytes;

use super::super::{
    Area, Cut, Direction, EngineExt, Entry, Link, Part, Range, Recipe, Stretch, Witness,
};
use super::runner::{Check, checks};
use super::subject::{Subject, at, delete, put, space};

pub(super) fn checks() -> Vec<Check> {
    checks![
        every_change_of_what_was_read_fells_its_witness,
        answers_stay_the_same_while_their_witnesses_stand,
    ]
}

/// From `i:NAME:NUMBER` to `r:NAME`.
fn recipe() -> Recipe {
    let begin = Part::Literal(Bytes::from_static(b"r:"));
    let cuts = vec![Cut::Fixed(2), Cut::Until(b':')];
    Recipe { area: Area::default_area(), cuts, parts: vec![begin, Part::Field(1)] }
}

fn entries() -> Range {
    Range::prefix(Area::default_area(), "i:")
}

async fn follow(it: &Subject, limit: usize, direction: Direction) -> Stretch<Link> {
    let found = it.engine.follow_one(&space(), &entries(), limit, direction, &recipe()).await;
    found.expect("a follow succeeds")
}

fn stands(witness: &Option<Witness>) -> bool {
    witness.as_ref().is_some_and(Witness::stands)
}

async fn every_change_of_what_was_read_fells_its_witness(it: Subject) {
    let changes: [fn() -> Entry; 7] = [
        || put(at("i:a:1"), "another entry"),
        || put(at("i:a:2"), "a new entry"),
        || put(at("i:"), "the very first entry"),
        || delete(at("i:b:1")),
        || put(at("r:a"), "another record"),
        || delete(at("r:b")),
        || put(at("i:c:9"), "the entry that tells that there is more"),
    ];
    for change in changes {
        for direction in [Direction::Forward, Direction::Backward] {
            let before = [("i:a:1", "x"), ("i:b:1", "x"), ("i:c:1", "x"), ("i:c:9", "x")];
            let records = [("r:a", "a"), ("r:b", "b"), ("r:c", "c")];
            let all = before.iter().chain(&records);
            let mut entries: Vec<Entry> = all.map(|(key, value)| put(at(key), value)).collect();
            entries.extend(["i:a:2", "i:"].map(|key| delete(at(key))));
            it.apply(entries).await;
            // An engine may begin to remember only with the first reader.
            drop(follow(&it, 3, direction).await);
            let (few, all) = (follow(&it, 3, direction).await, follow(&it, 100, direction).await);
            it.apply(vec![change()]).await;
            let now = follow(&it, 100, direction).await;
            assert_ne!(now, all, "the change shows");
            assert!(!stands(&all.witness), "whoever read everything read this too");
            assert!(!stands(&few.witness) || follow(&it, 3, direction).await == few);
        }
    }
}

async fn answers_stay_the_same_while_their_witnesses_stand(mut it: Subject) {
    let mut seen: Vec<(usize, Direction, Stretch<Link>)> = Vec::new();
    let names = ["a", "b", "c", "d"];
    for _ in it.effort(300).rounds() {
        let name = *it.random.pick(&names);
        let number = it.random.below(3);
        let key = match it.random.below(3) {
            0 => format!("r:{name}"),
            1 => format!("other:{name}"),
            _ => format!("i:{name}:{number}"),
        };
        let entry = match it.random.below(3) {
            0 => delete(at(key)),
            _ => put(at(key), it.random.below(1_000).to_string()),
        };
        it.apply(vec![entry]).await;
        for (limit, direction, read) in &seen {
            if stands(&read.witness) {
                assert_eq!(follow(&it, *limit, *direction).await, *read);
            }
        }
        seen.retain(|(_, _, read)| stands(&read.witness));
        let limit = 1 + it.random.below(8);
        let direction = *it.random.pick(&[Direction::Forward, Direction::Backward]);
        let read = follow(&it, limit, direction).await;
        seen.push((limit, direction, read));
    }
}
