//! Who holds which exclusive value. Clients own their records alone, but want the same values at
//! once; this is what tells a right refusal from a wrong one.
//!
//! A record holds a value *certainly* when its last write is settled, and *perhaps* while a write
//! is under way that takes the value or gives it up. Two certain holders of one value are a
//! failure. So is a refusal when nobody else held the value, even perhaps, at any time of the
//! call. With one client both are exact.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Collection, index, values.
pub type Claim = (String, String, String);

/// Client, collection, slot.
pub type Holder = (usize, usize, usize);

#[derive(Default)]
pub struct Claims(HashMap<Claim, State>);

#[derive(Default)]
struct State {
    holders: BTreeMap<Holder, Certainty>,
    /// How often something changed here.
    changes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    Certain,
    Perhaps,
}

/// What one record held and may hold after the write that is under way.
pub struct Move {
    pub holder: Holder,
    pub before: BTreeSet<Claim>,
    pub after: BTreeSet<Claim>,
}

impl Move {
    fn touched(&self) -> impl Iterator<Item = &Claim> {
        self.before.union(&self.after)
    }
}

/// What stood in the way when a write began.
pub struct Begun {
    changes: HashMap<Claim, u64>,
    rivals: bool,
}

impl Claims {
    /// A write begins that makes these moves together.
    pub fn begin(&mut self, moves: &[Move]) -> Begun {
        for one in moves {
            for claim in one.touched() {
                let state = self.0.entry(claim.clone()).or_default();
                state.holders.insert(one.holder, Certainty::Perhaps);
                state.changes += 1;
            }
        }
        let wanted = moves.iter().flat_map(|one| &one.after);
        let changes =
            wanted.map(|claim| (claim.clone(), self.0[claim].changes)).collect::<HashMap<_, _>>();
        Begun { rivals: self.has_rivals(moves), changes }
    }

    /// Whether a refusal for a value that another record holds can be right.
    pub fn may_refuse(&self, moves: &[Move], begun: &Begun) -> bool {
        begun.rivals
            || begun.changes.iter().any(|(claim, changes)| self.0[claim].changes != *changes)
            || self.has_rivals(moves)
    }

    fn has_rivals(&self, moves: &[Move]) -> bool {
        moves.iter().any(|one| {
            one.after.iter().any(|claim| {
                self.0[claim].holders.keys().any(|rival| {
                    let together = moves.iter().find(|other| other.holder == *rival);
                    // A record of the same write stands in the way only if it keeps the value.
                    *rival != one.holder && together.is_none_or(|other| other.after.contains(claim))
                })
            })
        })
    }

    /// The write is over, and its records hold what they had or what they were to have.
    pub fn settle(&mut self, moves: &[Move], happened: bool) {
        for one in moves {
            let held = if happened { &one.after } else { &one.before };
            for claim in one.touched() {
                let state = self.0.entry(claim.clone()).or_default();
                state.changes += 1;
                match held.contains(claim) {
                    true => state.holders.insert(one.holder, Certainty::Certain),
                    false => state.holders.remove(&one.holder),
                };
            }
        }
        for claim in moves.iter().flat_map(Move::touched) {
            let holders = &self.0[claim].holders;
            let certain = holders.values().filter(|held| **held == Certainty::Certain).count();
            assert!(certain <= 1, "{claim:?} is held more than once: {holders:?}");
        }
    }

    /// The holders of a value, each with whether it is certain, and a number that changes with
    /// them.
    pub fn holders(&self, claim: &Claim) -> (Vec<(Holder, bool)>, u64) {
        let Some(state) = self.0.get(claim) else { return (Vec::new(), 0) };
        let holders =
            state.holders.iter().map(|(holder, held)| (*holder, *held == Certainty::Certain));
        (holders.collect(), state.changes)
    }
}
