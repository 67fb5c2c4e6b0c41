//! System 1 behind a chat: what Mattermost posts, through a Keyloom server, to what it shows.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::net::SocketAddr;

use approvals::chat::{Chat, Client, routes};
use keyloom::{Schema, Store};
use keyloom_server::{App, Config, serve};
use serde_json::Value;
use tokio::net::TcpListener;

const TOKEN: &str = "xr3j5x3p4pfk7kk6ck7b4e6ghh";

/// A Keyloom server and the chat's program before it, each on its own port.
async fn start() -> SocketAddr {
    let store = Store::open("memory:").await.unwrap();
    let schema = Schema::from_toml(include_str!("../keyloom.toml")).unwrap();
    store.apply(&schema).await.unwrap();
    let app = App::new(store, Config::default());
    let server = serve(app, ([127, 0, 0, 1], 0).into()).await.unwrap();
    let keyloom = server.address().unwrap();
    tokio::spawn(server.run(std::future::pending()));

    let client = Client::new(&format!("http://{keyloom}"), None);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let chat = listener.local_addr().unwrap();
    let routes = routes(Chat { client, token: TOKEN.to_owned() });
    tokio::spawn(async move { axum::serve(listener, routes).await });
    chat
}

/// Posts the form that Mattermost posts, and gives the status and the text of the reply.
async fn say(chat: SocketAddr, token: &str, user: &str, text: &str) -> (u16, String) {
    let form: String = form_urlencoded::Serializer::new(String::new())
        .extend_pairs([
            ("channel_id", "qmd5oqtwoibz8cuzxzg5ekshgr"),
            ("channel_name", "town-square"),
            ("command", "/approve"),
            ("response_url", "http://127.0.0.1:8065/hooks/commands/xyz"),
            ("team_domain", "someteam"),
            ("text", text),
            ("token", token),
            ("user_id", "c3a4cqe3dfy6dgopqt8ai3hydh"),
            ("user_name", user),
        ])
        .finish();
    tokio::task::spawn_blocking(move || {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut answer = agent
            .post(format!("http://{chat}/approve"))
            .header("content-type", "application/x-www-form-urlencoded")
            .send(form)
            .unwrap();
        let reply: Value =
            serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        assert_eq!(reply["response_type"], "ephemeral");
        (answer.status().as_u16(), reply["text"].as_str().unwrap().to_owned())
    })
    .await
    .unwrap()
}

async fn ask(chat: SocketAddr, user: &str, text: &str) -> String {
    let (status, reply) = say(chat, TOKEN, user, text).await;
    assert_eq!(status, 200, "{reply}");
    reply
}

#[tokio::test(flavor = "multi_thread")]
async fn people_ask_decide_and_cancel_by_a_slash_command() {
    let chat = start().await;
    let sent = ask(chat, "ana", "request @ben a new laptop & a bag").await;
    let code = sent.split(' ').next().unwrap().to_owned();
    assert!(code.starts_with("A-") && code.len() == 8, "{sent}");

    let line = format!("{code}  pending  @ana → @ben: a new laptop & a bag");
    assert_eq!(ask(chat, "ana", "list").await, line);
    assert_eq!(ask(chat, "ana", "list mine").await, line);
    assert_eq!(ask(chat, "ben", "list todo").await, line);
    assert_eq!(ask(chat, "ben", "list mine").await, "there is nothing here");
    assert_eq!(ask(chat, "cleo", &format!("get {code}")).await, line);

    let refused = ask(chat, "ana", &format!("approve {code}")).await;
    assert_eq!(refused, "only the one who was asked can decide this");
    let refused = ask(chat, "ben", &format!("cancel {code}")).await;
    assert_eq!(refused, "only the one who asked can cancel this");
    assert_eq!(ask(chat, "ben", &format!("approve {code}")).await, format!("{code} is approved"));
    let late = ask(chat, "ana", &format!("cancel {code}")).await;
    assert_eq!(late, "this is decided already, or was taken back");
    assert!(ask(chat, "ana", "list").await.contains("approved"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_decide_at_once_one_does() {
    let chat = start().await;
    let sent = ask(chat, "ana", "request @ben two weeks in June").await;
    let code = sent.split(' ').next().unwrap().to_owned();
    let deciding = (0..16).map(|number| {
        let word = if number % 2 == 0 { "approve" } else { "deny" };
        let text = format!("{word} {code}");
        tokio::spawn(async move { ask(chat, "ben", &text).await })
    });
    let mut decided = 0;
    for reply in deciding.collect::<Vec<_>>() {
        let reply = reply.await.unwrap();
        let is_late = reply == "this is decided already, or was taken back";
        assert!(is_late || reply.starts_with(&code), "{reply}");
        decided += usize::from(!is_late);
    }
    assert_eq!(decided, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_and_wrong_words_do_nothing() {
    let chat = start().await;
    for token in ["", "xr3j5x3p4pfk7kk6ck7b4e6gh", "xr3j5x3p4pfk7kk6ck7b4e6ghx"] {
        assert_eq!(say(chat, token, "ana", "request @ben a boat").await.0, 401);
    }
    assert!(ask(chat, "ana", "dance").await.contains("/approve request"));
    assert_eq!(ask(chat, "ana", "get A-222222").await, "there is no such approval");
    assert_eq!(ask(chat, "ana", "get ../../schema").await, "there is no such approval");
    assert_eq!(ask(chat, "ana", "list").await, "there is nothing here");
}

#[tokio::test]
async fn the_file_and_the_type_go_together() {
    let store = Store::open("memory:").await.unwrap();
    let file = Schema::from_toml(include_str!("../keyloom.toml")).unwrap();
    store.apply(&file).await.unwrap();
    store.collection::<approvals::Approval>().await.unwrap();
    assert_eq!(store.schema().await.unwrap(), file, "the type declares nothing else");
}
