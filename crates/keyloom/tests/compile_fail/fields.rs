//! Fields that cannot be what their attributes say.

use keyloom::{Record, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(key = "page:{id}")]
struct CounterOfText {
    id: String,
    #[counter]
    hits: String,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "page:{id}")]
struct CounterOfFraction {
    id: String,
    #[counter(min = 0)]
    share: Option<f64>,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "page:{id}")]
#[counter("hits")]
struct CounterByName {
    id: String,
    hits: bool,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "page:{id}")]
struct CounterWithWords {
    id: String,
    #[counter(least = 0)]
    hits: i64,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "session:{id}", expires_at = "ends")]
struct EndsInText {
    id: String,
    ends: String,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "session:{id}", expires_at = "ends")]
struct EndsInNumber {
    id: String,
    ends: Option<u64>,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "session:{id}", expires_at = "ends")]
struct EndsInDeclaredText {
    id: String,
    #[field(type = "text")]
    ends: String,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "session:{id}", expires_at = "ends.*")]
struct EndsOften {
    id: String,
    ends: Vec<Timestamp>,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "session:{id}", expires_at = "over")]
struct EndsNowhere {
    id: String,
    ends: Timestamp,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "block:{height}")]
struct KeyOfTooManyBits {
    height: u128,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "visit:{page}")]
struct KeyOfCharacters {
    page: Vec<char>,
}

fn main() {}
