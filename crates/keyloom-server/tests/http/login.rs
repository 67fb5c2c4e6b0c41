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

/// What a browser gets for a page of the console: the page with a session, and the form to sign in
/// without one, with a made-up one, and with one that is over.
#[test]
fn a_page_of_the_console_is_for_those_who_are_signed_in() {
    let guarded = Guarded::start();
    let cookie = sign_in(&guarded.server, &guarded.admin);
    let page = "/console/collections/ticket/?limit=5";
    let visit = |cookie: Option<&str>| {
        let mut headers = vec![("accept", "text/html,application/xhtml+xml")];
        headers.extend(cookie.map(|cookie| ("cookie", cookie)));
        guarded.server.send("GET", page, &headers, "")
    };
    let is_sent_to_login = |answer: &Answer| {
        assert_eq!(answer.status, 303, "{answer:?}");
        let location = answer.header("location").unwrap();
        assert!(location.starts_with("/console/login?next=%2Fconsole%2F"), "{location}");
        assert!(!String::from_utf8_lossy(&answer.body).contains("ticket"), "{answer:?}");
    };
    let seen = visit(Some(&cookie));
    assert_eq!(seen.status, 200, "{seen:?}");
    assert_eq!(seen.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(String::from_utf8_lossy(&seen.body).contains("ticket"));
    is_sent_to_login(&visit(None));
    is_sent_to_login(&visit(Some("keyloom_session=made-up")));
    is_sent_to_login(&visit(Some(&format!("{cookie}x"))));
    // A program is told by a problem.
    let accept = [("accept", "application/json")];
    guarded.server.send("GET", page, &accept, "").expect(401);
    assert_eq!(post(&guarded.server, LOGOUT, Some(&cookie), "").status, 303);
    is_sent_to_login(&visit(Some(&cookie)));
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
