//! Suggests the known name that a user probably meant.

/// The most similar of the known names. It must differ by no more than a slip (at most one edit in
/// three letters, ignoring case), or begin with the word (`owner` for `owner_id`).
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
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

/// Whether a name is almost certainly another one, misspelt: in another style (`createdAt` for
/// `created_at`), or with one typing slip in a word of five letters or more. Differences that often
/// make another word do not count: the first letter, a number, a plural, or, in a short name, one
/// letter in place of another (`stage`, `state`).
pub(crate) fn is_slip(name: &str, known: &str) -> bool {
    /// In a name this long, one letter in place of another rarely makes another word.
    const LONG: usize = 8;
    /// In a shorter name, any slip may make another word.
    const SHORT: usize = 5;
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let (name, known) = (plain(name), plain(known));
    if name == known {
        return true;
    }
    let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
    let is_plural = |one: &str, other: &str| one.strip_suffix('s') == Some(other);
    let (length, other) = (name.chars().count(), known.chars().count());
    let is_other_word = name.chars().next() != known.chars().next()
        || digits(&name) != digits(&known)
        || is_plural(&name, &known)
        || is_plural(&known, &name);
    if is_other_word || length.min(other) < SHORT || edits(&name, &known) != 1 {
        return false;
    }
    let sorted = |name: &str| {
        let mut letters: Vec<char> = name.chars().collect();
        letters.sort_unstable();
        letters
    };
    length != other || length >= LONG || sorted(&name) == sorted(&known)
}

/// The number of insertions, deletions, substitutions and swaps of neighbours that turn one word
/// into the other.
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

    #[test]
    fn only_what_is_no_other_word_is_a_slip() {
        for (name, known) in [
            ("Status", "status"),
            ("createdAt", "created_at"),
            ("created-at", "created_at"),
            ("id", "ID"),
            ("stauts", "status"),
            ("satus", "status"),
            ("staatus", "status"),
            ("requestor_id", "requester_id"),
        ] {
            assert!(is_slip(name, known), "{name} for {known}");
        }
        for (name, known) in [
            ("stage", "state"),
            ("tags", "tag"),
            ("name", "names"),
            ("form", "from"),
            ("altitude", "latitude"),
            ("line1", "line2"),
            ("updated_at", "created_at"),
            ("due", "due_at"),
            ("x", "y"),
            ("data", "date"),
            ("", "a"),
        ] {
            assert!(!is_slip(name, known) && !is_slip(known, name), "{name} for {known}");
        }
    }
}
