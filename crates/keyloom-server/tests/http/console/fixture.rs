//! A store with a bit of everything, for the pages of the console.

use keyloom::Store;
use keyloom::engine::{Address, Area, Batch, Effect, Space, Stamp};
use serde_json::{Value, json};

use crate::support::TestServer;

pub const SCHEMA: &str = r#"
    [log]
    entries = 10000

    [collection.approval]
    key = "approval:record:{id}"
    history = { versions = 20 }
    [collection.approval.fields]
    id = "text"
    requester_id = "text"
    approver_id = "text"
    created_at = "timestamp"
    code = { type = "code", pattern = "A-******", generate = true }
    status = { type = "enum", values = ["pending", "approved", "denied"] }
    [collection.approval.index.requester]
    key = "approval:index:requester:{requester_id}:{created_at desc}:{id}"
    [collection.approval.index.status]
    key = "approval:index:status:{status}:{created_at desc}:{id}"
    [collection.approval.unique.code]
    key = "approval:code:{code}"
    [collection.approval.count.by_status]
    group = ["status"]

    [collection.flow]
    key = "flow:{flow}"
    fields = { flow = "text" }
    [collection.flow.counters]
    visits = {}
    "stats.*" = { min = 0 }

    [collection.note]
    key = "user:{userId}:notes:{noteId}"
    access = "owned"
    owner = "userId"
    fields = { userId = "text", noteId = "text" }

    [collection.place]
    key = "place:{id}"
    [collection.place.fields]
    id = { type = "id", generate = true }
    name = "text"
    city = "text"
    position = "point"
    [collection.place.geo.around]
    key = "place:around:{position geohash 6}:{id}"
    [collection.place.geo.in_city]
    key = "place:city:{city}:{position geohash 5}:{id}"

    [collection.post]
    key = "user:{userId}:posts:{postId}"
    access = "hybrid"
    owner = "userId"
    fields = { userId = "text", postId = "text", at = "timestamp" }
    [collection.post.index.recent]
    key = "posts:recent:{at desc}:{userId}:{postId}"
    holds = "{userId, postId}"
"#;

/// The beginning of the times in the fixture.
const START_MS: u64 = 1_760_000_000_000;

/// Places, from the middle of Paris outwards.
pub const PLACES: [(&str, &str, f64, f64); 5] = [
    ("Hôtel de Ville", "Paris", 48.8566, 2.3522),
    ("Louvre", "Paris", 48.8606, 2.3376),
    ("Tour Eiffel", "Paris", 48.8584, 2.2945),
    ("Versailles", "Versailles", 48.8049, 2.1204),
    ("Bellecour", "Lyon", 45.7578, 4.8320),
];

/// A server whose store has records.
pub fn server() -> TestServer {
    let server = TestServer::start(SCHEMA);
    block_on(fill(&server.store));
    server
}

/// Runs a future to its end.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

async fn fill(store: &Store) {
    let approvals = store.documents("approval").await.unwrap();
    let people = ["ana", "bob", "chi", "dana", "eli"];
    let reasons = [
        "Laptop for the new colleague",
        "Access to the billing system",
        "Travel to Lisbon",
        "A second screen",
    ];
    for number in 0..63_u64 {
        let status = ["approved", "pending", "denied", "approved"][number as usize % 4];
        let record = json!({
            "id": format!("r{number:03}"),
            "requester_id": people[(number * number % 5) as usize],
            "approver_id": people[(number as usize + 2) % 5],
            "created_at": START_MS + number * 3_700_000,
            "status": status,
            "reason": reasons[number as usize % 4],
            "amount": { "value": 120 + number * 7, "currency": "EUR" },
            "tags": ["hardware", "q3"],
        });
        approvals.insert(&record).await.unwrap();
    }
    let patch = json!({ "status": "approved", "decided": { "by": "chi", "remote": true } });
    approvals.update_with_retry("r001", &patch).await.unwrap();
    approvals
        .update_with_retry("r001", &json!({ "reason": "Two laptops", "tags": null }))
        .await
        .unwrap();
    let flows = store.documents("flow").await.unwrap();
    flows.insert(&json!({ "flow": "orders", "title": "Orders" })).await.unwrap();
    flows
        .increment("orders", [("visits", 3), ("stats.running", 7), ("stats.failed", 1)])
        .await
        .unwrap();
    let places = store.documents("place").await.unwrap();
    for (name, city, lat, lon) in PLACES {
        let position = json!({ "lat": lat, "lon": lon });
        let place = json!({ "name": name, "city": city, "position": position });
        places.insert(&place).await.unwrap();
    }
    let notes = store.documents("note").await.unwrap();
    let posts = store.documents("post").await.unwrap();
    for user in ["ana", "bob"] {
        let note = json!({ "userId": user, "noteId": "n1", "text": format!("{user} wrote this") });
        notes.insert(&note).await.unwrap();
        let post = json!({ "userId": user, "postId": "p1", "at": START_MS, "text": "hello" });
        posts.insert(&post).await.unwrap();
    }
}

/// Removes a key from under Keyloom, and puts another that belongs to no record.
pub fn damage(store: &Store) {
    let entry = |key: &str| Address::new(Area::default_area(), key.to_owned());
    let mut batch = Batch::new(Space::main());
    let missing = format!(
        "approval:index:status:pending:{}:r005",
        9_999_999_999_999 - (START_MS + 5 * 3_700_000)
    );
    batch.push(entry(&missing), None, Some(Effect::Delete));
    let dangling = "approval:index:status:denied:8239999999999:gone";
    let stamp = Stamp([0; Stamp::BYTES]);
    batch.push(entry(dangling), None, Some(Effect::Put { stamp, bytes: "\"gone\"".into() }));
    block_on(store.engine().commit(batch)).unwrap();
}

/// How many records a collection has.
pub fn records(store: &Store, collection: &str) -> u64 {
    block_on(async {
        let collection = store.documents(collection).await.unwrap();
        let all = keyloom::Query::new().scan();
        u64::try_from(collection.page(&all.take(10_000)).await.unwrap().records.len()).unwrap()
    })
}

/// The record at a name of a collection, as the store has it.
pub fn stored(store: &Store, collection: &str, key: &str) -> Option<Value> {
    block_on(async {
        let collection = store.documents(collection).await.unwrap();
        collection.get(key).await.unwrap().map(|stored| stored.value)
    })
}
