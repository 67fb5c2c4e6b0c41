//! What is near a place, held against a search through everything.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod long;

use std::sync::Arc;

use keyloom::engine::{Memory, Metered};
use keyloom::{ErrorKind, Near, Schema, Stopped, Store};
use proptest::prelude::*;
use serde_json::{Value, json};

const PLACES: &str = r#"
[collection.place]
key = "locations:{id}"

[collection.place.fields]
id       = "text"
kind     = "text"
position = { type = "point" }

[collection.place.geo.nearby]
key = "index:geo:{position geohash 6}:{id}"

[collection.place.geo.by_kind]
key = "index:kind:{kind}:{position geohash 4}:{id}"
"#;

#[derive(Clone, Debug)]
struct Place {
    lat: f64,
    lon: f64,
}

fn anywhere() -> impl Strategy<Value = Place> {
    let lat =
        prop_oneof![4 => -90.0..=90.0f64, 1 => Just(90.0), 1 => Just(-90.0), 1 => 89.9..=90.0f64];
    let lon = prop_oneof![4 => -180.0..=180.0f64, 1 => Just(180.0), 1 => Just(-180.0), 1 => 179.9..=180.0f64];
    (lat, lon).prop_map(|(lat, lon)| Place { lat, lon })
}

/// Most places lie close to the one that is asked for, so that cells and their borders matter.
fn around(center: Place) -> impl Strategy<Value = Place> {
    let step = prop_oneof![-0.001..=0.001f64, -0.05..=0.05f64, -3.0..=3.0f64];
    let near = (step.clone(), step).prop_map(move |(lat, lon)| Place {
        lat: (center.lat + lat).clamp(-90.0, 90.0),
        lon: (center.lon + lon + 180.0).rem_euclid(360.0) - 180.0,
    });
    prop_oneof![5 => near, 1 => anywhere()]
}

/// The distance by the spherical law of cosines with vectors: another formula than the library's.
fn distance_m(a: &Place, b: &Place) -> f64 {
    let vector = |place: &Place| {
        let (lat, lon) = (place.lat.to_radians(), place.lon.to_radians());
        [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
    };
    let (a, b) = (vector(a), vector(b));
    let chord = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    2.0 * 6_371_008.8 * (chord / 2.0).clamp(0.0, 1.0).asin()
}

async fn store_with(places: &[Place]) -> Store {
    filled(Store::open("memory:").await.unwrap(), places).await
}

async fn filled(store: Store, places: &[Place]) -> Store {
    store.apply(&Schema::from_toml(PLACES).unwrap()).await.unwrap();
    let collection = store.documents("place").await.unwrap();
    for (number, place) in places.iter().enumerate() {
        let record = json!({
            "id": format!("p{number:04}"),
            "kind": if number % 2 == 0 { "even" } else { "odd" },
            "position": { "lat": place.lat, "lon": place.lon },
        });
        collection.insert(&record).await.unwrap();
    }
    store
}

async fn all_pages(store: &Store, near: Near) -> Vec<(String, f64)> {
    let collection = store.documents("place").await.unwrap();
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let asked =
            cursor.take().into_iter().fold(near.clone(), |near, cursor| near.from_cursor(cursor));
        let page = collection.near(&asked).await.unwrap();
        assert!(page.problems.is_empty());
        found.extend(page.records.into_iter().map(|nearby| {
            let id = nearby.record.value["id"].as_str().unwrap().to_owned();
            (id, nearby.distance_m)
        }));
        match page.next {
            Some(next) => cursor = Some(next.to_string()),
            None => return found,
        }
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long::times(60)))]

    #[test]
    fn near_finds_exactly_what_is_near_and_nearest_first(
        (center, places) in anywhere().prop_flat_map(|center| {
            (Just(center.clone()), prop::collection::vec(around(center), 0..80))
        }),
        radius in prop_oneof![10.0..=1e4f64, 1e4..=1e6f64, Just(2.1e7)],
        take in 1usize..30,
        limit in prop::option::of(800usize..1_600),
    ) {
        block_on(async {
            let store = store_with(&places).await;
            for (index, kind) in [("nearby", None), ("by_kind", Some("odd"))] {
                let near = Near::new(center.lat, center.lon).within(radius).index(index).take(take);
                // Enough for all places, so that it never fails, and not for every ring of a page.
                let near = limit.into_iter().fold(near, Near::limit);
                let near = kind.into_iter().fold(near, |near, kind| near.equal("kind", kind));
                let found = all_pages(&store, near).await;
                for pair in found.windows(2) {
                    assert!(pair[0].1 <= pair[1].1, "{pair:?} are not nearest first");
                }
                for (number, place) in places.iter().enumerate() {
                    let (id, distance) = (format!("p{number:04}"), distance_m(&center, place));
                    let times = found.iter().filter(|(found, _)| *found == id).count();
                    let wanted = kind.is_none() || number % 2 == 1;
                    if wanted && distance < radius - 0.1 {
                        assert_eq!(times, 1, "{id} at {distance} m, radius {radius}");
                    } else if !wanted || distance > radius + 0.1 {
                        assert_eq!(times, 0, "{id} at {distance} m, radius {radius}");
                    }
                }
                for (id, told) in &found {
                    let number: usize = id[1..].parse().unwrap();
                    assert!((told - distance_m(&center, &places[number])).abs() < 0.1);
                }
            }
        });
    }
}

#[test]
fn a_neighbour_across_the_border_of_a_cell_is_found() {
    block_on(async {
        // Two places a few metres apart whose geohashes differ from the first character on.
        let places = [Place { lat: 0.00001, lon: 0.00001 }, Place { lat: -0.00001, lon: -0.00001 }];
        let store = store_with(&places).await;
        let near = Near::new(0.00001, 0.00001).within(10.0).index("nearby");
        assert_eq!(all_pages(&store, near).await.len(), 2);
    });
}

#[test]
fn one_place_is_found_by_every_way_to_write_it() {
    block_on(async {
        let places = [
            Place { lat: 12.5, lon: 180.0 },
            Place { lat: 12.5, lon: -180.0 },
            Place { lat: 90.0, lon: 0.0 },
            Place { lat: 90.0, lon: -123.0 },
        ];
        let store = store_with(&places).await;
        for (lat, lon, wanted) in [
            (12.5, 180.0, ["p0000", "p0001"]),
            (12.5, -180.0, ["p0000", "p0001"]),
            (90.0, 55.0, ["p0002", "p0003"]),
        ] {
            let found = all_pages(&store, Near::new(lat, lon).within(0.0).index("nearby")).await;
            assert_eq!(found, wanted.map(|id| (id.to_owned(), 0.0)), "{lat} {lon}");
        }
    });
}

#[test]
fn many_places_at_one_spot_are_all_told_once() {
    block_on(async {
        let places = vec![Place { lat: 10.0, lon: 10.0 }; 2_500];
        let store = store_with(&places).await;
        let found =
            all_pages(&store, Near::new(10.0, 10.0).index("nearby").within(5.0).take(999)).await;
        let mut ids: Vec<&String> = found.iter().map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((found.len(), ids.len()), (2_500, 2_500));
    });
}

#[test]
fn what_cannot_be_asked_is_refused() {
    block_on(async {
        let store = store_with(&[]).await;
        let places = store.documents("place").await.unwrap();
        for near in [
            Near::new(91.0, 0.0).index("nearby"),
            Near::new(0.0, f64::NAN).index("nearby"),
            Near::new(0.0, 0.0).within(-1.0).index("nearby"),
            Near::new(0.0, 0.0).within(f64::NAN).index("nearby"),
            Near::new(0.0, 0.0).take(0).index("nearby"),
            Near::new(0.0, 0.0),
            Near::new(0.0, 0.0).index("by_kind"),
            Near::new(0.0, 0.0).index("nearby").equal("kind", "odd"),
        ] {
            let error = places.near(&near).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidQuery, "{error}");
        }
    });
}

#[test]
fn a_cursor_fits_its_own_question_only() {
    block_on(async {
        let store = store_with(&vec![Place { lat: 1.0, lon: 1.0 }; 5]).await;
        let places = store.documents("place").await.unwrap();
        let near = Near::new(1.0, 1.0).index("nearby").take(2);
        let next = places.near(&near).await.unwrap().next.unwrap().to_string();
        let other = Near::new(1.0, 1.5).index("nearby").take(2).from_cursor(&next);
        assert_eq!(places.near(&other).await.unwrap_err().kind(), ErrorKind::InvalidCursor);
        let page = places.near(&near.from_cursor(&next)).await.unwrap();
        let ids: Vec<&Value> =
            page.records.iter().map(|nearby| &nearby.record.value["id"]).collect();
        assert_eq!(ids, ["p0002", "p0003"]);
    });
}

/// Places all over the Earth, every six degrees.
fn everywhere() -> Vec<Place> {
    let lats = (0..30).map(|n| f64::from(n) * 6.0 - 87.0);
    lats.flat_map(|lat| (0..60).map(move |n| Place { lat, lon: f64::from(n) * 6.0 - 180.0 }))
        .collect()
}

#[test]
fn a_page_reads_no_more_than_its_limit_and_its_cursor_goes_on() {
    block_on(async {
        let places = everywhere();
        let metered = Metered::new(Arc::new(Memory::new()));
        let store = filled(Store::on(Arc::new(metered.clone())), &places).await;
        let collection = store.documents("place").await.unwrap();
        let center = Place { lat: 10.3, lon: 20.7 };
        let near = Near::new(center.lat, center.lon).index("nearby").take(300);
        let whole = all_pages(&store, near.clone()).await;
        assert_eq!(whole.len(), places.len());
        const LIMIT: usize = 800;
        let limited = near.clone().limit(LIMIT);
        assert_eq!(all_pages(&store, limited.clone()).await, whole);
        let mut asked = limited.clone();
        let mut stops = Vec::new();
        loop {
            metered.take();
            let page = collection.near(&asked).await.unwrap();
            assert!(page.read <= LIMIT, "{}", page.read);
            // An entry and its record for each, those read ahead in up to 48 cells at once, and the
            // epoch each time.
            let usage = metered.take();
            let attempts = 16;
            let ahead = attempts * 48 * 2 * 8;
            let most = 2 * LIMIT + ahead + usage.reads() as usize;
            assert!(usage.cells_read <= most as u64, "{usage:?} for {}", page.read);
            stops.push(page.stopped);
            let Some(next) = page.next else { break };
            asked = limited.clone().from_cursor(next);
        }
        assert!(stops.contains(&Stopped::Limit), "{stops:?}");
        assert_eq!(stops.pop(), Some(Stopped::End));
    });
}

#[test]
fn pages_with_bytes_give_the_same_places_in_the_same_order() {
    block_on(async {
        let places: Vec<Place> = (0..200)
            .map(|n| Place { lat: 10.0 + f64::from(n * 37 % 200) / 900.0, lon: 10.0 })
            .collect();
        let store = store_with(&places).await;
        let near = Near::new(10.05, 10.0).index("nearby").within(100_000.0);
        let whole = all_pages(&store, near.clone().take(1_000)).await;
        assert_eq!(whole.len(), 200);
        for bytes in [1, 100, 1_000, 5_000] {
            let asked = near.clone().take(1_000).bytes(bytes);
            let page = store.documents("place").await.unwrap().near(&asked).await.unwrap();
            assert_eq!(page.stopped, Stopped::Bytes, "{bytes}");
            assert_eq!(page.records.len() == 1, bytes <= 100, "{} of {bytes}", page.records.len());
            assert_eq!(all_pages(&store, asked).await, whole, "{bytes}");
        }
    });
}

#[test]
fn a_page_that_starts_far_from_everything_reads_each_cell_a_few_times() {
    block_on(async {
        // Thousands of places on the other side of the Earth, in a handful of large cells.
        let places: Vec<Place> = (0..6_000)
            .map(|n| Place { lat: 40.0 + f64::from(n % 80) / 8.0, lon: f64::from(n / 80) / 8.0 })
            .collect();
        let store = store_with(&places).await;
        let collection = store.documents("place").await.unwrap();
        let near = Near::new(-45.0, -175.0).index("nearby").take(10);
        let page = collection.near(&near).await.unwrap();
        assert_eq!(page.records.len(), 10);
        assert!(page.read < 10 * places.len(), "{}", page.read);
    });
}

#[test]
fn what_even_the_narrowest_ring_cannot_tell_within_the_limit_is_refused() {
    block_on(async {
        let store = store_with(&vec![Place { lat: 10.0, lon: 10.0 }; 300]).await;
        let places = store.documents("place").await.unwrap();
        let near = Near::new(10.0, 10.0).index("nearby").take(5);
        let error = places.near(&near.clone().limit(299)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
        assert_eq!(places.near(&near.clone().limit(600)).await.unwrap().records.len(), 5);
        assert_eq!(places.near(&near.limit(0)).await.unwrap_err().kind(), ErrorKind::InvalidQuery);
    });
}
