//! docs/guide/typed.md

use keyloom::{Choice, Id, Record, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(key = "approval:record:{id}")]
#[index(requester = "approval:index:requester:{requester_id}:{created_at desc}:{id}")]
#[index(approver = "approval:index:approver:{approver_id}:{created_at desc}:{id}")]
#[unique(code = "approval:code:{code}")]
struct Approval {
    id: Id,
    requester_id: String,
    approver_id: String,
    created_at: Timestamp,
    #[field(pattern = "A-******", generate)]
    code: Option<String>,
    status: Status,
    note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Choice)]
#[serde(rename_all = "lowercase")]
#[transitions(Pending = [Approved, Denied, Canceled])]
enum Status {
    Pending,
    Approved,
    Denied,
    Canceled,
}

#[test]
fn what_is_declared() -> keyloom::Result<()> {
    let schema = Approval::schema()?;
    assert_eq!(schema.collection_names().collect::<Vec<_>>(), ["approval"]);
    Ok(())
}

#[tokio::test]
async fn what_is_written_and_read() -> keyloom::Result<()> {
    use keyloom::{ErrorKind, Store, Test};

    let store = Store::open("memory:").await?;
    let approvals = store.collection::<Approval>().await?;

    let mut approval = Approval {
        id: Id::new(),
        requester_id: "ana".to_owned(),
        approver_id: "ben".to_owned(),
        created_at: Timestamp::now(),
        code: None,
        status: Status::Pending,
        note: None,
    };
    let stored = approvals.insert(&approval).await?.value()?;
    let code = stored.code.expect("it was drawn");

    // By key, by a unique value.
    assert!(approvals.get(approval.id).await?.is_some());
    assert!(approvals.by_code(&code).get().await?.is_some());

    // A list, and the page after it.
    let mine = approvals.by_requester("ana").newest();
    let page = mine.page(20).await?;
    let more = mine.page(20).after(page.next).await?;
    assert!(more.records.len() <= 20);

    // A range, a union in one order without duplicates, a filter.
    let since = approval.created_at;
    assert_eq!(approvals.by_requester("ana").created_at(since..).count().await?, 1);
    let ours = approvals.by_requester("ana").or(approvals.by_approver("ana"));
    assert_eq!(ours.newest().page(20).await?.records.len(), 1);
    let open = ours.newest().filter("status", Test::Equals(Status::Pending.into()));
    assert_eq!(open.limit(1_000).page(20).await?.records.len(), 1);

    // Transitions are guarded on every way.
    approval.code = Some(code);
    approval.status = Status::Denied;
    approvals.replace(&approval).await?;
    approval.status = Status::Approved;
    let error = approvals.replace(&approval).await.expect_err("denied is final");
    assert_eq!(error.kind(), ErrorKind::IllegalTransition);
    Ok(())
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "approval:record:{id}", collection = "approval")]
struct OlderApproval {
    id: Id,
    requester_id: String,
    approver_id: String,
    created_at: Timestamp,
    code: String,
    status: Status,
}

#[tokio::test]
async fn what_is_to_be_built() -> keyloom::Result<()> {
    use keyloom::Store;

    let store = Store::open("memory:").await?;
    let older = OlderApproval {
        id: Id::new(),
        requester_id: "ana".to_owned(),
        approver_id: "ben".to_owned(),
        created_at: Timestamp::now(),
        code: "A-X7K9Q2".to_owned(),
        status: Status::Pending,
    };
    store.collection::<OlderApproval>().await?.insert(&older).await?;

    let approvals = store.collection::<Approval>().await?;
    for (index, state) in approvals.to_build().await? {
        println!("{index} is {state}");
        store.build(approvals.name(), &index).await?;
    }
    assert_eq!(approvals.by_code("A-X7K9Q2").get().await?.unwrap().requester_id, "ana");
    Ok(())
}

mod without_a_runtime {
    use keyloom::blocking::Store;
    use keyloom::{Error, Record, Result};
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Serialize, Deserialize, Record)]
    #[record(key = "note:{owner}:{name}")]
    struct Note {
        owner: String,
        name: String,
        text: String,
    }

    #[test]
    fn a_note_is_bought() -> Result<()> {
        let store = Store::open("memory:")?;
        let notes = store.collection::<Note>()?;
        let note = Note { owner: "ana".into(), name: "milk".into(), text: "buy".into() };
        notes.insert(&note)?;
        assert_eq!(notes.by_key("ana").page(20).wait()?.records.len(), 1);

        store.transaction(|transaction| {
            let notes = transaction.collection::<Note>()?;
            if let Some(note) = notes.get(("ana", "milk"))? {
                notes.replace(&Note { text: "bought".into(), ..note.into_value() })?;
            }
            Ok::<_, Error>(())
        })?;
        assert_eq!(notes.get(("ana", "milk"))?.expect("it is there").text, "bought");
        Ok(())
    }
}
