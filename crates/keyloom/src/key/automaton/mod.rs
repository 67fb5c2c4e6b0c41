//! The keys of a template as an automaton over bytes, exact and deterministic.
//!
//! It answers what decoding cannot: whether some key begins with given bytes, and, combined with
//! another automaton, whether two templates share a key. States are built from the end of the
//! template to its start, so each part knows the state that follows it. No state has two moves for
//! one byte, because every segment itself shows where it ends.

mod calendar;
mod language;

use super::class::Class;
use super::template::TemplatePart;

pub(super) type StateId = usize;

/// See the [module's](self) description. From every state, the end of some key can be reached.
#[derive(Debug)]
pub(super) struct Automaton {
    states: Vec<State>,
    pub(super) start: StateId,
}

#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Whether a key may end here.
    pub(super) is_end: bool,
    /// The state of the text whose character is being read: every path from here leads back to it.
    pub(super) home: Option<StateId>,
    /// The next state for each byte. No byte is in two classes.
    pub(super) moves: Vec<(Class, StateId)>,
}

impl Automaton {
    /// The automaton of a template.
    pub(super) fn of(parts: &[TemplatePart]) -> Self {
        let mut automaton = Automaton { states: Vec::new(), start: 0 };
        let end = automaton.add(State { is_end: true, ..State::default() });
        automaton.start = parts.iter().rev().fold(end, |next, part| match part {
            TemplatePart::Literal(literal) => automaton.text(literal.as_bytes(), next),
            TemplatePart::Segment(segment) => automaton.segment(segment, next),
        });
        automaton
    }

    pub(super) fn state(&self, id: StateId) -> &State {
        &self.states[id]
    }

    /// The shortest prefix of `bytes` that no key has, if there is one.
    pub(super) fn shortest_dead_prefix<'k>(&self, bytes: &'k [u8]) -> Option<&'k [u8]> {
        let mut at = self.start;
        for (place, &byte) in bytes.iter().enumerate() {
            match self.state(at).step(byte) {
                Some(next) => at = next,
                None => return Some(&bytes[..=place]),
            }
        }
        None
    }

    /// Whether the bytes are a key of the template, apart from the limit on the length.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn accepts(&self, bytes: &[u8]) -> bool {
        bytes
            .iter()
            .try_fold(self.start, |at, &byte| self.state(at).step(byte))
            .is_some_and(|at| self.state(at).is_end)
    }

    /// The least number of bytes from each state to the end of a key.
    pub(super) fn distances(&self) -> Vec<usize> {
        let mut sources: Vec<Vec<StateId>> = vec![Vec::new(); self.states.len()];
        for (id, state) in self.states.iter().enumerate() {
            for &(_, next) in &state.moves {
                sources[next].push(id);
            }
        }
        let mut distances = vec![usize::MAX; self.states.len()];
        let mut near: Vec<StateId> =
            (0..self.states.len()).filter(|&id| self.states[id].is_end).collect();
        let mut distance = 0;
        while !near.is_empty() {
            // A state that is found twice counts only once; otherwise forks would multiply.
            near.retain(|&id| {
                let is_new = distances[id] == usize::MAX;
                distances[id] = distances[id].min(distance);
                is_new
            });
            near = near.iter().flat_map(|&id| sources[id].iter().copied()).collect();
            distance += 1;
        }
        distances
    }

    fn add(&mut self, state: State) -> StateId {
        self.states.push(state);
        self.states.len() - 1
    }

    /// A state with these moves.
    fn fork(&mut self, moves: Vec<(Class, StateId)>) -> StateId {
        self.add(State { moves, ..State::default() })
    }

    /// A state that reads one byte of a class.
    fn one(&mut self, class: Class, next: StateId) -> StateId {
        self.fork(vec![(class, next)])
    }

    /// States that read exactly these bytes.
    fn text(&mut self, bytes: &[u8], next: StateId) -> StateId {
        bytes.iter().rev().fold(next, |next, &byte| self.one(Class::of(&[byte]), next))
    }
}

impl State {
    fn step(&self, byte: u8) -> Option<StateId> {
        self.moves.iter().find(|(class, _)| class.contains(byte)).map(|&(_, next)| next)
    }
}
