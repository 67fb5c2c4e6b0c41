//! docs/guide/types.md

use keyloom::{Choice, Id, Record, Result, Store, Timestamp, blocking};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Choice)]
#[serde(rename_all = "lowercase")]
#[transitions(Open = [Closed])]
enum Status {
    Open,
    Closed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "ticket:record:{id}")]
#[index(owner = "ticket:owner:{owner}:{created_at desc}:{id}")]
#[index(watcher = "ticket:watcher:{watcher}:{created_at desc}:{id}")]
#[unique(number = "ticket:number:{number}")]
struct Ticket {
    id: Id,
    owner: String,
    watcher: String,
    created_at: Timestamp,
    number: i64,
    status: Status,
}

fn ticket() -> Ticket {
    Ticket {
        id: Id::new(),
        owner: "ana".into(),
        watcher: "ben".into(),
        created_at: Timestamp::now(),
        number: 7,
        status: Status::Open,
    }
}

#[tokio::test]
async fn the_whole_page() -> Result<()> {
    let ticket = ticket();
    let start = Timestamp::from(0);

    let store = Store::open("memory:").await?;
    let tickets = store.collection::<Ticket>().await?;
    tickets.insert(&ticket).await?;
    let found = tickets.get(ticket.id.as_ref()).await?.unwrap();
    let closed = Ticket { status: Status::Closed, ..found.value };
    tickets.replace_if(&closed, found.version).await?;

    let newest = tickets.by_owner("ana").newest().page(20).await?;
    let since = tickets.by_owner("ana").created_at(start..).newest().page(20).await?;
    let one = tickets.by_number(7).get().await?;
    let both = tickets.by_owner("ana").or(tickets.by_watcher("ana")).newest().page(20).await?;
    let count = tickets.by_owner("ana").count().await?;
    for page in [newest, since, both] {
        assert_eq!(page.records.len(), 1);
        assert_eq!(page.records[0].value, closed);
    }
    assert_eq!(one.unwrap().value, closed);
    assert_eq!(count, 1);

    let documents = store.documents("ticket").await?;
    let same = documents.get_by("number", 7).await?.unwrap();
    assert_eq!(same.value["owner"], "ana");
    Ok(())
}

#[test]
fn without_a_runtime() -> Result<()> {
    let ticket = &ticket();

    let store = blocking::Store::open("memory:")?;
    let tickets = store.collection::<Ticket>()?;
    tickets.insert(ticket)?;
    let newest = tickets.by_owner("ana").newest().page(20).wait()?;
    assert_eq!(newest.records[0].value, *ticket);
    Ok(())
}
