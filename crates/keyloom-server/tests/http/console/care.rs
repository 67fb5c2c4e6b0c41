//! Verifications, repairs and builds, by forms and over sockets.

use keyloom::engine::{Address, Area, Batch, Effect, Space, Stamp};
use serde_json::Value;

use super::fixture::{self, block_on};
use super::pages::post;
use crate::support::TestServer;

/// Sends a form that starts a job, and looks at its page until it is over.
fn run(server: &TestServer, path: &str, fields: &[(&str, &str)]) -> (String, Value) {
    let origin = format!("http://{}", server.address);
    let media = ("content-type", "application/x-www-form-urlencoded");
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let started = server.send("POST", path, &[media, ("origin", &origin)], body);
    assert_eq!(started.status, 303, "{path}");
    let page = started.header("location").unwrap().to_owned();
    for _ in 0..10_000 {
        let model = server.get(&format!("{page}?format=json")).expect(200);
        let html = String::from_utf8(server.get(&page).body).unwrap();
        if model["job"]["state"] != "running" {
            return (String::from_utf8(server.get(&page).body).unwrap(), model["job"].clone());
        }
        // A page that is over looks no more, so that this may have been one.
        assert!(html.contains("http-equiv=\"refresh\"") || html.contains("done"), "{html}");
    }
    panic!("{page} never ended");
}

#[test]
fn faults_are_found_shown_and_mended_in_that_order() {
    let server = fixture::server();
    fixture::damage(&server.store);
    let (page, job) = run(&server, "/console/verify", &[]);
    let findings = job["result"]["findings"].as_array().unwrap();
    let kinds: Vec<&Value> = findings.iter().map(|it| &it["kind"]).collect();
    assert_eq!(kinds, ["dangling", "missing"]);
    assert!(page.contains("See what a repair would do") && !page.contains("Repair now"), "{page}");
    assert!(!page.contains("http-equiv=\"refresh\""));

    let (page, job) = run(&server, "/console/repair", &[("dry_run", "true")]);
    assert_eq!(job["result"]["mended"].as_array().unwrap().len(), 2);
    assert!(page.contains("Would be mended") && page.contains("Repair now"), "{page}");
    assert!(!block_on(server.store.verify()).unwrap().is_clean(), "a dry run writes nothing");

    let (page, _) = run(&server, "/console/repair", &[("dry_run", "false")]);
    assert!(page.contains("2 faults were mended."), "{page}");
    assert!(block_on(server.store.verify()).unwrap().is_clean());
    let (page, _) = run(&server, "/console/verify", &[]);
    assert!(page.contains("Everything fits."), "{page}");
    let jobs = server.get("/console/verify?format=json").expect(200);
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 4);
    assert_eq!(server.get("/console/verify/99").status, 404);
}

/// What is shown of a key need not be the key; the link is.
#[test]
fn findings_whose_keys_are_no_text_lead_to_them() {
    let server = fixture::server();
    let keys: [&[u8]; 3] = [
        b"approval:index:status:\xff\xfe",
        b"approval:index:status:\\xff",
        b"approval:index:status:a\x01b",
    ];
    let mut batch = Batch::new(Space::main());
    for key in keys {
        let put = Effect::Put { stamp: Stamp([0; Stamp::BYTES]), bytes: "found".into() };
        batch.push(Address::new(Area::default_area(), key.to_vec()), None, Some(put));
    }
    block_on(server.store.engine().commit(batch)).unwrap();
    let (page, job) = run(&server, "/console/verify", &[]);
    assert_eq!(job["result"]["findings"].as_array().unwrap().len(), keys.len());
    let links: Vec<String> = page
        .split("href=\"")
        .filter(|rest| rest.starts_with("/console/keys?prefix="))
        .map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"))
        .collect();
    assert_eq!(links.len(), keys.len(), "{page}");
    for link in links {
        let found = server.get(&format!("{link}&format=json")).expect(200);
        assert_eq!(found["key"]["value"], "found", "{link}: {found}");
    }
}

#[test]
fn an_index_that_is_not_ready_is_built_from_its_page() {
    let server = fixture::server();
    block_on(server.store.disable("approval", "status")).unwrap();
    let path = "/console/collections/approval/indexes/status";
    let page = String::from_utf8(server.get(path).body).unwrap();
    assert!(page.contains(">disabled<") && page.contains(">Build<"), "{page}");
    let overview = String::from_utf8(server.get("/console/").body).unwrap();
    assert!(overview.contains(">disabled<"), "{overview}");
    let (page, job) = run(&server, "/console/verify", &[]);
    assert_eq!(job["result"]["not_ready"][0]["state"], "disabled");
    assert!(!page.contains("Everything fits.") && page.contains("switched it off"), "{page}");
    assert!(page.contains(&format!("href=\"{path}\"")), "{page}");
    let (page, _) = run(&server, "/console/repair", &[("dry_run", "true")]);
    assert!(!page.contains("There was nothing to mend.") && page.contains(">disabled<"), "{page}");
    let (page, job) = run(&server, &format!("{path}/build"), &[]);
    assert!(page.contains("It is complete and ready."), "{page}");
    assert_eq!(job["request"]["index"], "status");
    let page = String::from_utf8(server.get(path).body).unwrap();
    assert!(page.contains(">ready<") && !page.contains(">Build<"), "{page}");
    let unknown = post(&server, "/console/collections/approval/indexes/none/build", &[]);
    assert!((400..500).contains(&unknown.status), "{}", unknown.status);
}
