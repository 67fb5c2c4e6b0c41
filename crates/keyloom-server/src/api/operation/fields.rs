//! Reads and removes members of records by their paths.

use serde_json::{Map, Value};

/// Removes the value at a path, and the objects around it that are then empty.
pub(crate) fn remove_member(record: &mut Value, path: &str) -> Option<Value> {
    let members = record.as_object_mut()?;
    let Some((first, rest)) = path.split_once('.') else { return members.shift_remove(path) };
    let inner = members.get_mut(first)?;
    let removed = remove_member(inner, rest)?;
    if inner.as_object().is_some_and(Map::is_empty) {
        members.shift_remove(first);
    }
    Some(removed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn removed_members_leave_no_empty_objects() {
        let mut record = json!({"stats": {"running": 1}, "id": "f"});
        assert_eq!(remove_member(&mut record, "stats.running"), Some(json!(1)));
        assert_eq!(record, json!({"id": "f"}));
        assert_eq!(remove_member(&mut record, "stats.running"), None);
    }
}
