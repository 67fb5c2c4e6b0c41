//! The executions on a Keyloom server, over HTTP.

use std::error::Error;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::event::execution_of;

/// A Keyloom server that has the schema of executions.
pub struct Server {
    url: String,
    agent: ureq::Agent,
}

impl Server {
    /// The server at this URL, such as `http://127.0.0.1:7117`.
    pub fn new(url: &str) -> Self {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        Server { url: url.trim_end_matches('/').to_owned(), agent }
    }

    /// Takes in one event: one idempotent `PUT` by the ARN alone. The same event twice, and a
    /// late one, change nothing. Gives the record as it is then.
    pub fn observe(&self, event: &Value) -> Result<Value, Box<dyn Error>> {
        let execution = execution_of(event)?;
        let arn = execution["executionArn"].as_str().unwrap_or_default();
        let arn = utf8_percent_encode(arn, NON_ALPHANUMERIC);
        let url = format!("{}/v1/collections/execution/records/{arn}", self.url);
        let request = self.agent.put(url).header("content-type", "application/json");
        let mut answer = request.send(execution.to_string())?;
        let body: Value = serde_json::from_str(&answer.body_mut().read_to_string()?)?;
        if !answer.status().is_success() {
            return Err(body["detail"].as_str().unwrap_or("the server refused").into());
        }
        Ok(body)
    }
}
