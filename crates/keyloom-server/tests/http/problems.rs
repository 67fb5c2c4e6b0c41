//! What goes wrong, and how it is told.

use serde_json::json;

use crate::schemas::PATTERNS;
use crate::support::TestServer;

const SCHEMA: &str = r#"
    [collection.item]
    key = "item:{id}"
    fields = { id = "text" }
"#;

#[test]
fn unknown_paths_and_methods_are_problems() {
    let server = TestServer::start(SCHEMA);
    for path in ["/nothing", "/v2", "/v1/nothing", "/v1/collections/item/nothing"] {
        let answer = server.get(path);
        let problem = answer.expect(404);
        assert_eq!(problem["type"], "/problems/not-found", "{path}");
        assert!(problem["detail"].as_str().unwrap().contains("/openapi.json"), "{problem}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    }
    for (method, path, allowed) in [
        ("PUT", "/v1/collections/item/records", "GET,HEAD,POST"),
        ("POST", "/v1/collections/item/records/a", "GET,HEAD,PUT,PATCH,DELETE"),
        ("GET", "/v1/collections/item/records/a/increment", "POST"),
        ("DELETE", "/v1/schema", "GET,HEAD"),
    ] {
        let answer = server.send(method, path, &[], "");
        assert_eq!(answer.expect(405)["type"], "/problems/method-not-allowed", "{method} {path}");
        let mut allow: Vec<&str> = answer.header("allow").unwrap().split(',').collect();
        let mut wanted: Vec<&str> = allowed.split(',').collect();
        allow.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(allow, wanted, "{method} {path}");
    }
}

#[test]
fn callers_who_take_no_json_are_told() {
    let server = TestServer::start(SCHEMA);
    for path in ["/v1/collections/item/records?scan=true", "/v1/schema"] {
        let answer = server.send("GET", path, &[("accept", "text/html")], "");
        assert_eq!(answer.expect(406)["type"], "/problems/not-acceptable", "{path}");
        server.send("GET", path, &[("accept", "text/html, */*;q=0.1")], "").expect(200);
    }
    let accept = [("accept", "text/csv"), ("content-type", "application/json")];
    server.send("POST", "/v1/collections/item/records", &accept, r#"{"id":"a"}"#).expect(406);
    server.get("/v1/collections/item/records/a").expect(404);
}

#[test]
fn a_problem_has_every_member_and_a_page() {
    let server = TestServer::start(SCHEMA);
    let answer = server.get("/v1/collections/item/records?where.color=red");
    let problem = answer.expect(409);
    for member in ["type", "title", "status", "detail", "outcome", "retry", "context"] {
        assert!(problem.get(member).is_some(), "{member}: {problem}");
    }
    let page = server.get(problem["type"].as_str().unwrap());
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let page = String::from_utf8(page.body).unwrap();
    assert!(page.contains(problem["title"].as_str().unwrap()), "{page}");
    server.get("/problems/%3Cscript%3E").expect(404);
}

#[test]
fn pages_of_problems_look_like_the_console_and_load_nothing_else() {
    let server = TestServer::start(SCHEMA);
    for path in ["/problems", "/problems/no-index"] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'self'; base-uri"), "{policy}");
        let page = String::from_utf8(answer.body).unwrap();
        let style = page.split("<link rel=\"stylesheet\" href=\"").nth(1).unwrap();
        let style = server.get(style.split('"').next().unwrap());
        assert_eq!(
            (style.status, style.header("content-type")),
            (200, Some("text/css; charset=utf-8"))
        );
        assert!(!page.contains("<script"), "{page}");
    }
}

#[test]
fn an_unknown_collection_tells_nothing_of_the_others() {
    let server = TestServer::start(PATTERNS);
    let problem = server.get("/v1/collections/nope/records/x").expect(404);
    assert!(!problem.to_string().contains("preferences"), "{problem}");
}

#[test]
fn unknown_and_repeated_parameters_are_refused() {
    let server = TestServer::start(SCHEMA);
    let one = "/v1/collections/item/records/a";
    server.json("PUT", one, &json!({})).expect(201);
    for path in ["?x=1", "/entries?x=1", "/history?limit=1&limit=2", "?version=1&version=1"] {
        server.get(&format!("{one}{path}")).expect(400);
    }
    server.json("PUT", &format!("{one}?if.x=1"), &json!({})).expect(400);
    server.send("DELETE", &format!("{one}?force=true"), &[], "").expect(400);
    server.get("/v1/schema?x=1").expect(400);
    server.get(one).expect(200);
}
