//! Users with names that like to be misread, and what one of them may try.

use keyloom::{
    Collection, GroupQuery, Increment, Near, Order, Query, Result, Retry, Store, Version,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::answers::{Told, is_there};

/// Separators, escapes, dots, control bytes, beginnings of each other, look-alikes, long ones.
pub const USERS: [&str; 30] = [
    "ana",
    "ana1",
    "an",
    "ana:",
    "ana:notes",
    "ana:notes:n1",
    ":",
    "::",
    "%",
    "%%",
    "%3A",
    "ana%3A",
    "a%3a",
    ".",
    "..",
    "/",
    "\0",
    "ana\0",
    "\n",
    "ANA",
    "аna",
    "ａｎａ",
    "ana\u{200b}",
    "é",
    "e\u{301}",
    "user:ana",
    "~",
    "{userId}",
    "\u{10ffff}",
    " ",
];

/// Also users of 255 bytes, of which every one is escaped in keys, or none is.
pub fn user() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(USERS.to_vec()).prop_map(str::to_owned),
        1 => Just("%".repeat(255)),
        1 => Just("x".repeat(255)),
        2 => "[a-c:%/.\\x00]{1,6}",
        2 => any::<String>().prop_filter("a name", |name| (1..=60).contains(&name.len())),
    ]
}

/// What is tried, where, and with which strings.
#[derive(Clone, Debug)]
pub struct Act {
    method: usize,
    collection: usize,
    form: usize,
    owner: usize,
    word: usize,
    other: usize,
}

pub fn act() -> impl Strategy<Value = Act> {
    (0..METHODS.len(), 0..8_usize, 0..12_usize, 0..4_usize, 0..WORDS, 0..WORDS).prop_map(
        |(method, collection, form, owner, word, other)| Act {
            method,
            collection,
            form,
            owner,
            word,
            other,
        },
    )
}

/// What is tried. The names are those of methods, which `coverage` counts.
pub const METHODS: [&str; 66] = [
    "declaration",
    "increment",
    "increment_many",
    "counted",
    "summed",
    "group",
    "groups",
    "top_groups",
    "min",
    "max",
    "transaction increment",
    "store increment_many",
    "transaction increment_many",
    "get",
    "get_document",
    "get_many",
    "name_of",
    "key_named",
    "key_of_owner_named",
    "owned_keys",
    "get_by",
    "get_document_by",
    "page",
    "documents",
    "keys",
    "count",
    "count_entries",
    "history",
    "get_version",
    "get_as_of",
    "with_idempotency_key",
    "explain",
    "near",
    "near_documents",
    "insert",
    "insert_json",
    "load",
    "upsert",
    "replace",
    "replace_if",
    "update",
    "with_retry",
    "update_with_retry",
    "modify",
    "upsert_with",
    "rename",
    "delete",
    "delete_if",
    "transaction get",
    "transaction get_document",
    "transaction get_by",
    "transaction insert",
    "transaction upsert",
    "transaction replace",
    "transaction replace_if",
    "transaction delete",
    "transaction delete_if",
    "transaction update",
    "transaction update_if",
    "transaction page",
    "plain get",
    "plain put",
    "plain delete",
    "plain list",
    "plain with_idempotency_key",
    "store transaction_once",
];

const WORDS: usize = 20;

/// Strings to send: ids that the victim has, whole keys, pieces of keys, and rubbish.
fn word(place: usize, victim: &str, attacker: &str) -> String {
    let escaped = victim.replace('%', "%25").replace(':', "%3A");
    match place {
        0 | 1 => "n1".to_owned(),
        2 => ["n2", "n3"][victim.len() % 2].to_owned(),
        3 => "p1".to_owned(),
        4 => "t1".to_owned(),
        5 => victim.to_owned(),
        6 => attacker.to_owned(),
        7 => format!("{victim}:notes:n1"),
        8 => format!("user:{victim}:notes:n1"),
        9 => format!("user:{escaped}:notes:n1"),
        10 => format!("user:{escaped}:preferences"),
        11 => format!("user:{escaped}:"),
        12 => format!("../{escaped}/n1"),
        13 => format!("user:{escaped}:the:1"),
        14 => "user:".to_owned(),
        15 => String::new(),
        16 => "%3A".to_owned(),
        17 => "\0".to_owned(),
        18 => "x".repeat(300),
        _ => "index:slug:".to_owned(),
    }
}

/// The strings of one act.
struct Sent {
    owner: Option<String>,
    word: String,
    other: String,
    form: usize,
    /// The field after the owner in the record's key, where there is one.
    id: Option<&'static str>,
    has_owner: bool,
}

impl Sent {
    /// The values of a key: with an owner, without, or of another number.
    fn key(&self) -> Vec<Value> {
        let owner = self.owner.iter().filter(|_| self.has_owner).map(|owner| json!(owner));
        owner.chain(self.id.map(|_| json!(self.word))).collect()
    }

    fn record(&self) -> Value {
        let mut record = json!({ "text": self.other, "rank": self.form });
        if let (Some(owner), true) = (&self.owner, self.has_owner) {
            record["userId"] = json!(owner);
        }
        if let Some(id) = self.id {
            record[id] = json!(self.word);
        }
        match self.form {
            0 | 1 => record["slug"] = json!(self.other),
            2 => record["tags"] = json!(["red", self.other]),
            3 => record["place"] = json!({ "lat": 1.0, "lng": 2.0 }),
            4 => record["timestamp"] = json!(5),
            5 => record["email"] = json!(self.other),
            6 => record["userId"] = json!(7),
            _ => {}
        }
        record
    }

    fn query(&self) -> Query {
        let query = match &self.owner {
            Some(owner) if self.has_owner => Query::new().equal("userId", owner.as_str()),
            _ => Query::new(),
        };
        let query = query.take(1 + self.form % 3);
        match self.form {
            0 => query,
            1 => query.scan(),
            2 => query.order("rank", Order::Descending),
            3 => query.range("rank", 0..9),
            4 => query.equal("tags.*", "red"),
            5 => query.any("userId", self.word.as_str()).any("userId", self.other.as_str()),
            6 => query.index("everyone").equal("rank", 1),
            7 => query.index("full"),
            8 => query.starts_with("userId", &self.word),
            9 => query.index("slug").equal("slug", self.word.as_str()),
            10 => query.order("timestamp", Order::Ascending),
            _ => query.equal("userId", self.other.as_str()).scan(),
        }
    }

    fn near(&self) -> Near {
        let near = Near::new(1.0, 2.0).within(1e4).take(1 + self.form % 2);
        let near = near.index(if self.form.is_multiple_of(4) { "map" } else { "place" });
        match &self.owner {
            Some(owner) => near.equal("userId", owner.as_str()),
            None => near,
        }
    }

    fn change(&self, record: &mut Value) {
        match self.form {
            0 => record["userId"] = json!(self.other),
            1 | 2 => record["noteId"] = json!(self.other),
            3 => record["slug"] = json!(self.other),
            _ => record["text"] = json!(self.other),
        }
    }

    /// An addition to the counters of a record.
    fn increment(&self, collection: &str) -> Increment {
        Increment::of(collection, self.key()).add("hits", 5)
    }

    /// The group of an owner, or none.
    fn owner_values(&self) -> Vec<Value> {
        self.owner.iter().map(|owner| json!(owner)).collect()
    }

    /// Groups of an owner, or of all.
    fn groups(&self) -> GroupQuery {
        let query = GroupQuery::new(if self.form.is_multiple_of(2) { "mine" } else { "ranks" });
        match &self.owner {
            Some(owner) => query.within(owner.as_str()),
            None => query,
        }
    }

    /// A time before everything, or after it.
    fn moment(&self) -> u64 {
        if self.form.is_multiple_of(2) { 0 } else { u64::MAX }
    }

    /// An index, and values for it.
    fn unique(&self) -> (&'static str, Vec<Value>) {
        match self.form % 3 {
            0 => ("slug", vec![json!(self.word)]),
            1 => ("email", vec![json!("v@example.org")]),
            _ => {
                let owner = self.owner.iter().map(|owner| json!(owner));
                ("own_rank", owner.chain([json!(1)]).collect())
            }
        }
    }
}

const COLLECTIONS: [(&str, Option<&str>, bool); 8] = [
    ("note", Some("noteId"), true),
    ("note", Some("noteId"), true),
    ("note", Some("noteId"), true),
    ("preferences", None, true),
    ("post", Some("postId"), true),
    ("user", None, true),
    ("template", Some("name"), false),
    ("config", Some("name"), false),
];

/// Does it, and tells what came of it.
pub async fn perform(acting: &Store, act: &Act, victim: &str, attacker: &str) -> String {
    let (name, id, has_owner) = COLLECTIONS[act.collection];
    let sent = Sent {
        owner: match act.owner {
            0 => None,
            1 => Some(attacker.to_owned()),
            2 => Some(victim.to_owned()),
            _ => Some(word(act.other, victim, attacker)),
        },
        word: word(act.word, victim, attacker),
        other: word(act.other, victim, attacker),
        form: act.form,
        id,
        has_owner,
    };
    let method = METHODS[act.method];
    if let Some(method) = method.strip_prefix("transaction ") {
        return in_transaction(acting, name, method, &sent).await.told();
    }
    if method == "store increment_many" {
        return acting.increment_many([sent.increment(name)]).await.told();
    }
    if method == "store transaction_once" {
        return once(acting, name, &sent).await.told();
    }
    if let Some(method) = method.strip_prefix("plain ") {
        return by_key(acting, method, &sent).await;
    }
    let collection = acting.documents(name).await.unwrap();
    match method {
        "page" => every_page(&collection, &sent.query()).await,
        "near" => every_near(&collection, &sent.near()).await,
        "history" => every_version(&collection, &sent).await,
        _ => read(&collection, method, &sent).await,
    }
}

/// Any version, since no record has it.
fn version() -> Version {
    format!("{}-1", "0".repeat(32)).parse().unwrap()
}

async fn read(of: &Collection<Value>, method: &str, sent: &Sent) -> String {
    let (index, values) = sent.unique();
    match method {
        "get" => of.get(sent.key()).await.told(),
        "get_document" => of.get_document(sent.key()).await.told(),
        "get_many" => of.get_many([sent.key(), sent.key(), vec![json!("n1")]]).await.told(),
        "declaration" => of.declaration().await.map(|declared| json!(*declared)).told(),
        "name_of" => of.name_of(&sent.word).await.told(),
        "key_named" => of.key_named(&sent.word).await.told(),
        "key_of_owner_named" => of.key_of_owner_named(&sent.other, &sent.word).await.told(),
        "owned_keys" => of.owned_keys(sent.key()).await.told(),
        "get_by" => of.get_by(index, values).await.told(),
        "get_document_by" => of.get_document_by(index, values).await.told(),
        "documents" => of.documents(&sent.query()).await.told(),
        "keys" => of.keys(&sent.query()).await.told(),
        "count" => of.count(&sent.query()).await.told(),
        "count_entries" => of.count_entries(&sent.query()).await.told(),
        "get_version" => of.get_version(sent.key(), version()).await.told(),
        "get_as_of" => of.get_as_of(sent.key(), sent.moment()).await.told(),
        "counted" => of.counted("mine", sent.owner_values()).await.told(),
        "summed" => of.summed("ranks", sent.owner_values()).await.told(),
        "group" => of.group("ranks", sent.owner_values()).await.told(),
        "groups" => of.groups(&sent.groups()).await.told(),
        "top_groups" => of.top_groups(&sent.groups(), 3).await.told(),
        "min" => of.min(&sent.query(), "rank").await.told(),
        "max" => of.max(&sent.query(), "rank").await.told(),
        "explain" => of.explain(&sent.query()).await.told(),
        "near_documents" => of.near_documents(&sent.near()).await.told(),
        _ => write(of, method, sent).await,
    }
}

async fn write(of: &Collection<Value>, method: &str, sent: &Sent) -> String {
    let (key, record) = (sent.key(), sent.record());
    let mut patch = json!({});
    sent.change(&mut patch);
    let change = |record: &mut Value| {
        sent.change(record);
        Ok(())
    };
    match method {
        "insert" => of.insert(&record).await.told(),
        "insert_json" => of.insert_json(record.to_string()).await.told(),
        // Twice, so that it meets itself.
        "load" => of.load([&record, &record]).await.told(),
        "with_idempotency_key" => match of.with_idempotency_key(&sent.other) {
            Ok(of) if sent.form < 6 => of.insert(&record).await.told(),
            Ok(of) => is_there(of.delete(key).await).told(),
            Err(error) => error.told(),
        },
        "increment" => of.increment(key, [("hits", 1)]).await.told(),
        "increment_many" => of.increment_many([(key, [("hits", 2)])]).await.told(),
        "upsert" => of.upsert(&record).await.told(),
        "replace" => of.replace(&record).await.told(),
        "replace_if" => of.replace_if(&record, version()).await.told(),
        "update" => of.update(key, &patch, version()).await.told(),
        "with_retry" => of.with_retry(Retry::never()).update_with_retry(key, &patch).await.told(),
        "update_with_retry" => of.update_with_retry(key, &patch).await.told(),
        "modify" => of.modify(key, change).await.told(),
        "upsert_with" => of.upsert_with(&record, change).await.told(),
        "rename" => of.rename(key, change).await.told(),
        "delete" => is_there(of.delete(key).await).told(),
        "delete_if" => of.delete_if(key, version()).await.told(),
        _ => panic!("{method} is not tried"),
    }
}

async fn in_transaction(acting: &Store, name: &str, method: &str, sent: &Sent) -> Result<String> {
    let (index, values) = sent.unique();
    let values = &values;
    acting
        .transaction(|transaction| async move {
            let of = transaction.documents(name)?;
            let (key, record) = (sent.key(), sent.record());
            let mut patch = json!({});
            sent.change(&mut patch);
            Ok(match method {
                "get" => of.get(key).await.told(),
                "get_document" => of.get_document(key).await.told(),
                "get_by" => of.get_by(index, values.clone()).await.told(),
                "increment" => of.increment(key, [("hits", 3)]).await?.told(),
                "increment_many" => {
                    transaction.increment_many([sent.increment(name)]).await?.told()
                }
                "insert" => of.insert(&record).await?.told(),
                "upsert" => of.upsert(&record).await?.told(),
                "replace" => of.replace(&record).await.told(),
                "replace_if" => of.replace_if(&record, version()).await.told(),
                "delete" => of.delete(key).await.told(),
                "delete_if" => of.delete_if(key, version()).await.told(),
                "update" => of.update(key, &patch).await.told(),
                "update_if" => of.update_if(key, &patch, version()).await.told(),
                "page" => of.page(&sent.query()).await.told(),
                _ => panic!("{method} is not tried"),
            })
        })
        .await
}

/// With a key that others may have used too.
async fn once(acting: &Store, name: &str, sent: &Sent) -> Result<String> {
    acting
        .transaction_once(&sent.other, |transaction| async move {
            let of = transaction.documents(name)?;
            Ok(of.upsert(&sent.record()).await?.told())
        })
        .await
}

async fn by_key(acting: &Store, method: &str, sent: &Sent) -> String {
    let plain = acting.plain();
    let plain = if sent.form == 0 { plain.in_area("full").unwrap() } else { plain };
    match method {
        "get" => plain.get(&sent.word).await.told(),
        "put" => {
            let text = sent.record().to_string();
            plain.put(&sent.word, text).await.map(drop).told()
        }
        "with_idempotency_key" => match plain.with_idempotency_key(&sent.other) {
            Ok(plain) => plain.put(&sent.word, sent.record().to_string()).await.map(drop).told(),
            Err(error) => error.told(),
        },
        "delete" => plain.delete(&sent.word).await.told(),
        "list" => {
            let mut all = Vec::new();
            let mut cursor: Option<String> = None;
            loop {
                let listing = plain.list(&sent.word, 1 + sent.form, cursor.as_deref()).await;
                all.push(listing.told());
                cursor = match listing.ok().and_then(|listing| listing.next) {
                    Some(next) => Some(next.to_string()),
                    None => return all.join("; "),
                };
            }
        }
        _ => panic!("{method} is not tried"),
    }
}

async fn every_page(of: &Collection<Value>, query: &Query) -> String {
    let mut all = Vec::new();
    let mut query = query.clone();
    loop {
        let page = of.page(&query).await;
        all.push(page.told());
        query = match page.ok().and_then(|page| page.next) {
            Some(next) => query.from_cursor(next),
            None => return all.join("; "),
        };
    }
}

async fn every_version(of: &Collection<Value>, sent: &Sent) -> String {
    let mut all = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = of.history(sent.key(), 1 + sent.form, cursor.as_deref()).await;
        all.push(page.told());
        cursor = match page.ok().and_then(|page| page.next) {
            Some(next) => Some(next.to_string()),
            None => return all.join("; "),
        };
    }
}

async fn every_near(of: &Collection<Value>, near: &Near) -> String {
    let mut all = Vec::new();
    let mut near = near.clone();
    loop {
        let page = of.near(&near).await;
        all.push(page.told());
        near = match page.ok().and_then(|page| page.next) {
            Some(next) => near.from_cursor(next),
            None => return all.join("; "),
        };
    }
}
