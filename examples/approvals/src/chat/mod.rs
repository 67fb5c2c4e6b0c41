//! The `/approve` command of a chat: what people type becomes requests to a Keyloom server.
//!
//! Mattermost posts a form to the URL of a custom slash command and shows the JSON that comes
//! back. Who may decide is not checked by reading first and hoping: each decision is one patch
//! that Keyloom applies only while the approval is pending and names the right person.

mod client;
mod command;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};

pub use client::{Client, Refusal};
pub use command::{Command, Which};

use crate::Decision;

/// The chat's side: where approvals are kept, and the token that Mattermost sends along.
pub struct Chat {
    /// The server that keeps the approvals.
    pub client: Client,
    /// What Mattermost showed when the slash command was made.
    pub token: String,
}

/// What Mattermost sends, as far as we look at it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sent {
    token: String,
    user: String,
    text: String,
}

/// The route of the slash command.
pub fn routes(chat: Chat) -> Router {
    Router::new().route("/approve", post(answer)).with_state(Arc::new(chat))
}

async fn answer(State(chat): State<Arc<Chat>>, form: String) -> Response {
    // The client waits for the server, which is not for the thread that answers others.
    let answered = tokio::task::spawn_blocking(move || chat.reply(&Sent::read(&form))).await;
    let (status, text) = match answered {
        Ok(Ok(text)) => (StatusCode::OK, text),
        Ok(Err(Unwelcome)) => (StatusCode::UNAUTHORIZED, "this command is not for you".to_owned()),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "something went wrong".to_owned()),
    };
    let reply = json!({ "response_type": "ephemeral", "text": text }).to_string();
    (status, [(header::CONTENT_TYPE, "application/json")], reply).into_response()
}

/// The caller does not know the token.
struct Unwelcome;

impl Chat {
    fn reply(&self, sent: &Sent) -> Result<String, Unwelcome> {
        if !is_same(&sent.token, &self.token) {
            return Err(Unwelcome);
        }
        Ok(self.run(&sent.user, &sent.text).unwrap_or_else(|refusal| refusal.to_string()))
    }

    /// What a user's words lead to, as text for them.
    pub fn run(&self, user: &str, text: &str) -> Result<String, Refusal> {
        match Command::parse(text)? {
            Command::Help => Ok(command::HELP.to_owned()),
            Command::Request { approver, text } => {
                let made = self.client.request(user, &approver, &text)?;
                Ok(format!("{} is sent to @{approver}: {text}", code(&made)))
            }
            Command::List(which) => Ok(list(&self.client.list(user, which)?)),
            Command::Get(name) => Ok(line(&self.client.find(&name)?)),
            Command::Decide(decision, name) => {
                let decided = self.client.decide(user, &name, decision)?;
                Ok(format!("{} is {}", code(&decided), word(decision)))
            }
        }
    }
}

impl Sent {
    /// Reads the form.
    pub fn read(form: &str) -> Self {
        let mut sent = Sent::default();
        for (name, value) in form_urlencoded::parse(form.as_bytes()) {
            match &*name {
                "token" => sent.token = value.into_owned(),
                "user_name" => sent.user = value.into_owned(),
                "text" => sent.text = value.into_owned(),
                _ => {}
            }
        }
        sent
    }
}

/// Compares without telling by the time it takes where the two differ.
fn is_same(given: &str, expected: &str) -> bool {
    let differences = given.bytes().zip(expected.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == expected.len() && differences == 0 && !expected.is_empty()
}

fn list(approvals: &[Value]) -> String {
    match approvals {
        [] => "there is nothing here".to_owned(),
        some => some.iter().map(line).collect::<Vec<_>>().join("\n"),
    }
}

fn line(approval: &Value) -> String {
    let text = |name: &str| approval[name].as_str().unwrap_or_default().to_owned();
    let (from, to) = (text("requester_id"), text("approver_id"));
    format!("{}  {}  @{from} → @{to}: {}", code(approval), text("status"), text("text"))
}

fn code(approval: &Value) -> String {
    approval["code"].as_str().unwrap_or("an approval without a code").to_owned()
}

fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Approve => "approved",
        Decision::Deny => "denied",
        Decision::Cancel => "canceled",
    }
}
