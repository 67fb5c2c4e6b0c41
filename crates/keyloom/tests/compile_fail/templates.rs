//! Templates and attributes that mean nothing.

use keyloom::{Choice, Record};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(key = "note:{id}")]
#[index(owner = "note:owner:{ownr}:{id}")]
struct UnknownField {
    id: String,
    owner: String,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "note:{id")]
struct BadSyntax {
    id: String,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "note:{id down}")]
struct UnknownModifier {
    id: String,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "note:{id}:{data.user}")]
struct UnseenType {
    id: String,
    data: serde_json::Value,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "note:{id}")]
#[index(owner = "note:owner:{owner}:{id}", unique)]
struct UnknownOption {
    id: String,
    owner: String,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "note:{id}")]
struct UnknownType {
    #[field(type = "txt")]
    id: String,
}

#[derive(Serialize, Deserialize, Record)]
struct NoKey {
    id: String,
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "user:{user}:notes:{id}", access = "private", owner = "user")]
struct Hidden {
    user: String,
    id: String,
}

#[derive(Serialize, Deserialize, Choice)]
#[transitions(Open = [Shut])]
enum Door {
    Open,
    Closed,
}

#[derive(Serialize, Deserialize, Choice)]
enum Shape {
    Circle(f64),
}

fn main() {}
