//! A job runner's store: runs, the steps that they await, and how many runs are in which status.
//!
//! A run and the counters of its flow change in one transaction, so that the counters follow the
//! runs. Increments never conflict: a thousand runs of one flow may end at once.

use std::time::Duration;

use keyloom::{
    Collection, Due, DueItem, Error, ErrorKind, Order, Page, Query, Result, Schema, Store, Stored,
};
use serde_json::{Map, Value, json};

/// The schema. Keyloom keeps the indexes and the counters; this program only says what it wants.
pub const SCHEMA: &str = include_str!("../keyloom.toml");

/// The flows and runs of a store.
pub struct Flows {
    store: Store,
    runs: Collection<Value>,
    flows: Collection<Value>,
}

impl Flows {
    /// The flows in a store, which is given the schema.
    pub async fn open(store: &Store) -> Result<Self> {
        store.apply(&Schema::from_toml(SCHEMA)?).await?;
        let runs = store.documents("run").await?;
        let flows = store.documents("flow").await?;
        Ok(Flows { store: store.clone(), runs, flows })
    }

    /// Makes a flow known, if it is not yet.
    pub async fn register(&self, flow: &str) -> Result<()> {
        match self.flows.insert(&json!({ "flow": flow })).await {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            other => other.map(drop),
        }
    }

    /// Starts a run: the run and the flow's counter, in one step.
    pub async fn start(&self, flow: &str, run_id: &str, started_at: u64) -> Result<()> {
        let run = json!({
            "flow": flow, "run_id": run_id, "status": "running", "startedAt": started_at,
            "awaitingSteps": {}, "emittedEvents": {},
        });
        self.store
            .transaction(async |tx| {
                tx.documents("run")?.insert(&run).await?;
                tx.documents("flow")?.increment(flow, [("stats.running", 1)]).await
            })
            .await
    }

    /// Brings a run into another status. One status loses what the other gains, in the same step.
    pub async fn become_status(&self, flow: &str, run_id: &str, status: &str) -> Result<()> {
        self.store
            .transaction(async |tx| {
                let runs = tx.documents("run")?;
                let mut run = runs.get((flow, run_id)).await?.ok_or_else(no_run)?.value;
                let before = run["status"].as_str().unwrap_or_default().to_owned();
                if before == status {
                    return Ok(());
                }
                run["status"] = json!(status);
                runs.replace(&run).await?;
                let deltas = [(format!("stats.{before}"), -1), (format!("stats.{status}"), 1)];
                tx.documents("flow")?.increment(flow, deltas).await
            })
            .await
    }

    /// Notes that a run waits for something, beside whatever else it waits for.
    pub async fn await_step(
        &self,
        flow: &str,
        run_id: &str,
        step: &str,
        timeout_at: u64,
    ) -> Result<()> {
        let waiting = json!({ "status": "waiting", "timeoutAt": timeout_at });
        self.merge(flow, run_id, "awaitingSteps", step, waiting).await
    }

    /// Notes that a run emitted an event. The names of events contain dots.
    pub async fn emit(&self, flow: &str, run_id: &str, event: &str, at: u64) -> Result<()> {
        self.merge(flow, run_id, "emittedEvents", event, json!(at)).await
    }

    async fn merge(
        &self,
        flow: &str,
        run_id: &str,
        map: &str,
        name: &str,
        value: Value,
    ) -> Result<()> {
        let entry = Map::from_iter([(name.to_owned(), value)]);
        let patch = Value::Object(Map::from_iter([(map.to_owned(), Value::Object(entry))]));
        self.runs.update_with_retry((flow, run_id), &patch).await.map(drop)
    }

    /// One run.
    pub async fn run(&self, flow: &str, run_id: &str) -> Result<Option<Stored<Value>>> {
        self.runs.get((flow, run_id)).await
    }

    /// How many runs of a flow are in which status.
    pub async fn stats(&self, flow: &str) -> Result<Option<Value>> {
        let found = self.flows.get(flow).await?;
        Ok(found.map(|flow| flow.value.get("stats").cloned().unwrap_or(json!({}))))
    }

    /// How many runs of a flow are in a status, as the runs themselves say.
    pub async fn counted(&self, flow: &str, status: &str) -> Result<i64> {
        self.runs.counted("by_status", (flow, status)).await
    }

    /// Steps whose time has passed, the most overdue first. Nobody else gets them for as long as
    /// the lease holds.
    pub async fn take_due(
        &self,
        worker: &str,
        now: u64,
        most: usize,
        lease: Duration,
    ) -> Result<Vec<DueItem<Stored<Value>>>> {
        let due = Due::new("due").until(now).take(most);
        Ok(self.runs.lease(&due, worker, lease).await?.items)
    }

    /// Ends a step that was due. It fails, and changes nothing, if the lease has passed to another
    /// worker meanwhile.
    pub async fn time_out(&self, item: &DueItem<Stored<Value>>) -> Result<()> {
        let key = (item.values["flow"].as_str(), item.values["run_id"].as_str());
        let (Some(flow), Some(run_id)) = key else { return Err(no_run()) };
        let step = item.values["awaitingSteps.*key"].as_str().unwrap_or_default();
        self.store
            .transaction(async |tx| {
                let runs = tx.documents("run")?;
                let mut run = runs.get((flow, run_id)).await?.ok_or_else(no_run)?.value;
                run["awaitingSteps"][step] = json!({ "status": "timed out" });
                runs.replace(&run).await?;
                tx.complete(&item.lease)?;
                Ok(())
            })
            .await
    }

    /// The newest runs of a flow.
    pub async fn newest(&self, flow: &str, take: usize) -> Result<Page<Stored<Value>>> {
        let newest = Query::new().equal("flow", flow).order("startedAt", Order::Descending);
        self.runs.page(&newest.take(take)).await
    }

    /// The collection of runs, for what has no method here.
    pub fn runs(&self) -> &Collection<Value> {
        &self.runs
    }

    /// The collection of flows, for what has no method here.
    pub fn flows(&self) -> &Collection<Value> {
        &self.flows
    }
}

fn no_run() -> Error {
    Error::new(ErrorKind::NotFound, "there is no such run")
}
