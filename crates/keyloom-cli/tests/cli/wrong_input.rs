//! Wrong input for every command: a message, a hint where there is one, and the right exit code.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::support::{Sandbox, words};

/// A command line, its exit code, and what its message says.
const WRONG: [(&str, i32, &str); 85] = [
    ("", 2, "Usage"),
    ("nothing", 2, "unrecognized subcommand"),
    ("get", 2, "required"),
    ("get flow", 2, "required"),
    ("get flow a b", 2, "one key"),
    ("get aproval a", 1, "did you mean approval? the collections are"),
    ("export aproval", 1, "did you mean approval?"),
    ("get nothing a", 1, "the collections are approval, flow, issue, note, place"),
    ("get flow absent", 1, "no such record"),
    ("get flow a --space other", 1, "`keyloom serve --schema PATH --space other` gives it one"),
    ("get approval short", 3, "an id is 26 letters and digits"),
    ("get flow a --at soon", 3, "ISO-8601"),
    ("get flow a --version x", 3, "version"),
    ("get flow a --store nowhere", 5, "there is no store at nowhere"),
    ("get flow a --store ./nowhere", 5, "there is no store at ./nowhere"),
    ("get flow a --store memory", 5, "--store memory:"),
    ("get flow a --store sqlite:x", 3, "--store ./data"),
    ("get flow a --store file:nowhere", 5, "there is no store at nowhere"),
    ("get flow a --store redis://localhost", 3, "Redis yet"),
    ("get flow a --store postgres://u:secret@h/d", 3, "PostgreSQL yet"),
    ("get flow a --store dynamodb://t", 3, "DynamoDB yet"),
    ("get flow a --store file:x --server http://h", 2, "cannot be used with"),
    ("get flow a --server ftp://h", 2, "http:// or https://"),
    ("get flow a --server http://u:secret@h", 2, "KEYLOOM_TOKEN"),
    ("get flow a --server http://127.0.0.1:1", 5, "keyloom serve"),
    ("get flow a --json --table", 2, "cannot be used with"),
    ("put flow a", 3, "not JSON"),
    ("put flow a {", 3, "not JSON"),
    ("put flow a ''", 3, "line 1, column 1: the text is empty"),
    ("put flow a @absent.json", 3, "absent.json cannot be read"),
    ("put flow a '{\"flow\":\"b\"}'", 3, "flow"),
    ("put flow {} --if-match 0199c0e2a1b27f3c00000000000000aa-1", 2, "KEY"),
    (
        "put flow a {} --if-match 0199c0e2a1b27f3c00000000000000aa-1 --if-absent",
        2,
        "cannot be used with",
    ),
    ("put flow a {} --if-match x", 2, "it takes the version of a record"),
    ("patch flow a {} --if-match x", 2, "it takes the version of a record"),
    ("delete flow a --if-match 1", 2, "it takes the version of a record"),
    ("put flow a @", 3, "no name behind the @"),
    ("put flow a [1", 3, "is not JSON: line 1, column 2: "),
    ("export nothing", 1, "the collections are approval, flow, issue, note, place"),
    ("watch --once --collection nothing", 1, "the collections are approval"),
    ("get flow a --store ''", 3, "--store ./data"),
    ("put flow a '{\"x\":123456789012345678901234567890}'", 3, "not JSON"),
    ("patch flow a [1]", 3, ""),
    ("patch flow absent {}", 1, ""),
    ("patch flow a {} --if status", 2, "NAME=VALUE"),
    ("delete flow absent", 1, "no such record"),
    ("increment flow a stats.x", 2, "NAME=VALUE"),
    ("increment flow a stats.x=1.5", 2, "whole number"),
    ("increment flow a stats.x=1 stats.x=2", 2, "twice"),
    ("increment flow a other=1", 3, "other"),
    ("query approval pending", 2, "is no condition"),
    ("query approval status!=pending", 2, "there is no `!=`"),
    ("query approval requester_id=ana --limit 0", 2, "it takes a whole number from 1"),
    ("query approval requester_id=ana --cursor x", 3, "cursor"),
    ("query approval requester_id=ana --index nothing", 3, "nothing"),
    ("query approval created_at=soon", 3, "created_at"),
    ("query approval requester_id=nobody --table", 0, "no records"),
    ("query approval 'requester_id>a'", 3, "approval:index:NAME:{requester_id sorted}:{id}"),
    ("keys nothing: --table", 0, "no keys"),
    ("near place x 1", 2, "it takes degrees"),
    ("near place 1 1 --radius far", 2, "is no distance"),
    ("query approval --fields code,stauts", 3, "did you mean status?"),
    ("query issue --fields opend", 3, "did you mean opened?"),
    ("get issue web", 3, "number"),
    ("get issue web:x", 3, "a whole number"),
    ("count approval text=x", 3, "no index"),
    ("groups approval by_status nothing=1", 3, "nothing"),
    ("groups flow nothing", 3, "no aggregate of that name; collection: flow; aggregate: nothing\n"),
    ("increment note ana:notes:a x=1", 3, "the collection declares no counters; counter: x; "),
    ("keys --area ''", 0, ""),
    ("watch", 2, "--once"),
    ("watch --once --from x", 3, "position"),
    ("import absent.jsonl", 3, "cannot be read"),
    ("import - --resume", 2, "stdin"),
    ("check absent.toml", 3, "absent.toml"),
    ("token new ops --role service", 2, "--collection"),
    ("token new 'a b'", 2, "no such token can be made: a name has 1 to 64 letters"),
    ("serve --page-max 0", 2, "it takes a whole number from 1"),
    ("serve --head-timeout 0", 2, "it takes a whole number of seconds from 1"),
    ("serve --idle-timeout -1", 2, "it takes a whole number of seconds from 1"),
    ("serve --body-bytes-max 1TB", 2, "it takes a number of bytes from 1"),
    ("serve --host db.example.org:7117", 2, "without a port"),
    ("serve --host ''", 2, "is no name"),
    ("serve --origin app.example.org", 2, "is no origin"),
    ("serve --origin https://app.example.org/", 2, "without a path"),
];

#[test]
fn wrong_input_is_told_with_the_right_exit_code() {
    let sandbox = Sandbox::with_store();
    sandbox.run(&["put", "flow", "a", "{}"]).expect(0);
    let mut faults = Vec::new();
    for (line, code, message) in WRONG {
        let args = words(line);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ran = sandbox.run(&args);
        if ran.code != code || !ran.err.contains(message) || ran.err.contains("secret") {
            faults.push(format!("{line}: {} {}{}", ran.code, ran.out, ran.err));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let left = sandbox.names();
    assert_eq!(left, ["keyloom-data", "keyloom.toml"], "wrong input leaves nothing behind");
}

#[test]
fn another_program_at_the_url_is_told() {
    let sandbox = Sandbox::empty();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers = ["404 Not Found", "200 OK", "301 Moved Permanently"];
    let thread = std::thread::spawn(move || {
        for status in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 1024];
            assert!(stream.read(&mut head).unwrap() > 0);
            let body = "<html>\u{1b}[2J</html>";
            let length = body.len();
            write!(stream, "HTTP/1.1 {status}\r\ncontent-type: text/html\r\nlocation: /x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").unwrap();
        }
    });
    for status in answers {
        let ran = sandbox.run(&["get", "flow", "a", "--server", &url]).expect(5);
        assert!(ran.err.contains("does not answer as a Keyloom server"), "{status}: {}", ran.err);
        assert!(!ran.err.contains('\u{1b}'), "{}", ran.err);
    }
    thread.join().unwrap();
}

#[test]
fn the_environment_names_a_store_or_a_server_and_flags_go_before_it() {
    let sandbox = Sandbox::with_store();
    sandbox.run(&["put", "flow", "here", "{}"]).expect(0);
    let nowhere = [("KEYLOOM_SERVER", "http://127.0.0.1:1")];
    sandbox.run_with(&["get", "flow", "here"], &nowhere, "").expect(5);
    let get = ["get", "flow", "here", "--store", "file:./keyloom-data"];
    sandbox.run_with(&get, &nowhere, "").expect(0);
    sandbox.run_with(&["get", "flow", "here"], &[("KEYLOOM_STORE", "file:./absent")], "").expect(5);
}

#[test]
fn a_new_user_in_an_empty_folder_leaves_no_trace_by_looking() {
    let sandbox = Sandbox::empty();
    for line in ["get flow a", "query flow", "verify", "stats", "keys", "export", "schema"] {
        let args: Vec<&str> = line.split(' ').collect();
        let ran = sandbox.run(&args).expect(5);
        assert!(ran.err.contains("keyloom serve"), "{line}: {}", ran.err);
    }
    assert!(sandbox.names().is_empty());
}
