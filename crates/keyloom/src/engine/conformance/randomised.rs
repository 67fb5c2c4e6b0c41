//! Performs random operations, and compares each answer with the model's.

use bytes::Bytes;

use super::super::random::Random;
use super::super::{
    Addition, Address, Area, Batch, Condition, Cut, Direction, EngineExt, Entry, Fence, Link, Part,
    Position, Range, Recipe, Row, Space, Stretch, Trail, target_of,
};
use super::model::Model;
use super::runner::{Check, checks};
use super::subject::{Subject, adding, area, delete, put, stamp, when};

/// The number of operations, multiplied by the scale.
const OPERATIONS: usize = 2_000;

pub(super) fn checks() -> Vec<Check> {
    checks![random_operations_agree_with_the_model]
}

async fn random_operations_agree_with_the_model(mut it: Subject) {
    let mut model = Model::default();
    let keeps_log = it.engine.capabilities().keeps_log;
    for step in 0..OPERATIONS * it.scale {
        let random = &mut it.random;
        let space = random_space(random);
        match random.below(10) {
            0..5 => {
                let mut batch = random_batch(random, &model, space);
                let appends = keeps_log && random.chance(0.5);
                batch.append = appends.then(|| random_value(random).into());
                let expected = model.commit(&batch);
                let shown = format!("step {step}: {batch:?}");
                assert_eq!(it.engine.commit(batch).await.expect("a commit"), expected, "{shown}");
            }
            5..7 => {
                let addresses = random_addresses(random, 6);
                let found = it.engine.get(&space, &addresses).await.expect("a get succeeds");
                let expected = addresses.iter().map(|at| model.cell(&space, at).cloned());
                assert_eq!(found, expected.collect::<Vec<_>>(), "step {step}: get {addresses:?}");
            }
            7..9 => {
                let (ranges, limit, direction) = random_scan(random);
                let found = it.engine.scan(&space, &ranges, limit, direction).await;
                let found = found.expect("a scan succeeds");
                assert_eq!(found.len(), ranges.len());
                for (range, stretch) in ranges.iter().zip(found) {
                    let rows = model.rows(&space, range, direction);
                    agree(stretch, &rows, limit, &format!("step {step}: scan {range:?}"));
                }
            }
            _ => {
                let (ranges, limit, direction) = random_scan(random);
                let recipes: Vec<Recipe> = ranges.iter().map(|_| random_recipe(random)).collect();
                let trail = |(range, recipe): (&Range, _)| Trail { range: range.clone(), recipe };
                let trails: Vec<Trail<'_>> = ranges.iter().zip(&recipes).map(trail).collect();
                let found = it.engine.follow(&space, &trails, limit, direction).await;
                let found = found.expect("a follow succeeds");
                assert_eq!(found.len(), ranges.len());
                for (Trail { range, recipe }, stretch) in trails.iter().zip(found) {
                    let rows = model.rows(&space, range, direction);
                    let links: Vec<Link> =
                        rows.into_iter().map(|row| link(&model, &space, recipe, row)).collect();
                    agree(stretch, &links, limit, &format!("step {step}: follow {range:?}"));
                }
            }
        }
    }
    for space in SPACES.map(|name| Space::new(name).expect("a valid name")) {
        for area in areas() {
            let range = Range::all(area);
            let found = it.engine.scan_all(&space, &range, 7, Direction::Backward).await;
            let expected = model.rows(&space, &range, Direction::Backward);
            assert_eq!(found.expect("a scan succeeds"), expected, "at the end, {range:?}");
        }
        if keeps_log {
            let found = it.engine.read_log(&space, Position::FIRST, usize::MAX, usize::MAX).await;
            let found = found.expect("the log is read").entries;
            assert_eq!(found, model.log(&space), "at the end, the log");
        }
    }
}

/// An engine may stop before the limit, but then says so.
fn agree<R: PartialEq + std::fmt::Debug>(
    found: Stretch<R>,
    expected: &[R],
    limit: usize,
    what: &str,
) {
    let count = found.rows.len();
    assert!(count <= limit.min(expected.len()), "{what}, limit {limit}: too many, {found:?}");
    assert_eq!(found.rows, expected[..count], "{what}, limit {limit}");
    if limit > 0 {
        assert!(found.more || count == expected.len(), "{what}, limit {limit}: ends early");
    }
    assert!(!found.more || count > 0, "{what}, limit {limit}: nothing to continue from");
}

fn link(model: &Model, space: &Space, recipe: &Recipe, entry: Row) -> Link {
    let target = target_of(recipe, &entry);
    let record = target.as_ref().and_then(|target| model.cell(space, target)).cloned();
    Link { entry, target: target.map(|target| target.key), record }
}

const SPACES: [&str; 2] = ["one", "two"];

fn random_space(random: &mut Random) -> Space {
    Space::new(SPACES[random.below(SPACES.len())]).expect("a valid name")
}

fn areas() -> [Area; 3] {
    [Area::default_area(), area("a"), Area::own()]
}

/// A few short keys, so that operations collide.
fn random_key(random: &mut Random) -> Bytes {
    let length = 1 + random.below(3);
    (0..length).map(|_| *random.pick(&[0x00, b'a', b'b', 0xff])).collect::<Vec<u8>>().into()
}

fn random_address(random: &mut Random) -> Address {
    Address::new(random.pick(&areas()).clone(), random_key(random))
}

fn random_addresses(random: &mut Random, count_max: usize) -> Vec<Address> {
    (0..random.below(count_max + 1)).map(|_| random_address(random)).collect()
}

fn random_batch(random: &mut Random, model: &Model, space: Space) -> Batch {
    let mut batch = Batch::new(space);
    if random.chance(0.2) {
        let address = random_address(random);
        let current = model.cell(&batch.space, &address).map(|cell| cell.stamp);
        let stamp = current.filter(|_| random.chance(0.8)).unwrap_or_else(stamp);
        batch.fence = Some(Fence { address, stamp });
    }
    for address in random_addresses(random, 8) {
        let is_fence = batch.fence.as_ref().is_some_and(|fence| fence.address == address);
        if !is_fence && batch.entries.iter().all(|entry| entry.address != address) {
            let entry = random_entry(random, model, &batch.space, address);
            batch.entries.push(entry);
        }
    }
    batch
}

fn random_entry(random: &mut Random, model: &Model, space: &Space, address: Address) -> Entry {
    let found = model.cell(space, &address);
    // Usually a condition that holds, since one failed condition hides everything else in the
    // batch.
    let condition = random.chance(0.5).then(|| match (found, random.chance(0.9)) {
        (Some(cell), true) if random.chance(0.7) => Condition::Unchanged(cell.stamp),
        (Some(_), true) | (None, false) if random.chance(0.8) => Condition::Present,
        (None, true) | (Some(_), false) if random.chance(0.8) => Condition::Absent,
        _ => Condition::Unchanged(stamp()),
    });
    let entry = match random.below(10) {
        0..4 => put(address, random_value(random)),
        4..6 => delete(address),
        6..9 => adding(address, random_additions(random)),
        _ => when(address, Condition::Present),
    };
    let condition = if entry.effect.is_none() { condition.or(entry.condition) } else { condition };
    Entry { condition, ..entry }
}

fn random_value(random: &mut Random) -> Vec<u8> {
    match random.below(4) {
        0 => Vec::new(),
        1 => br#""b""#.to_vec(),
        2 => br#"{"to":"ab"}"#.to_vec(),
        _ => random.number().to_be_bytes().to_vec(),
    }
}

fn random_additions(random: &mut Random) -> Vec<Addition> {
    let mut additions: Vec<Addition> = Vec::new();
    for _ in 0..1 + random.below(3) {
        let name = (*random.pick(&["x", "y", "z"])).to_owned();
        if additions.iter().all(|addition| addition.name != name) {
            let delta = *random.pick(&[-3, -1, 0, 1, 2, 1 << 53, i64::MAX, i64::MIN]);
            let min = random.chance(0.2).then_some(-5);
            let max = random.chance(0.2).then_some(5);
            additions.push(Addition { name, delta, min, max });
        }
    }
    additions
}

fn random_scan(random: &mut Random) -> (Vec<Range>, usize, Direction) {
    let mut range = || Range {
        area: random.pick(&areas()).clone(),
        start: if random.chance(0.3) { Bytes::new() } else { random_key(random) },
        end: random.chance(0.6).then(|| random_key(random)),
    };
    let ranges = [range(), range(), range()];
    let count = random.below(4);
    let direction = *random.pick(&[Direction::Forward, Direction::Backward]);
    (ranges[..count].to_vec(), *random.pick(&[0, 1, 2, 5, 100]), direction)
}

fn random_recipe(random: &mut Random) -> Recipe {
    let parts = match random.below(4) {
        0 => vec![Part::Field(0)],
        1 => vec![Part::Literal(Bytes::from_static(b"a")), Part::Field(1)],
        2 => vec![Part::Member { path: Vec::new(), escape: None }],
        _ => vec![Part::Member { path: vec!["to".to_owned()], escape: Some(None) }],
    };
    let cuts = vec![Cut::Fixed(1), Cut::Rest];
    Recipe { area: random.pick(&areas()).clone(), cuts, parts }
}
