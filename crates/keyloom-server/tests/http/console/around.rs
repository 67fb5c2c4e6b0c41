//! Searches around a place, and what happens when another index is chosen.

use serde_json::{Value, json};

use super::fixture::{self, PLACES};
use super::pages::{html, twin};
use crate::support::TestServer;

const PATH: &str = "/console/collections/place/";
const MIDDLE: &str = "lat=48.8566&lon=2.3522";

fn names(model: &Value) -> Vec<&str> {
    let rows = model["answer"]["rows"].as_array().unwrap();
    rows.iter().map(|row| row["record"]["name"].as_str().unwrap()).collect()
}

#[test]
fn places_are_found_nearest_first_with_their_distances_page_by_page() {
    let server = fixture::server();
    let path = format!("{PATH}?index=around&{MIDDLE}&limit=2");
    let mut model = twin(&server, &path);
    let mut seen: Vec<String> = Vec::new();
    let mut far = Vec::new();
    loop {
        seen.extend(names(&model).into_iter().map(str::to_owned));
        let rows = model["answer"]["rows"].as_array().unwrap();
        far.extend(rows.iter().map(|row| row["distance_m"].as_f64().unwrap()));
        let Some(next) = model["answer"]["next"].as_str() else { break };
        model = twin(&server, &format!("{path}&cursor={next}"));
    }
    assert_eq!(seen, PLACES.map(|(name, ..)| name));
    assert!(far.is_sorted() && far[0] < 1.0 && far[4] > 390_000.0, "{far:?}");
    // The API tells the same distances.
    let api = server.get(&format!("/v1/collections/place/near?index=around&{MIDDLE}")).expect(200);
    let told =
        api["records"].as_array().unwrap().iter().map(|it| it["distance_m"].as_f64().unwrap());
    assert!(told.eq(far), "{api}");

    let page = html(&server, &path);
    for shown in ["Distance", ">0 m<", ">1.2 km<", "cells of the index in rings"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let next = page.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let next = html(&server, &next.replace("&amp;", "&"));
    assert!(next.contains("Tour Eiffel") && next.contains("value=\"48.8566\""), "{next}");
}

#[test]
fn a_radius_and_the_fields_before_the_place_narrow_it() {
    let server = fixture::server();
    let near = twin(&server, &format!("{PATH}?index=around&{MIDDLE}&radius_m=5000"));
    assert_eq!(names(&near), ["Hôtel de Ville", "Louvre", "Tour Eiffel"]);
    let nothing = html(&server, &format!("{PATH}?index=around&lat=0&lon=0&radius_m=10"));
    assert!(nothing.contains("No record is that near."), "{nothing}");
    let city = twin(&server, &format!("{PATH}?index=in_city&where.city=Versailles&{MIDDLE}"));
    assert_eq!(names(&city), ["Versailles"]);
}

#[test]
fn a_place_that_the_record_itself_is_has_columns_for_its_two_members() {
    let server = TestServer::start(
        r#"
        [collection.spot]
        key = "spot:{id}"
        [collection.spot.fields]
        id       = "text"
        position = { type = "point", lat = "lat", lon = "lng", of = "record" }
        [collection.spot.geo.around]
        key = "around:{position geohash 6}:{id}"
        "#,
    );
    let spot = json!({ "id": "a", "lat": 48.5, "lng": 2.5, "name": "A" });
    server.json("POST", "/v1/collections/spot/records", &spot).expect(201);
    let page = html(&server, "/console/collections/spot/");
    let columns = "<th scope=\"col\">lat</th><th scope=\"col\">lng</th><th scope=\"col\">Other";
    assert!(page.contains(columns), "{page}");
    assert!(page.contains("<td>48.5</td><td>2.5</td>"), "{page}");
}

#[test]
fn what_was_typed_wrongly_is_told_beside_the_form() {
    let server = fixture::server();
    for (said, reason) in [
        ("lat=91&lon=0", "A latitude is -90 to 90 degrees"),
        ("lat=1&lon=x", "The parameter lon is no number"),
        ("lat=1", "Lat and lon say where"),
        ("lat=1&lon=1&radius_m=-5", "A radius is more than 0 metres"),
        ("lat=NaN&lon=1", "A latitude is -90 to 90 degrees"),
    ] {
        let answer = server.get(&format!("{PATH}?index=around&{said}"));
        let page = String::from_utf8(answer.body).unwrap();
        assert_eq!(answer.status, 400, "{said}");
        assert!(page.contains(reason) && page.contains("name=\"lat\""), "{said}: {page}");
    }
    let begun = html(&server, &format!("{PATH}?index=around"));
    assert!(begun.contains("Say a latitude and a longitude"), "{begun}");
    assert!(!begun.contains("role=\"alert\""));
}

fn alert(server: &TestServer, query: &str) -> bool {
    html(server, &format!("/console/collections/approval/?{query}")).contains("role=\"alert\"")
}

#[test]
fn another_index_is_chosen_without_a_complaint_about_the_one_before() {
    let server = fixture::server();
    let form = html(&server, "/console/collections/approval/?index=requester");
    assert!(form.contains("name=\"was\" value=\"requester\""), "{form}");
    let said = "where.requester_id=bob&order=created_at&filter.status=pending";
    assert!(!alert(&server, &format!("index=status&was=requester&{said}")));
    assert!(!alert(&server, &format!("was=requester&{said}")));
    let page = html(&server, &format!("{PATH}?index=around&was=key&order=id&keys_only=true"));
    assert!(!page.contains("role=\"alert\""), "{page}");
    // The page of a geo index leads to its search.
    let index = html(&server, "/console/collections/place/indexes/around");
    assert!(index.contains("href=\"/console/collections/place/?index=around\""), "{index}");
}
