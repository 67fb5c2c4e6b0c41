//! `keyloom query`: queries records by their indexes.

use clap::Args;
use serde_json::Value;

use crate::cli::GlobalOptions;
use crate::conditions::parameters;
use crate::exit::Failure;
use crate::fields::{Declared, Fields, value_at};
use crate::numbers;
use crate::output::{Screen, Table, cell, line, visible};
use crate::pages::Paging;
use crate::target::{Request, Target};

/// List records by their indexes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = LONG)]
pub(crate) struct Query {
    /// The collection
    collection: String,
    /// Conditions on the records: requester_id=ana 'created_at>=1767225600000'
    conditions: Vec<String>,
    /// Records that meet at least one of these, in one order; give two or more
    #[arg(long, value_name = "FIELD=VALUE")]
    any: Vec<String>,
    /// The order: FIELD, or -FIELD for the largest first
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    order: Option<String>,
    /// Use this index
    #[arg(long, value_name = "NAME")]
    index: Option<String>,
    /// Test records after reading them; may be repeated
    #[arg(long, value_name = "CONDITION")]
    filter: Vec<String>,
    /// Read at most this many records for a page, with --filter
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    read: Option<usize>,
    /// Print keys without their records
    #[arg(long, conflicts_with = "wanted")]
    keys_only: bool,
    /// Read the whole collection if no index serves
    #[arg(long)]
    scan: bool,
    /// Print the plan instead of records
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    paging: Paging,
}

const EXAMPLES: &str = "\
Examples:
  keyloom query approval --limit 5
  keyloom query approval requester_id=ana --order -created_at
  keyloom query approval --any requester_id=ana --any approver_id=ana --order -created_at
  keyloom query approval requester_id=ana 'created_at>=1767225600000' --filter status=pending
  keyloom query post 'tags.*=rust' --all --json | jq -r .record.title
  keyloom query approval requester_id=ana --fields code,created_at
  keyloom query approval requester_id=ana --explain";

const LONG: &str = "\
Conditions are FIELD=VALUE, and FIELD>VALUE, >=, <, <=, or ^= for a beginning. Quote them, since
the shell has its own use for < and >. Values are read as the declared type of their field; a time
may be milliseconds since 1970 or an ISO-8601 time. Elements of arrays are tags.*=VALUE.

Without a condition, records come in the order of their keys, a page at a time. Nothing else reads a
whole collection unless --scan says so. --explain names the index and the range.

Tables show declared timestamps as ISO-8601 times of UTC; JSON has them as they are stored.

Examples:
  keyloom query approval --limit 5
  keyloom query approval requester_id=ana --order -created_at
  keyloom query approval --any requester_id=ana --any approver_id=ana --order -created_at
  keyloom query approval requester_id=ana 'created_at>=1767225600000' --filter status=pending
  keyloom query post 'tags.*=rust' --all --json | jq -r .record.title
  keyloom query approval requester_id=ana --fields code,created_at
  keyloom query approval requester_id=ana --explain";

impl Query {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let answer = if self.explain { "explain" } else { "records" };
        let request = Request::get(&["collections", &self.collection, answer])
            .params(parameters("where", &self.conditions)?)
            .params(parameters("any", &self.any)?)
            .params(parameters("filter", &self.filter)?)
            .param_if("order", self.order.as_ref())
            .param_if("index", self.index.as_ref())
            .param_if("read", self.read)
            .flag("keys_only", self.keys_only)
            .flag("scan", self.scan);
        let target = Target::open(place)?;
        let screen = Screen::of(place);
        if self.explain {
            return explain(&target, request, screen);
        }
        self.paging.read(&target, screen, &request, "records", |items| {
            print(&target, screen, &self.collection, &self.fields, items)
        })
    }
}

fn explain(target: &Target, request: Request, screen: Screen) -> Result<(), Failure> {
    let answer = target.value(request)?;
    if !screen.is_for_people() {
        return screen.json(&answer);
    }
    answer["plan"].as_str().unwrap_or_default().lines().try_for_each(|text| line(&visible(text)))
}

/// Prints records as rows, with a column for each field, or as JSON lines.
pub(super) fn print(
    target: &Target,
    screen: Screen,
    collection: &str,
    fields: &Fields,
    items: &[Value],
) -> Result<(), Failure> {
    let mut items = items.to_vec();
    fields.keep(target, collection, &mut items)?;
    if !screen.is_for_people() {
        return items.iter().try_for_each(|item| screen.json(item));
    }
    if items.is_empty() {
        return Ok(());
    }
    let columns = fields.columns(&items);
    let declared = Declared::of(target, collection);
    for item in &mut items {
        declared.tell_times(&mut item["record"]);
    }
    let has_distance = items.iter().any(|item| item.get("distance_m").is_some());
    let distance = has_distance.then_some("metres");
    let titles = std::iter::once("key").chain(distance).chain(columns.iter().map(String::as_str));
    let mut table = Table::new(titles);
    for item in &items {
        let metres = has_distance.then(|| item["distance_m"].as_f64().unwrap_or(0.0));
        let metres = metres.map(|metres| format!("{metres:.0}"));
        let key = cell(&item["key"]);
        let values = columns.iter().map(|column| cell(value_at(&item["record"], column)));
        table.row(std::iter::once(key).chain(metres).chain(values));
    }
    screen.table(&table)
}
