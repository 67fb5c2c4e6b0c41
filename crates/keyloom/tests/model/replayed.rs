//! The log of a run, replayed into an empty store, gives the same store cell by cell.

use std::collections::BTreeSet;
use std::sync::Arc;

use keyloom::engine::{Area, Direction, Engine, EngineExt, Memory, Range, Row, Space};
use keyloom::{ErrorKind, Schema, Store};

use super::client::retried;

/// The schema with a log that keeps everything.
pub fn logged(schema: &Schema) -> Schema {
    schema.merge(&Schema::from_toml("[log]").unwrap()).unwrap()
}

/// Replays, and compares every cell.
pub async fn check(engine: &Arc<dyn Engine>) {
    let store = Store::on(engine.clone());
    // A replay that met a failure has filled a part of its store, and begins with another.
    let copy = loop {
        let copy = Store::on(Arc::new(Memory::new()));
        match copy.replay(&store).await {
            Ok(_) => break copy,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    };
    for area in areas(&store).await {
        let (cells, copied) = (cells(&store, &area).await, cells(&copy, &area).await);
        for (cell, copied) in cells.iter().zip(&copied) {
            assert_eq!(cell, copied, "in {area:?}");
        }
        assert_eq!(cells.len(), copied.len(), "in {area:?}");
    }
}

async fn areas(store: &Store) -> BTreeSet<Area> {
    let declaration = retried(|| store.schema()).await.declaration();
    let mut areas = BTreeSet::from([Area::own(), Area::default_area()]);
    for collection in declaration.collections.values() {
        areas.insert(Area::new(&collection.area).unwrap());
        let indexes =
            [&collection.index, &collection.unique, &collection.geo].into_iter().flatten();
        areas.extend(indexes.filter_map(|(_, index)| Area::new(index.area.as_ref()?).ok()));
    }
    areas
}

async fn cells(store: &Store, area: &Area) -> Vec<Row> {
    let (space, range) = (Space::main(), Range::all(area.clone()));
    retried(|| store.engine().scan_all(&space, &range, 10_000, Direction::Forward)).await
}
