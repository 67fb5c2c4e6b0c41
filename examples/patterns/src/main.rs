//! `cargo run -p patterns`: users, notes, posts and places.

use keyloom::{Result, Store};
use patterns::Patterns;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let it = Patterns::open(&Store::open("memory:").await?).await?;
    for user in ["ana", "ben"] {
        let email = format!("{user}@example.org");
        it.users.insert(&json!({ "userId": user, "email": email })).await?;
        it.notes.insert(&json!({ "userId": user, "noteId": "n1", "text": "buy bread" })).await?;
    }
    it.publish(("ana", "p1"), 1_700_000_000_000, &["rust", "keys"], "Keys that a person reads")
        .await?;
    it.publish(("ben", "p2"), 1_700_000_000_500, &["rust"], "Batches").await?;
    let foreign = it.notes.acting_as("ben")?.get(("ana", "n1")).await?;
    println!("Ana's note, for Ben: {:?}", foreign.map(|note| note.key));
    if let Err(error) = it.publish(("ben", "p1"), 1_700_000_000_000, &[], "Mine").await {
        println!("refused: {error}");
    }
    for post in it.recent(10, None).await?.records {
        println!("recent: {} {}", post.key, post.value["text"]);
    }
    println!("tagged rust: {}", it.tagged("rust").await?.records.len());
    it.users.replace(&json!({ "userId": "ana", "email": "ana@example.net" })).await?;
    println!("old address: {:?}", it.by_email("ana@example.org").await?.map(|user| user.key));
    println!("new address: {:?}", it.by_email("ana@example.net").await?.map(|user| user.key));
    for (id, lat, lng) in
        [("bakery", 48.8566, 2.3522), ("museum", 48.8606, 2.3376), ("airport", 49.0097, 2.5479)]
    {
        let place = json!({ "id": id, "position": { "lat": lat, "lng": lng } });
        it.locations.insert(&place).await?;
    }
    for place in it.nearby(48.8570, 2.3500, 5_000.0).await?.records {
        println!("{:6.0} m to the {}", place.distance_m, place.record.value["id"]);
    }
    Ok(())
}
