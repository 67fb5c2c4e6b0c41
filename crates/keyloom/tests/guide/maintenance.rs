//! docs/guide/maintenance.md

use std::time::Duration;

use keyloom::{MaintainOptions, Result, Store};

#[tokio::test]
async fn the_whole_page() -> Result<()> {
    let store = Store::open("memory:").await?;

    let done = store.maintain(&MaintainOptions::default()).await?;
    assert!(done.is_complete());
    println!("{} removed", done.removed());

    let mut options = MaintainOptions::bounded(1_000);
    loop {
        let done = store.maintain(&options).await?;
        if done.is_complete() {
            break;
        }
        options = options.after(&done);
    }

    let minute = Duration::from_secs(60);
    let maintainer = store.maintain_every(minute, MaintainOptions::bounded(10_000))?;
    let report = maintainer.stop().await;
    assert_eq!(report.failures, 0);
    Ok(())
}
