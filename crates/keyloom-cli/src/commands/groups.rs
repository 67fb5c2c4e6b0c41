//! `keyloom groups`: declared counts and sums.

use clap::Args;
use serde_json::Value;

use crate::cli::Place;
use crate::conditions::assignment;
use crate::exit::Failure;
use crate::output::{Screen, Table, cell};
use crate::pages::Paging;
use crate::target::{Request, Target};

/// List the groups of a declared count or sum
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Groups {
    /// The collection
    collection: String,
    /// The declared count or sum
    aggregate: String,
    /// Only groups within these leading values: flow=daily-report
    #[arg(value_name = "FIELD=VALUE")]
    within: Vec<String>,
    /// The largest groups only
    #[arg(long, value_name = "N", conflicts_with_all = ["limit", "cursor", "all"])]
    top: Option<usize>,
    #[command(flatten)]
    paging: Paging,
}

const EXAMPLES: &str = "\
Examples:
  keyloom groups approval by_status
  keyloom groups run by_status flow=daily-report
  keyloom groups run by_status --top 3";

impl Groups {
    pub(crate) fn run(self, place: &Place) -> Result<(), Failure> {
        let path = ["collections", &self.collection, "groups", &self.aggregate];
        let mut request = Request::get(&path).param_if("top", self.top);
        for text in &self.within {
            let (field, value) = assignment(text)?;
            request = request.param(format!("within.{field}"), value);
        }
        let target = Target::open(place)?;
        let screen = Screen::of(place);
        self.paging.read(&target, &request, "groups", |items| print(screen, items))
    }
}

fn print(screen: Screen, items: &[Value]) -> Result<(), Failure> {
    if !screen.is_for_people() {
        return items.iter().try_for_each(|item| screen.json(item));
    }
    let Some(first) = items.first() else { return Ok(()) };
    // Values come as an object, or as a list in the declared order.
    let fields = match &first["values"] {
        Value::Object(members) => members.keys().cloned().collect(),
        Value::Array(values) => (1..=values.len()).map(|place| format!("value {place}")).collect(),
        _ => vec!["value".to_owned()],
    };
    let has_sum = first.get("sum").is_some();
    let more = ["count"].into_iter().chain(has_sum.then_some("sum")).map(str::to_owned);
    let mut table = Table::new(fields.iter().cloned().chain(more));
    for item in items {
        let values: Vec<String> = match &item["values"] {
            Value::Object(members) => members.values().map(cell).collect(),
            Value::Array(values) => values.iter().map(cell).collect(),
            other => vec![cell(other)],
        };
        let sum = has_sum.then(|| cell(&item["sum"]));
        table.row(values.into_iter().chain([cell(&item["count"])]).chain(sum));
    }
    screen.table(&table)
}
