//! Random records. Values come from small pools, so that they meet; texts are such that escaping,
//! prefixes and separators matter.

use serde_json::{Map, Value, json};

use super::random::Random;

const TEXTS: [&str; 6] = ["ana", "ana:", "ana1", "%", "é\u{0}!", ""];
const TAGS: [&str; 6] = ["x", "x:y", "x%3Ay", "", "y", "z"];
const TIMES: [u64; 4] = [0, 9_999_999_999_999, 1_700_000_000_000, 1_700_000_000_001];
const SCORES: [f64; 8] = [-1.5, 0.0, -0.0, 1.5, 3.0, 1e300, -1e-300, 0.1];
const DAYS: [&str; 5] = [
    "2024-01-31T23:59:59.999Z",
    "2024-02-29T00:00:00.000Z",
    "1970-01-01T00:00:00.000Z",
    "2024-01-31T23:59:59.998Z",
    "9999-12-31T23:59:59.999Z",
];
const STATUSES: [&str; 3] = ["new", "open", "done"];
const KINDS: [&str; 3] = ["a", "ab", "b"];
const STATES: [&str; 3] = ["RUNNING", "FAILED", "SUCCEEDED"];
const CODES: &[u8] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
/// In the crowd, at the poles, and on both sides of the 180th meridian.
pub const CENTERS: [(f64, f64); 5] =
    [(48.8566, 2.3522), (90.0, 0.0), (-89.999, 170.0), (0.0, 180.0), (0.001, -179.999)];

/// Whose record it is, in a field of every record.
pub const CLIENT: &str = "client";

/// A text that only this client's records have.
pub fn own(client: usize, text: &str) -> String {
    format!("c{client}{text}")
}

/// The fields of a record's key, and whose it is. They follow from its slot; only a key that the
/// store made up follows from the record that is there.
pub fn identity(
    collection: &str,
    client: usize,
    slot: usize,
    present: Option<&Value>,
) -> Map<String, Value> {
    let shelf = own(client, TEXTS[slot % 3]);
    let row = (slot / 3) as i64 - 3;
    let identity = match collection {
        "item" => json!({ "shelf": shelf, "n": row }),
        "note" => json!({ "shelf": shelf, "n": row / 3, "m": slot as i64 - 10 }),
        "part" => json!({ "uid": format!("{:08x}0000400080000000{client:08x}", slot * 7) }),
        "arn" => json!({ "arn": format!("arn:aws:c{client}:{slot}{}", TEXTS[slot % 6]) }),
        _ => match present.map(|present| &present["id"]) {
            Some(id) => json!({ "id": id }),
            None => json!({ "id": format!("{client}{slot:025}") }),
        },
    };
    let Value::Object(mut identity) = identity else { unreachable!() };
    identity.insert(CLIENT.to_owned(), client.into());
    identity
}

/// Draws records for one client. The key of a record follows from its slot.
pub struct Draw<'d> {
    pub client: usize,
    pub random: &'d mut Random,
    /// How many values of each exclusive pool there are.
    pub rivals: usize,
    /// Whether fields may be left for the store to fill in.
    pub generate: bool,
}

impl Draw<'_> {
    /// A record of the collection for this slot. It resembles the present one, if there is one,
    /// so that some fields stay as they are.
    pub fn record(&mut self, collection: &str, slot: usize, present: Option<&Value>) -> Value {
        let mut record = identity(collection, self.client, slot, present);
        if self.generate && present.is_none() && collection == "ticket" {
            record.remove("id");
        }
        let fresh = self.fields(collection);
        for (name, value) in fresh {
            let kept = present.filter(|_| self.random.percent(50)).and_then(|old| old.get(&name));
            match kept {
                Some(kept) => record.insert(name, kept.clone()),
                None if value.is_null() && self.random.percent(50) => None,
                None => record.insert(name, value),
            };
        }
        Value::Object(record)
    }

    fn fields(&mut self, collection: &str) -> Map<String, Value> {
        let fields = match collection {
            "item" => json!({
                "owner": self.own_text(),
                "second": self.own_text(),
                "at": self.time(),
                "status": self.random.pick(&STATUSES),
                "tags": self.tags(),
                "email": self.rival("mail"),
                "alias": self.rival("alias"),
            }),
            "note" => json!({
                "name": self.text(),
                "title": self.rival("title"),
                "day": self.random.pick(&DAYS),
                "flag": self.flag(),
            }),
            "part" => json!({
                "kind": self.random.pick(&KINDS),
                "rank": self.random.below(7) as i64 - 3,
                "score": self.score(),
                "code": self.code(),
                "state": self.random.pick(&STATES),
                "steps": self.steps(),
            }),
            "place" => json!({
                "kind": self.random.pick(&TEXTS),
                "seat": self.rival("seat"),
                "spot": self.spot(),
            }),
            "arn" => json!({
                "flag": self.random.percent(50),
                "at": self.random.pick(&TIMES),
                "day": self.random.pick(&DAYS),
            }),
            _ => {
                let mut ticket = Map::new();
                if !self.generate || self.random.percent(50) {
                    let number = self.client * 1_000 + self.random.below(20);
                    let digit = |place: u32| char::from(CODES[number / 10_usize.pow(place) % 10]);
                    let code: String = (0..6).rev().map(digit).collect();
                    ticket.insert("code".into(), format!("T-{code}").into());
                    ticket.insert("opened".into(), (*self.random.pick(&TIMES)).into());
                }
                ticket.insert("queue".into(), self.own_text());
                Value::Object(ticket)
            }
        };
        let Value::Object(mut fields) = fields else { unreachable!() };
        fields.insert("free".to_owned(), self.random.below(4).into());
        fields
    }

    /// A record that must be refused.
    pub fn spoiled(&mut self, collection: &str, slot: usize) -> Value {
        let mut record = self.record(collection, slot, None);
        match collection {
            "item" => match self.random.below(3) {
                0 => record["at"] = json!(10_000_000_000_000_u64),
                1 => {
                    record["tags"] = json!(["1", "2", "3", "4", "5"]);
                    record["at"] = json!(1);
                }
                _ => record["status"] = json!("old"),
            },
            "note" => record["day"] = json!("2023-02-29T00:00:00.000Z"),
            "part" => record["rank"] = json!(100),
            "place" => record["spot"] = json!({ "lat": 91.0, "lon": 0.0 }),
            "arn" => record["at"] = Value::Null,
            _ => record["code"] = json!("T-00000O"),
        }
        record
    }

    /// A value that the field might have, to ask for.
    pub fn value(&mut self, collection: &str, path: &str) -> Value {
        let (name, rest) = path.split_once('.').unwrap_or((path, ""));
        match (name, rest) {
            ("tags", _) => json!(self.random.pick(&TAGS)),
            ("steps", "*.due") | ("at" | "opened", _) => json!(self.random.pick(&TIMES)),
            ("steps", _) => json!(self.random.pick(&["a.b", "b", "c"])),
            ("code", _) if collection == "part" => self.code(),
            _ => {
                let slot = self.random.below(12);
                let record = self.record(collection, slot, None);
                match record.get(name).filter(|value| !value.is_null()) {
                    Some(value) => value.clone(),
                    // A field that was left out this time.
                    None => self.fallback(name),
                }
            }
        }
    }

    fn fallback(&mut self, name: &str) -> Value {
        match name {
            "score" => json!(0.0),
            "flag" => json!(true),
            "rank" | "n" | "m" => json!(0),
            "id" => json!(format!("{:026}", 7)),
            "code" => json!("T-222222"),
            "day" => json!(DAYS[0]),
            "uid" => json!("00000000000040008000000000000000"),
            "kind" | "status" | "state" => panic!("{name} is always there"),
            _ => json!(own(self.client, TEXTS[0])),
        }
    }

    fn own_text(&mut self) -> Value {
        match self.random.percent(10) {
            true => Value::Null,
            false => own(self.client, TEXTS[self.random.below(TEXTS.len())]).into(),
        }
    }

    fn text(&mut self) -> Value {
        match self.random.percent(10) {
            true => Value::Null,
            false => (*self.random.pick(&TEXTS)).into(),
        }
    }

    fn flag(&mut self) -> Value {
        self.random.pick(&[json!(true), json!(false), Value::Null]).clone()
    }

    /// A value that clients want from one another.
    fn rival(&mut self, name: &str) -> Value {
        match self.random.percent(40) {
            true => Value::Null,
            false => format!("{name}:{}", self.random.below(self.rivals)).into(),
        }
    }

    fn time(&mut self) -> Value {
        match self.random.below(10) {
            0 => Value::Null,
            1..4 => json!(self.random.pick(&TIMES)),
            _ => json!(1_700_000_000_000 + self.random.below(20) as u64),
        }
    }

    fn tags(&mut self) -> Value {
        match self.random.below(6) {
            5 => Value::Null,
            count => (0..count.min(4)).map(|_| *self.random.pick(&TAGS)).collect(),
        }
    }

    fn score(&mut self) -> Value {
        match self.random.below(5) {
            0 => Value::Null,
            1 => json!(self.random.below(5)),
            _ => json!(self.random.pick(&SCORES)),
        }
    }

    fn code(&mut self) -> Value {
        let code = CODES[self.random.below(self.rivals.min(CODES.len()))];
        format!("P-{}", char::from(code)).into()
    }

    fn steps(&mut self) -> Value {
        let steps = (0..self.random.below(4)).map(|_| {
            let name = *self.random.pick(&["a.b", "b", "c", "%:"]);
            let step = match self.random.percent(80) {
                true => json!({ "due": self.random.pick(&TIMES) }),
                false => json!({}),
            };
            (name.to_owned(), step)
        });
        Value::Object(steps.collect())
    }

    fn spot(&mut self) -> Value {
        if self.random.percent(10) {
            return Value::Null;
        }
        let (lat, lon) = self.place();
        json!({ "lat": lat, "lon": lon })
    }

    /// A place close to one of the centres.
    pub fn place(&mut self) -> (f64, f64) {
        let &(lat, lon) = self.random.pick(&CENTERS);
        let reach = *self.random.pick(&[0.0, 0.002, 0.1, 5.0]);
        let mut shift = || (self.random.below(2_001) as f64 / 1_000.0 - 1.0) * reach;
        let lat = (lat + shift()).clamp(-90.0, 90.0);
        let lon = (lon + shift() + 180.0).rem_euclid(360.0) - 180.0;
        (lat, lon)
    }
}
