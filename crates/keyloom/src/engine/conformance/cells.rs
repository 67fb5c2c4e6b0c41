//! One cell at a time: a read gives what was put, and areas and spaces are separate.

use bytes::Bytes;

use super::super::{
    Address, Area, Batch, Committed, Direction, EngineExt, KEY_BYTES_MAX, Outcome, Range, Space,
    VALUE_BYTES_MAX,
};
use super::runner::{Check, checks};
use super::subject::{
    Subject, add, area, at, bytes_of, cell_after, delete, integers, put, space, stamp,
};

pub(super) fn checks() -> Vec<Check> {
    checks![
        what_is_put_is_read,
        values_of_any_bytes_and_length,
        keys_of_any_bytes_and_length,
        deleting_removes_once_and_again,
        many_cells_in_the_order_of_the_question,
        areas_do_not_touch,
        spaces_do_not_touch,
        capabilities_do_not_change,
    ]
}

async fn what_is_put_is_read(it: Subject) {
    assert_eq!(it.cell(&at("k")).await, None);
    let first = put(at("k"), "one");
    it.apply(vec![first.clone()]).await;
    assert_eq!(it.cell(&at("k")).await, Some(cell_after(&first)));
    let second = put(at("k"), "two");
    it.apply(vec![second.clone()]).await;
    assert_eq!(it.cell(&at("k")).await, Some(cell_after(&second)));
    it.apply(vec![add(at("n"), &[("x", 1)])]).await;
    let found = it.cell(&at("n")).await.expect("a cell is there");
    assert_eq!(found.integers(), Some(&integers(&[("x", 1)])));
    assert_eq!(found.bytes(), None);
}

async fn values_of_any_bytes_and_length(it: Subject) {
    let every_byte: Vec<u8> = (0..=255).collect();
    let longest = vec![0xa5; VALUE_BYTES_MAX];
    for value in [&b""[..], b"\x00", b"\xff", b"\x00\x00", &every_byte, &longest] {
        let entry = put(at("k"), value);
        it.apply(vec![entry.clone()]).await;
        let found = it.cell(&at("k")).await;
        assert!(found == Some(cell_after(&entry)), "a value of {} bytes changed", value.len());
    }
}

async fn keys_of_any_bytes_and_length(it: Subject) {
    let longest = [0xff; KEY_BYTES_MAX];
    let mut keys: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    keys.extend([b"\x00\x00".to_vec(), b"a\x00".to_vec(), b"a\xff".to_vec(), b"a%3A:{}".to_vec()]);
    keys.extend([longest[1..].to_vec(), longest.to_vec()]);
    for keys in keys.chunks(it.engine.capabilities().batch_entries_max) {
        it.apply(keys.iter().map(|key| put(at(key), key)).collect()).await;
    }
    for key in &keys {
        assert_eq!(&bytes_of(it.cell(&at(key)).await.as_ref())[..], &key[..]);
    }
    assert_eq!(it.everything().await.len(), keys.len());
}

async fn deleting_removes_once_and_again(it: Subject) {
    it.apply(vec![put(at("k"), "v"), put(at("k2"), "v2")]).await;
    for _ in 0..2 {
        it.apply(vec![delete(at("k"))]).await;
        assert_eq!(it.cell(&at("k")).await, None);
        assert_eq!(it.everything().await.len(), 1, "its neighbour stays");
    }
    it.apply(vec![add(at("n"), &[("x", 1)])]).await;
    it.apply(vec![delete(at("n"))]).await;
    assert_eq!(it.cell(&at("n")).await, None);
}

async fn many_cells_in_the_order_of_the_question(it: Subject) {
    it.apply(vec![put(at("a"), "A"), put(at("b"), "B"), put(at("c"), "C")]).await;
    let asked = ["c", "a", "missing", "a", "b", "c"].map(at);
    let found = it.engine.get(&space(), &asked).await.expect("a get succeeds");
    let values: Vec<Option<&Bytes>> =
        found.iter().map(|cell| cell.as_ref().and_then(|cell| cell.bytes())).collect();
    let expected = [Some("C"), Some("A"), None, Some("A"), Some("B"), Some("C")];
    assert_eq!(values, expected.map(|value| value.map(Bytes::from)).each_ref().map(Option::as_ref));
    assert_eq!(it.engine.get(&space(), &[]).await.expect("no question is no error"), []);
}

/// Names and keys with equal concatenations, to detect an engine that joins them.
async fn areas_do_not_touch(it: Subject) {
    let areas = [Area::default_area(), Area::own(), area("a"), area("ab"), area("a.b"), area("b")];
    let keys = ["b", "bc", "c", "ab", "~", ".b", "\x00", "\u{ff}"];
    for area in &areas {
        let entries = keys
            .iter()
            .map(|key| put(Address::new(area.clone(), *key), format!("{key} in {}", area.name())));
        it.apply(entries.collect()).await;
    }
    for area in &areas {
        for key in keys {
            let found = it.cell(&Address::new(area.clone(), key)).await;
            assert_eq!(bytes_of(found.as_ref()), &format!("{key} in {}", area.name()));
        }
        for direction in [Direction::Forward, Direction::Backward] {
            let rows = it.rows(&Range::all(area.clone()), direction).await;
            assert_eq!(rows.len(), keys.len(), "a scan of {area:?} gives its own keys");
            let own = format!(" in {}", area.name());
            assert!(rows.iter().all(|row| bytes_of(Some(&row.cell)).ends_with(own.as_bytes())));
        }
    }
    it.apply(vec![delete(Address::new(area("a"), "b"))]).await;
    assert!(it.cell(&Address::new(area("ab"), "b")).await.is_some());
    assert!(it.cell(&at("b")).await.is_some());
}

async fn spaces_do_not_touch(it: Subject) {
    let spaces = ["a", "ab", "a.b", "b", "main"].map(|name| Space::new(name).expect("valid"));
    for space in &spaces {
        let mut batch = Batch::new(space.clone());
        batch.entries.extend([put(at("b"), space.name()), put(at("bc"), space.name())]);
        batch.entries.push(put(Address::new(area("b"), "c"), space.name()));
        batch.entries.push(add(at("n"), &[("x", 1)]));
        let outcome = it.engine.commit(batch).await.expect("a commit succeeds");
        let integers = vec![integers(&[("x", 1)])];
        assert_eq!(outcome, Outcome::Committed(Committed { integers, position: None }));
    }
    for space in &spaces {
        let range = Range::all(Area::default_area());
        let rows = it.engine.scan_all(space, &range, 10, Direction::Forward).await;
        let keys: Vec<Bytes> = rows.expect("a scan succeeds").into_iter().map(|r| r.key).collect();
        assert_eq!(keys, ["b", "bc", "n"]);
        let found = it.engine.get_one(space, &at("b")).await.expect("a get succeeds");
        assert_eq!(bytes_of(found.as_ref()), space.name());
    }
    let unused = Space::new("unused").expect("valid");
    let range = Range::all(Area::default_area());
    let rows = it.engine.scan_all(&unused, &range, 10, Direction::Forward).await;
    assert_eq!(rows.expect("a space that nobody wrote to is empty"), []);
    assert_eq!(it.engine.get_one(&unused, &at("b")).await.expect("a get succeeds"), None);
}

async fn capabilities_do_not_change(it: Subject) {
    let before = it.engine.capabilities().clone();
    it.apply(vec![put(at("k"), stamp().0)]).await;
    assert_eq!(it.engine.capabilities(), &before);
    assert!(before.batch_entries_max > 0 && before.batch_bytes_max >= VALUE_BYTES_MAX);
    assert!(!before.engine.is_empty());
}
