//! Finds out whether two templates share a key.
//!
//! The search walks through both automata together, always from the most promising pair of states:
//! the one with the least sum of the bytes so far and the bytes still needed. The first pair in
//! which both keys may end gives a shortest common key, and among those a readable one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::automaton::{Automaton, StateId};
use super::class::Class;
use super::template::Template;
use crate::engine::KEY_BYTES_MAX;

/// A key that belongs to both templates, if there is one.
pub(crate) fn common_key(a: &Template, b: &Template) -> Option<Vec<u8>> {
    Search::new(&a.automaton, &b.automaton).run()
}

type Pair = (StateId, StateId);

struct Search<'t> {
    automata: (&'t Automaton, &'t Automaton),
    distances: (Vec<usize>, Vec<usize>),
    /// Every path found so far. A path is an earlier path and one more byte.
    ways: Vec<Way>,
    /// The least cost of reaching each pair.
    reached: HashMap<Pair, (usize, usize)>,
    /// Ordered by the least length of the whole key, then by how hard it is to read.
    open: BinaryHeap<Reverse<(usize, usize, usize)>>,
}

struct Way {
    pair: Pair,
    before: usize,
    byte: u8,
    length: usize,
    strangeness: usize,
}

impl<'t> Search<'t> {
    fn new(a: &'t Automaton, b: &'t Automaton) -> Self {
        Search {
            automata: (a, b),
            distances: (a.distances(), b.distances()),
            ways: Vec::new(),
            reached: HashMap::new(),
            open: BinaryHeap::new(),
        }
    }

    fn run(mut self) -> Option<Vec<u8>> {
        // The start does not count as reached: the empty key is not a key, but a path may lead back
        // here.
        let pair = (self.automata.0.start, self.automata.1.start);
        self.ways.push(Way { pair, before: 0, byte: 0, length: 0, strangeness: 0 });
        self.expand(0);
        while let Some(Reverse((_, _, way))) = self.open.pop() {
            let Way { pair, length, strangeness, .. } = self.ways[way];
            if self.reached.get(&pair).is_some_and(|&least| least < (length, strangeness)) {
                continue;
            }
            let (a, b) = (self.automata.0.state(pair.0), self.automata.1.state(pair.1));
            if a.is_end && b.is_end {
                return Some(self.key_of(way));
            }
            self.expand(way);
        }
        None
    }

    fn expand(&mut self, way: usize) {
        let (pair, length, strangeness) =
            (self.ways[way].pair, self.ways[way].length + 1, self.ways[way].strangeness);
        let (a, b) = self.automata;
        for &(class_a, next_a) in &a.state(pair.0).moves {
            for &(class_b, next_b) in &b.state(pair.1).moves {
                let Some((byte, strange)) = most_readable(class_a.and(class_b)) else { continue };
                let next = (next_a, next_b);
                // Skips a character that both read as part of their texts, since it leads back to
                // this pair.
                if a.state(next_a).home == Some(pair.0) && b.state(next_b).home == Some(pair.1) {
                    continue;
                }
                let cost = (length, strangeness + strange);
                let left = self.distances.0[next_a].max(self.distances.1[next_b]);
                let whole = length.saturating_add(left);
                let known = self.reached.get(&next).is_some_and(|&least| least <= cost);
                if whole > KEY_BYTES_MAX || known {
                    continue;
                }
                self.reached.insert(next, cost);
                self.open.push(Reverse((whole, cost.1, self.ways.len())));
                self.ways.push(Way { pair: next, before: way, byte, length, strangeness: cost.1 });
            }
        }
    }

    fn key_of(&self, end: usize) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.ways[end].length);
        let mut at = end;
        while at != 0 {
            key.push(self.ways[at].byte);
            at = self.ways[at].before;
        }
        key.reverse();
        key
    }
}

/// The most readable byte of a class, and its penalty.
fn most_readable(class: Class) -> Option<(u8, usize)> {
    const READABLE: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const PRINTABLE: Class = Class::between(0x21, 0x7e);
    let readable = READABLE.iter().copied().find(|&byte| class.contains(byte));
    readable
        .map(|byte| (byte, 0))
        .or_else(|| Some((class.and(PRINTABLE).bytes().next()?, 1)))
        .or_else(|| Some((class.bytes().next()?, 2)))
}
