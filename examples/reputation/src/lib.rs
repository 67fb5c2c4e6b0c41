//! Documents of a reputation system: who voted for whom, and who stands how high.

use keyloom::{Collection, Page, Query, Result, Schema, Store, Stored, Written};
use serde_json::{Value, json};

/// The schema.
pub const SCHEMA: &str = include_str!("../keyloom.toml");

/// The documents of a store.
pub struct Reputations {
    /// `usr_{uuid}`
    pub users: Collection<Value>,
    /// `usr_{uuid}_tag_{uuid}`
    pub tags: Collection<Value>,
    /// `usr_{uuid}_tag_{uuid}`, in the area `reputation`
    pub reputations: Collection<Value>,
    /// `usr_{uuid}_tag_{uuid}_tar_{uuid}_key_{uuid}`
    pub votes: Collection<Value>,
}

impl Reputations {
    /// The documents in a store, which is given the schema.
    pub async fn open(store: &Store) -> Result<Self> {
        store.apply(&Schema::from_toml(SCHEMA)?).await?;
        Ok(Reputations {
            users: store.documents("user").await?,
            tags: store.documents("tag").await?,
            reputations: store.documents("reputation").await?,
            votes: store.documents("vote").await?,
        })
    }

    /// Casts a vote; its key is drawn.
    pub async fn vote(
        &self,
        user: &str,
        tag: &str,
        target: &str,
        value: i64,
    ) -> Result<Written<Value>> {
        let vote = json!({ "user": user, "tag": tag, "target": target, "value": value });
        self.votes.insert(&vote).await
    }

    /// The votes of a user in a tag.
    pub async fn votes_by(&self, user: &str, tag: &str) -> Result<Page<Stored<Value>>> {
        self.votes.page(&Query::new().equal("user", user).equal("tag", tag).take(100)).await
    }

    /// The votes for a target in a tag.
    pub async fn votes_for(&self, target: &str, tag: &str) -> Result<Page<Stored<Value>>> {
        self.votes.page(&Query::new().equal("target", target).equal("tag", tag).take(100)).await
    }
}
