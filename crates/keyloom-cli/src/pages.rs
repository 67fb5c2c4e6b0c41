//! Reads pages of a list: one, or all of them one after another.

use clap::Args;
use serde_json::Value;

use crate::exit::Failure;
use crate::numbers;
use crate::output::{Screen, note};
use crate::target::{Request, Target};

/// How much of a list is wanted.
#[derive(Debug, Args)]
pub(crate) struct Paging {
    /// At most this many; one page unless set
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    pub(crate) limit: Option<usize>,
    /// Continue where an earlier page ended
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Read all pages, up to --limit
    #[arg(long)]
    pub(crate) all: bool,
}

/// The size of each page when all are wanted.
const PAGE: usize = 500;

impl Paging {
    /// Reads pages and passes each one on. `list` is the member with the items; each page says in
    /// `next` where to continue. Prints to stderr how to continue and what could not be read, and
    /// tells people also if there is nothing.
    pub(crate) fn read(
        &self,
        target: &Target,
        screen: Screen,
        request: &Request,
        list: &str,
        mut take: impl FnMut(&[Value]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut cursor = self.cursor.clone();
        let mut left = self.limit.unwrap_or(usize::MAX);
        let mut is_empty = true;
        loop {
            let limit = match self.is_long() {
                true => Some(left.min(PAGE)),
                false => self.limit,
            };
            let asked =
                request.clone().param_if("limit", limit).param_if("cursor", cursor.as_ref());
            let page = target.value(asked)?;
            let items = page[list].as_array().map_or(&[][..], Vec::as_slice);
            take(items)?;
            tell(&page);
            is_empty &= items.is_empty();
            left = left.saturating_sub(items.len());
            cursor = page["next"].as_str().map(str::to_owned);
            match &cursor {
                None => {
                    if is_empty && screen.is_for_people() {
                        note(&format!("no {list}"));
                    }
                    return Ok(());
                }
                Some(_) if self.is_long() && left > 0 => {}
                Some(_) if self.all => return Ok(()),
                Some(next) => {
                    note(&format!("there is more: --all, or --cursor {next}"));
                    return Ok(());
                }
            }
        }
    }

    /// Whether more than one page may be needed.
    fn is_long(&self) -> bool {
        self.all || self.limit.is_some_and(|limit| limit > PAGE)
    }
}

/// Prints what a page could not read, and why it may be short.
fn tell(page: &Value) {
    for problem in page["problems"].as_array().into_iter().flatten() {
        let [kind, key, reason] =
            ["kind", "key", "reason"].map(|name| problem[name].as_str().unwrap_or_default());
        note(&format!("skipped {key}: {kind}: {reason}"));
    }
    if page["stopped"] == "limit" {
        note("the budget of reads is used up before the page was full; --read raises it");
    }
}
