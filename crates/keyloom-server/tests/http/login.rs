//! Signing in to the console and out of it.

use crate::people::{Guarded, SCHEMA};
use crate::support::{Answer, TestServer};

const LOGIN: &str = "/console/login";
const LOGOUT: &str = "/console/logout";

/// Sends a form as a browser does.
fn post(server: &TestServer, path: &str, cookie: Option<&str>, form: &str) -> Answer {
    let origin = format!("http://{}", server.address);
    let mut headers = vec![
        ("content-type", "application/x-www-form-urlencoded"),
        ("origin", origin.as_str()),
        ("sec-fetch-site", "same-origin"),
    ];
    headers.extend(cookie.map(|cookie| ("cookie", cookie)));
    server.send("POST", path, &headers, form)
}

/// Signs in and gives the cookie as a browser sends it.
fn sign_in(server: &TestServer, token: &str) -> String {
    let answer = post(server, LOGIN, None, &format!("token={token}"));
    assert_eq!(answer.status, 303, "{answer:?}");
    answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

#[test]
fn a_token_through_the_form_gives_a_cookie_that_scripts_and_sites_do_not_get() {
    let guarded = Guarded::start();
    let form = guarded.server.get(LOGIN);
    assert_eq!(form.status, 200);
    assert_eq!(form.header("content-type"), Some("text/html; charset=utf-8"));
    let answer =
        post(&guarded.server, LOGIN, None, &format!("token={}&next=/console/keys", guarded.admin));
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location"), Some("/console/keys"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let cookie = answer.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/console", "Max-Age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure") && !cookie.contains(&guarded.admin), "{cookie}");

    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("sec-fetch-site", "same-origin"),
        ("x-forwarded-proto", "https"),
    ];
    let behind_tls =
        guarded.server.send("POST", LOGIN, &headers, format!("token={}", guarded.admin));
    assert!(behind_tls.header("set-cookie").unwrap().contains("; Secure"));
}

#[test]
fn a_wrong_token_shows_the_form_again_and_gives_no_cookie() {
    let guarded = Guarded::start();
    for token in ["klm_wrong", "", "%3Cscript%3E"] {
        let answer =
            post(&guarded.server, LOGIN, None, &format!("token={token}&next=%22%3E%3Cscript%3E"));
        assert_eq!(answer.status, 401, "{token}");
        assert_eq!(answer.header("set-cookie"), None);
        let page = String::from_utf8(answer.body).unwrap();
        assert!(page.contains("role=\"alert\"") && !page.contains("<script>"), "{page}");
    }
}

#[test]
fn a_session_is_good_for_the_console_alone() {
    let guarded = Guarded::start();
    let cookie = sign_in(&guarded.server, &guarded.admin);
    let api =
        guarded.server.send("GET", "/v1/collections/ticket/records/t1", &[("cookie", &cookie)], "");
    api.expect(401);
}

#[test]
fn forms_of_other_sites_sign_nobody_in_or_out() {
    let guarded = Guarded::start();
    let form = ("content-type", "application/x-www-form-urlencoded");
    for headers in [
        &[form][..],
        &[form, ("origin", "https://evil.example")],
        &[form, ("origin", "null")],
        &[form, ("sec-fetch-site", "cross-site")],
        &[form, ("sec-fetch-site", "same-site")],
    ] {
        for path in [LOGIN, LOGOUT] {
            let answer =
                guarded.server.send("POST", path, headers, format!("token={}", guarded.admin));
            assert_eq!(answer.status, 403, "{path} {headers:?}");
            assert_eq!(answer.header("set-cookie"), None);
        }
    }
}

#[test]
fn without_access_control_there_is_nothing_to_sign_in_to() {
    let server = TestServer::start(SCHEMA);
    let answer = server.raw_get(LOGIN);
    assert_eq!(answer.status, 303);
    assert!(answer.head.contains("location: /console"), "{}", answer.head);
}
