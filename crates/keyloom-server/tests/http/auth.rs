//! Who may do what: tokens, services, users, acting users, spaces.

use keyloom_server::{Authority, new_token};
use serde_json::{Value, json};

use crate::people::{Guarded, SCHEMA, SECRET, claims, jwt, now, sign};
use crate::support::TestServer;

const TICKET: &str = "/v1/collections/ticket/records/t1";

#[test]
fn without_a_valid_token_nothing_is_answered() {
    let guarded = Guarded::start();
    let server = &guarded.server;
    let missing = server.get(TICKET);
    assert_eq!(missing.header("www-authenticate"), Some("Bearer"));
    assert_eq!(missing.expect(401)["type"], "/problems/unauthenticated");
    let unknown = guarded.get(&new_token().0, TICKET).expect(401);
    let mut altered = guarded.admin.clone();
    altered.pop();
    for credentials in [
        format!("Bearer {altered}"),
        format!("Bearer {}x", guarded.admin),
        format!("Bearer {}", guarded.admin.to_uppercase()),
        format!("Basic {}", guarded.admin),
        guarded.admin.clone(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
    ] {
        let answer = server.send("GET", TICKET, &[("authorization", &credentials)], "");
        assert_eq!(answer.expect(401), unknown, "{credentials}");
    }
    guarded.get(&guarded.admin, TICKET).expect(404);
}

/// The hash of a token is in the access file; whoever reads the file cannot enter with it.
#[test]
fn the_hash_of_a_token_is_no_token() {
    let (token, hash) = new_token();
    let file = format!("[[token]]\nname = \"a\"\nrole = \"admin\"\nsha256 = \"{hash}\"");
    let authority = Authority::from_toml(&file).unwrap();
    let config = keyloom_server::Config { authority, ..Default::default() };
    let server = crate::support::TestServer::with(crate::people::SCHEMA, config);
    let status = |token: &str| {
        let bearer = format!("Bearer {token}");
        server.send("GET", TICKET, &[("authorization", &bearer)], "").status
    };
    assert_eq!((status(&token), status(&hash)), (404, 401));
}

#[test]
fn a_service_does_what_its_verbs_allow() {
    let guarded = Guarded::start();
    guarded.put(&guarded.bot, TICKET, json!({ "id": "t1", "state": "open" }));
    guarded.get(&guarded.reader, TICKET).expect(200);
    let record = json!({ "id": "t1", "state": "done" });
    let refused = guarded.ask(&guarded.reader, "PUT", TICKET, &record).expect(403);
    assert_eq!(refused["type"], "/problems/forbidden");
    guarded.ask(&guarded.bot, "DELETE", TICKET, &Value::Null).expect(403);
    guarded.ask(&guarded.admin, "DELETE", TICKET, &Value::Null).expect(204);
}

/// The answer is the same to the last byte, but for the name.
#[test]
fn a_collection_that_a_caller_may_not_know_is_unknown() {
    let guarded = Guarded::start();
    for (method, path, body) in [
        ("GET", "records/x", Value::Null),
        ("PUT", "records/x", json!({ "name": "x" })),
        ("DELETE", "records/x", Value::Null),
        ("GET", "records?where.name=x", Value::Null),
    ] {
        let ask = |name: &str| {
            let path = format!("/v1/collections/{name}/{path}");
            let answer = guarded.ask(&guarded.reader, method, &path, &body);
            (answer.status, String::from_utf8(answer.body).unwrap().replace(name, "NAME"))
        };
        let (status, hidden) = ask("config");
        assert_eq!((status, &hidden), (404, &ask("unheard-of").1), "{method}");
        assert!(!hidden.contains("note") && !hidden.contains("ticket"), "{hidden}");
    }
    // A token may name a collection that is not there yet.
    guarded.get(&guarded.bot, "/v1/collections/planned/records/x").expect(404);
}

#[test]
fn a_space_that_a_caller_may_not_enter_is_not_there() {
    let guarded = Guarded::start();
    let tickets = "v1/collections/ticket/records/t1";
    let ask = |token: &str, space: &str| guarded.get(token, &format!("/s/{space}/{tickets}"));
    let hidden = ask(&guarded.bot, "other");
    assert_eq!(hidden.status, 404);
    assert_eq!(hidden.body, ask(&guarded.bot, "nobody-has-it").body);
    assert_eq!(hidden.body, ask(&jwt("ana"), "other").body);
    assert_eq!(hidden.body, guarded.get(&guarded.tenant, TICKET).body);
    // The space itself has no collection yet, which is another answer.
    let own = ask(&guarded.tenant, "other");
    assert_eq!(own.status, 404);
    assert_ne!(own.body, hidden.body);
    guarded.get(&guarded.bot, &format!("/s/main/{tickets}")).expect(404);
}

#[test]
fn a_service_acts_for_the_user_that_it_names() {
    let guarded = Guarded::start();
    let note = "/v1/collections/note/records/n1";
    let milk = json!({ "noteId": "n1", "title": "milk" });
    let put = |user| guarded.ask_as(&guarded.bot, Some(user), "PUT", note, &milk);
    put("ana").expect(201);
    let get = |user| guarded.ask_as(&guarded.bot, Some(user), "GET", note, &Value::Null);
    assert_eq!(get("ana").expect(200)["userId"], "ana");
    get("ben").expect(404);
    // Percent-encoded, so that every name fits into a header; what decodes alike is one user.
    put("j%C3%BCrgen%2F%3A").expect(201);
    assert_eq!(get("j%c3%bcrgen%2f:").expect(200)["userId"], "jürgen/:");
    for broken in ["%", "%zz", "%ff", ""] {
        let answer = get(broken);
        assert_eq!(answer.status, 400, "{broken}: {answer:?}");
    }
    get(&"x".repeat(256)).expect(400);
    // Only who was given the right.
    let refused = guarded.ask_as(&guarded.reader, Some("ana"), "GET", TICKET, &Value::Null);
    assert_eq!(refused.expect(403)["type"], "/problems/forbidden");
    guarded.ask_as(&jwt("ben"), Some("ana"), "GET", note, &Value::Null).expect(403);
    guarded.ask_as(&jwt("ana"), Some("ana"), "GET", note, &Value::Null).expect(403);
    guarded.ask_as(&guarded.admin, Some("ana"), "GET", note, &Value::Null).expect(200);
}

/// A service that works for users and forgets to say for whom does not reach all of them.
#[test]
fn a_service_for_users_names_one_where_records_belong_to_users() {
    let guarded = Guarded::start();
    let note = "/v1/collections/note/records/n1";
    let milk = json!({ "noteId": "n1", "title": "milk" });
    guarded.ask_as(&guarded.bot, Some("ana"), "PUT", note, &milk).expect(201);
    let whole = "/v1/collections/note/records/ana:notes:n1";
    let unnamed = |method: &str, path: &str, body: &Value| {
        let problem = guarded.ask(&guarded.bot, method, path, body).expect(403);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("Keyloom-Act-As"), "{method} {path}: {problem}");
    };
    for path in [
        note,
        whole,
        "/v1/collections/note/records?scan=true",
        "/v1/collections/note/count?limit=9",
    ] {
        unnamed("GET", path, &Value::Null);
    }
    unnamed("GET", &format!("{whole}/entries"), &Value::Null);
    unnamed("PUT", whole, &json!({ "title": "x" }));
    unnamed("PATCH", whole, &json!({ "title": "x" }));
    unnamed("POST", "/v1/collections/note/records", &json!({ "userId": "ana", "noteId": "n2" }));
    let get = json!([{ "op": "get", "collection": "note", "key": "ana:notes:n1" }]);
    unnamed("POST", "/v1/transaction", &json!({ "operations": get }));
    let batch = json!({ "operations": get });
    let batch = guarded.ask(&guarded.bot, "POST", "/v1/batch", &batch).expect(200);
    assert_eq!(batch["results"][0]["status"], 403);
    // What belongs to nobody needs no name, and an administrator never does.
    guarded.put(&guarded.bot, TICKET, json!({ "id": "t1", "state": "open" }));
    assert_eq!(guarded.get(&guarded.admin, whole).expect(200)["title"], "milk");
}

/// The same where the token is for everything: plain keys and the log reach across users.
#[test]
fn a_service_for_users_and_everything_names_one_too() {
    let tokens = [(); 2].map(|()| new_token());
    let [(chat, chat_hash), (job, job_hash)] = &tokens;
    let everything = "role = \"service\"\ncollections = [\"*\"]\nverbs = [\"read\", \"write\"]\n";
    let file = format!(
        "[[token]]\nname = \"chat\"\nsha256 = \"{chat_hash}\"\n{everything}act_as = true\n\
         [[token]]\nname = \"job\"\nsha256 = \"{job_hash}\"\n{everything}"
    );
    let authority = Authority::from_toml(&file).unwrap();
    let config = keyloom_server::Config { authority, ..Default::default() };
    let server = TestServer::with(&format!("[log]\n{SCHEMA}"), config);
    let ask = |token: &str, user: Option<&str>, method: &str, path: &str, body: Value| {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.push(("content-type", "application/json"));
        headers.extend(user.map(|user| ("keyloom-act-as", user)));
        let body = if body.is_null() { String::new() } else { body.to_string() };
        server.send(method, path, &headers, body)
    };
    let (note, post) = ("/v1/collections/note/records/n1", "/v1/collections/post/records/p1");
    ask(chat, Some("ana"), "PUT", note, json!({ "title": "milk" })).expect(201);
    ask(chat, Some("ana"), "PUT", post, json!({})).expect(201);
    ask(chat, None, "PUT", TICKET, json!({})).expect(201);

    let key = "/v1/kv/user%3Aana%3Anotes%3An1";
    for (method, path) in [("GET", key), ("GET", "/v1/kv?prefix=user"), ("PUT", key)] {
        assert_eq!(ask(chat, None, method, path, Value::Null).status, 403, "{method} {path}");
    }
    assert_eq!(ask(chat, Some("ana"), "GET", key, Value::Null).status, 200);
    assert_eq!(ask(job, None, "GET", key, Value::Null).status, 200);

    // Records that everyone may read are read without a name, and written by nobody but users.
    let others = "/v1/collections/post/records/ana:posts:p1";
    ask(chat, None, "GET", others, Value::Null).expect(200);
    ask(chat, None, "PUT", others, json!({})).expect(403);
    ask(job, None, "PUT", others, json!({})).expect(200);

    let told = |token: &str| -> Vec<String> {
        let page = ask(token, None, "GET", "/v1/changes", Value::Null).expect(200);
        let commits = page["commits"].as_array().unwrap().iter();
        let changes = commits.flat_map(|commit| commit["changes"].as_array().unwrap());
        changes.map(|change| change["collection"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(told(chat), ["post", "ticket"]);
    assert_eq!(told(job), ["note", "post", "ticket"]);
    ask(chat, None, "GET", "/v1/changes?collection=note", Value::Null).expect(403);
}

/// A JWT ends, and a stream does not: no user's token opens one, so that none outlives its token.
#[test]
fn no_jwt_opens_a_stream() {
    let guarded = Guarded::with_schema(&format!("[log]\n{SCHEMA}"));
    for accept in ["text/event-stream", "application/json"] {
        let bearer = format!("Bearer {}", jwt("ana"));
        let headers = [("authorization", bearer.as_str()), ("accept", accept)];
        for path in ["/v1/changes", "/v1/changes?collection=ticket", "/v1/changes?from=1"] {
            let answer = guarded.server.send("GET", path, &headers, "");
            assert_eq!(answer.expect(403)["type"], "/problems/forbidden", "{accept} {path}");
        }
    }
}

#[test]
fn a_user_reaches_what_the_access_of_each_collection_allows() {
    let guarded = Guarded::start();
    let (ana, ben) = (jwt("ana"), jwt("ben"));
    guarded.put(&ana, "/v1/collections/note/records/n1", json!({ "title": "milk" }));
    guarded.put(&ana, "/v1/collections/post/records/p1", json!({}));
    guarded.put(&guarded.admin, "/v1/collections/config/records/c1", json!({}));
    guarded.get(&ana, "/v1/collections/note/records/n1").expect(200);
    guarded.get(&ben, "/v1/collections/config/records/c1").expect(200);
    let write = guarded.ask(&ben, "PUT", "/v1/collections/config/records/c1", &json!({ "v": 1 }));
    write.expect(403);
    guarded.get(&ben, "/v1/collections/post/owners/ana/records/p1").expect(200);
    guarded.get(&ben, "/v1/collections/post/records/p1").expect(404);
    let admin = guarded.get(&ana, "/v1/admin/stats");
    assert!(matches!(admin.status, 403 | 404), "{admin:?}");
}

#[test]
fn forbidden_and_missing_records_have_the_same_answer() {
    let guarded = Guarded::start();
    guarded.put(&jwt("ana"), "/v1/collections/note/records/n1", json!({ "title": "milk" }));
    let ben = jwt("ben");
    for (method, body) in
        [("GET", Value::Null), ("DELETE", Value::Null), ("PATCH", json!({ "title": "x" }))]
    {
        let ask = |key: &str| {
            let path = format!("/v1/collections/note/records/{key}");
            let answer = guarded.ask(&ben, method, &path, &body);
            (answer.status, String::from_utf8(answer.body).unwrap().replace(key, "KEY"))
        };
        let forbidden = ask("n1");
        assert_eq!(forbidden, ask("n2"), "{method}");
        assert_eq!(forbidden.0, 404, "{method}: {}", forbidden.1);
        // Nor by the whole key, or by the owner's name.
        let elsewhere = |owner: &str| {
            let path = format!("/v1/collections/note/owners/{owner}/records/n1");
            let answer = guarded.ask(&ben, method, &path, &body);
            (answer.status, String::from_utf8(answer.body).unwrap().replace(owner, "OWNER"))
        };
        assert_eq!(elsewhere("ana"), elsewhere("nobody"), "{method}");
    }
    guarded.get(&jwt("ana"), "/v1/collections/note/records/n1").expect(200);
}

#[test]
fn only_jwts_that_hold_in_every_part_are_taken() {
    let guarded = Guarded::start();
    let note = "/v1/collections/note/records/n1";
    let header = r#"{"alg":"HS256","typ":"JWT"}"#;
    let with = |changes: Value| sign(header, &claims("ana", changes).to_string(), SECRET);
    let good = claims("ana", json!({})).to_string();
    for (what, token) in [
        ("as it is", with(json!({}))),
        ("no typ", sign(r#"{"alg":"HS256"}"#, &good, SECRET)),
        ("nbf past", with(json!({ "nbf": now() - 5 }))),
        ("several audiences", with(json!({ "aud": ["other", "keyloom"] }))),
        ("just expired, within the leeway", with(json!({ "exp": now() - 5 }))),
        ("a float", with(json!({ "exp": now() as f64 + 60.5 }))),
    ] {
        assert_eq!(guarded.get(&token, note).status, 404, "{what}");
    }
    let unknown = guarded.get(&new_token().0, note);
    let token = sign(header, &good, SECRET);
    let unsigned = token.rsplit_once('.').unwrap().0.to_owned();
    let mut flipped = token.clone().into_bytes();
    let last = flipped.len() - 5;
    flipped[last] = if flipped[last] == b'A' { b'B' } else { b'A' };
    let bens = sign(header, &claims("ben", json!({})).to_string(), SECRET);
    let transplanted = format!("{unsigned}.{}", bens.rsplit_once('.').unwrap().1);
    let twice = good.replacen('{', r#"{"sub":"ben","#, 1);
    for (what, token) in [
        ("alg none", sign(r#"{"alg":"none"}"#, &good, SECRET)),
        (
            "alg none, unsigned",
            format!("{}.", sign(r#"{"alg":"none"}"#, &good, SECRET).rsplit_once('.').unwrap().0),
        ),
        ("RS256", sign(r#"{"alg":"RS256"}"#, &good, SECRET)),
        ("HS384", sign(r#"{"alg":"HS384"}"#, &good, SECRET)),
        ("alg in lower case", sign(r#"{"alg":"hs256"}"#, &good, SECRET)),
        ("no alg", sign(r#"{"typ":"JWT"}"#, &good, SECRET)),
        ("alg twice", sign(r#"{"alg":"none","alg":"HS256"}"#, &good, SECRET)),
        ("crit", sign(r#"{"alg":"HS256","crit":["x"],"x":1}"#, &good, SECRET)),
        ("another typ", sign(r#"{"alg":"HS256","typ":"secevent+jwt"}"#, &good, SECRET)),
        ("header no object", sign(r#""HS256""#, &good, SECRET)),
        ("no exp", with(json!({ "exp": null }))),
        ("exp as text", with(json!({ "exp": (now() + 60).to_string() }))),
        ("expired", with(json!({ "exp": now() - 60 }))),
        ("nbf in the future", with(json!({ "nbf": now() + 120 }))),
        ("nbf as text", with(json!({ "nbf": "0" }))),
        ("another secret", sign(header, &good, b"thirty-two bytes are the maximum.")),
        ("an altered signature", String::from_utf8(flipped).unwrap()),
        ("no signature", format!("{unsigned}.")),
        ("two parts", unsigned.clone()),
        ("four parts", format!("{token}.x")),
        ("the signature of another", transplanted),
        ("padding", format!("{token}=")),
        ("claims no JSON", sign(header, "sub=ana", SECRET)),
        ("claims no object", sign(header, "[]", SECRET)),
        ("sub twice", sign(header, &twice, SECRET)),
        ("no sub", with(json!({ "sub": null }))),
        ("sub empty", with(json!({ "sub": "" }))),
        ("sub no text", with(json!({ "sub": 7 }))),
        ("sub too long", with(json!({ "sub": "x".repeat(256) }))),
        ("another issuer", with(json!({ "iss": "https://evil.example" }))),
        ("no issuer", with(json!({ "iss": null }))),
        ("another audience", with(json!({ "aud": "other" }))),
        ("no audience", with(json!({ "aud": null }))),
    ] {
        let answer = guarded.get(&token, note);
        assert_eq!(answer.status, 401, "{what}");
        assert_eq!(answer.body, unknown.body, "{what}");
    }
}
