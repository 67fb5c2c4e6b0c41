//! Looks at every record and every entry of a space.

use std::sync::Arc;

use keyloom::{Finding, FindingCounts, FindingKind, NotReady, Store, VerifyOptions};
use serde_json::{Value, json};

use super::findings::{counts, finding, not_ready};
use super::{Job, Outcome};

/// Verifies a space chunk by chunk.
pub(crate) async fn verify(store: Store, job: Arc<Job>) -> Outcome {
    let options = VerifyOptions::default();
    let mut verifier = store.verifier(&options).await?;
    let (mut kept, mut counted): (Vec<Value>, _) = (Vec::new(), FindingCounts::default());
    let (mut records, mut entries, mut unsettled) = (0, 0, 0);
    while let Some(chunk) = verifier.next_chunk().await? {
        records += chunk.records;
        entries += chunk.entries;
        unsettled += chunk.unsettled;
        chunk.findings.iter().for_each(|found| count(&mut counted, found));
        let room = options.findings_max.saturating_sub(kept.len());
        kept.extend(chunk.findings.iter().take(room).map(finding));
        job.progress.set(records, entries, counted.total());
    }
    let idle = verifier.not_ready().await?;
    Ok(json!({
        "is_clean": counted.total() == 0 && !idle.iter().any(NotReady::is_fault),
        "records": records,
        "entries": entries,
        "unsettled": unsettled,
        "counts": counts(&counted),
        "findings": kept,
        "not_ready": not_ready(&idle),
    }))
}

fn count(counts: &mut FindingCounts, found: &Finding) {
    let count = match found.kind {
        FindingKind::Missing => &mut counts.missing,
        FindingKind::Dangling => &mut counts.dangling,
        FindingKind::Wrong => &mut counts.wrong,
        FindingKind::Drifted => &mut counts.drifted,
        FindingKind::Unreadable => &mut counts.unreadable,
        FindingKind::Misfit => &mut counts.misfit,
        // A kind that this server does not know yet is told by its finding.
        _ => &mut counts.unknown,
    };
    *count += 1;
}
