//! docs/guide/verify.md

use keyloom::{
    JobOptions, JobProgress, JobResult, Pace, RepairOptions, Result, Schema, Started, Store, Work,
};
use serde_json::json;

const BEFORE: &str = r#"
[collection.user]
key = "user:{userId}"
[collection.user.fields]
userId = "text"
email  = "text"
"#;

const INDEX: &str = r#"
[collection.user.unique.email]
key = "index:email:{email}"
"#;

#[tokio::test]
async fn the_whole_page() -> Result<()> {
    let store = Store::open("memory:").await?;
    store.apply(&Schema::from_toml(BEFORE)?).await?;
    let users = store.documents("user").await?;
    users.insert(&json!({ "userId": "ana", "email": "ana@example.org" })).await?;
    let schema = Schema::from_toml(&format!("{BEFORE}{INDEX}"))?;

    let applied = store.apply(&schema).await?;
    for (collection, index) in &applied.to_build {
        store.build(collection, index).await?;
    }

    assert!(users.get_by("email", "ana@example.org").await?.is_some());

    let verification = store.verify().await?;
    for finding in &verification.findings {
        println!("{finding}");
    }
    for idle in &verification.not_ready {
        println!("{idle}"); // user.email is failed: email "a@x" is in user:1 and in user:2
    }
    assert!(verification.is_clean());

    let repair = store.repair(&RepairOptions { dry_run: true, ..RepairOptions::default() }).await?;
    println!("{} would be mended, {} left", repair.mended_counts, repair.left_counts);

    let options = JobOptions::default().with_pace(Pace::PercentOfTime(25));
    let job = match store.start_job(Work::Repair(RepairOptions::default()), options).await? {
        Started::Job(job) => job,
        Started::Rival(running) => running,
    };
    let hear = |so_far: JobProgress| println!("{} of about {:?}", so_far.done, so_far.about);
    if let Some(JobResult::Repaired(repair)) = job.run(hear).await? {
        println!("{} mended", repair.mended_counts);
    }
    assert!(store.jobs().await?.is_empty());
    Ok(())
}
