//! `cargo run -p approvals [FOLDER]`: a few approvals in a folder, and every key they make.

use approvals::{Approvals, Decision};
use keyloom::engine::{Area, Direction, EngineExt, Range, ShowKey, Space};
use keyloom::{Result, Store};

#[tokio::main]
async fn main() -> Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "keyloom-data/approvals".to_owned());
    let store = Store::open(&format!("file:{folder}")).await?;
    let approvals = Approvals::open(&store).await?;

    let laptop = approvals.request("ana", "ben", "a new laptop").await?;
    let holiday = approvals.request("ana", "cleo", "two weeks in June").await?;
    approvals.request("ben", "ana", "the budget of June").await?;
    let code = laptop.code.as_deref().unwrap_or_default();
    let holiday_code = holiday.code.as_deref().unwrap_or_default();
    println!("ana asks ben for {} ({code})", laptop.text);

    if let Err(refused) = approvals.decide("ana", code, Decision::Approve).await {
        println!("ana cannot approve it herself: {refused}");
    }
    approvals.decide("ben", code, Decision::Approve).await?;
    approvals.decide("ana", holiday_code, Decision::Cancel).await?;
    if let Err(refused) = approvals.decide("ben", code, Decision::Deny).await {
        println!("what is decided stays so: {refused}");
    }

    println!("\nall that ana asked for or must decide, newest first:");
    for approval in approvals.all_of("ana", None).await?.records {
        let code = approval.code.as_deref().unwrap_or_default();
        println!("  {code}  {:<9} {}", format!("{:?}", approval.status), approval.text);
    }

    println!("\nthe keys in {folder}, byte for byte:");
    let all = Range::all(Area::default_area());
    for row in store.engine().scan_all(&Space::main(), &all, 100, Direction::Forward).await? {
        let value = row.cell.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        println!("  {}  {}", ShowKey(&row.key), shortened(value.unwrap_or_default()));
    }
    store.close().await
}

fn shortened(text: String) -> String {
    if text.chars().count() <= 48 {
        return text;
    }
    text.chars().take(47).chain(['…']).collect()
}
