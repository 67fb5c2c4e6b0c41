//! What errors say, as somebody reads them who has never seen the code: `messages.md` has each
//! call with its message.
//!
//! `UPDATE_GOLDEN=1 cargo test --test messages` writes the page anew, for a person to read in the
//! diff.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use keyloom::blocking::{Collection, Store};
use keyloom::{
    Cursor, Due, GroupQuery, Increment, Near, Order, Position, Query, Result, Schema, Test, Version,
};
use serde_json::{Value, json};

const SCHEMA: &str = r#"
[collection.job]
key = "job:{id}"
fields = { id = "text", code = { type = "code", pattern = "A-****", generate = true }, rank = { type = "integer", digits = 8 }, size = "integer", rate = "float", ok = "boolean", at = "timestamp", on = "datetime", ref = "uuid", state = { type = "enum", values = ["open", "done"], transitions = { open = ["done"] } }, place = { type = "point", of = "record" }, queue = "text", note = { type = "text", required = true }, events = "map", "events.*" = "timestamp", "tags.*" = "text", "data.user" = "text" }
index.queue = { key = "job:queue:{queue}:{rank desc}:{id}" }
index.state = { key = "job:state:{state}:{at}:{id}" }
index.open = { key = "job:open:{queue}:{at}:{id}", where = { state = "open" } }
index.tag = { key = "job:tag:{tags.*}:{id}", max = 3 }
unique.code = { key = "job:code:{code}" }
geo.place = { key = "job:place:{place geohash 6}:{id}" }
count.states = { group = ["state"] }
counters = { total = { min = 0, max = 10 }, "stats.ok" = {}, "hits.*" = {} }

[collection.order]
key = "order:{at desc}:{number}"
fields = { at = "timestamp", number = { type = "integer", digits = 4 } }

[collection.moment]
key = "moment:{on}"
fields = { on = "datetime" }

[collection.note]
key = "note:{user}:{id}"
fields = { user = "text", id = "id" }
access = "owned"
owner = "user"

[collection.page]
key = "page:{name}"
fields = { name = "text" }
history = { versions = 3 }
body = { type = "object", properties = { stars = { type = "integer", maximum = 5 } }, required = ["title"] }

[idempotency]
keep = "1 hour"
"#;

/// The page as it grows.
#[derive(Default)]
struct Page {
    text: String,
    /// What differs from run to run, and what stands for it.
    hidden: Vec<(String, &'static str)>,
}

impl Page {
    fn about(&mut self, subject: &str) {
        write!(self.text, "\n## {subject}\n").unwrap();
    }

    fn tell<T>(&mut self, call: &str, result: Result<T>) {
        let Err(error) = result else { panic!("{call} is allowed") };
        let call: Vec<&str> = call.split_whitespace().collect();
        let mut message = error.to_string();
        for (text, instead) in &self.hidden {
            message = message.replace(text, instead);
        }
        write!(self.text, "\n`{}`\n> {:?}: {message}\n", call.join(" "), error.kind()).unwrap();
    }
}

/// Tells what a call says.
macro_rules! told {
    ($page:expr, $($call:expr;)*) => {$( $page.tell(stringify!($call), $call); )*};
}

fn store() -> Store {
    let store = Store::open("memory:").unwrap();
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).unwrap();
    store
}

/// A job that can be inserted, with other members.
fn job(id: &str, members: Value) -> Value {
    let mut job = json!({ "id": id, "note": "n" });
    let (Value::Object(job_members), Value::Object(more)) = (&mut job, members) else { panic!() };
    job_members.extend(more);
    job
}

#[test]
fn the_page_is_as_expected() {
    let mut page = Page::default();
    names(&mut page);
    values(&mut page);
    records(&mut page);
    patches(&mut page);
    counters(&mut page);
    conflicts(&mut page);
    queries(&mut page);
    transactions(&mut page);
    others(&mut page);
    owners(&mut page);
    evolution(&mut page);
    let head = "# What errors say\n\nWritten by the test beside it; each call with its message.\n";
    let text = format!("{head}{}", page.text);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let wrong = text.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert!(text == expected, "another page than expected, first {wrong:#?}");
}

fn names(page: &mut Page) {
    let store = store();
    page.about("Stores, collections and names");
    told! { page,
        Store::open("./data");
        Store::open("data");
        Store::open("file:");
        Store::open("memory:x");
        Store::open("memory:?conflicts=1");
        Store::open("redis://localhost");
        store.space("my space");
        store.space("");
        store.acting_as("");
        store.documents("jobs");
        store.documents("jb");
        store.build("job", "queues");
        store.build("jobs", "queue");
        store.index_state("job", "xyz");
        store.plain().with_idempotency_key("");
        Schema::from_toml("[collection.a]\nkey = \"a:{id}\"");
        Schema::from_file("keyloom.yaml");
        Schema::from_file("nowhere.toml");
    }
}

fn values(page: &mut Page) {
    let store = store();
    let jobs = store.documents("job").unwrap();
    page.about("Values of declared fields");
    for value in [
        json!({ "at": 1.5 }),
        json!({ "at": "2024-01-31" }),
        json!({ "at": "soon" }),
        json!({ "at": -1 }),
        json!({ "at": 10_000_000_000_000_u64 }),
        json!({ "on": "2024-01-31" }),
        json!({ "on": "2024-01-31T10:00:00Z" }),
        json!({ "on": "2024-01-31T10:00:00+02:00" }),
        json!({ "on": "2024-02-30T10:00:00.000Z" }),
        json!({ "on": 1706659200000_u64 }),
        json!({ "rank": 100_000_000 }),
        json!({ "rank": -100_000_001 }),
        json!({ "rank": "7" }),
        json!({ "rank": 7.5 }),
        json!({ "size": 9_223_372_036_854_775_808_u64 }),
        json!({ "size": true }),
        json!({ "rate": "1.5" }),
        json!({ "rate": 9_007_199_254_740_993_u64 }),
        json!({ "ok": "true" }),
        json!({ "ok": 1 }),
        json!({ "ref": "0F8FAD5B-D9CB-469F-A165-70867728950E" }),
        json!({ "ref": "0f8fad5b" }),
        json!({ "ref": 5 }),
        json!({ "code": "a-1234" }),
        json!({ "code": "A-12345" }),
        json!({ "state": "opened" }),
        json!({ "state": 1 }),
        json!({ "queue": 5 }),
        json!({ "queue": ["mail"] }),
        json!({ "lat": 91, "lon": 0 }),
        json!({ "lat": 50 }),
        json!({ "events": [] }),
        json!({ "events": { "start": "now" } }),
        json!({ "tags": ["a", 5] }),
        json!({ "tags": "a" }),
        json!({ "data": { "user": 5 } }),
    ] {
        let told = format!("jobs.insert({value})");
        page.tell(&told, jobs.insert(&job("a", value)));
    }
}

fn records(page: &mut Page) {
    let store = store();
    let jobs = store.documents("job").unwrap();
    let pages = store.documents("page").unwrap();
    let notes = store.documents("note").unwrap();
    page.about("Records");
    told! { page,
        jobs.insert(&json!([1]));
        jobs.insert(&json!({ "id": "a" }));
        jobs.insert(&json!({ "note": "n" }));
        jobs.insert(&json!({ "id": 5, "note": "n", "rank": "x", "at": 1.5, "ok": "yes" }));
        jobs.insert(&json!({ "id": "a".repeat(900), "note": "n" }));
        jobs.insert(&json!({ "id": "a", "note": "n".repeat(400_000) }));
        jobs.insert(&json!({ "id": "a", "note": "n", "tags": ["a", "b", "c", "d"] }));
        notes.insert(&json!({ "user": "ana", "id": "short" }));
        pages.insert(&json!({ "name": "home", "stars": 6 }));
        jobs.insert_json("{\"id\": \"a\", ");
        jobs.insert_json("{\"id\": \"a\", \"id\": \"b\"}");
        jobs.insert_json("{\"id\": \"a\", \"size\": 12345678901234567890123}");
        jobs.get(());
        jobs.get(("a", "b"));
        jobs.get(5);
        jobs.get_by("queue", "mail");
        jobs.get_by("codes", "A-1234");
        jobs.get_by("code", "1234");
        jobs.get_by("code", ("A-1234", 1));
        jobs.key_named("%zz");
        store.documents("order").unwrap().key_named("5");
        store.documents("moment").unwrap().get("2024-01-31");
        store.documents("order").unwrap().get(("x", 1));
        store.documents("order").unwrap().get((1.5, 1));
    }
}

fn patches(page: &mut Page) {
    let store = store();
    let jobs = store.documents("job").unwrap();
    let members = json!({ "state": "done", "events": { "start": 5 } });
    jobs.insert(&job("a", members)).unwrap();
    let to_b = |job: &mut Value| {
        job["id"] = json!("b");
        Ok(())
    };
    page.about("Changes of a part");
    told! { page,
        jobs.update_with_retry("a", &json!(5));
        jobs.update_with_retry("a", &json!({ "data.user": "ana" }));
        jobs.update_with_retry("a", &json!({ "events.order.created": 5 }));
        jobs.update_with_retry("a", &json!({ "x": { "y.z": { "u.v": 1 } } }));
        jobs.update_with_retry("a", &json!({ "hits.mail": 1 }));
        jobs.update_with_retry("a", &json!({ "events": { "order.created": "x" } }));
        jobs.update_with_retry("a", &json!({ "note": null }));
        jobs.update_with_retry("a", &json!({ "state": "open" }));
        jobs.update_with_retry("a", &json!({ "state": null }));
        jobs.update_with_retry("a", &json!({ "id": "b" }));
        jobs.update_with_retry("b", &json!({ "rank": 1 }));
        jobs.update_with_retry("a", &json!({ "rank": "x", "at": 1.5 }));
        jobs.modify("a", to_b);
        jobs.replace(&job("b", json!({})));
    }
}

fn counters(page: &mut Page) {
    let store = store();
    let jobs = store.documents("job").unwrap();
    let orders = store.documents("order").unwrap();
    jobs.insert(&job("a", json!({}))).unwrap();
    page.about("Counters");
    told! { page,
        jobs.increment("a", [("totl", 1)]);
        jobs.increment("a", [("hits.", 1)]);
        jobs.increment("a", [("hits.*", 1)]);
        jobs.increment("a", [("stats", 1)]);
        jobs.increment("a", [("stats.bad", 1)]);
        jobs.increment("a", [("total", 11)]);
        jobs.increment("a", [("total", -1)]);
        jobs.increment("a", [("stats.ok", i64::MAX), ("stats.ok", 1)]);
        jobs.increment("b", [("total", 1)]);
        jobs.increment("a", Vec::<(String, i64)>::new());
        orders.increment((1, 1), [("n", 1)]);
        jobs.update_with_retry("a", &json!({ "total": 5 }));
        jobs.update_with_retry("a", &json!({ "stats": null }));
        jobs.update_with_retry("a", &json!({ "stats": { "ok": 1 } }));
        jobs.update_with_retry("a", &json!({ "hits": { "mail": 1 } }));
        jobs.insert(&job("b", json!({ "total": 5 })));
        jobs.insert(&job("b", json!({ "stats": 5 })));
        jobs.insert(&job("b", json!({ "hits": { "mail": "x" } })));
        jobs.insert(&job("b", json!({ "hits": { "": 1 } })));
        store.increment_many([Increment::of("jobs", "a").add("total", 1)]);
    }
}

fn conflicts(page: &mut Page) {
    let store = store();
    let jobs = store.documents("job").unwrap();
    let first = jobs.insert(&job("a", json!({ "code": "A-2222" }))).unwrap();
    let second = jobs.update_with_retry("a", &json!({ "rank": 1 })).unwrap();
    page.hidden.push((first.version.to_string(), "FIRST"));
    page.hidden.push((second.version.to_string(), "SECOND"));
    let once = jobs.with_idempotency_key("k").unwrap();
    once.delete("nobody").unwrap();
    let used = once.delete("somebody").unwrap_err();
    page.hidden.push((used.context_value("at").unwrap().to_owned(), "THEN"));
    page.about("Conflicts");
    told! { page,
        jobs.insert(&job("a", json!({})));
        jobs.insert(&job("b", json!({ "code": "A-2222" })));
        jobs.update("a", &json!({ "rank": 2 }), first.version);
        jobs.replace_if(&job("a", json!({})), first.version);
        jobs.delete_if("a", first.version);
        jobs.delete_if("b", first.version);
        jobs.update("b", &json!({ "rank": 2 }), first.version);
        once.delete("somebody");
        "5".parse::<Version>();
        "here".parse::<Cursor>();
        "-1".parse::<Position>();
    }
}

fn queries(page: &mut Page) {
    let store = store();
    let jobs = store.documents("job").unwrap();
    let queue = || Query::new().equal("queue", "mail");
    jobs.insert(&job("a", json!({ "queue": "mail", "rank": 1 }))).unwrap();
    jobs.insert(&job("b", json!({ "queue": "mail", "rank": 2 }))).unwrap();
    let next = jobs.page(&queue().take(1)).unwrap().next.unwrap().to_string();
    let altered =
        format!("{}{}", &next[..next.len() - 1], if next.ends_with('A') { "B" } else { "A" });
    page.about("Questions");
    told! { page,
        jobs.page(&Query::new().equal("note", "x"));
        jobs.page(&Query::new().equal("stat", "open"));
        jobs.page(&Query::new().equal("sttae", "open"));
        jobs.page(&Query::new().equal("state", "opened"));
        jobs.page(&Query::new().equal("state", 5));
        jobs.page(&Query::new().equal("queue", Value::Null));
        jobs.page(&Query::new().equal("tags", "x"));
        jobs.page(&Query::new().equal("tags.0", "x"));
        jobs.page(&Query::new().equal("total", 5));
        jobs.page(&Query::new().equal("place", json!({ "lat": 1, "lon": 1 })));
        jobs.page(&queue().range("rank", "a".."b"));
        jobs.page(&Query::new().range("queue", "a".."b"));
        jobs.page(&Query::new().starts_with("rank", "1"));
        jobs.page(&queue().order("at", Order::Ascending));
        jobs.page(&queue().order("rank", Order::Descending).order("at", Order::Ascending));
        jobs.page(&queue().index("queues"));
        jobs.page(&queue().index("state"));
        jobs.page(&queue().take(0));
        jobs.page(&queue().take(100_000));
        jobs.page(&queue().limit(0));
        jobs.page(&queue().filter("rank", Test::Equals("x".into())));
        jobs.page(&queue().filter("queeu", Test::Equals(5.into())));
        jobs.page(&queue().from_cursor(&altered));
        jobs.page(&queue().take(2).equal("rank", 1).from_cursor(&next));
        jobs.page(&queue().from_cursor("nonsense"));
        jobs.keys(&queue().filter("note", Test::Equals("n".into())));
        jobs.count(&queue().limit(1).filter("note", Test::Equals("n".into())));
        jobs.min(&queue(), "note");
        jobs.counted("states", ());
        jobs.counted("states", "opened");
        jobs.counted("state", "open");
        jobs.summed("states", "open");
        jobs.groups(&GroupQuery::new("stats"));
        jobs.groups(&GroupQuery::new("states").take(0));
        jobs.near(&Near::new(91.0, 0.0).within(5.0));
        jobs.near(&Near::new(1.0, 0.0).within(-5.0));
        jobs.near(&Near::new(1.0, 0.0).within(5.0).index("queue"));
        store.documents("page").unwrap().near(&Near::new(1.0, 0.0).within(5.0));
    }
}

fn transactions(page: &mut Page) {
    let store = store();
    let jobs = store.documents("job").unwrap();
    jobs.insert(&job("a", json!({ "code": "A-2222" }))).unwrap();
    let mut left = None;
    let kept = store.transaction(|tx| {
        left = Some(tx.documents("job")?);
        Ok::<_, keyloom::Error>(())
    });
    kept.unwrap();
    let left = left.unwrap();
    let new = |id: &str| job(id, json!({}));
    page.about("Transactions");
    told! { page,
        store.transaction(|tx| tx.documents("job")?.insert(&new("a")));
        store.transaction(|tx| tx.documents("job")?.insert(&job("b", json!({ "code": "A-2222" }))));
        store.transaction(|tx| tx.documents("jobs").map(drop));
        store.transaction(|tx| tx.documents("job")?.update("b", &json!({ "rank": 1 })));
        store.transaction(|tx| tx.documents("job")?.increment("b", [("total", 1)]));
        store.transaction(|tx| tx.documents("job")?.increment("a", [("total", 11)]));
        left.get("a");
    }
}

fn others(page: &mut Page) {
    let store = store();
    let jobs = store.documents("job").unwrap();
    let pages = store.documents("page").unwrap();
    pages.insert(&json!({ "name": "home", "title": "t" })).unwrap();
    jobs.insert(&job("a", json!({}))).unwrap();
    let plain = store.plain();
    let hour = Duration::from_secs(3_600);
    page.about("Plain keys, histories, logs and leases");
    told! { page,
        plain.put("job:a", "x");
        plain.put("job:a", "{\"id\": \"b\"}");
        plain.put("job:queue:mail:x:a", "x");
        plain.put("moment:soon", "{}");
        plain.put("", "x");
        plain.put("k".repeat(901), "x");
        plain.list("", 0, None);
        plain.in_area("a b");
        jobs.history("a", 5, None);
        pages.history("home", 0, None);
        store.log_bounds();
        store.changes(Position::FIRST, 5);
        store.trim_log();
        jobs.lease_documents(&Due::new("queues"), "w", hour);
        jobs.lease_documents(&Due::new("queue"), "w", hour);
        jobs.lease_documents(&Due::new("open").equal("queue", "mail"), "", hour);
        jobs.lease_documents(&Due::new("open").equal("queue", "mail"), "w", Duration::ZERO);
        jobs.load([json!({})]).map(|load| load.refused).and_then(|mut refused| Err::<(), _>(refused.remove(0).error));
    }
}

fn owners(page: &mut Page) {
    let store = store();
    let notes: Collection<Value> = store.documents("note").unwrap();
    let id = "01k9zq3v5e8d4m2x7r0c6h1t9n";
    notes.insert(&json!({ "user": "ana", "id": id })).unwrap();
    let ben = store.acting_as("ben").unwrap();
    let bens = ben.documents("note").unwrap();
    page.about("Owners");
    told! { page,
        bens.insert(&json!({ "user": "ana", "id": id }));
        bens.update_with_retry(("ana", id), &json!({ "x": 1 }));
        bens.get(("ana", "x"));
        ben.apply(&Schema::from_toml("[collection.x]\nkey = \"x\"").unwrap());
        ben.verify();
        ben.plain().get("free");
        ben.raw_keys();
    }
}

fn evolution(page: &mut Page) {
    let store = store();
    store.documents("order").unwrap().insert(&json!({ "at": 5, "number": 1 })).unwrap();
    let change = |from: &str, to: &str| {
        let changed = SCHEMA.replace(from, to);
        assert_ne!(changed, SCHEMA, "{from}");
        store.apply(&Schema::from_toml(&changed).unwrap())
    };
    page.about("Schemas that contradict the one in the store");
    told! { page,
        change("key = \"order:{at desc}:{number}\"", "key = \"order:{number}\"");
        change("rank = { type = \"integer\", digits = 8 }", "rank = \"float\"");
        change("digits = 4", "digits = 3");
        change("\"job:queue:{queue}:{rank desc}:{id}\"", "\"job:queue:{queue}:{id}\"");
    }
}
