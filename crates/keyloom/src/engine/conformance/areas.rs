//! The areas of a space.

use super::super::{Address, Area, Batch, Space};
use super::runner::{Check, checks};
use super::subject::{Subject, add, area, at, delete, put, space};

pub(super) fn checks() -> Vec<Check> {
    checks![an_area_is_there_while_it_holds_a_cell, areas_are_of_one_space]
}

async fn areas(it: &Subject, space: &Space) -> Vec<String> {
    let areas = it.engine.areas(space).await.expect("areas are listed");
    areas.iter().map(|area| area.name().to_owned()).collect()
}

async fn an_area_is_there_while_it_holds_a_cell(it: Subject) {
    let nothing: [&str; 0] = [];
    assert_eq!(areas(&it, &space()).await, nothing);
    let in_area = |name: &str, key: &'static [u8]| Address::new(area(name), key);
    it.apply(vec![add(in_area("b", b"\xff\xff"), &[("n", 1)])]).await;
    assert_eq!(areas(&it, &space()).await, ["b"]);
    // Names with common prefixes, and keys at both ends.
    let names = ["a", "a-", "a.b", "aa", "ab", "b", "z"];
    let mut entries = vec![put(at([0]), ""), put(Address::new(Area::own(), "own"), "v")];
    for name in names.into_iter().filter(|name| *name != "b") {
        entries.extend([put(in_area(name, b"\0"), "v"), put(in_area(name, b"\xff"), "")]);
    }
    it.apply(entries).await;
    assert_eq!(areas(&it, &space()).await, [&[""], &names[..], &["~"]].concat());
    it.apply(vec![delete(in_area("aa", b"\0")), delete(in_area("aa", b"\xff"))]).await;
    it.apply(vec![delete(in_area("ab", b"\0")), delete(at([0])), delete(at("not there"))]).await;
    assert_eq!(areas(&it, &space()).await, ["a", "a-", "a.b", "ab", "b", "z", "~"]);
}

async fn areas_are_of_one_space(it: Subject) {
    for (space, name) in [("s", "one"), ("s.", "two"), ("s-t", "three"), ("st", "four")] {
        let mut batch = Batch::new(Space::new(space).expect("a name"));
        batch.entries.push(put(Address::new(area(name), "k"), "v"));
        it.engine.commit(batch).await.expect("a commit succeeds");
    }
    for (space, name) in [("s", "one"), ("s.", "two"), ("s-t", "three"), ("st", "four")] {
        assert_eq!(areas(&it, &Space::new(space).expect("a name")).await, [name]);
    }
}
