//! `cargo run -p reputation`: two users vote for a third.

use keyloom::{Result, Store};
use reputation::Reputations;
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<()> {
    let it = Reputations::open(&Store::open("memory:").await?).await?;
    let mut users = Vec::new();
    for name in ["Ana", "Ben", "Cleo"] {
        let user = it.users.insert(&json!({ "name": name })).await?;
        println!("{name} is {}", user.key);
        users.push(text(&user.value()?, "user"));
    }
    let tag = it.tags.insert(&json!({ "user": users[0], "name": "helpful" })).await?.value()?;
    let tag = text(&tag, "tag");
    for voter in &users[..2] {
        println!("voted: {}", it.vote(voter, &tag, &users[2], 1).await?.key);
    }
    println!("votes for Cleo: {}", it.votes_for(&users[2], &tag).await?.records.len());
    println!("votes by Ana:   {}", it.votes_by(&users[0], &tag).await?.records.len());
    if let Err(error) = it.votes_by("b068e9ee1422edf7878440ab8b6", &tag).await {
        println!("refused: {error}");
    }
    Ok(())
}

fn text(record: &Value, field: &str) -> String {
    record[field].as_str().unwrap_or_default().to_owned()
}
