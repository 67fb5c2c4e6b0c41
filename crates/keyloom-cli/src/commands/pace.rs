//! How fast a job is to go.

use clap::Args;
use serde_json::Value;

use crate::numbers;

/// Options of commands that go over a whole space.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct Pace {
    /// Go over at most about so many keys in a second
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    keys_per_second: Option<usize>,
    /// Work at most about so many percent of the time
    #[arg(long, value_name = "PERCENT", conflicts_with = "keys_per_second",
          value_parser = numbers::percent)]
    percent_of_time: Option<usize>,
}

impl Pace {
    /// Adds the pace to the body of a request.
    pub(super) fn say(self, mut request: Value) -> Value {
        if let Some(keys) = self.keys_per_second {
            request["keys_per_second"] = keys.into();
        }
        if let Some(percent) = self.percent_of_time {
            request["percent_of_time"] = percent.into();
        }
        request
    }
}
