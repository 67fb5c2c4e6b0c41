//! The limits of a server: an option for each of them.

use std::time::Duration;

use clap::Args;
use keyloom_server::Limits;

use crate::numbers;

/// Limits that differ from the usual ones. A limit of nothing would shut everybody out.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitOptions {
    /// Connections at one time [default: 4096]
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    connections_max: Option<usize>,
    /// Percent of all connections that one address may have when at most a quarter is free [default: 25]
    #[arg(long, value_name = "PERCENT", value_parser = numbers::percent)]
    address_share_percent: Option<usize>,
    /// Requests under way at one time [default: 1024]
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    requests_max: Option<usize>,
    /// Streams of changes at one time [default: 256]
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    streams_max: Option<usize>,
    /// Exports and backups at one time [default: 8]
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    moments_max: Option<usize>,
    /// Bytes of a request's head [default: 32KiB]
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes)]
    head_bytes_max: Option<usize>,
    /// Bytes of a request's body [default: 8MiB]
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes)]
    body_bytes_max: Option<usize>,
    /// Bytes of one line of an import [default: 1MiB]
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes)]
    line_bytes_max: Option<usize>,
    /// Records, keys or changes of one page [default: 1000]
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    page_max: Option<usize>,
    /// Records or entries that one request may read [default: 100000]
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    read_max: Option<usize>,
    /// Operations of one transaction or batch [default: 1000]
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    operations_max: Option<usize>,
    /// Bytes of one answer; pages end before, with a cursor [default: 8MiB]
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes)]
    answer_bytes_max: Option<usize>,
    /// Bytes that all requests in flight hold together [default: 512MiB]
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes)]
    memory_bytes_max: Option<usize>,
    /// Bytes of pages kept in memory to be given out again; 0 for none [default: 32MiB]
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes_or_none)]
    kept_pages_bytes_max: Option<usize>,
    /// Seconds that the head of a request may take to arrive [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = numbers::seconds)]
    head_timeout: Option<u64>,
    /// Seconds that a request's body may take to arrive [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = numbers::seconds)]
    body_timeout: Option<u64>,
    /// Seconds that an answer may take [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = numbers::seconds)]
    answer_timeout: Option<u64>,
    /// Seconds that a caller may keep an answer waiting before its rate is checked [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = numbers::seconds)]
    write_timeout: Option<u64>,
    /// Bytes a second at which a caller must take its answer; 0 for any rate [default: 4KiB]
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes_or_none)]
    send_rate_min: Option<usize>,
    /// Seconds that a connection may wait for its next request [default: 75]
    #[arg(long, value_name = "SECONDS", value_parser = numbers::seconds)]
    idle_timeout: Option<u64>,
    /// Seconds without news after which a stream sends a sign of life [default: 15]
    #[arg(long, value_name = "SECONDS", value_parser = numbers::seconds)]
    stream_pulse: Option<u64>,
    /// Seconds that an export or a backup may take [default: 21600]
    #[arg(long, value_name = "SECONDS", value_parser = numbers::seconds)]
    moment_timeout: Option<u64>,
    /// Seconds that a shutdown waits for requests that have begun [default: 20]
    #[arg(long, value_name = "SECONDS", value_parser = numbers::seconds_or_none)]
    shutdown_grace: Option<u64>,
}

impl LimitOptions {
    /// These limits, with defaults for those that were not set. Every limit has an option.
    pub(super) fn over(&self, usual: Limits) -> Limits {
        let number = |set: Option<usize>, usual| set.unwrap_or(usual);
        let seconds = |set: Option<u64>, usual| set.map_or(usual, Duration::from_secs);
        Limits {
            connections_max: number(self.connections_max, usual.connections_max),
            address_share_percent: number(self.address_share_percent, usual.address_share_percent),
            requests_max: number(self.requests_max, usual.requests_max),
            streams_max: number(self.streams_max, usual.streams_max),
            moments_max: number(self.moments_max, usual.moments_max),
            head_bytes_max: number(self.head_bytes_max, usual.head_bytes_max),
            body_bytes_max: number(self.body_bytes_max, usual.body_bytes_max),
            line_bytes_max: number(self.line_bytes_max, usual.line_bytes_max),
            page_max: number(self.page_max, usual.page_max),
            read_max: number(self.read_max, usual.read_max),
            operations_max: number(self.operations_max, usual.operations_max),
            answer_bytes_max: number(self.answer_bytes_max, usual.answer_bytes_max),
            memory_bytes_max: number(self.memory_bytes_max, usual.memory_bytes_max),
            kept_pages_bytes_max: number(self.kept_pages_bytes_max, usual.kept_pages_bytes_max),
            head_timeout: seconds(self.head_timeout, usual.head_timeout),
            body_timeout: seconds(self.body_timeout, usual.body_timeout),
            answer_timeout: seconds(self.answer_timeout, usual.answer_timeout),
            write_timeout: seconds(self.write_timeout, usual.write_timeout),
            send_rate_min: number(self.send_rate_min, usual.send_rate_min),
            idle_timeout: seconds(self.idle_timeout, usual.idle_timeout),
            stream_pulse: seconds(self.stream_pulse, usual.stream_pulse),
            moment_timeout: seconds(self.moment_timeout, usual.moment_timeout),
            shutdown_grace: seconds(self.shutdown_grace, usual.shutdown_grace),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        limits: LimitOptions,
    }

    fn limits(args: &[&str]) -> Limits {
        let Only { limits } = Only::parse_from([&["serve"], args].concat());
        limits.over(Limits::default())
    }

    #[test]
    fn the_help_tells_what_each_limit_is_unless_set() {
        for option in Only::command().get_arguments().filter(|it| it.get_id() != "help") {
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            let told = help.split_once("[default: ").and_then(|(_, rest)| rest.strip_suffix(']'));
            let args =
                [format!("--{}", option.get_long().unwrap_or("?")), told.unwrap_or("?").into()];
            assert_eq!(limits(&args.each_ref().map(String::as_str)), Limits::default(), "{args:?}");
        }
    }

    #[test]
    fn every_option_sets_its_own_limit_and_no_other() {
        let usual = Limits::default();
        let seconds = Duration::from_secs(7);
        assert_eq!(limits(&[]), usual);
        for (option, wanted) in [
            ("--connections-max", Limits { connections_max: 7, ..usual.clone() }),
            ("--address-share-percent", Limits { address_share_percent: 7, ..usual.clone() }),
            ("--requests-max", Limits { requests_max: 7, ..usual.clone() }),
            ("--streams-max", Limits { streams_max: 7, ..usual.clone() }),
            ("--moments-max", Limits { moments_max: 7, ..usual.clone() }),
            ("--head-bytes-max", Limits { head_bytes_max: 7, ..usual.clone() }),
            ("--body-bytes-max", Limits { body_bytes_max: 7, ..usual.clone() }),
            ("--line-bytes-max", Limits { line_bytes_max: 7, ..usual.clone() }),
            ("--page-max", Limits { page_max: 7, ..usual.clone() }),
            ("--read-max", Limits { read_max: 7, ..usual.clone() }),
            ("--operations-max", Limits { operations_max: 7, ..usual.clone() }),
            ("--answer-bytes-max", Limits { answer_bytes_max: 7, ..usual.clone() }),
            ("--memory-bytes-max", Limits { memory_bytes_max: 7, ..usual.clone() }),
            ("--kept-pages-bytes-max", Limits { kept_pages_bytes_max: 7, ..usual.clone() }),
            ("--head-timeout", Limits { head_timeout: seconds, ..usual.clone() }),
            ("--body-timeout", Limits { body_timeout: seconds, ..usual.clone() }),
            ("--answer-timeout", Limits { answer_timeout: seconds, ..usual.clone() }),
            ("--write-timeout", Limits { write_timeout: seconds, ..usual.clone() }),
            ("--send-rate-min", Limits { send_rate_min: 7, ..usual.clone() }),
            ("--idle-timeout", Limits { idle_timeout: seconds, ..usual.clone() }),
            ("--stream-pulse", Limits { stream_pulse: seconds, ..usual.clone() }),
            ("--moment-timeout", Limits { moment_timeout: seconds, ..usual.clone() }),
            ("--shutdown-grace", Limits { shutdown_grace: seconds, ..usual.clone() }),
        ] {
            assert_eq!(limits(&[option, "7"]), wanted, "{option}");
        }
    }
}
