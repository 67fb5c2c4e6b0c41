//! `cargo run -p flows`: runs of two flows start, wait and end, and the counters follow.

use std::time::Duration;

use flows::Flows;
use keyloom::{Result, Store};

#[tokio::main]
async fn main() -> Result<()> {
    let store = Store::open("memory:").await?;
    let flows = Flows::open(&store).await?;
    for flow in ["invoice", "welcome-mail"] {
        flows.register(flow).await?;
        for run in 0..6 {
            let run_id = format!("run-{run}");
            flows.start(flow, &run_id, 1_700_000_000_000 + run).await?;
            flows.emit(flow, &run_id, "order.created", 1_700_000_000_500 + run).await?;
            match run {
                0 => flows.become_status(flow, &run_id, "failed").await?,
                1 => {
                    flows.await_step(flow, &run_id, "approval", 1_700_000_900_000).await?;
                    flows.become_status(flow, &run_id, "awaiting").await?;
                }
                2 | 3 => flows.become_status(flow, &run_id, "success").await?,
                _ => {}
            }
        }
        println!("{flow}: {}", flows.stats(flow).await?.unwrap_or_default());
        println!(
            "  of which failed, by the runs themselves: {}",
            flows.counted(flow, "failed").await?
        );
        for run in flows.newest(flow, 3).await?.records {
            println!("  {} {} {}", run.key, run.value["status"], run.value["emittedEvents"]);
        }
    }
    let minute = Duration::from_secs(60);
    for item in flows.take_due("worker-1", 1_700_001_000_000, 10, minute).await? {
        println!("due: {} of {}", item.values["awaitingSteps.*key"], item.record.key);
        flows.time_out(&item).await?;
    }
    println!("commits in the log: {}", store.log_bounds().await?.next.number() - 1);
    Ok(())
}
