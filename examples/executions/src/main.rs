//! `cargo run -p executions`: three agents run, and their executions are listed.

use executions::{Executions, Of};
use keyloom::{Order, Result, Store};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let executions = Executions::open(&Store::open("memory:").await?).await?;
    for minute in 0..9 {
        let agent = ["planner", "researcher", "writer"][minute % 3];
        let arn = format!("arn:aws:states:eu-west-1:123456789012:execution:{agent}:run-{minute}");
        let started = format!("2026-01-02T03:{minute:02}:00.000Z");
        for status in ["RUNNING", if minute == 4 { "FAILED" } else { "SUCCEEDED" }, "RUNNING"] {
            let event = json!({
                "executionArn": arn, "agentName": agent, "status": status, "startDate": started,
            });
            let written = executions.observe(&event).await?;
            println!("{agent:<10} run-{minute} {status:<9} -> {:?}", written.effect);
        }
    }
    let day = ("2026-01-02T00:00:00.000Z", "2026-01-03T00:00:00.000Z");
    for of in [Of::Agent("writer"), Of::Status("FAILED")] {
        println!("\n{of:?}, newest first");
        for execution in executions.list(of, day, Order::Descending, None).await?.records {
            println!("  {} {}", execution.value["startDate"], execution.key);
        }
    }
    Ok(())
}
