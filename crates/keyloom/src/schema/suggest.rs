//! The known name that a user most likely meant.

/// The nearest of the known names, if it is near enough to be a slip of the fingers (at most one
/// edit in three letters, whatever the case), or begins with the word (`owner` for `owner_id`).
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let word = word.to_lowercase();
    known
        .iter()
        .map(|name| (edits(&word, &name.to_lowercase()), *name))
        .filter(|(edits, name)| {
            let is_slip = *edits * 3 <= name.chars().count().max(word.chars().count());
            let is_beginning = word.len() >= 3 && name.to_lowercase().starts_with(&word);
            is_slip || is_beginning
        })
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

/// The insertions, deletions, substitutions and swaps of neighbours that lead from one word to
/// the other.
fn edits(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for row in 1..=from.len() {
        let mut current = vec![row];
        for column in 1..=to.len() {
            let substitution = usize::from(from[row - 1] != to[column - 1]);
            let mut best = (last[column - 1] + substitution)
                .min(last[column] + 1)
                .min(current[column - 1] + 1);
            let is_swap = row > 1
                && column > 1
                && from[row - 1] == to[column - 2]
                && from[row - 2] == to[column - 1];
            if is_swap {
                best = best.min(before_last[column - 2] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("key", "key"), 0);
        assert_eq!(edits("feilds", "fields"), 1);
        assert_eq!(edits("indexes", "index"), 2);
        assert_eq!(edits("uniq", "unique"), 2);
    }

    #[test]
    fn only_near_names_are_suggested() {
        let known = ["key", "area", "fields", "index", "unique"];
        assert_eq!(nearest("Key", &known), Some("key"));
        assert_eq!(nearest("feild", &known), Some("fields"));
        assert_eq!(nearest("indexes", &known), Some("index"));
        assert_eq!(nearest("uni", &known), Some("unique"));
        assert_eq!(nearest("retention", &known), None);
        assert_eq!(nearest("", &known), None);
    }
}
