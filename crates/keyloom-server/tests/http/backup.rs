//! Backups of a store that serves, and restores into it.

use std::sync::Arc;

use keyloom::engine::{Memory, Torn};
use keyloom_server::{Authority, Config, Limits, new_token};
use serde_json::Value;

use crate::moments::{BETWEEN, TOTAL, filled, while_money_moves};
use crate::support::{Answer, TestServer};
use crate::transaction::{SCHEMA, id};

const BYTES: (&str, &str) = ("content-type", "application/octet-stream");

fn taken(server: &TestServer) -> Vec<u8> {
    let backup = server.get("/v1/admin/backup");
    assert_eq!(backup.status, 200);
    assert_eq!(backup.header("keyloom-consistency"), Some("snapshot"));
    assert_eq!(backup.header("content-type"), Some("application/octet-stream"));
    backup.body
}

fn restore(server: &TestServer, space: &str, backup: &[u8]) -> Answer {
    server.send("POST", &format!("/s/{space}/v1/admin/restore"), &[BYTES], backup)
}

fn detail(problem: &Value) -> &str {
    problem["detail"].as_str().unwrap()
}

#[test]
fn a_backup_of_a_running_server_keeps_a_sum_and_is_restored_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    for address in ["memory:".to_owned(), format!("file:{}", folder.path().display())] {
        let server = filled(TestServer::on(&address, SCHEMA, Config::default()));
        while_money_moves(&server, || {
            for number in 0..4 {
                let space = format!("copy{number}");
                let backup = taken(&server);
                let told = restore(&server, &space, &backup).expect(200);
                assert_eq!(
                    (&told["space"], &told["bytes"]),
                    (&"main".into(), &backup.len().into())
                );
                let balance = |number: usize| {
                    let path = format!("/s/{space}/v1/collections/account/records/{}", id(number));
                    server.get(&path).expect(200)["balance"].as_i64().unwrap()
                };
                assert_eq!(balance(0) + balance(BETWEEN + 1), TOTAL, "{address}");
                let changes = format!("/s/{space}/v1/changes?from={}", told["log"]["next"]);
                let changes = server.get(&changes.replace('"', "")).expect(200);
                assert_eq!(changes["commits"], Value::Array(Vec::new()), "{address}");
            }
        });
    }
}

#[test]
fn a_backup_that_is_damaged_or_broken_off_makes_no_space() {
    let server = filled(TestServer::start(SCHEMA));
    let whole = taken(&server);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let refused = restore(&server, "flipped", &flipped).expect(400);
    assert!(detail(&refused).contains("a checksum does not hold"), "{refused}");
    let refused = restore(&server, "short", &whole[..whole.len() - 9]).expect(400);
    assert!(detail(&refused).contains("it breaks off"), "{refused}");
    for space in ["flipped", "short"] {
        let records = format!("/s/{space}/v1/collections/account/records/{}", id(0));
        let waiting = server.get(&records).expect(503);
        assert!(detail(&waiting).contains("restore the same backup again"), "{waiting}");
        restore(&server, space, &whole).expect(200);
        server.get(&records).expect(200);
    }
    let refused = restore(&server, "flipped", &whole).expect(400);
    assert!(detail(&refused).contains("only an empty space"), "{refused}");
    let refused = restore(&server, "text", b"{}").expect(400);
    assert!(detail(&refused).contains("an export"), "{refused}");
}

#[test]
fn only_administrators_take_and_restore_backups() {
    let [admin, service] = [(); 2].map(|()| new_token());
    let file = format!(
        "[[token]]\nname = \"admin\"\nsha256 = \"{}\"\nrole = \"admin\"\n\
         [[token]]\nname = \"shop\"\nsha256 = \"{}\"\nrole = \"service\"\n\
         collections = [\"account\"]\nverbs = [\"read\", \"write\"]\n",
        admin.1, service.1
    );
    let authority = Authority::from_toml(&file).unwrap();
    let server = TestServer::with(SCHEMA, Config { authority, ..Config::default() });
    let ask = |method: &str, path: &str, token: &str, more: &[(&str, &str)]| {
        let bearer = format!("Bearer {token}");
        let headers = [&[("authorization", bearer.as_str()), BYTES], more].concat();
        server.send(method, path, &headers, "")
    };
    for (method, path) in [("GET", "/v1/admin/backup"), ("POST", "/v1/admin/restore")] {
        ask(method, path, &service.0, &[]).expect(403);
        ask(method, path, &admin.0, &[("keyloom-act-as", "ana")]).expect(403);
        let own = ask(method, path, &admin.0, &[]);
        assert!(matches!(own.status, 200 | 400), "{method} {path}: {}", own.status);
    }
}

#[test]
fn backups_are_moments_and_need_an_engine_that_has_them() {
    let limits = Limits { moments_max: 0, ..Limits::default() };
    let server = TestServer::with(SCHEMA, Config { limits, ..Config::default() });
    let refused = server.get("/v1/admin/backup").expect(503);
    assert!(detail(&refused).contains("0 exports and backups"), "{refused}");
    let torn = Arc::new(Torn::new(Arc::new(Memory::new()), 1));
    let server = TestServer::on_engine(torn, &SCHEMA.replace("[log]", ""));
    let refused = server.get("/v1/admin/backup").expect(501);
    assert!(detail(&refused).contains("cannot hold a moment"), "{refused}");
}
