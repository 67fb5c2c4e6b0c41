//! `keyloom verify` and `keyloom repair` on a store that something else damaged.

use keyloom::Store;
use keyloom::engine::{Address, Area, Batch, Effect, Space, Stamp};

use super::support::Sandbox;

/// Puts and deletes keys of the default area behind the back of everything that keeps them right.
pub fn write_raw(sandbox: &Sandbox, changes: &[(&str, Option<&str>)]) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let address = format!("file:{}", sandbox.path("keyloom-data").display());
        let store = Store::open(&address).await.unwrap();
        let mut batch = Batch::new(Space::main());
        for (key, value) in changes {
            let effect = match value {
                Some(value) => Effect::Put {
                    stamp: Stamp([1; Stamp::BYTES]),
                    bytes: value.as_bytes().to_vec().into(),
                },
                None => Effect::Delete,
            };
            let key = key.as_bytes().to_vec();
            batch.push(Address::new(Area::default_area(), key), None, Some(effect));
        }
        store.engine().commit(batch).await.unwrap();
        store.close().await.unwrap();
    });
}

fn delete_raw(sandbox: &Sandbox, keys: &[&str]) {
    let changes: Vec<_> = keys.iter().map(|key| (*key, None)).collect();
    write_raw(sandbox, &changes);
}

#[test]
fn damage_is_found_told_and_mended() {
    let sandbox = Sandbox::with_store();
    let record = r#"{"requester_id":"ana","approver_id":"ben","created_at":1700000000000,"code":"A-222232","status":"pending"}"#;
    sandbox.run(&["put", "approval", "00000000000000000000000001", record]).expect(0);
    sandbox.run(&["put", "place", "cafe", r#"{"position":{"lat":52.52,"lon":13.405}}"#]).expect(0);
    delete_raw(&sandbox, &["approval:code:A-222232", "place:cafe"]);
    let found = sandbox.run(&["verify"]).expect(1);
    let counts = found.value()["counts"].clone();
    assert_eq!((&counts["missing"], &counts["dangling"]), (&1.into(), &1.into()), "{}", found.out);
    assert!(found.err.contains("hint: `keyloom repair --dry-run`"), "{}", found.err);
    let table = sandbox.run(&["verify", "--table"]).expect(1);
    assert!(table.out.contains("approval:code:A-222232"), "{}", table.out);

    let tried = sandbox.run(&["repair", "--dry-run", "--table"]).expect(0);
    assert!(tried.err.contains("2 findings would be mended; nothing was changed"), "{}", tried.err);
    sandbox.run(&["verify"]).expect(1);
    sandbox.run(&["repair"]).expect(0);
    sandbox.run(&["verify"]).expect(0);
    sandbox.run(&["get", "approval", "--by", "code", "A-222232"]).expect(0);

    // A record that vanished takes with it all that belonged to it.
    delete_raw(&sandbox, &["approval:record:00000000000000000000000001"]);
    let mended = sandbox.run(&["repair", "--table"]).expect(0);
    assert!(mended.err.contains("5 findings mended"), "{}", mended.err);
    sandbox.run(&["verify"]).expect(0);
    sandbox.run(&["get", "approval", "--by", "code", "A-222232"]).expect(1);
}
