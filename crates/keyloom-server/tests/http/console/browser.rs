//! The console in a browser, as a person would use it.

use super::fixture;
use crate::support::browser::{Browser, Setup};

#[test]
fn screenshots() {
    if !Browser::is_there() {
        return;
    }
    let server = fixture::server();
    fixture::damage(&server.store);
    let browser = Browser::start(Setup::default());
    let at = |path: &str| format!("http://{}{path}", server.address);
    for (name, path) in [
        ("overview", "/"),
        ("collection", "/console/collections/approval/?index=requester&where.requester_id=ana"),
        ("record", "/console/collections/approval/record?key=r001"),
        ("edit", "/console/collections/approval/record/edit?key=r001"),
        ("flow", "/console/collections/flow/record?key=orders"),
        ("keys", "/console/keys?prefix=approval:index:"),
        ("index", "/console/collections/approval/indexes/status"),
        ("schema", "/console/schema"),
        ("changes", "/console/changes"),
        ("missing", "/console/collections/approval/record?key=zzz"),
    ] {
        browser.open(&at(path));
        browser.picture(name);
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{path}");
    }
}
