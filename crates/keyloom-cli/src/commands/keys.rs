//! `keyloom keys`: raw keys, for people to inspect.

use clap::Args;
use serde_json::Value;

use crate::cli::GlobalOptions;
use crate::exit::Failure;
use crate::numbers;
use crate::output::{Screen, Table, bytes, cell, grouped, line, visible};
use crate::pages::Paging;
use crate::target::{Request, Target};

/// List raw keys by prefix: records, entries, and Keyloom's own
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Keys {
    /// The prefix of the keys; nothing for all
    #[arg(default_value = "")]
    prefix: String,
    /// The area; `~` is Keyloom's own
    #[arg(long)]
    area: Option<String>,
    /// Print the values too
    #[arg(long)]
    values: bool,
    /// Print the next level of the tree of keys, with counts and sizes
    #[arg(long, conflicts_with_all = ["values", "limit", "cursor", "all"])]
    tree: bool,
    /// Count at most this many keys for the tree; a plus marks what has more
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = numbers::count)]
    budget: usize,
    #[command(flatten)]
    paging: Paging,
}

const EXAMPLES: &str = "\
Examples:
  keyloom keys approval:index:requester:ana:
  keyloom keys approval:code: --values
  keyloom keys --tree
  keyloom keys approval:index: --tree
  keyloom keys --area '~' --all";

impl Keys {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let part = if self.tree { "branches" } else { "keys" };
        let request = Request::get(&["admin", part])
            .param("prefix", &self.prefix)
            .param_if("area", self.area.as_ref())
            .flag("values", self.values);
        let target = Target::open(place)?;
        let screen = Screen::of(place);
        if self.tree {
            let answer = target.value(request.param("budget", self.budget))?;
            return tree(screen, &self.prefix, &answer);
        }
        let values = self.values;
        self.paging.read(&target, screen, &request, "keys", |items| print(screen, items, values))
    }
}

fn print(screen: Screen, items: &[Value], values: bool) -> Result<(), Failure> {
    if !screen.is_for_people() {
        return items.iter().try_for_each(|item| screen.json(item));
    }
    let mut table =
        Table::new(["kind", "bytes", "key"].into_iter().chain(values.then_some("value")));
    for item in items {
        let row = [cell(&item["kind"]), cell(&item["bytes"]), key(item)];
        table.row(row.into_iter().chain(values.then(|| value(item))));
    }
    screen.table(&table)
}

fn tree(screen: Screen, prefix: &str, answer: &Value) -> Result<(), Failure> {
    let branches = answer["branches"].as_array().map_or(&[][..], Vec::as_slice);
    if !screen.is_for_people() {
        return branches.iter().try_for_each(|branch| screen.json(branch));
    }
    if !prefix.is_empty() {
        line(&screen.dim(&visible(prefix)))?;
    }
    let mut table = Table::new(["keys", "size", "branch"]);
    for branch in branches {
        let at_least = if branch["is_exact"] == false { "+" } else { "" };
        let number = |name: &str| branch[name].as_u64().unwrap_or(0);
        let more = if branch["is_key"] == true { "" } else { "…" };
        table.row([
            format!("{}{at_least}", grouped(number("keys"))),
            format!("{}{at_least}", bytes(number("bytes"))),
            format!("{}{more}", cell(&branch["text"])),
        ]);
    }
    screen.table(&table)
}

/// A key as text, with its area if it has one.
pub(super) fn key(item: &Value) -> String {
    let text = [&item["key"], &item["key_base64"]].into_iter().find(|key| !key.is_null());
    let text = text.map(cell).unwrap_or_default();
    match item["area"].as_str() {
        None | Some("") => text,
        Some(area) => format!("[{area}] {text}"),
    }
}

/// The value at a key, as text.
pub(super) fn value(item: &Value) -> String {
    match (&item["value"], &item["value_base64"]) {
        (Value::Null, Value::Null) => String::new(),
        (Value::Null, bytes) => format!("base64 {}", cell(bytes)),
        (Value::String(text), _) => text.clone(),
        (value, _) => value.to_string(),
    }
}
