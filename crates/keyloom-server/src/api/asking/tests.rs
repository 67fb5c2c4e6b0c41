#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use keyloom::{FieldDeclaration, FieldType};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn declaration() -> CollectionDeclaration {
    let field = |kind: FieldType| FieldDeclaration::from(kind);
    CollectionDeclaration::new("approval:record:{id}")
        .field("id", field(FieldType::Text))
        .field("requester_id", field(FieldType::Text))
        .field("created_at", field(FieldType::Timestamp))
        .field("tags.*", field(FieldType::Text))
        .field("odd.gt", field(FieldType::Integer { digits: 5 }))
}

fn asked(query: &str) -> Result<PageAsked, Problem> {
    page(Params::read(query), &declaration(), &Limits::default())
}

/// What is read of parameters without a page of its own.
fn base() -> Query {
    Query::new().take(20).limit(Limits::default().read_max)
}

#[test]
fn the_example_of_the_contract() {
    let found = asked(
        "where.requester_id=ana&where.created_at.gte=1700000000000&order=-created_at&limit=5",
    );
    let wanted = base()
        .equal("requester_id", "ana")
        .range("created_at", (Bound::Included(json!(1_700_000_000_000_u64)), Bound::Unbounded))
        .order("created_at", Order::Descending)
        .take(5);
    assert_eq!(found.unwrap().query, wanted);
}

#[test]
fn every_parameter_is_read() {
    let query = |text: &str| asked(text).unwrap().query;
    assert_eq!(query(""), base());
    assert_eq!(query("any.a=1&any.b=x"), base().any("a", 1).any("b", "x"));
    assert_eq!(query("any.a=1&any.a=2"), base().any("a", 1).any("a", 2));
    assert_eq!(
        query("where.tags.*=1&where.tags.*=2"),
        base().equal("tags.*", "1").equal("tags.*", "2")
    );
    assert_eq!(query("where.odd.gt=7"), base().equal("odd.gt", 7));
    assert_eq!(query("where.id.prefix=a"), base().starts_with("id", "a"));
    assert_eq!(query("order=id"), base().order("id", Order::Ascending));
    assert_eq!(query("index=x&scan=true&read=7"), base().index("x").scan().limit(7));
    assert_eq!(query("cursor=abc"), base().from_cursor("abc"));
    let between = (Bound::Excluded(json!(1)), Bound::Excluded(json!(9)));
    assert_eq!(query("where.n.gt=1&where.n.lt=9"), base().range("n", between));
    let filtered = base()
        .filter("a", Test::Equals(json!("x")))
        .filter("b", Test::AtMost(json!(3)))
        .filter("c", Test::Missing)
        .filter("d", Test::Present);
    assert_eq!(query("filter.a=x&filter.b.lte=3&filter.c=null&filter.d.present=true"), filtered);
    assert!(asked("keys_only=true").unwrap().is_keys_only);
    assert!(asked("explain=true").is_err(), "plans have a path of their own");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for query in [
        "unknown=1",
        "where=1",
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=x",
        "limit=5&limit=6",
        "read=0",
        "read=100001",
        "scan=yes",
        "where.id=a&where.id=b",
        "where.created_at=soon",
        "where.created_at=99999999999999999999999",
        "where.id.present=true",
        "filter.id.prefix=a",
        "filter.id.present=1",
    ] {
        assert_eq!(asked(query).unwrap_err().status(), 400, "{query}");
    }
    // Each parameter is as it should be, and they do not go together.
    for query in [
        "where.created_at.gt=1&where.created_at.gte=2",
        "where.created_at.gt=1&where.n.lt=2",
        "where.id.prefix=a&where.id.gt=b",
    ] {
        assert_eq!(asked(query).unwrap_err().status(), 409, "{query}");
    }
}

#[test]
fn counts_have_a_budget_and_no_page() {
    let limits = Limits::default();
    let read = |query: &str| count(Params::read(query), &declaration(), &limits);
    let counted = read("where.id=a&limit=7&keys_only=true").unwrap();
    assert_eq!(counted.query, Query::new().equal("id", "a").limit(7));
    assert!(counted.is_keys_only);
    assert!(read("order=id").is_err());
    assert!(read("cursor=x").is_err());
}

proptest! {
    #[test]
    fn text_reaches_the_query_as_it_was_sent(value in "\\PC{0,20}") {
        let pair = form_urlencoded::Serializer::new(String::new())
            .append_pair("where.requester_id", &value)
            .finish();
        prop_assert_eq!(asked(&pair).unwrap().query, base().equal("requester_id", value));
    }

    #[test]
    fn no_query_breaks_it(query in "((where|any|filter|order|limit)[.a-z=&*%0-9-]{0,12}){0,5}") {
        let _ = asked(&query);
    }
}
