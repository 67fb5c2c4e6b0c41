//! Partial indexes, held against a plain filter over all records: random conditions, random
//! records, random questions. What an index answers is exactly what was asked for, and a question
//! that implies the condition of an index that fits is answered by an index.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod long;

use std::cmp::Ordering;
use std::ops::Bound;

use keyloom::{
    AggregateDeclaration, Collection, CollectionDeclaration, Comparison, ErrorKind,
    FieldDeclaration, FieldType, Illegal, IndexDeclaration, Order, Query, Schema,
    SchemaDeclaration, Store, Test, TestDeclaration,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// What the records, conditions and questions are about. `free` is not declared.
const FIELDS: [&str; 6] = ["queue", "state", "prio", "load", "flag", "free"];

/// What stands in templates, by the number of the field.
const SEGMENTS: [&str; 8] = [
    "{queue sorted}",
    "{state}",
    "{prio}",
    "{load}",
    "{flag}",
    "{prio desc}",
    "{queue sorted desc}",
    "{tags.*}",
];

/// The field of a segment; `None` for tags.
fn field_of(segment: usize) -> Option<usize> {
    [Some(0), Some(1), Some(2), Some(3), Some(4), Some(2), Some(0), None][segment]
}

/// The values that conditions and questions name.
fn values(field: usize) -> Vec<Value> {
    match FIELDS[field] {
        "queue" => vec![json!("q"), json!("qa"), json!("r")],
        "state" => vec![json!("open"), json!("held"), json!("done")],
        "prio" => vec![json!(-10), json!(3), json!(4), json!(5), json!(5.0), json!(7), json!(9)],
        "load" => vec![json!(-0.5), json!(0), json!(0.0), json!(0.25), json!(1)],
        "flag" => vec![json!(false), json!(true)],
        _ => vec![json!(0), json!(0.0), json!(0.5), json!(1), json!("a"), json!("b")],
    }
}

/// Every value that a field can have, as far as the tests of this file can tell them apart.
fn domain(field: usize) -> Vec<Option<Value>> {
    let mut all = values(field);
    all.extend(match FIELDS[field] {
        "queue" => ["", "p", "q\u{0}", "qz", "r0", "z"].map(Value::from).to_vec(),
        "prio" => (-10..10).map(Value::from).collect(),
        "load" => [-2.0, -0.25, 0.125, 0.5, 7.0].map(Value::from).to_vec(),
        "free" => vec![
            json!(-1),
            json!(0.25),
            json!(0.75),
            json!(9),
            json!(""),
            json!("aa"),
            json!("z"),
            json!(true),
            json!([1]),
            json!({ "a": 1 }),
        ],
        _ => Vec::new(),
    });
    all.into_iter().map(Some).chain([None]).collect()
}

fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn is_same(a: &Value, b: &Value) -> bool {
    compare(a, b) == Some(Ordering::Equal) || a == b
}

/// What a test means, told apart from the library's own.
fn holds(test: &Test, value: Option<&Value>) -> bool {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return *test == Test::Missing;
    };
    let is = |bound: &Value, orders: &[Ordering]| {
        compare(value, bound).is_some_and(|order| orders.contains(&order))
    };
    use Ordering::{Equal, Greater, Less};
    match test {
        Test::Equals(wanted) => is_same(value, wanted),
        Test::OneOf(wanted) => wanted.iter().any(|wanted| is_same(value, wanted)),
        Test::Present => true,
        Test::Missing => false,
        Test::Greater(bound) => is(bound, &[Greater]),
        Test::AtLeast(bound) => is(bound, &[Greater, Equal]),
        Test::Less(bound) => is(bound, &[Less]),
        Test::AtMost(bound) => is(bound, &[Less, Equal]),
    }
}

/// An index: segments before the record's key, and what its condition asks of which field.
#[derive(Clone, Debug)]
struct Partial {
    segments: Vec<usize>,
    condition: Vec<(usize, Vec<Test>)>,
}

/// What is asked. All but `any` must hold; of `any`, if there is one, one.
#[derive(Clone, Debug)]
struct Asked {
    equal: Vec<(usize, Value)>,
    tag: Option<&'static str>,
    any: Vec<(usize, Value)>,
    range: Option<(usize, Vec<Test>)>,
    filters: Vec<(usize, Test)>,
    order: Option<(usize, Order)>,
}

impl Asked {
    fn query(&self) -> Query {
        let mut query = Query::new().take(7);
        for (field, value) in &self.equal {
            query = query.equal(FIELDS[*field], value.clone());
        }
        if let Some(tag) = self.tag {
            query = query.equal("tags.*", tag);
        }
        for (field, value) in &self.any {
            query = query.any(FIELDS[*field], value.clone());
        }
        if let Some((field, tests)) = &self.range {
            let (mut low, mut high) = (Bound::Unbounded, Bound::Unbounded);
            for test in tests {
                match test {
                    Test::Greater(value) => low = Bound::Excluded(value.clone()),
                    Test::AtLeast(value) => low = Bound::Included(value.clone()),
                    Test::Less(value) => high = Bound::Excluded(value.clone()),
                    Test::AtMost(value) => high = Bound::Included(value.clone()),
                    _ => {}
                }
            }
            query = query.range::<Value>(FIELDS[*field], (low, high));
        }
        for (field, test) in &self.filters {
            query = query.filter(FIELDS[*field], test.clone());
        }
        match self.order {
            Some((field, order)) => query.order(FIELDS[field], order),
            None => query,
        }
    }

    /// What is asked of a field on every side of a union.
    fn tests(&self, field: usize) -> Vec<Test> {
        let equal = self.equal.iter().filter(|(of, _)| *of == field);
        let equal = equal.map(|(_, value)| Test::Equals(value.clone()));
        let range = self.range.iter().filter(|(of, _)| *of == field);
        let range = range.flat_map(|(_, tests)| tests.iter().cloned().chain([Test::Present]));
        let filters = self.filters.iter().filter(|(of, _)| *of == field);
        let order = self.order.iter().filter(|(of, _)| *of == field).map(|_| Test::Present);
        equal.chain(range).chain(filters.map(|(_, test)| test.clone())).chain(order).collect()
    }

    fn wants(&self, record: &Value) -> bool {
        let has_tag =
            |tag: &str| record["tags"].as_array().is_some_and(|it| it.contains(&json!(tag)));
        self.tag.is_none_or(has_tag)
            && (0..FIELDS.len()).all(|field| {
                self.tests(field).iter().all(|test| holds(test, record.get(FIELDS[field])))
            })
    }

    /// One question for each side of the union, or the question itself.
    fn sides(&self) -> Vec<Asked> {
        let side = |alternative: &(usize, Value)| {
            let mut side = Asked { any: Vec::new(), ..self.clone() };
            side.equal.push(alternative.clone());
            side
        };
        if self.any.is_empty() { vec![self.clone()] } else { self.any.iter().map(side).collect() }
    }
}

impl Partial {
    fn declaration(&self, number: usize) -> IndexDeclaration {
        let segments: String =
            self.segments.iter().map(|it| format!("{}:", SEGMENTS[*it])).collect();
        let mut index = IndexDeclaration::new(format!("i{number}:{segments}{{id}}"));
        index.condition = declared(&self.condition);
        index
    }

    /// Whether it answers a question, by the rules of the guide and by trying every value.
    fn must_serve(&self, asked: &Asked) -> bool {
        let Asked { equal, tag, range, order, .. } = asked;
        let is_of_tags = self.segments.iter().any(|segment| field_of(*segment).is_none());
        if is_of_tags != tag.is_some() {
            return false;
        }
        let is_fixed = |segment: &&usize| match field_of(**segment) {
            Some(field) => equal.iter().any(|(fixed, _)| *fixed == field),
            None => true,
        };
        let fixed: Vec<usize> = self.segments.iter().take_while(is_fixed).copied().collect();
        let has_tag = tag.is_none() || fixed.iter().any(|segment| field_of(*segment).is_none());
        let next = self.segments.get(fixed.len()).and_then(|segment| field_of(*segment));
        let is_served =
            |field: usize| fixed.iter().any(|segment| field_of(*segment) == Some(field));
        let is_tested = |field: usize| self.condition.iter().any(|(tested, _)| *tested == field);
        // Records without a field of the index are not in it.
        let is_lacking = asked.filters.iter().any(|(field, test)| {
            *test == Test::Missing && self.segments.iter().any(|it| field_of(*it) == Some(*field))
        });
        let is_once = |field: usize| equal.iter().filter(|(fixed, _)| *fixed == field).count() == 1;
        // Filters alone are tested after reading, whatever is read.
        let is_asking = !equal.is_empty() || range.is_some() || order.is_some() || tag.is_some();
        is_asking
            && has_tag
            && !is_lacking
            && equal.iter().all(|(field, _)| is_once(*field))
            && equal.iter().all(|(field, _)| is_served(*field) || is_tested(*field))
            && range.iter().all(|(field, _)| next == Some(*field) || is_tested(*field))
            && order.iter().all(|(field, _)| next == Some(*field) || is_served(*field))
            && self.condition.iter().all(|(field, tests)| {
                let all =
                    |tests: &[Test], value: Option<&Value>| tests.iter().all(|it| holds(it, value));
                let asked = asked.tests(*field);
                let mut possible = domain(*field);
                possible.retain(|value| all(&asked, value.as_ref()));
                !asked.is_empty()
                    && !possible.is_empty()
                    && possible.iter().all(|value| all(tests, value.as_ref()))
            })
    }
}

fn declared(
    condition: &[(usize, Vec<Test>)],
) -> std::collections::BTreeMap<String, TestDeclaration> {
    let one = |(field, tests): &(usize, Vec<Test>)| {
        let declared = match &tests[..] {
            [Test::Equals(value)] => TestDeclaration::Equals(value.clone()),
            [Test::OneOf(values)] => TestDeclaration::OneOf(values.clone()),
            tests => {
                let mut comparison = Comparison::default();
                for test in tests.iter().cloned() {
                    match test {
                        Test::Present => comparison.present = Some(true),
                        Test::Missing => comparison.present = Some(false),
                        Test::Greater(value) => comparison.gt = Some(value),
                        Test::AtLeast(value) => comparison.gte = Some(value),
                        Test::Less(value) => comparison.lt = Some(value),
                        Test::AtMost(value) => comparison.lte = Some(value),
                        Test::Equals(_) | Test::OneOf(_) => panic!("not beside bounds"),
                    }
                }
                TestDeclaration::Compare(Box::new(comparison))
            }
        };
        (FIELDS[*field].to_owned(), declared)
    };
    condition.iter().map(one).collect()
}

fn value(field: usize) -> impl Strategy<Value = Value> {
    prop::sample::select(values(field))
}

/// Bounds of one field: a lower one, an upper one, or both in the right order.
fn bounds(field: usize) -> impl Strategy<Value = Vec<Test>> {
    let numbers: Vec<Value> = match FIELDS[field] {
        "free" => vec![json!(0), json!(0.5), json!(1)],
        _ => values(field),
    };
    let one = prop::sample::select(numbers);
    (one.clone(), one, 0..3, any::<bool>(), any::<bool>()).prop_map(
        |(a, b, which, includes_low, includes_high)| {
            let is_swapped = compare(&a, &b) == Some(Ordering::Greater);
            let (low, high) = if is_swapped { (b, a) } else { (a, b) };
            let low = if includes_low { Test::AtLeast(low) } else { Test::Greater(low) };
            let high = if includes_high { Test::AtMost(high) } else { Test::Less(high) };
            match which {
                0 => vec![low],
                1 => vec![high],
                _ => vec![low, high],
            }
        },
    )
}

/// What a condition asks of one field.
fn tested(field: usize) -> impl Strategy<Value = Vec<Test>> {
    let listed = prop::sample::subsequence(values(field), 1..=values(field).len());
    let bounded = match FIELDS[field] {
        // Enums are compared by listing their values.
        "state" | "flag" => listed.clone().prop_map(|it| vec![Test::OneOf(it)]).boxed(),
        _ => bounds(field).boxed(),
    };
    prop_oneof![
        3 => value(field).prop_map(|value| vec![Test::Equals(value)]),
        3 => listed.prop_map(|values| vec![Test::OneOf(values)]),
        3 => bounded,
        1 => Just(vec![Test::Present]),
        1 => Just(vec![Test::Missing]),
    ]
}

fn condition() -> impl Strategy<Value = Vec<(usize, Vec<Test>)>> {
    prop::sample::subsequence((0..FIELDS.len()).collect::<Vec<_>>(), 0..=3).prop_flat_map(
        |fields| fields.into_iter().map(|field| (Just(field), passable(field))).collect::<Vec<_>>(),
    )
}

/// What a condition may ask of one field: schemas refuse what no record can pass.
fn passable(field: usize) -> impl Strategy<Value = Vec<Test>> {
    tested(field).prop_filter("no record passes", move |tests| {
        let passes = |value: &Option<Value>| tests.iter().all(|it| holds(it, value.as_ref()));
        domain(field).iter().any(passes)
    })
}

fn partial() -> impl Strategy<Value = Partial> {
    let segments = prop::sample::subsequence((0..SEGMENTS.len()).collect::<Vec<_>>(), 0..=3);
    let segments = segments.prop_shuffle().prop_map(|segments| {
        let mut seen = Vec::new();
        let is_new = |segment: &usize| {
            let field = field_of(*segment);
            !seen.contains(&field) && {
                seen.push(field);
                true
            }
        };
        segments.into_iter().filter(is_new).collect()
    });
    (segments, condition()).prop_map(|(segments, condition)| Partial { segments, condition })
}

fn record() -> impl Strategy<Value = Value> {
    let member = |field: usize| prop::option::weighted(0.85, value(field));
    let tags = prop::sample::subsequence(vec!["x", "y", "z"], 0..=2);
    let fields: Vec<_> = (0..FIELDS.len()).map(member).collect();
    (fields, tags, any::<bool>()).prop_map(|(fields, tags, has_nulls)| {
        let mut record = json!({ "tags": tags });
        for (name, value) in FIELDS.iter().zip(fields) {
            match value {
                Some(value) => record[*name] = value,
                None if has_nulls => record[*name] = Value::Null,
                None => {}
            }
        }
        record
    })
}

fn filter(field: usize) -> impl Strategy<Value = Test> {
    prop_oneof![
        4 => tested(field).prop_map(|mut tests| tests.swap_remove(0)),
        1 => Just(Test::Missing),
    ]
}

fn asked() -> impl Strategy<Value = Asked> {
    let field = 0..FIELDS.len();
    let pair = field.clone().prop_flat_map(|field| (Just(field), value(field)));
    let equal = prop::collection::vec(pair.clone(), 0..4).prop_map(|mut equal| {
        equal.sort_by_key(|(field, _)| *field);
        equal.dedup_by_key(|(field, _)| *field);
        equal
    });
    // Enums, too: their values have an order in keys.
    let range = field.clone().prop_flat_map(|field| (Just(field), bounds(field)));
    let filter = field.clone().prop_flat_map(|field| (Just(field), filter(field)));
    let order = (field, prop::sample::select(vec![Order::Ascending, Order::Descending]));
    (
        equal,
        prop::option::weighted(0.15, prop::sample::select(vec!["x", "y"])),
        prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(pair, 2..4)],
        prop::option::weighted(0.4, range),
        prop::collection::vec(filter, 0..3),
        prop::option::weighted(0.4, order),
    )
        .prop_map(|(equal, tag, any, range, filters, order)| Asked {
            equal,
            tag,
            any,
            range,
            filters,
            order,
        })
}

/// A question that is likely to imply the condition of an index, and to fit its segments.
fn asked_of(indexes: Vec<Partial>) -> impl Strategy<Value = Asked> {
    (prop::sample::select(indexes), asked(), 0_usize..4, any::<bool>()).prop_map(
        |(index, mut asked, fixed, is_filtered)| {
            let is_about = |field: usize, asked: &Asked| {
                asked.equal.iter().any(|(of, _)| *of == field)
                    || asked.range.iter().any(|(of, _)| *of == field)
            };
            asked.equal.retain(|(field, _)| {
                index.segments.iter().any(|it| field_of(*it) == Some(*field))
                    || index.condition.iter().any(|(tested, _)| tested == field)
            });
            for (field, tests) in &index.condition {
                if is_about(*field, &asked) {
                    continue;
                }
                match &tests[..] {
                    [Test::Equals(value)] if !is_filtered => {
                        asked.equal.push((*field, value.clone()))
                    }
                    [Test::OneOf(values)] if !is_filtered => {
                        asked.equal.push((*field, values[0].clone()));
                    }
                    tests => asked.filters.extend(tests.iter().map(|it| (*field, it.clone()))),
                }
            }
            for segment in index.segments.iter().take(fixed) {
                match field_of(*segment) {
                    Some(field) if is_about(field, &asked) => {}
                    Some(field) => asked.equal.push((field, values(field)[0].clone())),
                    None => asked.tag = Some("x"),
                }
            }
            asked
        },
    )
}

fn cases() -> impl Strategy<Value = (Vec<Partial>, Vec<Partial>, Vec<Value>, Vec<Asked>)> {
    let indexes = prop::collection::vec(partial(), 1..4);
    let records = prop::collection::vec(record(), 0..40);
    (indexes, prop::collection::vec(partial(), 0..2), records).prop_flat_map(
        |(indexes, counts, records)| {
            let questions =
                prop_oneof![1 => asked().boxed(), 3 => asked_of(indexes.clone()).boxed()];
            let questions = prop::collection::vec(questions, 1..12);
            (Just(indexes), Just(counts), Just(records), questions)
        },
    )
}

fn schema(indexes: &[Partial], counts: &[Partial]) -> Schema {
    let field = |kind: FieldType| FieldDeclaration::from(kind);
    let values = values(1).iter().map(|value| value.as_str().unwrap().to_owned()).collect();
    let states = FieldType::Enum { values, transitions: None, illegal: Illegal::Error };
    let mut jobs = CollectionDeclaration::new("job:{id}")
        .field("id", field(FieldType::Integer { digits: 4 }))
        .field("queue", field(FieldType::Text))
        .field("state", field(states))
        .field("prio", field(FieldType::Integer { digits: 1 }))
        .field("load", field(FieldType::Float))
        .field("flag", field(FieldType::Boolean))
        .field("tags.*", field(FieldType::Text));
    for (number, index) in indexes.iter().enumerate() {
        jobs.index.insert(format!("i{number}"), index.declaration(number));
    }
    for (number, count) in counts.iter().enumerate() {
        let group = count.segments.iter().filter_map(|it| field_of(*it)).map(|it| FIELDS[it]);
        let mut declaration = AggregateDeclaration::count(group);
        declaration.condition = declared(&count.condition);
        jobs.count.insert(format!("c{number}"), declaration);
    }
    let collections = [("job".to_owned(), jobs)].into();
    Schema::from_declaration(SchemaDeclaration { collections, ..Default::default() }).unwrap()
}

/// The fields that each branch of a plan presumes.
fn presumed(plan: &str) -> Vec<Vec<String>> {
    let mut branches: Vec<Vec<String>> = Vec::new();
    for line in plan.lines() {
        if line.starts_with("index ") || line.starts_with("records of ") {
            branches.push(Vec::new());
        }
        if let Some(fields) = line.strip_prefix("  only records that have: ") {
            let last = branches.last_mut().unwrap();
            last.extend(fields.split(", ").map(str::to_owned));
        }
    }
    branches
}

fn has(record: &Value, field: &str) -> bool {
    match field {
        "tags.*" => record["tags"].as_array().is_some_and(|tags| !tags.is_empty()),
        field => record.get(field).is_some_and(|value| !value.is_null()),
    }
}

/// All records of all pages, in order.
async fn pages(jobs: &Collection<Value>, query: &Query) -> Vec<Value> {
    let (mut all, mut asked) = (Vec::new(), query.clone());
    loop {
        let page = jobs.page(&asked).await.unwrap();
        assert!(page.problems.is_empty(), "{:?}", page.problems);
        all.extend(page.records.into_iter().map(|record| record.value));
        let Some(next) = page.next else { return all };
        asked = query.clone().from_cursor(next);
    }
}

fn ids<'r>(records: impl IntoIterator<Item = &'r Value>) -> Vec<i64> {
    let mut ids: Vec<i64> = records.into_iter().map(|it| it["id"].as_i64().unwrap()).collect();
    ids.sort_unstable();
    ids
}

async fn check(
    jobs: &Collection<Value>,
    indexes: &[Partial],
    records: &[Value],
    asked: &Asked,
) -> Result<(), TestCaseError> {
    let query = asked.query();
    let sides = asked.sides();
    let wanted = |record: &Value| sides.iter().any(|side| side.wants(record));
    let everything = ids(records.iter().filter(|record| wanted(record)));
    let plan = match jobs.explain(&query).await {
        Ok(plan) => plan,
        Err(error) => {
            prop_assert_eq!(error.kind(), ErrorKind::NoIndex, "{}", error);
            let [side] = &sides[..] else { return Ok(()) };
            let server = indexes.iter().position(|index| index.must_serve(side));
            prop_assert_eq!(server, None, "{:?} is not served: {}", side, error);
            return Ok(());
        }
    };
    let by_count = plan.lines().any(|line| line.starts_with("count: "));
    if by_count {
        prop_assert_eq!(jobs.count(&query).await.unwrap(), everything.len(), "{}", plan);
    }
    if plan.starts_with("records: no index") {
        return Ok(());
    }
    // An index has no record that lacks one of its fields, and the plan says so.
    let presumed = presumed(&plan);
    prop_assert_eq!(presumed.len(), sides.len(), "{}", plan);
    let is_found = |record: &&Value| {
        sides.iter().zip(&presumed).any(|(side, presumed)| {
            side.wants(record) && presumed.iter().all(|field| has(record, field))
        })
    };
    let expected = ids(records.iter().filter(is_found));
    let found = pages(jobs, &query).await;
    prop_assert_eq!(ids(&found), expected.clone(), "{}", plan);
    if let Some((field, order)) = asked.order {
        let values: Vec<&Value> = found.iter().map(|record| &record[FIELDS[field]]).collect();
        let wrong = match order {
            Order::Ascending => Ordering::Greater,
            Order::Descending => Ordering::Less,
        };
        prop_assert!(values.windows(2).all(|it| compare(it[0], it[1]) != Some(wrong)), "{}", plan);
    }
    if !by_count {
        // Whoever counts everything has to say how far.
        let counted = jobs.count(&query.clone().limit(1_000)).await.unwrap();
        prop_assert_eq!(counted, expected.len(), "{}", plan);
    }
    let is_filtered = plan.contains("filter: ");
    match jobs.keys(&query.clone().take(1_000)).await {
        Ok(keys) => {
            prop_assert!(!is_filtered, "{}", plan);
            let mut keys = keys.records;
            keys.sort_unstable();
            let key = |id: &i64| format!("job:{id:04}");
            prop_assert_eq!(keys, expected.iter().map(key).collect::<Vec<_>>(), "{}", plan);
        }
        Err(error) => {
            prop_assert_eq!(error.kind(), ErrorKind::InvalidQuery);
            prop_assert!(is_filtered, "{}: {}", error, plan);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long::times(192)))]

    #[test]
    fn what_an_index_answers_is_what_was_asked((indexes, counts, records, questions) in cases()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = Store::open("memory:").await.unwrap();
            store.apply(&schema(&indexes, &counts)).await.unwrap();
            let jobs = store.documents("job").await.unwrap();
            let mut all = Vec::new();
            for (id, mut record) in records.into_iter().enumerate() {
                record["id"] = json!(id);
                jobs.insert(&record).await.unwrap();
                all.push(record);
            }
            for asked in &questions {
                check(&jobs, &indexes, &all, asked).await?;
            }
            Ok::<(), TestCaseError>(())
        })?;
    }
}
