//! `follow`: index entries with their records.

use bytes::Bytes;

use super::super::{
    Address, Area, Cut, Direction, EngineExt, KEY_BYTES_MAX, Link, Part, Range, Recipe, Stretch,
    Trail, successor, target_of,
};
use super::runner::{Check, checks};
use super::subject::{Subject, add, area, at, bytes_of, put, space};

pub(super) fn checks() -> Vec<Check> {
    checks![
        records_named_by_the_key,
        records_named_by_the_value,
        records_named_by_recoded_text,
        records_of_another_area,
        entries_without_a_record_are_rows,
        entries_that_do_not_fit_are_rows,
        several_entries_may_name_one_record,
        each_range_has_its_own_recipe,
        ranges_limits_and_directions_are_those_of_scan,
        ranges_of_one_key_are_followed_alike,
        random_entries_agree_with_scan_and_get,
    ]
}

fn literal(text: &'static str) -> Part {
    Part::Literal(Bytes::from_static(text.as_bytes()))
}

fn member(path: &[&str], escape: Option<Option<u8>>) -> Part {
    Part::Member { path: path.iter().map(|name| (*name).to_owned()).collect(), escape }
}

fn recipe(cuts: &[Cut], parts: &[Part]) -> Recipe {
    Recipe { area: Area::default_area(), cuts: cuts.to_vec(), parts: parts.to_vec() }
}

fn entries() -> Range {
    Range::prefix(Area::default_area(), "i:")
}

async fn follow(it: &Subject, recipe: &Recipe) -> Vec<Link> {
    let found = it.engine.follow_one(&space(), &entries(), 1000, Direction::Forward, recipe).await;
    let found = found.expect("a follow succeeds");
    assert!(!found.more, "a short range is read to its end");
    found.rows
}

/// Puts one entry and its record, and expects the recipe to lead from one to the other.
async fn leads(it: &Subject, entry: (&str, &str), record: &str, recipe: Recipe) {
    it.apply(vec![put(at(entry.0), entry.1), put(at(record), format!("at {record}"))]).await;
    let links = follow(it, &recipe).await;
    let link = links.iter().find(|link| link.entry.key == entry.0).expect("the entry is a row");
    assert_eq!(link.target.as_ref().map(|key| &key[..]), Some(record.as_bytes()));
    assert_eq!(bytes_of(link.record.as_ref()), &format!("at {record}"));
    assert_eq!(bytes_of(Some(&link.entry.cell)), entry.1);
    assert_eq!(it.cell(&at(record)).await, link.record, "stamp and all");
}

async fn records_named_by_the_key(it: Subject) {
    let to_record = |field| vec![literal("r:"), Part::Field(field)];
    let cuts = [Cut::Fixed(2), Cut::Until(b':'), Cut::Fixed(1), Cut::Rest];
    leads(&it, ("i:ana:26", ""), "r:26", recipe(&cuts, &to_record(3))).await;
    leads(&it, ("i:bo:27", "ignored"), "r:bo", recipe(&cuts[..2], &to_record(1))).await;
    let cuts = [Cut::Fixed(2), Cut::Fixed(3), Cut::Rest];
    leads(&it, ("i:abcdef", ""), "r:abc", recipe(&cuts, &to_record(1))).await;
    let swapped = [literal("r:"), Part::Field(2), literal("/"), Part::Field(1)];
    leads(&it, ("i:xyzuvw", ""), "r:uvw/xyz", recipe(&cuts, &swapped)).await;
    leads(&it, ("i:same", ""), "r:always", recipe(&[], &[literal("r:always")])).await;
}

async fn records_named_by_the_value(it: Subject) {
    let whole = recipe(&[], &[literal("r:"), member(&[], Some(Some(b':')))]);
    leads(&it, ("i:1", "\"26\""), "r:26", whole).await;
    let nested = [literal("r:"), member(&["post", "id"], Some(None))];
    leads(&it, ("i:2", r#"{"post":{"id":"p1"},"x":1}"#), "r:p1", recipe(&[], &nested)).await;
    let two = [
        literal("r:"),
        member(&["user"], Some(Some(b':'))),
        literal(":"),
        member(&["post"], Some(Some(b':'))),
    ];
    leads(&it, ("i:3", r#"{"user":"a:b","post":"c%"}"#), "r:a%3Ab:c%25", recipe(&[], &two)).await;
    let raw = [member(&[], None)];
    leads(&it, ("i:4", "\"arn:aws:x%\""), "arn:aws:x%", recipe(&[], &raw)).await;
    let text = [literal("r:"), member(&[], Some(Some(b'/')))];
    leads(&it, ("i:5", "\"\\u00e9\\n/\""), "r:é%0A%2F", recipe(&[], &text)).await;
}

async fn records_named_by_recoded_text(it: Subject) {
    let recoded = |separator| {
        let cuts = [Cut::Fixed(2), Cut::Until(b':')];
        recipe(&cuts, &[literal("r:"), Part::Recoded { field: 1, separator }])
    };
    leads(&it, ("i:a%3Ab:1", ""), "r:a:b", recoded(None)).await;
    leads(&it, ("i:c%3Ad:1", ""), "r:c%3Ad", recoded(Some(b':'))).await;
    leads(&it, ("i:e/f:1", ""), "r:e%2Ff", recoded(Some(b'/'))).await;
    leads(&it, ("i:%25%00:1", ""), "r:%25%00", recoded(None)).await;
}

async fn records_of_another_area(it: Subject) {
    let there = Address::new(area("records"), "k");
    it.apply(vec![put(at("i:k"), ""), put(at("k"), "wrong"), put(there, "right")]).await;
    let parts = vec![Part::Field(1)];
    let elsewhere = Recipe { area: area("records"), cuts: vec![Cut::Fixed(2), Cut::Rest], parts };
    let links = follow(&it, &elsewhere).await;
    assert_eq!(bytes_of(links[0].record.as_ref()), "right");
}

async fn entries_without_a_record_are_rows(it: Subject) {
    it.apply(vec![put(at("i:a"), ""), put(at("i:b"), ""), put(at("r:b"), "B")]).await;
    it.apply(vec![put(at("i:n"), ""), add(at("r:n"), &[("x", 1)])]).await;
    let links =
        follow(&it, &recipe(&[Cut::Fixed(2), Cut::Rest], &[literal("r:"), Part::Field(1)])).await;
    assert_eq!(links.len(), 3);
    assert_eq!((links[0].target.as_deref(), &links[0].record), (Some(&b"r:a"[..]), &None));
    assert_eq!(bytes_of(links[1].record.as_ref()), "B");
    assert_eq!(links[2].record, it.cell(&at("r:n")).await, "a record may be a cell of integers");
}

async fn entries_that_do_not_fit_are_rows(it: Subject) {
    let long = format!("\"{}\"", "k".repeat(KEY_BYTES_MAX + 1));
    it.apply(vec![
        put(at("i:1"), "not JSON"),
        put(at("i:2"), "7"),
        put(at("i:3"), "{\"id\":7}"),
        put(at("i:4"), "\"\""),
        put(at("i:5"), &long),
        add(at("i:6"), &[("x", 1)]),
        put(at("i:7"), "\"fits\""),
        put(at("i:8"), [0xff, 0x00]),
        put(at("fits"), "found"),
    ])
    .await;
    let links = follow(&it, &recipe(&[], &[member(&[], None)])).await;
    let fits: Vec<bool> = links.iter().map(|link| link.target.is_some()).collect();
    assert_eq!(fits, [false, false, false, false, false, false, true, false]);
    assert!(links.iter().all(|link| link.record.is_some() == link.target.is_some()));
    for cuts in [vec![Cut::Fixed(4)], vec![Cut::Until(b'?')], vec![Cut::Rest, Cut::Fixed(1)]] {
        let links = follow(&it, &recipe(&cuts, &[literal("fits")])).await;
        assert!(links.iter().all(|link| link.target.is_none() && link.record.is_none()));
        assert_eq!(links.len(), 8);
    }
    let links = follow(&it, &recipe(&[], &[Part::Field(0)])).await;
    assert!(links.iter().all(|link| link.target.is_none()));
}

async fn several_entries_may_name_one_record(it: Subject) {
    it.apply(vec![put(at("i:a:r"), ""), put(at("i:b:r"), ""), put(at("r"), "once")]).await;
    let links = follow(&it, &recipe(&[Cut::Fixed(4), Cut::Rest], &[Part::Field(1)])).await;
    assert_eq!(links.len(), 2);
    assert!(links.iter().all(|link| bytes_of(link.record.as_ref()) == "once"));
}

/// A union of indexes asks in one call for entries with different recipes.
async fn each_range_has_its_own_recipe(it: Subject) {
    let there = Address::new(area("records"), "x");
    it.apply(vec![
        put(at("by:x"), "\"y\""),
        put(at("x"), "X"),
        put(at("y"), "Y"),
        put(there, "X elsewhere"),
    ])
    .await;
    let by_key = recipe(&[Cut::Fixed(3), Cut::Rest], &[Part::Field(1)]);
    let elsewhere = Recipe { area: area("records"), ..by_key.clone() };
    let by_value = recipe(&[], &[member(&[], None)]);
    let recipes = [&by_value, &by_key, &elsewhere, &by_value];
    let range = Range::prefix(Area::default_area(), "by:");
    let trails = recipes.map(|recipe| Trail { range: range.clone(), recipe });
    for direction in [Direction::Forward, Direction::Backward] {
        let found = it.engine.follow(&space(), &trails, 10, direction).await.expect("a follow");
        let records: Vec<&Bytes> =
            found.iter().map(|stretch| bytes_of(stretch.rows[0].record.as_ref())).collect();
        assert_eq!(records, ["Y", "X", "X elsewhere", "Y"]);
    }
}

async fn ranges_limits_and_directions_are_those_of_scan(it: Subject) {
    let mut batch = Vec::new();
    for number in 0..20 {
        batch.push(put(at(format!("i:{number:02}")), ""));
        batch.push(put(at(format!("r:{number:02}")), number.to_string()));
    }
    it.apply(batch).await;
    let to_record = recipe(&[Cut::Fixed(2), Cut::Rest], &[literal("r:"), Part::Field(1)]);
    let part = |start: &'static str, end: &'static str| Range {
        area: Area::default_area(),
        start: start.into(),
        end: Some(end.into()),
    };
    let ranges =
        [part("i:05", "i:15"), part("i:00", "i:07"), part("i:9", "i:1"), part("i:05", "i:15")];
    for direction in [Direction::Forward, Direction::Backward] {
        for limit in [0, 1, 3, 7, 10, 100] {
            for ranges in [&ranges[..], &ranges[..1], &[]] {
                let trail = |range: &Range| Trail { range: range.clone(), recipe: &to_record };
                let trails: Vec<Trail<'_>> = ranges.iter().map(trail).collect();
                let followed = it.engine.follow(&space(), &trails, limit, direction).await;
                let scanned = it.engine.scan(&space(), ranges, limit, direction).await;
                let (followed, scanned) = (followed.expect("a follow"), scanned.expect("a scan"));
                assert_eq!(followed.len(), ranges.len());
                for (followed, scanned) in followed.iter().zip(&scanned) {
                    let entries: Vec<_> = followed.rows.iter().map(|link| &link.entry).collect();
                    assert_eq!(entries, scanned.rows.iter().collect::<Vec<_>>());
                    assert_eq!(followed.more, scanned.more);
                    let is_paired = |link: &Link| {
                        let target = link.target.as_ref().expect("the entry fits");
                        target[2..] == link.entry.key[2..] && link.record.is_some()
                    };
                    assert!(followed.rows.iter().all(is_paired));
                }
            }
        }
    }
}

/// An engine may look the entry up instead of scanning.
async fn ranges_of_one_key_are_followed_alike(it: Subject) {
    let to_record = recipe(&[Cut::Fixed(2), Cut::Rest], &[literal("r:"), Part::Field(1)]);
    it.apply(vec![put(at("i:1"), "e"), put(at("i:2"), "e"), put(at("r:1"), "one")]).await;
    for (entry, record) in [("i:1", Some("one")), ("i:2", None)] {
        let start = Bytes::from(entry);
        let range = Range { end: Some(successor(&start)), start, ..entries() };
        let found = it.engine.follow_one(&space(), &range, 5, Direction::Forward, &to_record).await;
        let found = found.expect("a follow succeeds");
        assert!(!found.more && found.rows.len() == 1, "{range:?}: {found:?}");
        let target = found.rows[0].target.as_ref().expect("the entry fits the recipe");
        assert_eq!(target, &entry.replace('i', "r"));
        let text = found.rows[0].record.as_ref().map(|record| bytes_of(Some(record)));
        assert_eq!(text.map(|text| &text[..]), record.map(str::as_bytes));
    }
}

async fn random_entries_agree_with_scan_and_get(mut it: Subject) {
    for _ in 0..5 {
        let mut batch = Vec::new();
        for number in 0..20 {
            let name = *it.random.pick(&["a", "b:c", "d%3Ae", "f", "", "é"]);
            let value = it.random.pick(&["\"x\"", "{\"m\":\"y\"}", "z", ""]);
            batch.push(put(at(format!("i:{name}:{number}")), value));
            let target = *it.random.pick(&["r:a", "r:b", "r:d:e", "r:x", "r:y", "r:f"]);
            if batch.iter().all(|entry| entry.address.key != target) {
                batch.push(put(at(target), number.to_string()));
            }
        }
        it.apply(batch).await;
        for part in [
            Part::Field(1),
            Part::Recoded { field: 1, separator: None },
            member(&[], Some(Some(b':'))),
            member(&["m"], None),
        ] {
            let recipe = recipe(&[Cut::Fixed(2), Cut::Until(b':')], &[literal("r:"), part]);
            let direction = *it.random.pick(&[Direction::Forward, Direction::Backward]);
            let limit = 1 + it.random.below(30);
            let (engine, space, range) = (&it.engine, space(), entries());
            let followed = engine.follow_one(&space, &range, limit, direction, &recipe).await;
            let scanned = engine.scan_one(&space, &range, limit, direction).await;
            let scanned = scanned.expect("a scan");
            let mut rows = Vec::new();
            for entry in scanned.rows {
                let target = target_of(&recipe, &entry);
                let record = match &target {
                    Some(target) => it.cell(target).await,
                    None => None,
                };
                rows.push(Link { entry, target: target.map(|target| target.key), record });
            }
            assert_eq!(followed.expect("a follow"), Stretch::new(rows, scanned.more));
        }
    }
}
