//! Limits connections by the files that the process may open.

/// The number of allowed connections: the wanted number, but at most half of the files that the
/// process may open. A store that cannot open its files turns read-only, and the number of
/// connections is up to strangers.
pub(super) fn connections(wanted: usize) -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let allowed = match open_files(&limits) {
        Some(files) => wanted.min(files / 2),
        None => wanted,
    };
    if allowed < wanted {
        tracing::warn!(
            wanted,
            allowed,
            "fewer connections than configured: the process may open too few files (ulimit -n)"
        );
    }
    allowed.max(1)
}

/// The soft limit of open files in Linux's table of limits.
fn open_files(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_read_off_the_table() {
        let table = "Limit                     Soft Limit           Hard Limit           Units\n\
                     Max processes             63432                63432                processes\n\
                     Max open files            1024                 1048576              files\n";
        assert_eq!(open_files(table), Some(1024));
        assert_eq!(open_files("Max open files            unlimited  unlimited  files"), None);
        assert_eq!(open_files(""), None);
    }
}
