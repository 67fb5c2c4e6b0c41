//! The approvals on a Keyloom server, over HTTP.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use ureq::http;

use super::command::Which;
use crate::Decision;

/// A Keyloom server that has the schema of approvals.
pub struct Client {
    url: String,
    token: Option<String>,
    agent: ureq::Agent,
}

/// Why something was not done, for the person who asked.
#[derive(Debug)]
pub struct Refusal(String);

impl Refusal {
    /// In these words.
    pub fn new(text: impl Into<String>) -> Self {
        Refusal(text.into())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl Client {
    /// A client of the server at this URL, such as `http://127.0.0.1:7117`.
    pub fn new(url: &str, token: Option<String>) -> Self {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        Client { url: url.trim_end_matches('/').to_owned(), token, agent }
    }

    /// Asks for something: one insert. The server draws id and code.
    pub fn request(&self, requester: &str, approver: &str, text: &str) -> Result<Value, Refusal> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let record = json!({
            "requester_id": requester, "approver_id": approver, "status": "pending",
            "created_at": u64::try_from(now).unwrap_or_default(), "text": text,
        });
        self.ask("POST", "/records", "application/json", record.to_string())
    }

    /// The newest approvals of a user: one request, and one prefix scan or two behind it.
    pub fn list(&self, user: &str, which: Which) -> Result<Vec<Value>, Refusal> {
        let user = encoded(user);
        let conditions = match which {
            Which::Mine => format!("where.requester_id={user}"),
            Which::Todo => format!("where.approver_id={user}"),
            Which::All => format!("any.requester_id={user}&any.approver_id={user}"),
        };
        let path = format!("/records?{conditions}&order=-created_at&limit=20");
        let page = self.ask("GET", &path, "", String::new())?;
        let records = page["records"].as_array().cloned().unwrap_or_default();
        Ok(records.into_iter().map(|mut found| found["record"].take()).collect())
    }

    /// By the code, or by the full id.
    pub fn find(&self, name: &str) -> Result<Value, Refusal> {
        let path = match name.len() {
            26 => format!("/records/{}", encoded(name)),
            _ => format!("/unique/code/{}", encoded(name)),
        };
        // A name that can be no code is one that no approval has.
        match self.send("GET", &path, "", String::new())? {
            (400 | 404 | 409, _) => Err(Refusal::new("there is no such approval")),
            (status, body) => told(status, body),
        }
    }

    /// Decides. One patch that the server applies only while the approval is pending and the
    /// right person asks; nobody can come in between.
    pub fn decide(&self, user: &str, name: &str, decision: Decision) -> Result<Value, Refusal> {
        let found = self.find(name)?;
        let id = found["id"].as_str().unwrap_or_default();
        let (role, status) = match decision {
            Decision::Approve => ("approver_id", "approved"),
            Decision::Deny => ("approver_id", "denied"),
            Decision::Cancel => ("requester_id", "canceled"),
        };
        if found[role] != user {
            let message = match decision {
                Decision::Cancel => "only the one who asked can cancel this",
                Decision::Approve | Decision::Deny => "only the one who was asked can decide this",
            };
            return Err(Refusal::new(message));
        }
        let guard = format!("if.status=pending&if.{role}={}", encoded(user));
        let path = format!("/records/{}?{guard}", encoded(id));
        let patch = json!({ "status": status }).to_string();
        self.ask("PATCH", &path, "application/merge-patch+json", patch)
    }

    fn ask(&self, method: &str, path: &str, media: &str, body: String) -> Result<Value, Refusal> {
        let (status, body) = self.send(method, path, media, body)?;
        told(status, body)
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: String,
    ) -> Result<(u16, Value), Refusal> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("{}/v1/collections/approval{path}", self.url));
        if !media.is_empty() {
            request = request.header("content-type", media);
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(body).map_err(|_| unreachable())?;
        let mut answer = self.agent.run(request).map_err(|_| unreachable())?;
        let text = answer.body_mut().read_to_string().map_err(|_| unreachable())?;
        Ok((answer.status().as_u16(), serde_json::from_str(&text).unwrap_or_default()))
    }
}

/// An answer of the server, in words for people.
fn told(status: u16, body: Value) -> Result<Value, Refusal> {
    match status {
        200..300 => Ok(body),
        404 => Err(Refusal::new("there is no such approval")),
        409 | 412 => Err(Refusal::new("this is decided already, or was taken back")),
        400 | 422 => Err(Refusal::new(body["detail"].as_str().unwrap_or("that cannot be"))),
        _ => Err(unreachable()),
    }
}

fn unreachable() -> Refusal {
    Refusal::new("the approvals cannot be reached; try again later")
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
