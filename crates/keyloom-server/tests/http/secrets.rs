//! What never gets into a log or an answer: tokens, secrets, keys, values, and where the store is.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keyloom::engine::{Address, Area, Batch, CommitFault, Effect, Space, Stamp, Unreliable};
use keyloom_server::Config;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::people::{Guarded, SCHEMA, SECRET, jwt};
use crate::support::TestServer;

/// Everything that was logged in this process since the first test here began.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Begins it, or goes on with it.
    pub fn start() -> Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        LOG.get_or_init(|| {
            let log = Log::default();
            tracing_subscriber::fmt()
                .with_max_level(tracing::Level::TRACE)
                .with_ansi(false)
                .with_writer(log.clone())
                .init();
            log
        })
        .clone()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Log {
    type Writer = Log;

    fn make_writer(&'w self) -> Log {
        self.clone()
    }
}

#[test]
fn no_token_key_or_value_gets_into_the_log() {
    let log = Log::start();
    let guarded = Guarded::start();
    let ana = jwt("zz-ana-zz");
    let ticket = "/v1/collections/ticket/records/zz-key-zz";
    let record = json!({ "id": "zz-key-zz", "state": "zz-value-zz" });
    guarded.put(&guarded.bot, ticket, record.clone());
    for token in [&guarded.admin, &guarded.reader, &guarded.tenant, &ana] {
        guarded.get(token, ticket);
        guarded.ask(token, "PUT", ticket, &json!({ "id": "zz-other-zz" }));
        guarded.ask(token, "PUT", ticket, &json!({ "id": 7, "state": ["zz-value-zz"] }));
        guarded.get(token, "/v1/collections/ticket/records?where.state=zz-value-zz");
        guarded.get(token, "/v1/collections/zz-name-zz/records?zz-name-zz=zz-value-zz");
        guarded.ask(token, "DELETE", ticket, &Value::Null);
    }
    guarded.ask_as(&guarded.bot, Some("zz-ana-zz"), "GET", ticket, &Value::Null);
    guarded.get("klm_zz-wrong-zz", ticket).expect(401);
    guarded.server.send("GET", ticket, &[("cookie", "keyloom_session=zz-cookie-zz")], "");
    let form =
        [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "same-origin")];
    let body = format!("token={}", guarded.admin);
    assert_eq!(guarded.server.send("POST", "/console/login", &form, body).status, 303);
    let text = log.text();
    assert!(text.contains("keyloom::access"), "{text}");
    assert!(text.contains("route=\"/v1/collections/{collection}/records/{key}\""), "{text}");
    assert!(text.contains("caller=\"bot\""), "{text}");
    let secret = STANDARD.encode(SECRET);
    let hidden = [&guarded.admin, &guarded.bot, &guarded.reader, &guarded.tenant, &ana, &secret];
    for hidden in hidden.map(String::as_str).into_iter().chain(["zz-", "thirty-two"]) {
        let line = text.lines().find(|line| line.contains(hidden));
        assert_eq!(line, None, "the log has {hidden}");
    }
}

/// What goes wrong inside the server is told by names: neither the log nor the answer has the key
/// or the value that it went wrong with, nor the place of the store.
#[test]
fn no_error_of_the_server_tells_a_key_a_value_or_a_place() {
    let log = Log::start();
    let folder = tempfile::tempdir().unwrap();
    let address = format!("file:{}", folder.path().join("yy-store-yy").display());
    let (give, given) = std::sync::mpsc::channel();
    let server = TestServer::around(&address, SCHEMA, Config::default(), move |engine| {
        let unreliable = Arc::new(Unreliable::new(engine, 1, 0.0));
        give.send(unreliable.clone()).unwrap();
        unreliable
    });
    let unreliable = given.recv().unwrap();
    let tickets = "/v1/collections/ticket/records";
    let one = format!("{tickets}/yy-key-yy");
    let record = json!({ "id": "yy-key-yy", "state": "yy-value-yy" });
    let mut answers = Vec::new();

    // The engine fails: before it wrote, and without telling what became of it.
    for fault in [CommitFault::Refused, CommitFault::RequestLost, CommitFault::AnswerLost] {
        unreliable.script([fault]);
        answers.push(server.json("PUT", &one, &record));
    }
    // Somebody else wrote into the store, and what lies there is no record, no entry, no count.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut batch = Batch::new(Space::main());
    for key in ["ticket:yy-key-yy", "tickets:yy-value-yy:yy-key-yy", "ticket:yy-other-yy"] {
        let bytes = "{\"state\": \"yy-value-yy\", yy-broken-yy".into();
        let effect = Effect::Put { stamp: Stamp([1; Stamp::BYTES]), bytes };
        batch.push(Address::new(Area::default_area(), key), None, Some(effect));
    }
    runtime.block_on(server.store.engine().commit(batch)).unwrap();
    answers.push(server.get(&one));
    answers.push(server.json("PATCH", &one, &json!({ "state": "yy-new-yy" })));
    answers.push(server.json("PATCH", &format!("{one}?if.state=yy-value-yy"), &json!({ "a": 1 })));
    let patch =
        json!({ "op": "patch", "collection": "ticket", "key": "yy-key-yy", "patch": {"a": 1} });
    answers.push(server.json("POST", "/v1/transaction", &json!({ "operations": [patch] })));
    answers.push(server.get(&format!("{one}/entries")));
    runtime.block_on(server.store.close()).unwrap();
    answers.push(server.get(&one));
    answers.push(server.json("PUT", &one, &record));
    answers.push(server.get(&format!("{tickets}?where.state=yy-value-yy")));

    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert!(statuses.iter().all(|status| *status >= 500), "{statuses:?}");
    for status in [500, 503, 504] {
        assert!(statuses.contains(&status), "{status}: {statuses:?}");
    }
    let text = log.text();
    let ours = ["WARN", "ERROR"].map(|level| format!(" {level} "));
    let lines: Vec<&str> =
        text.lines().filter(|line| ours.iter().any(|level| line.contains(level))).collect();
    for told in ["Corrupt", "Unavailable", "Closed"] {
        assert!(lines.iter().any(|line| line.contains(told)), "{told}: {lines:#?}");
    }
    let answered = answers.iter().map(|answer| String::from_utf8_lossy(&answer.body).into_owned());
    for told in lines.into_iter().map(str::to_owned).chain(answered) {
        for hidden in ["yy-", "file:", folder.path().to_str().unwrap(), ".rs:"] {
            assert!(!told.contains(hidden), "{hidden}: {told}");
        }
    }
}

/// The store behind the server breaks; callers learn that, and not where it is.
#[test]
fn no_answer_tells_where_the_store_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zz-store-zz");
    let address = format!("file:{}", path.display());
    let server = TestServer::on(&address, SCHEMA, Config::default());
    let ticket = "/v1/collections/ticket/records/t1";
    server.json("PUT", ticket, &json!({ "id": "t1", "state": "open" })).expect(201);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(server.store.close()).unwrap();
    let answers = [
        server.get(ticket),
        server.json("PUT", ticket, &json!({ "id": "t1", "state": "done" })),
        server.get("/v1/collections/ticket/records?where.state=open"),
        server.get("/v1/schema"),
        server.get("/metrics"),
        server.get("/health"),
        server.get("/nothing"),
    ];
    for answer in answers {
        let text = format!("{:?} {}", answer.headers, String::from_utf8_lossy(&answer.body));
        for hidden in ["zz-store", "file:", folder.path().to_str().unwrap(), ".rs:"] {
            assert!(!text.contains(hidden), "{text}");
        }
    }
}

#[test]
fn no_answer_repeats_a_token() {
    let guarded = Guarded::start();
    let token = "klm_zz-token-zz";
    for path in ["/v1/collections/ticket/records/t1", "/nothing", "/console/login"] {
        let answer = guarded.get(token, path);
        let text = format!("{:?} {}", answer.headers, String::from_utf8_lossy(&answer.body));
        assert!(!text.contains("zz-token"), "{text}");
    }
}
