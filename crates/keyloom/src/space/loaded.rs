//! One state of a space's schema, as it lies in the catalog.

use crate::engine::{Address, Capabilities, Cell, Fence};
use crate::error::{Error, ErrorKind, Result};
use crate::own::OwnKey;
use crate::record::{Version, random_bytes};
use crate::schema::{
    Aggregate, Catalog, Collection, CursorSecret, Generation, Generations, Index, IndexState,
    Schema,
};

/// One state of the schema.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The catalog's version; `None` while the space has no catalog.
    pub(super) version: Option<Version>,
    pub(crate) catalog: Catalog,
    pub(crate) schema: Schema,
}

impl Loaded {
    /// What every batch is fenced with. A space without a catalog has no collections to write.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.version.map(|version| Fence { address: catalog_address(), stamp: version.stamp() })
    }

    pub(crate) fn state(&self, collection: &str, index: &str) -> &IndexState {
        self.catalog.state(collection, index)
    }

    /// Whether writers keep the entries of the index up to date.
    pub(crate) fn is_maintained(&self, collection: &Collection, index: &Index) -> bool {
        matches!(
            self.state(&collection.name, &index.name),
            IndexState::Ready | IndexState::Building
        )
    }

    /// The generations of an aggregate that writers keep up to date, each with whether records
    /// are marked in it: those of a generation that is not complete yet are.
    pub(crate) fn maintained(
        &self,
        aggregate: &Aggregate,
    ) -> impl Iterator<Item = (Generation, bool)> + use<> {
        let Aggregate { collection, name, .. } = aggregate;
        let Generations { current, next, .. } = self.catalog.generations(collection, name);
        let (current, next) = match self.state(collection, name) {
            IndexState::Ready => (Some((current, false)), next.map(|next| (next, true))),
            IndexState::Building => (Some((current, true)), None),
            IndexState::Disabled | IndexState::Failed { .. } => (None, None),
        };
        current.into_iter().chain(next)
    }

    /// The generation of an aggregate that is complete; an error when there is none.
    pub(crate) fn readable(&self, aggregate: &Aggregate) -> Result<Generation> {
        self.check_state(&aggregate.collection, "aggregate", &aggregate.name)?;
        Ok(self.catalog.generations(&aggregate.collection, &aggregate.name).current)
    }

    /// Refuses to read an index that is not complete.
    pub(crate) fn check_readable(&self, collection: &Collection, index: &Index) -> Result<()> {
        self.check_state(&collection.name, "index", &index.name)
    }

    fn check_state(&self, collection: &str, what: &'static str, name: &str) -> Result<()> {
        let (message, reason) = match self.state(collection, name) {
            IndexState::Ready => return Ok(()),
            IndexState::Building => {
                ("the index is still building; build it before it is read", None)
            }
            IndexState::Disabled => ("the index is disabled", None),
            IndexState::Failed { reason } => ("the index could not be built", Some(reason)),
        };
        let error = Error::new(ErrorKind::IndexNotReady, message)
            .with("collection", collection)
            .with(what, name);
        Err(match reason {
            Some(reason) => error.with("reason", reason),
            None => error,
        })
    }
}

/// The schema that the catalog's cell holds; none at all without a catalog.
pub(super) fn from_cell(cell: Option<Cell>) -> Result<Loaded> {
    let Some(cell) = cell else {
        return Ok(Loaded {
            version: None,
            catalog: Catalog::new(CursorSecret(random_bytes())),
            schema: Schema::default(),
        });
    };
    let bytes = cell
        .bytes()
        .ok_or_else(|| Error::new(ErrorKind::Corrupt, "the catalog's cell holds integers"))?;
    let catalog = Catalog::from_bytes(bytes)?;
    let schema = catalog.compile()?;
    Ok(Loaded { version: Some(Version::from_stamp(cell.stamp)), catalog, schema })
}

pub(crate) fn catalog_address() -> Address {
    OwnKey::Catalog.address()
}

/// Refuses the cell of a catalog that cannot be understood, or whose schema the engine cannot hold.
pub(crate) fn check_catalog(cell: Cell, capabilities: &Capabilities) -> Result<()> {
    from_cell(Some(cell))?.schema.check_against(capabilities)
}
