//! Addresses that lead nowhere, as people and as programs see them.

use super::fixture;
use super::pages::submit;

#[test]
fn an_address_that_leads_nowhere_is_a_page_with_a_way_back() {
    let server = fixture::server();
    for (path, way_back) in [
        ("/console/nothing", "/console/"),
        ("/console/nothing/at/all?x=1", "/console/"),
        ("/console/assets/a/b", "/console/"),
        ("/console/s/other/nothing", "/console/s/other/"),
        ("/console/collections/none/", "/console/"),
        ("/console/collections/none/record?key=x", "/console/"),
        ("/console/collections/approval/nothing", "/console/"),
        ("/console/collections/approval/record?key=none", "/console/collections/approval/"),
        ("/console/collections/approval/indexes/none", "/console/collections/approval/"),
        ("/console/verify/99", "/console/"),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert!(answer.header("content-security-policy").is_some(), "{path}");
        let page = String::from_utf8(answer.body).unwrap();
        let main = page.split("<main").nth(1).unwrap();
        assert!(page.contains("<nav class=\"menu\""), "{path} has no menu: {page}");
        assert!(main.contains(&format!("href=\"{way_back}\"")), "{path}: {main}");
        assert_eq!(main.matches("There is nothing here").count(), 1, "said once: {main}");
        let problem = server.send("GET", path, &[("accept", "application/json")], "");
        assert_eq!(problem.header("content-type"), Some("application/problem+json"), "{path}");
        assert_eq!(problem.expect(404)["type"], "/problems/not-found", "{path}");
    }
}

#[test]
fn the_address_of_a_form_is_no_page() {
    let server = fixture::server();
    for path in ["/console/repair", "/console/collections/flow/record/increment?key=orders"] {
        let answer = server.get(path);
        assert_eq!(answer.status, 405, "{path}");
        assert_eq!(answer.header("allow"), Some("POST"), "{path}");
        let page = String::from_utf8(answer.body).unwrap();
        assert!(page.contains("<main") && page.contains("To the overview"), "{page}");
        let problem = server.send("GET", path, &[("accept", "application/json")], "");
        assert_eq!(problem.expect(405)["type"], "/problems/method-not-allowed");
    }
    let refused = submit(&server, "/console/schema", &[]);
    assert_eq!(refused.status, 405);
    // What was sent by a form cannot be opened as JSON by a link.
    assert!(!String::from_utf8(refused.body).unwrap().contains("This page as JSON"));
    let unread = server.get("/console/open?what=1");
    assert_eq!(unread.header("content-type"), Some("text/html; charset=utf-8"));
}

#[test]
fn a_slash_that_was_left_out_is_put_there() {
    let server = fixture::server();
    for (path, whole) in [
        ("/console/collections/approval", "/console/collections/approval/"),
        ("/console/collections/note?as=ana", "/console/collections/note/?as=ana"),
        ("/console/s/other", "/console/s/other/"),
    ] {
        assert_eq!(server.get(path).header("location"), Some(whole));
        assert_ne!(server.get(whole).status, 404);
    }
}
