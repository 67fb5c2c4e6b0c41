//! Decides which operations may run concurrently: operations on the same record run in order.

use std::collections::HashMap;

/// Places in a list whose items are processed in order.
pub(crate) type Lane = Vec<usize>;

/// Divides the places of a list into lanes by the subjects of their items, in order. An item
/// without a subject has a lane of its own.
pub(crate) fn lanes(subjects: impl IntoIterator<Item = Option<String>>) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut by_subject: HashMap<String, usize> = HashMap::new();
    for (place, subject) in subjects.into_iter().enumerate() {
        let Some(subject) = subject else {
            lanes.push(vec![place]);
            continue;
        };
        let lane = *by_subject.entry(subject).or_insert(lanes.len());
        match lanes.get_mut(lane) {
            Some(lane) => lane.push(place),
            None => lanes.push(vec![place]),
        }
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_subject_has_one_lane_in_the_order_of_the_list() {
        let subjects = ["a", "b", "", "a", "", "b", "a"];
        let subjects = subjects.map(|text| (!text.is_empty()).then(|| text.to_owned()));
        assert_eq!(lanes(subjects), [vec![0, 3, 6], vec![1, 5], vec![2], vec![4]]);
    }
}
