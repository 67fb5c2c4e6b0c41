//! `cargo run -p approvals --bin approvals-chat`: answers a Mattermost slash command.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `KEYLOOM_SERVER` | the server that keeps the approvals; `http://127.0.0.1:7117` unless set |
//! | `KEYLOOM_TOKEN` | a service token for it, where access control is on |
//! | `SLASH_TOKEN` | the token that Mattermost shows for the slash command |
//! | `SLASH_LISTEN` | where to listen; `127.0.0.1:8066` unless set |

use std::env;
use std::error::Error;

use approvals::chat::{Chat, Client, routes};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let or = |name: &str, default: &str| env::var(name).unwrap_or_else(|_| default.to_owned());
    let token = env::var("SLASH_TOKEN")
        .map_err(|_| "set SLASH_TOKEN to the token that Mattermost shows for the slash command")?;
    let client =
        Client::new(&or("KEYLOOM_SERVER", "http://127.0.0.1:7117"), env::var("KEYLOOM_TOKEN").ok());
    let listener = tokio::net::TcpListener::bind(or("SLASH_LISTEN", "127.0.0.1:8066")).await?;
    println!("the slash command posts to http://{}/approve", listener.local_addr()?);
    Ok(axum::serve(listener, routes(Chat { client, token })).await?)
}
