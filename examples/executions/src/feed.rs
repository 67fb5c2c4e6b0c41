//! `cargo run -p executions --bin executions-feed [URL] < events.jsonl`: EventBridge events, one
//! on each line, into a Keyloom server.

use std::error::Error;
use std::io::stdin;

use executions::Server;

fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:7117".to_owned());
    let server = Server::new(&url);
    for (number, line) in stdin().lines().enumerate() {
        let taken = serde_json::from_str(&line?)
            .map_err(Into::into)
            .and_then(|event| server.observe(&event));
        match taken {
            Ok(execution) => println!("{} {}", execution["status"], execution["executionArn"]),
            Err(error) => eprintln!("line {}: {error}", number + 1),
        }
    }
    Ok(())
}
