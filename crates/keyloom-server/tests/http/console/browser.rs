//! The console in a browser, as a person would use it.

use serde_json::{Value, json};

use super::fixture::{self, block_on, stored};
use crate::support::TestServer;
use crate::support::browser::{Browser, Setup};

/// How often a person looks for something before they give up.
const LOOKS: usize = 1_000;

/// A person with a browser in front of a server.
pub struct Person {
    pub server: TestServer,
    pub browser: Browser,
}

impl Person {
    /// Nobody where there is no browser.
    pub fn with(setup: Setup) -> Option<Self> {
        Browser::is_there()
            .then(|| Person { server: fixture::server(), browser: Browser::start(setup) })
    }

    pub fn open(&self, path: &str) {
        self.browser.open(&format!("http://{}{path}", self.server.address));
    }

    /// A picture of the page, which must not be broken.
    pub fn look(&self, name: &str) {
        assert_eq!(self.browser.complaints(), Vec::<String>::new(), "{name}");
        let widths = self.browser.run(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]",
        );
        assert_eq!(widths[0], widths[1], "{name} scrolls sideways");
        self.browser.picture(name);
    }

    /// Looks until the page shows this; keys that were pressed may still lead somewhere.
    #[track_caller]
    pub fn sees(&self, text: &str) {
        for _ in 0..LOOKS {
            if self.browser.shown().contains(text) {
                return;
            }
        }
        panic!("no {text:?} on {}: {}", self.browser.url(), self.browser.shown());
    }

    /// Looks until a script gives this; keys that were pressed may still lead somewhere.
    #[track_caller]
    pub fn notices(&self, script: &str, wanted: &Value) {
        let mut seen = Value::Null;
        for _ in 0..LOOKS {
            seen = self.browser.run(script);
            if seen == *wanted {
                return;
            }
        }
        panic!("{script} gives {seen} on {}, and not {wanted}", self.browser.url());
    }

    /// Waits for a job to be over, by looking at its page as a person does.
    fn waits_for(&self, text: &str) {
        for _ in 0..LOOKS {
            if self.browser.shown().contains(text) {
                return;
            }
            self.browser.open(&self.browser.url());
        }
        panic!("{text:?} never came: {}", self.browser.shown());
    }

    /// Sends a form twice. Each time another window shows what came of it: in one window a browser
    /// gives up the first page for the second, so that nothing could be told of it.
    #[track_caller]
    fn sends_twice(&self, button: &str, comes: &str) {
        self.browser.run("document.querySelector('main form').target = '_blank'");
        let here = self.browser.windows();
        self.browser.button(button).click();
        self.browser.button(button).click();
        let others: Vec<String> = (0..LOOKS)
            .map(|_| self.browser.windows())
            .find(|all| all.len() == here.len() + 2)
            .expect("two more windows");
        for window in others.iter().filter(|window| !here.contains(window)) {
            self.browser.turn_to(window);
            self.sees(comes);
            self.browser.close();
        }
        self.browser.turn_to(&here[0]);
    }

    /// From the overview to a record, by an index.
    fn finds_a_record(&self, has_script: bool) {
        self.open("/");
        self.sees("Space main");
        self.browser.find("table a[href*='/collections/approval/']").click();
        self.browser.find("#index option[value='requester']").click();
        if !has_script {
            self.browser.button("Choose").click();
        }
        self.browser.find("[name='where.requester_id']").fill("bob");
        self.browser.find("#order option[value='created_at']").click();
        self.browser.button("Show").click();
        self.sees("index approval.requester");
        self.browser.link("r001").click();
        self.sees("Every key that it owns");
        self.sees("approval:index:requester:bob:8239996299999:r001");
        self.sees("revision 3");
    }

    /// Edits the record while somebody else does.
    fn edits_with_a_conflict(&self) {
        let (browser, store) = (&self.browser, &self.server.store);
        browser.link("Edit").click();
        let text = browser.find("#text").property("value");
        let text = text.as_str().unwrap().replace("\"EUR\"", "\"USD\"");
        let approvals = block_on(store.documents("approval")).unwrap();
        block_on(approvals.update_with_retry("r001", &json!({ "reason": "Three laptops" })))
            .unwrap();
        browser.find("#text").fill(&text);
        browser.button("Save").click();
        self.sees("Somebody else changed this record while you did.");
        assert_eq!(stored(store, "approval", "r001").unwrap()["amount"]["currency"], "EUR");
    }
}

#[test]
fn a_person_finds_edits_verifies_and_repairs() {
    let Some(person) = Person::with(Setup::default()) else { return };
    let (browser, store) = (&person.browser, &person.server.store);
    person.finds_a_record(true);
    person.look("record");

    person.edits_with_a_conflict();
    person.look("conflict");
    browser.button("Save both").click();
    person.sees("The record was saved.");
    let saved = stored(store, "approval", "r001").unwrap();
    assert_eq!(saved["reason"], "Three laptops");
    assert_eq!(saved["amount"]["currency"], "USD");

    // The slash leads to the search from anywhere, and the search to the tree of keys.
    browser.press("/");
    browser.press("approval:\u{e007}");
    person.sees("Below approval:");
    browser.link("index:").click();
    browser.link("requester:").click();
    person.sees("bob:");
    person.look("keys");

    fixture::damage(store);
    browser.link("Verify").click();
    browser.button("Verify the space").click();
    person.waits_for("dangling");
    person.sees("missing");
    person.look("findings");
    browser.button("See what a repair would do").click();
    person.waits_for("Would be mended");
    assert!(!block_on(store.verify()).unwrap().is_clean());
    browser.button("Repair now").click();
    person.waits_for("2 faults were mended.");
    assert!(block_on(store.verify()).unwrap().is_clean());
    person.look("repaired");
}

#[test]
fn everything_works_without_scripts() {
    let Some(person) = Person::with(Setup { is_scriptless: true, ..Setup::default() }) else {
        return;
    };
    let browser = &person.browser;
    person.finds_a_record(false);
    assert_eq!(browser.count("html.scripted"), 0, "scripts are off");
    person.edits_with_a_conflict();
    browser.button("Save yours over theirs").click();
    person.sees("The record was saved.");
    let saved = stored(&person.server.store, "approval", "r001").unwrap();
    assert_eq!(saved["reason"], "Two laptops");
    assert_eq!(saved["amount"]["currency"], "USD");

    person.open("/console/collections/flow/record?key=orders");
    browser.find("[name='add.visits']").fill("39");
    browser.button("Add to counters").click();
    person.sees("The counters were changed.");
    assert_eq!(stored(&person.server.store, "flow", "orders").unwrap()["visits"], 42);

    browser.link("Delete…").click();
    browser.button("Delete the record").click();
    person.sees("The record was deleted.");
    person.sees("There are no records yet.");
    browser.link("New record").click();
    browser.find("#text").fill("{\"flow\": \"returns\"}");
    browser.button("Insert").click();
    person.sees("The record was made.");
    assert!(stored(&person.server.store, "flow", "returns").is_some());

    person.open("/console/verify");
    browser.button("Verify the space").click();
    person.waits_for("Everything fits.");
    person.look("scriptless");
}

#[test]
fn a_form_that_is_sent_twice_does_what_it_does_once() {
    let Some(person) = Person::with(Setup { is_scriptless: true, ..Setup::default() }) else {
        return;
    };
    let (browser, store) = (&person.browser, &person.server.store);
    let before = fixture::records(store, "place");
    person.open("/console/collections/place/new");
    browser.find("#text").fill("{\"name\": \"Orsay\"}");
    person.sends_twice("Insert", "The record was made.");
    assert_eq!(fixture::records(store, "place"), before + 1);

    let orders = "/console/collections/flow/record?key=orders";
    person.open(orders);
    browser.find("[name='add.visits']").fill("39");
    person.sends_twice("Add to counters", "The counters were changed.");
    assert_eq!(stored(store, "flow", "orders").unwrap()["visits"], 42);

    person.open(orders);
    browser.link("Edit").click();
    browser.find("#text").fill("{\"title\": \"All orders\"}");
    person.sends_twice("Save", "The record was saved.");
    person.open(orders);
    browser.link("Delete…").click();
    person.sends_twice("Delete the record", "The record was deleted.");
}

/// The pages that are looked at in every light and width.
const VIEWS: [(&str, &str); 14] = [
    ("overview", "/console/"),
    ("collection", "/console/collections/approval/?index=requester&where.requester_id=ana"),
    ("around", "/console/collections/place/?index=around&lat=48.8566&lon=2.3522"),
    ("record", "/console/collections/approval/record?key=r001"),
    ("counters", "/console/collections/flow/record?key=orders"),
    ("edit", "/console/collections/approval/record/edit?key=r001"),
    ("keys", "/console/keys?prefix=approval:record:r001"),
    ("index", "/console/collections/approval/indexes/status"),
    ("schema", "/console/schema"),
    ("changes", "/console/changes"),
    ("user", "/console/collections/note/?as=ana"),
    ("unknown", "/console/nothing"),
    ("refused", "/console/collections/approval/?index=status&where.approver_id=ana"),
    ("missing", "/console/collections/approval/record?key=none"),
];

#[test]
fn pages_fit_a_phone() {
    let Some(person) = Person::with(Setup { is_phone: true, ..Setup::default() }) else { return };
    for (name, path) in VIEWS {
        person.open(path);
        person.look(&format!("phone-{name}"));
    }
}

#[test]
fn pages_can_be_read_in_the_light_and_in_the_dark() {
    for (light, is_dark) in [("light", false), ("dark", true)] {
        let Some(person) = Person::with(Setup { is_dark, ..Setup::default() }) else { return };
        for (name, path) in VIEWS {
            person.open(path);
            person.look(&format!("{light}-{name}"));
            let faint = person.browser.run(CONTRAST);
            assert_eq!(faint, json!([]), "{light} {name}");
        }
    }
}

#[test]
fn the_theme_can_be_chosen_and_stays() {
    let Some(person) = Person::with(Setup::default()) else { return };
    let ground = || person.browser.run("return getComputedStyle(document.body).backgroundColor");
    person.open("/console/");
    let light = ground();
    person.browser.button("Theme: auto").click();
    person.browser.button("Theme: light").click();
    let dark = ground();
    assert_ne!(light, dark);
    person.open("/console/schema");
    assert_eq!(ground(), dark);
}

/// Every text whose contrast with its ground is below 4.5 to 1. Colours are read from a canvas,
/// which knows every way of writing them.
const CONTRAST: &str = r#"
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const over = (grounds) => {
        context.globalCompositeOperation = "source-over";
        context.clearRect(0, 0, 1, 1);
        for (const colour of grounds) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
        return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (rgb) => {
        const [r, g, b] = rgb.map((c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const faint = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());) {
        const element = node.parentElement;
        if (!node.data.trim() || !element.checkVisibility() || element.closest(".unseen, .skip, option, datalist, script")) continue;
        const grounds = [];
        for (let at = element; at; at = at.parentElement) grounds.unshift(getComputedStyle(at).backgroundColor);
        const ground = over(grounds);
        const text = over([...grounds, getComputedStyle(element).color]);
        const [low, high] = [light(ground), light(text)].sort((a, b) => a - b);
        const ratio = (high + 0.05) / (low + 0.05);
        if (ratio < 4.5) faint.push([node.data.trim().slice(0, 40), element.className, ratio.toFixed(2)]);
    }
    return faint;
"#;
