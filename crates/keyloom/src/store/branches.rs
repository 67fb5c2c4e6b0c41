//! Shows the keys of a space as a tree: the next level below a prefix, without reading all of it.

use bytes::Bytes;

use super::raw_keys::RawKeys;
use crate::engine::{Area, Direction, Range, ShowKey, after_prefix, successor};
use crate::error::Result;
use crate::space::{cell_bytes, count_keys_in};

/// How to divide keys into branches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchOptions {
    /// The characters that end a level.
    pub separators: Vec<u8>,
    /// The most keys that are counted in one branch.
    pub keys_max: usize,
    /// The most branches.
    pub branches_max: usize,
    /// Only branches after this one, the last prefix of an earlier answer.
    pub after: Option<Bytes>,
}

impl Default for BranchOptions {
    /// Levels end with `:`, `_`, `/`, `|` or `#`. At most 1,000 branches, and 1,000 keys in each.
    fn default() -> Self {
        let separators = b":_/|#".to_vec();
        BranchOptions { separators, keys_max: 1_000, branches_max: 1_000, after: None }
    }
}

/// The next level below a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Branches {
    /// The branches, in order.
    pub branches: Vec<Branch>,
    /// Whether more branches follow: see [`BranchOptions::after`].
    pub more: bool,
}

/// Keys with a common beginning up to and including the next separator, or one key without one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Branch {
    /// What its keys begin with.
    pub prefix: Bytes,
    /// The prefix as people read it.
    pub text: String,
    /// How many keys there are.
    pub keys: u64,
    /// The bytes of these keys and their values.
    pub bytes: u64,
    /// Whether the prefix is itself a key.
    pub is_key: bool,
    /// Whether everything was counted. If not, the true number is higher.
    pub is_exact: bool,
}

impl RawKeys {
    /// The next level below a prefix in an area, as in a tree. One read finds each branch by
    /// seeking past the one before it, and a bounded number of keys is counted in each. The cost
    /// depends on the number of branches, not on the number of keys below them.
    pub async fn branches(
        &self,
        area: &str,
        prefix: impl AsRef<[u8]>,
        options: &BranchOptions,
    ) -> Result<Branches> {
        let prefix = prefix.as_ref();
        let area = Area::known(area)?;
        let mut left = Range::prefix(area.clone(), Bytes::copy_from_slice(prefix));
        if let Some(after) = &options.after {
            left.start = left.start.max(behind(after, prefix, options));
        }
        let mut branches: Vec<Branch> = Vec::new();
        let live = &self.session.live;
        while !left.is_empty() {
            let found = live.scan_one(&left, 1, Direction::Forward).await?;
            let Some(row) = found.rows.into_iter().next() else { break };
            if branches.len() >= options.branches_max {
                return Ok(Branches { branches, more: true });
            }
            let Some(end) = level_end(&row.key, prefix.len(), options) else {
                let bytes = cell_bytes(&row.key, &row.cell);
                left.start = successor(&row.key);
                branches.push(Branch::new(row.key, 1, bytes, true, true));
                continue;
            };
            let level = row.key.slice(..end);
            let below = Range::prefix(area.clone(), level.clone());
            let count = count_keys_in(&self.session.live, below, options.keys_max).await?;
            let is_key = row.key == level;
            match after_prefix(&level) {
                Some(next) => left.start = next,
                None => left.end = Some(left.start.clone()),
            }
            branches.push(Branch::new(level, count.keys, count.bytes, is_key, count.is_exact));
        }
        Ok(Branches { branches, more: false })
    }
}

/// The first key after a branch of an earlier answer.
fn behind(branch: &Bytes, prefix: &[u8], options: &BranchOptions) -> Bytes {
    let is_level = level_end(branch, prefix.len(), options) == Some(branch.len());
    let next = is_level.then(|| after_prefix(branch)).flatten();
    next.unwrap_or_else(|| successor(branch))
}

impl Branch {
    fn new(prefix: Bytes, keys: u64, bytes: u64, is_key: bool, is_exact: bool) -> Self {
        let text = ShowKey(&prefix).to_string();
        Branch { prefix, text, keys, bytes, is_key, is_exact }
    }
}

/// Where the level after the first bytes of a key ends, its separator included; `None` if the key
/// has no more levels.
fn level_end(key: &[u8], from: usize, options: &BranchOptions) -> Option<usize> {
    let rest = key.get(from..)?;
    let found = rest.iter().position(|byte| options.separators.contains(byte))?;
    Some(from + found + 1)
}
