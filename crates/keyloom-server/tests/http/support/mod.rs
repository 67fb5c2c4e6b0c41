//! A server for one test: its own store, its own port, stopped at the end.

pub mod browser;
pub mod raw;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use keyloom::engine::Engine;
use keyloom::{Schema, Store};
use keyloom_server::{App, Config, serve};
use serde_json::Value;
use tokio::sync::oneshot;

/// A running server on a store in memory.
pub struct TestServer {
    pub address: SocketAddr,
    /// The store behind it, to look at from the side.
    pub store: Store,
    agent: ureq::Agent,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// An answer that was read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub body: Vec<u8>,
}

impl TestServer {
    /// A server for this schema, as it is configured by default.
    pub fn start(schema: &str) -> Self {
        TestServer::with(schema, Config::default())
    }

    /// A server for this schema, configured.
    pub fn with(schema: &str, config: Config) -> Self {
        TestServer::on("memory:", schema, config)
    }

    /// A server for this schema, configured, on a store at this address.
    pub fn on(address: &str, schema: &str, config: Config) -> Self {
        TestServer::around(address, schema, config, |engine| engine)
    }

    /// The same, with something around its engine.
    pub fn around(
        address: &str,
        schema: &str,
        config: Config,
        wrap: impl FnOnce(Arc<dyn Engine>) -> Arc<dyn Engine> + Send + 'static,
    ) -> Self {
        let address = address.to_owned();
        let store = async move {
            let store = Store::open(&address).await.unwrap();
            Store::on(wrap(store.engine().clone()))
        };
        TestServer::opened(store, schema, config)
    }

    /// A server for this schema on this engine.
    pub fn on_engine(engine: Arc<dyn Engine>, schema: &str) -> Self {
        TestServer::opened(async { Store::on(engine) }, schema, Config::default())
    }

    fn opened(
        store: impl Future<Output = Store> + Send + 'static,
        schema: &str,
        config: Config,
    ) -> Self {
        let schema = Schema::from_toml(schema).unwrap();
        let (ready, started) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let store = store.await;
                store.apply(&schema).await.unwrap();
                let app = App::new(store.clone(), config);
                let server = serve(app, ([127, 0, 0, 1], 0).into()).await.unwrap();
                ready.send((server.address().unwrap(), store)).unwrap();
                let stop = async { drop(stopped.await) };
                server.run(stop).await.unwrap();
            });
        });
        let (address, store) = started.recv().unwrap();
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .allow_non_standard_methods(true)
            .build()
            .into();
        TestServer { address, store, agent, stop: Some(stop), thread: Some(thread) }
    }

    /// Sends a request and reads the whole answer.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Answer {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = self.agent.run(request.body(body.into()).unwrap()).unwrap();
        let (head, mut body) = answer.into_parts();
        let body = body.read_to_vec().unwrap();
        Answer { status: head.status.as_u16(), headers: head.headers, body }
    }

    /// Stops the server, and returns when it has.
    pub fn stop(self) {
        drop(self);
    }

    /// `GET`.
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    /// A request with a JSON body.
    pub fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(method, path, &[("content-type", "application/json")], body.to_string())
    }
}

impl Answer {
    /// The body as JSON.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The body as JSON, of an answer with this status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{text}");
        if self.body.is_empty() { Value::Null } else { self.value() }
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the server panicked");
        }
    }
}
