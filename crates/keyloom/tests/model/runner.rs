//! Runs clients in rounds, and says how to repeat a run that fails.
//!
//! Within a round the clients work at once. Between rounds nobody works: then the store is
//! reopened, a newer program joins, and everything is compared.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use keyloom::engine::{Engine, Unreliable};
use keyloom::{ErrorKind, IndexState, Query, Store};

use super::claims::Claims;
use super::client::{Client, World, retried};
use super::counters::{self, Counted};
use super::keyed::{self, KeyedCounts};
use super::random::Random;
use super::replayed;
use super::shape::{LATER, schema, schema_later, shapes};
use super::shared::{Increments, check, prepare};

/// How many operations all tests together do, unless `KEYLOOM_MODEL_OPS` says otherwise.
const OPERATIONS: u64 = 200_000;

/// How often a call fails where faults are injected.
const FAULT_RATE: f64 = 0.02;

/// How one run is set up.
pub struct Run {
    /// The name of the test.
    pub name: &'static str,
    /// Its part of all operations, in thousandths.
    pub share: u64,
    clients: usize,
    slots: usize,
    rounds: u64,
    faults: bool,
    snapshot: bool,
    log: bool,
}

impl Run {
    pub const fn new(name: &'static str, share: u64) -> Self {
        let (faults, snapshot, log) = (false, true, false);
        Run { name, share, clients: 1, slots: 12, rounds: 4, faults, snapshot, log }
    }

    /// So many clients, each with so many records of a collection at most.
    pub const fn clients(self, clients: usize, slots: usize) -> Self {
        Run { clients, slots, ..self }
    }

    pub const fn in_rounds(self, rounds: u64) -> Self {
        Run { rounds, ..self }
    }

    /// On an engine that fails now and then.
    pub const fn with_faults(self) -> Self {
        Run { faults: true, ..self }
    }

    /// With a change log, which is replayed at the end.
    pub const fn with_log(self) -> Self {
        Run { log: true, ..self }
    }

    /// On an engine whose answers may mix moments.
    pub const fn of_many_moments(self) -> Self {
        Run { snapshot: false, ..self }
    }
}

/// Opens the engine of a run; called again to reopen it after it was closed.
pub type Open<'o> = &'o dyn Fn(u64) -> Arc<dyn Engine>;

/// A number from the environment.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// The operations of all runs together.
fn operations_total() -> u64 {
    variable("KEYLOOM_MODEL_OPS").unwrap_or(OPERATIONS)
        * variable("KEYLOOM_LONG").unwrap_or(1).max(1)
}

impl Run {
    /// Runs, panics at the first wrong answer, and says how to repeat it.
    pub fn run(&self, reopens: bool, open: Open<'_>) {
        let seed = variable("KEYLOOM_SEED")
            .unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
        let clients =
            variable("KEYLOOM_MODEL_CLIENTS").map_or(self.clients, |number| number as usize);
        let operations = (operations_total() * self.share).div_ceil(1_000);
        let world = Arc::new(World {
            shapes: shapes(),
            claims: Mutex::new(Claims::default()),
            log: Mutex::new(VecDeque::new()),
            clients,
            slots: self.slots,
            faults: self.faults,
            snapshot: self.snapshot,
            increments: Increments::default(),
            counted: Counted::default(),
            keyed_counts: KeyedCounts::default(),
        });
        // One client on one thread does the same at every repetition.
        let mut runtime = match clients {
            1 => tokio::runtime::Builder::new_current_thread(),
            _ => tokio::runtime::Builder::new_multi_thread(),
        };
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        let failed = AtomicBool::new(true);
        let _guard = Report { run: self, seed, world: &world, failed: &failed };
        let done = runtime.block_on(self.rounds(&world, seed, operations, reopens, open));
        failed.store(false, Ordering::Relaxed);
        println!("{}: {done} operations of {clients} clients, seed {seed}", self.name);
    }

    async fn rounds(
        &self,
        world: &Arc<World>,
        seed: u64,
        operations: u64,
        reopens: bool,
        open: Open<'_>,
    ) -> u64 {
        let mut random = Random::new(seed);
        let mut engine = self.engine(open, &mut random);
        let store = Store::on(engine.clone());
        let first = if self.log { replayed::logged(&schema()) } else { schema() };
        retried(|| store.apply(&first)).await;
        prepare(&store).await;
        keyed::prepare(&store).await;
        counters::prepare(&store).await;
        let mut clients = Vec::new();
        for number in 0..world.clients {
            clients.push(Client::new(world.clone(), number, seed, store.clone()).await);
        }
        drop(store);
        let each = operations.div_ceil(self.rounds * world.clients as u64);
        for round in 0..self.rounds {
            clients = work(clients, each).await;
            if round == self.rounds / 2 {
                join_newer_program(world, &engine, &mut clients, each, &mut random).await;
            } else if reopens {
                let later = round > self.rounds / 2;
                engine = self.reopen(open, engine, &mut clients, later, &mut random).await;
            }
            for client in &mut clients {
                client.check_all().await;
                client.check_tallies().await;
            }
            check(&clients[0].store, &world.increments).await;
            keyed::check(&clients[0].store, &world.keyed_counts).await;
            counters::check(&clients[0].store, &world.counted).await;
        }
        verify(&engine).await;
        if self.log {
            replayed::check(&engine).await;
        }
        let done = clients.iter().map(|client| client.done).sum();
        drop(clients);
        engine.close().await.unwrap();
        done
    }

    fn engine(&self, open: Open<'_>, random: &mut Random) -> Arc<dyn Engine> {
        let engine = open(random.number());
        match self.faults {
            true => Arc::new(Unreliable::new(engine, random.number(), FAULT_RATE)),
            false => engine,
        }
    }

    async fn reopen(
        &self,
        open: Open<'_>,
        engine: Arc<dyn Engine>,
        clients: &mut [Client],
        later: bool,
        random: &mut Random,
    ) -> Arc<dyn Engine> {
        clients[0].note(|| "all: reopen".to_owned());
        engine.close().await.unwrap();
        drop(engine);
        let engine = self.engine(open, random);
        for client in clients {
            client.use_store(Store::on(engine.clone()), later).await;
        }
        engine
    }
}

/// Every client does so many operations, all at once.
async fn work(clients: Vec<Client>, operations: u64) -> Vec<Client> {
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            tokio::spawn(async move {
                client.run(operations).await;
                client
            })
        })
        .collect();
    let mut clients = Vec::new();
    for task in tasks {
        match task.await {
            Ok(client) => clients.push(client),
            Err(error) => resume_unwind(error.into_panic()),
        }
    }
    clients
}

/// A second handle adds indexes while the others go on with what they know; then it builds them.
async fn join_newer_program(
    world: &Arc<World>,
    engine: &Arc<dyn Engine>,
    clients: &mut Vec<Client>,
    operations: u64,
    random: &mut Random,
) {
    clients[0].note(|| "all: a newer program joins".to_owned());
    let newer = Store::on(engine.clone());
    let schema = schema_later();
    let applying = retried(|| newer.apply(&schema));
    let few = operations.min(200);
    let (_, working) = tokio::join!(applying, work(std::mem::take(clients), few));
    *clients = working;
    check_states(world, &newer).await;
    let building = async {
        for shape in world.shapes.iter().filter(|shape| shape.has_later()) {
            retried(|| newer.build(&shape.name, LATER)).await;
        }
    };
    let (_, working) = tokio::join!(building, work(std::mem::take(clients), few));
    *clients = working;
    clients[0].note(|| "all: the new indexes are built".to_owned());
    for client in clients {
        if random.percent(70) {
            let store = if random.percent(50) { newer.clone() } else { Store::on(engine.clone()) };
            client.use_store(store, true).await;
        }
    }
}

/// An index that is not built is refused, never read half.
async fn check_states(world: &World, newer: &Store) {
    for shape in world.shapes.iter().filter(|shape| shape.has_later()) {
        let state = retried(|| newer.index_state(&shape.name, LATER)).await;
        let documents = retried(|| newer.documents(&shape.name)).await;
        let refused = loop {
            match documents.keys(&Query::new().index(LATER)).await {
                Ok(_) => break false,
                Err(error) if error.kind() == ErrorKind::Unavailable => {}
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::IndexNotReady);
                    break true;
                }
            }
        };
        assert_eq!(refused, state == IndexState::Building, "{} is {state:?}", shape.name);
    }
}

async fn verify(engine: &Arc<dyn Engine>) {
    let store = Store::on(engine.clone());
    let verification = retried(|| store.verify()).await;
    assert!(verification.is_clean(), "{:#?}", verification.findings);
    assert_eq!(verification.unsettled, 0);
}

/// Tells how to repeat a run that panics.
struct Report<'r> {
    run: &'r Run,
    seed: u64,
    world: &'r World,
    failed: &'r AtomicBool,
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        if !self.failed.load(Ordering::Relaxed) {
            return;
        }
        println!("the last operations:");
        for line in self.world.log.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            println!("  {line}");
        }
        if self.world.clients > 1 {
            println!("clients run at once, so that a repetition can differ");
        }
        println!(
            "repeat with: KEYLOOM_SEED={} KEYLOOM_MODEL_OPS={} KEYLOOM_MODEL_CLIENTS={} \
             cargo test -p keyloom --test model -- --exact {}",
            self.seed,
            operations_total(),
            self.world.clients,
            self.run.name,
        );
    }
}
