//! Checks the name by which the server is called.
//!
//! A page of another site can make its own name resolve to a loopback address (DNS rebinding). The
//! browser then takes the server for a part of that site, and lets the page read everything that
//! needs no token. The name in `Host` reveals this.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};

use super::is_about_the_server;
use crate::config::Config;
use crate::problem::Problem;

/// Refuses a request that calls the server by a name that is not its own.
pub(super) fn check(request: &Request, config: &Config) -> Result<(), Problem> {
    // Monitors call the server by its address, some with HTTP/1.0, which needs no name.
    if is_about_the_server(request.uri().path()) {
        return Ok(());
    }
    let uri_host = request.uri().authority().map(|authority| authority.as_str());
    let named = header_host(request.headers())?;
    let Some(host) = uri_host.or(named) else {
        return Err(Problem::invalid_request("the request has no header Host"));
    };
    let is_any_name_ours = config.hosts.is_empty() && !config.authority.is_open();
    let name = name(host);
    let is_ours = is_any_name_ours
        || is_loopback(name)
        || config.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(name));
    if is_ours {
        return Ok(());
    }
    let title = "The server is not called by this name";
    let detail = "the name in Host is neither a loopback one nor among the names that the server \
                  was told to answer to";
    Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "misdirected", title, detail))
}

/// The host in the header. Several values are refused, since a proxy might choose another one.
pub(super) fn header_host(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    crate::caller::header(headers, &header::HOST)
}

/// A host without its port, and without the brackets of an IPv6 address.
fn name(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(address, _)| address),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

fn is_loopback(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_many_names_and_others_only_look_like_them() {
        for host in [
            "localhost",
            "LocalHost:7117",
            "localhost.",
            "127.0.0.1:80",
            "127.9.9.9",
            "[::1]:7117",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(is_loopback(name(host)), "{host}");
        }
        for host in [
            "localhost.evil.example",
            "127.0.0.1.nip.io:7117",
            "evil.example",
            "",
            "0.0.0.0",
            "10.0.0.1",
            "[::2]",
        ] {
            assert!(!is_loopback(name(host)), "{host}");
        }
    }
}
