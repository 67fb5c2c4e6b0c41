//! `keyloom groups`: declared counts and sums.

use clap::Args;
use serde_json::Value;

use crate::cli::GlobalOptions;
use crate::conditions::assignment;
use crate::exit::Failure;
use crate::numbers;
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
    /// Only groups that begin with these values: flow=daily-report
    #[arg(value_name = "FIELD=VALUE")]
    within: Vec<String>,
    /// Only the N largest groups
    #[arg(long, value_name = "N", value_parser = numbers::count, conflicts_with_all = ["limit", "cursor", "all"])]
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
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let path = ["collections", &self.collection, "groups", &self.aggregate];
        let mut request = Request::get(&path).param_if("top", self.top);
        for text in &self.within {
            let (field, value) = assignment(text)?;
            request = request.param(format!("within.{field}"), value);
        }
        let target = Target::open(place)?;
        let screen = Screen::of(place);
        let fields = match screen.is_for_people() {
            true => self.fields(&target)?,
            false => Vec::new(),
        };
        self.paging.read(&target, screen, &request, "groups", |items| print(screen, &fields, items))
    }

    /// The names of the group's fields, for the titles of the table.
    fn fields(&self, target: &Target) -> Result<Vec<String>, Failure> {
        let schema = target.value(Request::get(&["schema"]))?;
        let declared = &schema["schema"]["collection"][&self.collection];
        let groups = ["count", "sum"].map(|kind| &declared[kind][&self.aggregate]["group"]);
        let fields = groups.into_iter().find_map(Value::as_array);
        Ok(fields.into_iter().flatten().map(cell).collect())
    }
}

fn print(screen: Screen, fields: &[String], items: &[Value]) -> Result<(), Failure> {
    if !screen.is_for_people() {
        return items.iter().try_for_each(|item| screen.json(item));
    }
    let has_sum = items.iter().any(|item| item.get("sum").is_some());
    let more = ["count"].into_iter().chain(has_sum.then_some("sum"));
    let mut table = Table::new(fields.iter().map(String::as_str).chain(more));
    for item in items {
        let values = item["values"].as_array().into_iter().flatten().map(cell);
        let sum = has_sum.then(|| cell(&item["sum"]));
        table.row(values.chain([cell(&item["count"])]).chain(sum));
    }
    screen.table(&table)
}
