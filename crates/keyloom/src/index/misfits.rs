//! Whether records fit what was just declared over them.

use std::collections::BTreeSet;

use crate::engine::ShowKey;
use crate::error::Result;
use crate::record::{misfits as misfits_of, read_record};
use crate::schema::{Change, Collection};
use crate::space::{Live, Misfit, Misfits, Walk};

/// How many records of a collection are looked at: a change of the schema must not take longer, the
/// more there are. `verify` looks at all.
const RECORDS_MAX: usize = 1_000;

/// How many misfits of a collection are told one by one.
const TOLD_MAX: usize = 8;

/// The collections whose fields were declared, or declared otherwise, by these changes and that
/// have records which do not fit.
pub(crate) async fn misfits(live: &Live, changes: &[Change]) -> Result<Vec<Misfits>> {
    let loaded = live.loaded().await?;
    let names: BTreeSet<&str> = changes.iter().filter_map(Change::asks_more_of).collect();
    let mut all = Vec::new();
    for name in names {
        let Some(collection) = loaded.schema.collections.get(name) else { continue };
        let found = look(live, collection).await?;
        if found.records > 0 {
            all.push(found);
        }
    }
    Ok(all)
}

async fn look(live: &Live, collection: &Collection) -> Result<Misfits> {
    let mut found = Misfits::none(&collection.name);
    // One more than is looked at tells whether there are more.
    let mut walk = Walk::of(&collection.key, collection.record_range()?, RECORDS_MAX + 1);
    while let Some(chunk) = walk.next(live).await? {
        for row in chunk.rows {
            if found.looked_at == RECORDS_MAX as u64 {
                found.is_exact = false;
                return Ok(found);
            }
            found.looked_at += 1;
            // What cannot be read at all is for `verify` to tell.
            let Ok((value, _)) = read_record(collection, &row.key, &row.cell) else { continue };
            let reasons = misfits_of(collection, &value);
            if reasons.is_empty() {
                continue;
            }
            found.records += 1;
            if found.first.len() < TOLD_MAX {
                let key = ShowKey(&row.key).to_string();
                found.first.push(Misfit { key, reason: reasons.join("; ") });
            }
        }
    }
    Ok(found)
}
