//! The storage patterns of agent tools, each a few calls: the indexes are Keyloom's work.

use keyloom::{
    Collection, Near, Nearby, Order, Page, Query, Result, Schema, Store, Stored, Version, Written,
};
use serde_json::{Value, json};

/// The schema.
pub const SCHEMA: &str = include_str!("../keyloom.toml");

/// Users, notes, posts and places of a store.
pub struct Patterns {
    /// `user:{userId}`
    pub users: Collection<Value>,
    /// `user:{userId}:notes:{noteId}`
    pub notes: Collection<Value>,
    /// `user:{userId}:posts:{postId}`
    pub posts: Collection<Value>,
    /// `locations:{id}`
    pub locations: Collection<Value>,
}

impl Patterns {
    /// What is in a store, which is given the schema.
    pub async fn open(store: &Store) -> Result<Self> {
        store.apply(&Schema::from_toml(SCHEMA)?).await?;
        Ok(Patterns {
            users: store.documents("user").await?,
            notes: store.documents("note").await?,
            posts: store.documents("post").await?,
            locations: store.documents("location").await?,
        })
    }

    /// Publishes a post: the record, its place among the recent ones, and one entry per tag.
    pub async fn publish(
        &self,
        (user, post): (&str, &str),
        timestamp: u64,
        tags: &[&str],
        text: &str,
    ) -> Result<Written<Value>> {
        let post = json!({
            "postId": post, "timestamp": timestamp, "tags": tags, "text": text,
        });
        self.posts.acting_as(user)?.insert(&post).await
    }

    /// Takes a post back with all its entries.
    pub async fn retract(&self, user: &str, post: &str) -> Result<Option<Version>> {
        self.posts.acting_as(user)?.delete(post).await
    }

    /// The newest posts of everyone, a page at a time.
    pub async fn recent(&self, take: usize, cursor: Option<&str>) -> Result<Page<Stored<Value>>> {
        let query = Query::new().order("timestamp", Order::Descending).take(take);
        self.posts.page(&cursor.into_iter().fold(query, Query::from_cursor)).await
    }

    /// The posts with a tag.
    pub async fn tagged(&self, tag: &str) -> Result<Page<Stored<Value>>> {
        self.posts.page(&Query::new().equal("tags.*", tag)).await
    }

    /// The notes of one user.
    pub async fn notes_of(&self, user: &str) -> Result<Page<Stored<Value>>> {
        self.notes.acting_as(user)?.page(&Query::new()).await
    }

    /// The user with an e-mail address.
    pub async fn by_email(&self, email: &str) -> Result<Option<Stored<Value>>> {
        self.users.get_by("email", email).await
    }

    /// The places within a radius, nearest first.
    pub async fn nearby(
        &self,
        lat: f64,
        lng: f64,
        radius_m: f64,
    ) -> Result<Page<Nearby<Stored<Value>>>> {
        self.locations.near(&Near::new(lat, lng).within(radius_m)).await
    }
}
