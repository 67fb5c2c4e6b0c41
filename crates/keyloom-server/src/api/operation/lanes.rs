//! Which operations may run side by side: those on one record follow each other.

use std::collections::HashMap;

/// Slots in a list whose items are worked off one after the other.
pub(crate) type Lane = Vec<usize>;

/// Puts the places of a list into lanes by what their items are about, in order. An item that is
/// about nothing in particular has a lane of its own.
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
