//! A store that turned read-only: reads go on, writes are told to come back, and the log has it
//! now and then.

use std::sync::Arc;

use async_trait::async_trait;
use keyloom::engine::{
    Address, Batch, Capabilities, Cell, Direction, Engine, Memory, Outcome, Range, Row, Space,
    Stretch,
};
use keyloom::{Error, ErrorKind, Result};
use keyloom_server::Config;
use serde_json::json;
use tokio::sync::watch;

use crate::people::SCHEMA;
use crate::secrets::Log;
use crate::support::TestServer;

const FAILED: &str = "the store of this test is read-only after a failure to write";

/// An engine whose disk fails when the test says so.
struct Failing {
    inner: Memory,
    has_failed: watch::Receiver<bool>,
}

#[async_trait]
impl Engine for Failing {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        self.inner.get(space, addresses).await
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        self.inner.scan(space, ranges, limit, direction).await
    }

    async fn commit(&self, batch: Batch) -> Result<Outcome> {
        let has_failed = *self.has_failed.borrow();
        match has_failed {
            true => Err(Error::new(ErrorKind::ReadOnly, FAILED).with("reason", "no space left")),
            false => self.inner.commit(batch).await,
        }
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}

#[test]
fn a_store_that_turned_read_only_says_so_and_is_logged_once() {
    let log = Log::start();
    let (fail, has_failed) = watch::channel(false);
    let server = TestServer::around("memory:", SCHEMA, Config::default(), move |_| {
        Arc::new(Failing { inner: Memory::new(), has_failed })
    });
    let record = json!({ "id": "t1", "state": "open" });
    let tickets = "/v1/collections/ticket/records";
    server.json("PUT", &format!("{tickets}/t1"), &record).expect(201);
    assert_eq!(server.get("/ready").status, 200);
    fail.send(true).unwrap();

    let operation = json!({ "op": "put", "collection": "ticket", "key": "t2", "record": { "id": "t2", "state": "open" } });
    let many = json!({ "operations": vec![operation; 500] }).to_string();
    let writes = [
        ("PUT", format!("{tickets}/t1"), json!({ "id": "t1", "state": "done" }).to_string()),
        ("PATCH", format!("{tickets}/t1"), json!({ "state": "done" }).to_string()),
        ("DELETE", format!("{tickets}/t1"), String::new()),
        ("POST", tickets.to_owned(), json!({ "id": "t3", "state": "open" }).to_string()),
    ];
    for round in 0..10 {
        for (method, path, body) in &writes {
            let id = format!("read-only-{round}-{method}");
            let headers = [("content-type", "application/json"), ("x-request-id", &*id)];
            let answer = server.send(method, path, &headers, body.as_str());
            let problem = answer.expect(503);
            assert_eq!(problem["type"], "/problems/read-only", "{method}");
            assert_eq!(
                (&problem["retry"], &problem["outcome"]),
                (&true.into(), &"did_not_happen".into())
            );
            assert_eq!(answer.header("retry-after"), Some("60"), "{method}");
        }
        server.get(&format!("{tickets}/t1")).expect(200);
        let ready = server.get("/ready");
        assert_eq!(ready.header("retry-after"), Some("60"));
        let told = ready.expect(503);
        assert_eq!(told["type"], "/problems/read-only");
        assert!(told["detail"].as_str().unwrap().contains("read-only after a failure"), "{told}");
        assert_eq!(server.get("/health").status, 200);
    }
    // Nor does one request with many writes multiply it.
    let json = [("content-type", "application/json")];
    drop(server.send("POST", "/v1/batch", &json, many));

    let text = log.text();
    let lines = |what: &str| text.lines().filter(|line| line.contains(what)).collect::<Vec<_>>();
    let told = lines(FAILED);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].contains(" ERROR ") && told[0].contains("no space left"), "{told:?}");
    // Each request has its line, which an operator sees who asks for all of them.
    let requests = lines("id=\"read-only-");
    assert_eq!(requests.len(), 40);
    assert!(requests.iter().all(|line| line.contains(" INFO ")), "{requests:#?}");
}
