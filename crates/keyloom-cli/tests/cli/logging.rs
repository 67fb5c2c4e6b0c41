//! The log of `keyloom serve`, as an operator reads it.

use serde_json::Value;

use super::support::{SCHEMA, Sandbox};

/// What callers send, none of which is for a log. The last would begin a line of its own, or an
/// escape code, if it got there.
const SECRETS: [&str; 5] = ["zz-key", "zz-value", "zz-param", "klm_zz-token", "zz\u{1b}[31m\nline"];

/// A guarded server with a log, asked well and badly; what the log has, line by line.
fn log_of(args: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
    let sandbox = Sandbox::empty();
    sandbox.write("keyloom.toml", SCHEMA);
    let made = |args: &[&str]| sandbox.run(args).expect(0).value();
    let admin = made(&["token", "new", "ops", "--json"]);
    let reader = ["--role", "service", "--collection", "flow", "--verb", "read", "--json"];
    let reader = made(&[&["token", "new", "reader"][..], &reader].concat());
    let text = |made: &Value, name: &str| made[name].as_str().unwrap().to_owned();
    sandbox.write("access.toml", text(&admin, "entry") + &text(&reader, "entry"));
    let more = ["serve", "--listen", "127.0.0.1:0", "--json", "--store", "memory:"];
    let mut command = sandbox.command(&[&more[..], &["--access", "access.toml"], args].concat());
    command.envs(variables.iter().copied());
    let served = super::support::started(command);

    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let ask = |token: &str, method: &str, path: &str, body: &str| {
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", served.url))
            .header("authorization", format!("Bearer {token}"))
            .header("x-request-id", "zz value with blanks")
            .header("content-type", "application/json")
            .body(body.to_owned())
            .unwrap();
        agent.run(request).unwrap().status().as_u16()
    };
    let (admin, reader) = (text(&admin, "token"), text(&reader, "token"));
    let flow = "/v1/collections/flow/records";
    let escaped = "zz%1B%5B31m%0Aline";
    assert_eq!(ask(&admin, "PUT", &format!("{flow}/zz-key"), r#"{"text":"zz-value"}"#), 201);
    assert_eq!(ask(&admin, "PUT", &format!("{flow}/{escaped}"), r#"{"a":"zz\u001b"}"#), 400);
    assert_eq!(ask(&admin, "GET", &format!("{flow}?zz-param=zz-value"), ""), 400);
    assert_eq!(ask(&admin, "PUT", &format!("{flow}/zz-key"), r#"{"flow":"zz-value"}"#), 422);
    assert_eq!(ask(&reader, "PUT", &format!("{flow}/zz-key"), "{}"), 403);
    assert_eq!(ask("klm_zz-token", "GET", &format!("{flow}/zz-key"), ""), 401);
    assert_eq!(ask(&admin, "GET", &format!("/{escaped}"), ""), 404);
    let (code, err) = served.stop();
    assert_eq!(code, 0, "{err}");
    for secret in SECRETS.into_iter().chain([admin.as_str(), &reader, "zz", "\u{1b}"]) {
        assert!(!err.contains(secret), "{secret:?} is in the log: {err}");
    }
    let is_of_log = |line: &&str| line.contains("keyloom::access");
    err.lines().filter(is_of_log).map(str::to_owned).collect()
}

#[test]
fn each_request_is_one_line_of_text_without_what_was_sent() {
    let lines = log_of(&["--log", "info"], &[("RUST_LOG", "off")]);
    assert_eq!(lines.len(), 7, "{lines:#?}");
    let first = &lines[0];
    for told in [
        " INFO ",
        "method=\"PUT\"",
        "route=\"/v1/collections/{collection}/records/{key}\"",
        "status=201",
        "caller=\"ops\"",
        "from=127.0.0.1",
        "micros=",
        "id=\"",
    ] {
        assert!(first.contains(told), "{told}: {first}");
    }
}

#[test]
fn each_request_is_one_object_of_json_without_what_was_sent() {
    let lines = log_of(&["--log", "trace", "--log-format", "json"], &[]);
    let lines: Vec<Value> =
        lines.iter().map(|line| serde_json::from_str(line).expect(line)).collect();
    let told: Vec<_> = lines
        .iter()
        .map(|line| (line["level"].as_str().unwrap(), line["status"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("INFO", 201),
        ("INFO", 400),
        ("INFO", 400),
        ("INFO", 422),
        ("WARN", 403),
        ("WARN", 401),
        ("INFO", 404),
    ];
    assert_eq!(told, expected);
    let first = &lines[0];
    assert_eq!(first["route"], "/v1/collections/{collection}/records/{key}");
    assert_eq!((&first["method"], &first["caller"]), (&"PUT".into(), &"ops".into()));
    assert_eq!(
        (&first["from"], &first["target"]),
        (&"127.0.0.1".into(), &"keyloom::access".into())
    );
    assert!(first["micros"].is_u64() && first["id"].is_string(), "{first}");
    assert!(first["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{first}");
    assert_eq!((&lines[5]["caller"], &lines[6]["route"]), (&"-".into(), &"-".into()));
}

#[test]
fn unless_told_otherwise_the_log_has_those_who_were_refused() {
    let lines = log_of(&[], &[]);
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].contains("status=403") && lines[0].contains("caller=\"reader\""), "{lines:?}");
    assert!(lines[1].contains("status=401") && lines[1].contains("from=127.0.0.1"), "{lines:?}");
    assert_eq!(log_of(&[], &[("RUST_LOG", "keyloom::access=info")]).len(), 7);
    assert_eq!(log_of(&["--log", "off"], &[("RUST_LOG", "trace")]), [""; 0]);
}

#[test]
fn a_level_that_is_none_is_refused() {
    let sandbox = Sandbox::empty();
    let serve = ["serve", "--store", "memory:", "--listen", "127.0.0.1:0"];
    let ran = sandbox.run_with(&serve, &[("RUST_LOG", "loud")], "").expect(2);
    assert!(ran.err.contains("RUST_LOG has \"loud\"") && ran.err.contains("hint: "), "{}", ran.err);
    for option in ["--log", "--log-format"] {
        let ran = sandbox.run(&[&serve[..], &[option, "loud"]].concat()).expect(2);
        assert!(ran.err.contains("loud"), "{}", ran.err);
    }
}
