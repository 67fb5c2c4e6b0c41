//! Realistic records of the five systems.

use serde_json::{Value, json};

use super::dice::Dice;
use crate::output::moment;

/// The schemas of the examples.
pub(super) const MAIN: [&str; 4] = [
    include_str!("../../../../../examples/approvals/keyloom.toml"),
    include_str!("../../../../../examples/executions/keyloom.toml"),
    include_str!("../../../../../examples/flows/keyloom.toml"),
    include_str!("../../../../../examples/patterns/keyloom.toml"),
];
/// This example also has users, of another kind, so it gets a space of its own.
pub(super) const REPUTATION: &str = include_str!("../../../../../examples/reputation/keyloom.toml");

/// The end of the demo's time: 1 November 2026, 12:00 UTC. It does not follow the clock, so that
/// the same seed gives the same records.
const NOW_MS: u64 = 1_793_534_400_000;
const DAY_MS: u64 = 86_400_000;

/// A record of a collection.
pub(super) type Item = (&'static str, Value);

pub(super) const PEOPLE: [&str; 16] = [
    "ana", "ben", "chloe", "dmitri", "elif", "farid", "grace", "hiro", "ines", "jonas", "kemi",
    "lars", "mei", "noor", "oscar", "priya",
];
const REQUESTS: [&str; 10] = [
    "Deploy billing 4.2 to production",
    "Two days of leave",
    "New laptop, 16 GB",
    "Access to the data warehouse",
    "Refund of order 20418",
    "Rotate the signing keys tonight",
    "Travel to the Lisbon meetup",
    "Drop the staging database",
    "Raise the rate limit for partner 7",
    "Publish the incident report",
];
pub(super) const FLOWS: [&str; 6] =
    ["daily-report", "invoice-run", "onboarding", "nightly-backup", "price-import", "churn-alert"];
const AGENTS: [&str; 5] = ["researcher", "summarizer", "translator", "classifier", "planner"];
const TAGS: [&str; 8] = ["rust", "storage", "ops", "design", "travel", "food", "music", "news"];
const TITLES: [&str; 8] = [
    "What a key is for",
    "Notes from the road",
    "Five quiet mornings",
    "How we lost an index and found it",
    "Soup, mostly",
    "A record player for the office",
    "Reading a flame graph",
    "The case for boring queues",
];
const NOTES: [&str; 6] = [
    "milk, bread, stamps",
    "ask Mei about the invoice",
    "book the train before Friday",
    "idea: count what is due, not what is done",
    "passport ends in March",
    "return the bicycle pump",
];
const CITIES: [&(&str, f64, f64); 6] = [
    &("Berlin", 52.52, 13.405),
    &("Lisbon", 38.7223, -9.1393),
    &("Nairobi", -1.2921, 36.8219),
    &("Kyoto", 35.0116, 135.7681),
    &("Suva", -18.1248, 178.4501),
    &("Quito", -0.1807, -78.4678),
];
const PLACES: [&str; 6] = ["Cafe", "Library", "Bakery", "Museum", "Workshop", "Bookshop"];

/// A time within the last days.
fn recently(dice: &mut Dice, days: u64) -> u64 {
    NOW_MS - dice.below(days * DAY_MS)
}

/// Requests for approval, and their decisions.
pub(super) fn approvals(seed: u64, count: u64) -> Vec<Item> {
    let mut dice = Dice::new(seed, "approvals");
    let mut made = Vec::new();
    for number in 0..count {
        let id = dice.id(number);
        let requester = dice.mostly(&PEOPLE);
        let approver = dice.one(&PEOPLE);
        let status = match dice.below(10) {
            0..=2 => "pending",
            3..=7 => "approved",
            8 => "denied",
            _ => "canceled",
        };
        let record = json!({
            "id": id, "requester_id": requester, "approver_id": approver,
            "created_at": recently(&mut dice, 90), "code": Dice::code(number),
            "status": status, "text": dice.one(&REQUESTS),
        });
        made.push(("approval", record));
    }
    made
}

/// Workflow executions of agents.
pub(super) fn executions(seed: u64, count: u64) -> Vec<Item> {
    let mut dice = Dice::new(seed, "executions");
    let mut made = Vec::new();
    for _ in 0..count {
        let agent = dice.mostly(&AGENTS);
        let name = &dice.uuid()[..12];
        let started = recently(&mut dice, 30);
        let status = match dice.below(20) {
            0 => "RUNNING",
            1 => "FAILED",
            2 => "TIMED_OUT",
            3 => "ABORTED",
            _ => "SUCCEEDED",
        };
        let machine = format!("arn:aws:states:eu-central-1:123456789012:stateMachine:{agent}");
        let arn = format!("arn:aws:states:eu-central-1:123456789012:execution:{agent}:{name}");
        let mut record = json!({
            "executionArn": arn, "agentName": agent, "status": status,
            "startDate": moment(started as i64), "stateMachineArn": machine, "executionName": name,
        });
        if status != "RUNNING" {
            let seconds = 1 + dice.below(900);
            record["stopDate"] = moment((started + seconds * 1000) as i64).into();
            record["durationSeconds"] = seconds.into();
        }
        made.push(("execution", record));
    }
    made
}

/// Runs of flows, some of which wait for something.
pub(super) fn runs(seed: u64, count: u64) -> Vec<Item> {
    let mut dice = Dice::new(seed, "flows");
    let mut made: Vec<Item> = FLOWS.map(|flow| ("flow", json!({ "flow": flow }))).to_vec();
    for number in 0..count {
        let started = recently(&mut dice, 14);
        let status = match dice.below(10) {
            0 => "running",
            1 | 2 => "awaiting",
            3 => "failed",
            _ => "success",
        };
        let mut waiting = json!({});
        if status == "awaiting" {
            waiting["approve"] = json!({
                "status": "waiting", "awaitType": "event", "position": 2,
                "registeredAt": started + 4000, "timeoutAt": NOW_MS + dice.below(3 * DAY_MS),
            });
        }
        let emitted = match dice.chance(40) {
            true => json!({ "order.created": started + 1000, "report.sent": started + 9000 }),
            false => json!({}),
        };
        let record = json!({
            "flow": dice.mostly(&FLOWS), "run_id": format!("r{number:06}"), "status": status,
            "startedAt": started, "awaitingSteps": waiting, "emittedEvents": emitted,
        });
        made.push(("run", record));
    }
    made
}

/// Users with their own records, shared records, and places.
pub(super) fn patterns(seed: u64, count: u64) -> Vec<Item> {
    let mut dice = Dice::new(seed, "patterns");
    let mut made = Vec::new();
    for name in PEOPLE {
        made.push(("user", json!({ "userId": name, "email": format!("{name}@example.org") })));
        let theme = dice.one(&["light", "dark", "system"]);
        made.push(("preferences", json!({ "userId": name, "theme": theme, "language": "en" })));
    }
    for name in ["welcome", "reminder", "goodbye"] {
        made.push((
            "template",
            json!({ "name": name, "body": format!("Hello {{name}}, {name}.") }),
        ));
    }
    made.push(("config", json!({ "name": "limits", "uploadMegabytes": 25 })));
    for number in 0..count {
        let user = dice.mostly(&PEOPLE);
        made.push(match number % 4 {
            0 => (
                "note",
                json!({
                    "userId": user, "noteId": format!("n{number}"), "text": dice.one(&NOTES),
                }),
            ),
            1 => (
                "session",
                json!({
                    "userId": user, "sessionId": dice.uuid(), "startedAt": recently(&mut dice, 7),
                }),
            ),
            2 => (
                "post",
                json!({
                    "userId": user, "postId": format!("p{number}"),
                    "timestamp": recently(&mut dice, 365), "title": dice.one(&TITLES),
                    "tags": [dice.one(&TAGS)],
                }),
            ),
            _ => ("location", location(&mut dice, number)),
        });
    }
    made
}

fn location(dice: &mut Dice, number: u64) -> Value {
    let (city, lat, lng) = *dice.one(&CITIES);
    let mut near = |degrees: f64| {
        let metres = dice.below(10_000) as f64 / 10_000.0 - 0.5;
        ((degrees + metres * 0.08) * 10_000.0).round() / 10_000.0
    };
    let (lat, lng) = (near(lat), near(lng));
    let name = format!("{city} {}", dice.one(&PLACES));
    json!({ "id": format!("l{number}"), "name": name, "position": { "lat": lat, "lng": lng } })
}

/// Users, tags, reputations and votes.
pub(super) fn reputation(seed: u64, count: u64) -> Vec<Item> {
    let mut dice = Dice::new(seed, "reputation");
    let users: Vec<String> = PEOPLE.map(|_| dice.uuid()).to_vec();
    let mut made = Vec::new();
    for (name, user) in PEOPLE.iter().zip(&users) {
        made.push(("user", json!({ "user": user, "name": name })));
    }
    let Some(first) = users.first() else { return made };
    let tags = TAGS.map(|tag| (dice.uuid(), tag));
    for (tag, name) in &tags {
        made.push(("tag", json!({ "user": first, "tag": tag, "name": name })));
    }
    for user in &users {
        for (tag, _) in &tags[..2] {
            let score = dice.below(500);
            made.push(("reputation", json!({ "user": user, "tag": tag, "score": score })));
        }
    }
    for _ in 0..count {
        let pick = |dice: &mut Dice| users[dice.below(users.len() as u64) as usize].clone();
        let (user, target) = (pick(&mut dice), pick(&mut dice));
        let tag = &tags[dice.below(tags.len() as u64) as usize].0;
        let value = if dice.chance(80) { 1 } else { -1 };
        made.push((
            "vote",
            json!({
                "user": user, "tag": tag, "target": target, "key": dice.uuid(), "value": value,
            }),
        ));
    }
    made
}
