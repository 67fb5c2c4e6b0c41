//! Somebody who is new to the console: chooses, mistypes, finds their way by keys alone.

use serde_json::json;

use super::browser::Person;
use super::fixture::{block_on, stored};
use crate::support::browser::Setup;

#[test]
fn places_are_searched_from_the_page_of_their_index() {
    let Some(person) = Person::with(Setup::default()) else { return };
    let browser = &person.browser;
    person.open("/console/collections/place/indexes/around");
    browser.link("Search by distance").click();
    person.sees("Say a latitude and a longitude in degrees");
    browser.find("#lat").fill("48.8566");
    browser.find("#lon").fill("two");
    browser.button("Show").click();
    person.sees("The parameter lon is no number in its range.");
    assert_eq!(browser.find("#lat").property("value"), "48.8566");
    browser.find("#lon").fill("2.3522");
    browser.find("#radius_m").fill("5000");
    browser.button("Show").click();
    person.sees("4.2 km");
    person.sees("Tour Eiffel");
    assert_eq!(browser.count("table.records tbody tr"), 3);
    // Another index begins anew, without a complaint.
    browser.find("#index option[value='']").click();
    person.sees("records of place");
    assert_eq!(browser.count("[role=alert]"), 0);
}

#[test]
fn a_mistyped_amount_comes_back_beside_its_record() {
    let Some(person) = Person::with(Setup { is_scriptless: true, ..Setup::default() }) else {
        return;
    };
    let browser = &person.browser;
    person.open("/console/collections/flow/record?key=orders");
    browser.find("[name='add.visits']").fill("1o");
    browser.button("Add to counters").click();
    person.sees("What is added to visits must be a whole number.");
    assert_eq!(browser.find("[name='add.visits']").property("value"), "1o");
    browser.find("[name='add.visits']").fill("10");
    browser.button("Add to counters").click();
    person.sees("The counters were changed.");
    assert_eq!(stored(&person.server.store, "flow", "orders").unwrap()["visits"], 13);
}

#[test]
fn a_wrong_address_leads_back() {
    let Some(person) = Person::with(Setup::default()) else { return };
    person.open("/console/collections/approval/record?key=none");
    person.sees("404 There is nothing here");
    person.browser.link("Back to approval").click();
    person.sees("r000");
    person.open("/console/nowhere");
    person.browser.link("To the overview").click();
    person.sees("Space main");
}

/// The height of a line in a table.
const LINE_PX: f64 = 20.0;

#[test]
fn long_keys_are_read_whole_in_few_lines() {
    for is_phone in [false, true] {
        let Some(person) = Person::with(Setup { is_phone, ..Setup::default() }) else { return };
        let id = "arn:aws:states:eu-central-1:123456789012:execution:classifier:06284534b228";
        let approvals = block_on(person.server.store.documents("approval")).unwrap();
        block_on(approvals.insert(&json!({ "id": id, "status": "pending" }))).unwrap();
        person.open("/console/collections/approval/");
        let key = "document.querySelector('.records tbody .key')";
        let height = person.browser.run(&format!("return {key}.getBoundingClientRect().height"));
        assert!(height.as_f64().unwrap() <= 4.2 * LINE_PX, "{height}");
        let cell = format!("{key}.closest('th')");
        let is_whole = format!("return {cell}.scrollWidth <= {cell}.clientWidth");
        assert_eq!(person.browser.run(&is_whole), true);
    }
}

#[test]
fn long_texts_of_a_record_are_read_whole() {
    for is_phone in [false, true] {
        let Some(person) = Person::with(Setup { is_phone, ..Setup::default() }) else { return };
        let approvals = block_on(person.server.store.documents("approval")).unwrap();
        let texts = json!({ "words": "word ".repeat(100), "one": "x".repeat(500) });
        let record = json!({ "id": "long", "status": "pending", "texts": texts });
        block_on(approvals.insert(&record)).unwrap();
        person.open("/console/collections/approval/record?key=long");
        let json = "document.querySelector('pre.json')";
        let is_whole = format!("return {json}.scrollWidth <= {json}.clientWidth");
        assert_eq!(person.browser.run(&is_whole), true);
    }
}

#[test]
fn the_first_step_by_keys_leads_to_the_content_and_shows_where_one_is() {
    let Some(person) = Person::with(Setup::default()) else { return };
    person.open("/console/collections/approval/");
    person.browser.press("\u{e004}");
    person.notices(
        "const at = document.activeElement; \
         return [at.textContent, getComputedStyle(at).outlineStyle, at.getBoundingClientRect().width > 20]",
        &json!(["Skip to the content", "solid", true]),
    );
    person.browser.press("\u{e007}");
    person.notices("return document.activeElement.id", &json!("main"));
}
