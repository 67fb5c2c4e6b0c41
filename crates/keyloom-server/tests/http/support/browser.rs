//! A browser for one test: Chromium without a window, told what to do through WebDriver.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// How a person has set up their browser.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup {
    pub is_scriptless: bool,
    pub is_dark: bool,
    pub is_phone: bool,
}

/// A running browser. Its process ends with it.
pub struct Browser {
    driver: Child,
    agent: ureq::Agent,
    session: String,
    _profile: tempfile::TempDir,
}

/// A part of a page.
pub struct Part<'b> {
    browser: &'b Browser,
    id: String,
}

/// The name under which WebDriver hands out elements.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

impl Browser {
    /// Whether there is a browser. Where checks must be complete, a missing one is a failure.
    pub fn is_there() -> bool {
        let found = Command::new("chromedriver").arg("--version").output().is_ok();
        let is_required = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(found || !is_required, "chromium and chromium-driver must be installed");
        if !found {
            eprintln!("not run: there is no chromedriver; install chromium and chromium-driver");
        }
        found
    }

    /// Starts a browser.
    pub fn start(setup: Setup) -> Self {
        let (driver, port) = start_driver();
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let profile = tempfile::tempdir().unwrap();
        let data = format!("--user-data-dir={}", profile.path().display());
        let mut arguments = vec![
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1280,860",
            &data,
        ];
        arguments.push("--hide-scrollbars");
        let scripts = if setup.is_scriptless { 2 } else { 1 };
        let options = json!({
            "args": arguments,
            "prefs": { "profile.managed_default_content_settings.javascript": scripts },
        });
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let mut browser = Browser {
            driver,
            agent,
            session: format!("http://127.0.0.1:{port}/session"),
            _profile: profile,
        };
        let begun = browser.post("", &wanted);
        let id = begun["sessionId"].as_str().expect("a session").to_owned();
        browser.session = format!("{}/{id}", browser.session);
        browser.set_up(setup);
        browser
    }

    fn set_up(&self, setup: Setup) {
        let scheme = if setup.is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": features }));
        // Without a window nobody gives the page the focus at a known moment, and keys that are
        // pressed before are lost.
        self.devtools("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        if setup.is_phone {
            let metrics =
                json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true });
            self.devtools("Emulation.setDeviceMetricsOverride", metrics);
        }
    }

    /// Opens an address.
    pub fn open(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// The address of the page.
    pub fn url(&self) -> String {
        self.get("/url").as_str().unwrap().to_owned()
    }

    /// The one part that a CSS selector finds.
    #[track_caller]
    pub fn find(&self, selector: &str) -> Part<'_> {
        self.locate("css selector", selector)
    }

    /// A link by its text.
    #[track_caller]
    pub fn link(&self, text: &str) -> Part<'_> {
        self.locate("xpath", &format!("//a[normalize-space(.)='{text}']"))
    }

    /// A button by its text.
    #[track_caller]
    pub fn button(&self, text: &str) -> Part<'_> {
        self.locate("xpath", &format!("//button[normalize-space(.)='{text}']"))
    }

    /// How many parts a CSS selector finds.
    pub fn count(&self, selector: &str) -> usize {
        let found = self.post("/elements", &json!({ "using": "css selector", "value": selector }));
        found.as_array().unwrap().len()
    }

    /// All text that the page shows now; nothing between two pages.
    pub fn shown(&self) -> String {
        let body = self.post("/element", &json!({ "using": "css selector", "value": "body" }));
        let Some(id) = body[ELEMENT].as_str() else { return String::new() };
        let text = self.get(&format!("/element/{id}/text"));
        text.as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    fn locate(&self, using: &str, value: &str) -> Part<'_> {
        let found = self.post("/element", &json!({ "using": using, "value": value }));
        let id = found[ELEMENT].as_str();
        let id = id.unwrap_or_else(|| panic!("{value} is not on {}: {found}", self.url()));
        Part { browser: self, id: id.to_owned() }
    }

    /// What a script gives, which the driver runs and not the page.
    pub fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Presses keys wherever the focus is.
    pub fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [
                    json!({ "type": "keyDown", "value": key }),
                    json!({ "type": "keyUp", "value": key }),
                ]
            })
            .collect();
        let failed = self.post(
            "/actions",
            &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }),
        );
        assert!(failed.is_null(), "{failed}");
    }

    /// The windows, the first one first.
    pub fn windows(&self) -> Vec<String> {
        let handles = self.get("/window/handles");
        handles.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
    }

    /// Turns to a window.
    pub fn turn_to(&self, window: &str) {
        self.post("/window", &json!({ "handle": window }));
    }

    /// Closes the window that it is turned to.
    pub fn close(&self) {
        self.agent.delete(format!("{}/window", self.session)).call().unwrap();
    }

    /// What the browser complains about, such as a broken policy.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({ "type": "browser" }));
        let entries = log.as_array().cloned().unwrap_or_default();
        let is_bad = |entry: &&Value| entry["level"] == "SEVERE" && entry["source"] != "network";
        entries.iter().filter(is_bad).map(|entry| entry["message"].to_string()).collect()
    }

    /// Keeps what the page looks like, as `target/screenshots/NAME.png`.
    pub fn picture(&self, name: &str) {
        let whole = json!({ "format": "png", "captureBeyondViewport": true });
        let shot = self.devtools("Page.captureScreenshot", whole);
        let bytes = STANDARD.decode(shot["data"].as_str().expect("a picture")).unwrap();
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }

    fn devtools(&self, command: &str, params: Value) -> Value {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": params }))
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.agent.post(format!("{}{path}", self.session));
        let request = request.header("content-type", "application/json");
        let mut answer = request.send(body.to_string()).unwrap();
        read(answer.body_mut())
    }

    fn get(&self, path: &str) -> Value {
        let mut answer = self.agent.get(format!("{}{path}", self.session)).call().unwrap();
        read(answer.body_mut())
    }
}

/// How many drivers are started before the test gives up.
const DRIVERS: usize = 20;

/// A driver and the port on which it listens. It asks for a free port for one kind of address and
/// then takes the same for the other, which somebody else may have: then it ends without a word.
fn start_driver() -> (Child, String) {
    (0..DRIVERS).find_map(|_| try_driver()).expect("a driver that listens")
}

fn try_driver() -> Option<(Child, String)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let told = "started successfully on port ";
    let port = BufReader::new(driver.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once(told)?.1.trim_end_matches('.').to_owned()));
    if port.is_none() {
        drop(driver.kill());
        drop(driver.wait());
    }
    Some((driver, port?))
}

fn read(body: &mut ureq::Body) -> Value {
    let bytes = body.with_config().limit(64 << 20).read_to_vec().unwrap();
    let mut answer: Value = serde_json::from_slice(&bytes).unwrap();
    answer["value"].take()
}

impl Part<'_> {
    /// Clicks it, and waits for the page that this may lead to.
    pub fn click(&self) {
        let failed = self.post("click", &json!({}));
        assert!(failed.is_null(), "{failed}");
    }

    /// What a property of it is now, such as `value`.
    pub fn property(&self, name: &str) -> Value {
        self.browser.get(&format!("/element/{}/property/{name}", self.id))
    }

    /// Empties it and types a text into it.
    pub fn fill(&self, text: &str) {
        self.post("clear", &json!({}));
        let failed = self.post("value", &json!({ "text": text }));
        assert!(failed.is_null(), "{failed}");
    }

    fn post(&self, command: &str, body: &Value) -> Value {
        self.browser.post(&format!("/element/{}/{command}", self.id), body)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends the browser with the session, and leaves it behind when it is killed.
        drop(self.agent.delete(&self.session).call());
        drop(self.driver.kill());
        drop(self.driver.wait());
    }
}
