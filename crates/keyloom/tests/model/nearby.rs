//! What is near a place, held against a search through all of the client's records.

use keyloom::{Near, Nearby, Stored};
use serde_json::Value;

use super::client::Client;

/// Two formulas for one distance differ by less than this.
const TOLERANCE_M: f64 = 0.05;

impl Client {
    pub async fn near(&mut self) {
        let collection = self.world.shapes.iter().position(|shape| shape.name == "place");
        let collection = collection.unwrap_or_default();
        let (lat, lon) = self.draw().place();
        let radius_m = *self.random.pick(&[0.0, 300.0, 20_000.0, 700_000.0, 3e7]);
        let kind = match self.random.percent(50) {
            true => Some(self.draw().value("place", "kind")),
            false => None,
        };
        let take = *self.random.pick(&[1, 3, 10, 100]);
        self.note(|| format!("near {lat} {lon} within {radius_m} kind={kind:?} take={take}"));
        let mut near = Near::new(lat, lon).within(radius_m).take(take);
        near = match &kind {
            Some(kind) => near.index("kind").equal("kind", kind.clone()),
            None => near.index("near"),
        };
        let mut found: Vec<Nearby<Stored<Value>>> = Vec::new();
        let mut next = None;
        let mut complete = false;
        for _ in 0..3 {
            let asked = match &next {
                Some(next) => near.clone().from_cursor(next),
                None => near.clone(),
            };
            let answer = self.collections[collection].near(&asked).await;
            let Some(page) = self.read(answer) else { return };
            assert!(page.problems.is_empty(), "{:?}", page.problems);
            found.extend(page.records);
            next = page.next;
            if next.is_none() {
                complete = true;
                break;
            }
        }
        let mut missing: Vec<(String, f64)> = self.slots[collection]
            .iter()
            .filter_map(|slot| slot.known.as_ref())
            .filter(|known| kind.as_ref().is_none_or(|kind| known.value["kind"] == *kind))
            .filter_map(|known| Some((known.key.clone(), distance_m(&known.value, lat, lon)?)))
            .collect();
        let mut last_m = 0.0;
        for Nearby { record, distance_m: said_m } in &found {
            let is_m = distance_m(&record.value, lat, lon).unwrap();
            assert!((is_m - said_m).abs() < TOLERANCE_M, "{is_m} {said_m} {record:?}");
            assert!(last_m <= *said_m && *said_m <= radius_m, "{last_m} {said_m} {radius_m}");
            last_m = *said_m;
            if let Some(slot) = self.slot_of(collection, &record.key, &record.value) {
                self.slots[collection][slot].known.as_ref().unwrap().check(record);
                let at = missing.iter().position(|(key, _)| record.key == *key);
                missing.remove(at.unwrap_or_else(|| panic!("{record:?} does not belong here")));
            }
        }
        let end_m = if complete { radius_m } else { last_m };
        let left_out = missing.iter().find(|(_, distance_m)| *distance_m < end_m - TOLERANCE_M);
        assert!(left_out.is_none(), "the answer lacks {left_out:?}");
    }
}

/// The distance of a record from a place, by the chord between two points of a sphere.
fn distance_m(record: &Value, lat: f64, lon: f64) -> Option<f64> {
    let vector = |lat: f64, lon: f64| {
        let (lat, lon) = (lat.to_radians(), lon.to_radians());
        [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
    };
    let spot = &record["spot"];
    let (a, b) = (vector(spot["lat"].as_f64()?, spot["lon"].as_f64()?), vector(lat, lon));
    let chord = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    Some(2.0 * 6_371_008.8 * (chord / 2.0).min(1.0).asin())
}
