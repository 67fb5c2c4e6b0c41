//! The states for the bytes that each codec writes.

use super::{Automaton, State, StateId};
use crate::engine::percent;
use crate::key::class::Class;
use crate::key::codec::Codec;
use crate::key::codec::number::{integer_limits, integer_magnitude};
use crate::key::codec::text::{DESCENDING_END, SORTED_END, SORTED_ESCAPED_MAX};
use crate::key::template::Segment;

const DIGITS: &[u8] = b"0123456789";
const HEX_LOWER: &[u8] = b"0123456789abcdef";
const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";
const ASCII: Class = Class::between(0x00, 0x7f);

/// How the bytes of a text are encoded.
#[derive(Clone, Copy)]
enum Form {
    /// As they are, except that these become `%XX`.
    Escaped(Class),
    /// Each as two hex digits of its complement.
    Complement,
}

impl Automaton {
    /// States for all values of a segment, followed by `next`.
    pub(super) fn segment(&mut self, segment: &Segment, next: StateId) -> StateId {
        match &segment.codec {
            Codec::Text => {
                let escaped = |byte: &u8| percent::is_escaped(*byte, segment.separator);
                let escaped: Vec<u8> = (0..=u8::MAX).filter(escaped).collect();
                self.texts(Form::Escaped(Class::of(&escaped)), next)
            }
            Codec::SortedText if segment.desc => {
                let next = self.text(&[DESCENDING_END], next);
                self.texts(Form::Complement, next)
            }
            Codec::SortedText => {
                let next = self.text(&[SORTED_END], next);
                self.texts(Form::Escaped(Class::between(0, SORTED_ESCAPED_MAX)), next)
            }
            Codec::Raw => self.texts(Form::Escaped(Class::EMPTY), next),
            Codec::Enum { values } => self.choice(segment, values, next),
            Codec::Integer { digits } => self.integers(*digits, next),
            Codec::Float => self.floats(segment.desc, next),
            Codec::DateTime => self.date_times(segment.desc, next),
            codec => (0..codec.width().unwrap_or_default()).rev().fold(next, |next, place| {
                self.one(codec.position(place).written(segment.desc), next)
            }),
        }
    }

    /// States for any UTF-8 text in a form. The loop state also has the moves of `next`, since the
    /// text may end there.
    fn texts(&mut self, form: Form, next: StateId) -> StateId {
        let start = self.add(State { home: None, ..self.state(next).clone() });
        let tail = Class::between(0x80, 0xbf);
        // These states expect the remaining bytes of a character.
        let one = self.written(form, vec![(tail, start)]);
        let two = self.written(form, vec![(tail, one)]);
        let three = self.written(form, vec![(tail, two)]);
        let after_e0 = self.written(form, vec![(Class::between(0xa0, 0xbf), one)]);
        let after_ed = self.written(form, vec![(Class::between(0x80, 0x9f), one)]);
        let after_f0 = self.written(form, vec![(Class::between(0x90, 0xbf), two)]);
        let after_f4 = self.written(form, vec![(Class::between(0x80, 0x8f), two)]);
        let characters = vec![
            (ASCII, start),
            (Class::between(0xc2, 0xdf), one),
            (Class::of(&[0xe0]), after_e0),
            (Class::between(0xe1, 0xef).without(Class::of(&[0xed])), two),
            (Class::of(&[0xed]), after_ed),
            (Class::of(&[0xf0]), after_f0),
            (Class::between(0xf1, 0xf3), three),
            (Class::of(&[0xf4]), after_f4),
        ];
        let moves = self.written_moves(form, characters);
        self.states[start].moves.extend(moves);
        for inner in &mut self.states[start + 1..] {
            inner.home = Some(start);
        }
        start
    }

    fn written(&mut self, form: Form, moves: Vec<(Class, StateId)>) -> StateId {
        let moves = self.written_moves(form, moves);
        self.fork(moves)
    }

    /// Converts moves over bytes of the text to moves over encoded bytes.
    fn written_moves(&mut self, form: Form, moves: Vec<(Class, StateId)>) -> Vec<(Class, StateId)> {
        match form {
            Form::Complement => self.hex_pairs(
                moves.into_iter().map(|(class, next)| (class.map(|byte| !byte), next)).collect(),
            ),
            Form::Escaped(escaped) => {
                let part_of = |part: &dyn Fn(Class) -> Class| -> Vec<(Class, StateId)> {
                    let parts = moves.iter().map(|&(class, next)| (part(class), next));
                    parts.filter(|(class, _)| !class.is_empty()).collect()
                };
                let mut written = part_of(&|class| class.without(escaped));
                let hidden = part_of(&|class| class.and(escaped));
                if !hidden.is_empty() {
                    let pairs = self.hex_pairs(hidden);
                    written.push((Class::of(b"%"), self.fork(pairs)));
                }
                written
            }
        }
    }

    /// Converts moves over bytes to moves over two upper-case hex digits each.
    fn hex_pairs(&mut self, moves: Vec<(Class, StateId)>) -> Vec<(Class, StateId)> {
        (0..16u8)
            .filter_map(|high| {
                let row = Class::between(high << 4, high << 4 | 15);
                let second: Vec<_> = moves
                    .iter()
                    .map(|&(class, next)| {
                        (class.and(row).map(|byte| HEX_UPPER[usize::from(byte & 15)]), next)
                    })
                    .filter(|(class, _)| !class.is_empty())
                    .collect();
                let first = Class::of(&[HEX_UPPER[usize::from(high)]]);
                (!second.is_empty()).then(|| (first, self.fork(second)))
            })
            .collect()
    }

    /// States for the values of an enum: a tree of shared prefixes, so that long enums stay small.
    fn choice(&mut self, segment: &Segment, values: &[String], next: StateId) -> StateId {
        let root = self.fork(Vec::new());
        let mut ends = Vec::new();
        for value in values {
            let mut written = Vec::new();
            segment.write_name(value, &mut written);
            ends.push(written.iter().fold(root, |at, &byte| match self.states[at].step(byte) {
                Some(found) => found,
                None => {
                    let fresh = self.fork(Vec::new());
                    self.states[at].moves.push((Class::of(&[byte]), fresh));
                    fresh
                }
            }));
        }
        ends.sort_unstable();
        ends.dedup();
        let State { is_end, moves, .. } = self.state(next).clone();
        for end in ends {
            self.states[end].is_end = is_end;
            self.states[end].moves.extend_from_slice(&moves);
        }
        root
    }

    /// States for `-` and the digits of negative integers, and for the digits of all others. Both
    /// directions write the same set.
    fn integers(&mut self, digits: u8, next: StateId) -> StateId {
        let (low, high) = integer_limits(digits);
        let width = usize::from(digits);
        let number = |value: i64| format!("{:0width$}", integer_magnitude(value, digits));
        let positive = self.between(&number(0), &number(high), DIGITS, next);
        let negative = self.between(&number(low), &number(-1), DIGITS, next);
        self.states[positive].moves.push((Class::of(b"-"), negative));
        positive
    }

    /// States for the ordered bits of finite doubles. The gap in the middle is -0.0; the gaps at
    /// both ends are infinities and NaN.
    fn floats(&mut self, desc: bool, next: StateId) -> StateId {
        let hex = |bits: u64| format!("{bits:016x}");
        let (lowest, highest) = (0x0010_0000_0000_0000, 0xffef_ffff_ffff_ffff);
        let negative_zero: u64 = if desc { 1 << 63 } else { (1 << 63) - 1 };
        let (below, above) = (hex(negative_zero - 1), hex(negative_zero + 1));
        let low = self.between(&hex(lowest), &below, HEX_LOWER, next);
        let high = self.between(&above, &hex(highest), HEX_LOWER, next);
        // The two sets differ in their first digit: 0 to 7, and 8 to f.
        let upper = self.state(high).moves.clone();
        self.states[low].moves.extend(upper);
        low
    }

    /// States for the texts from `low` to `high`, all of the same length, over a sorted alphabet.
    fn between(&mut self, low: &str, high: &str, alphabet: &[u8], next: StateId) -> StateId {
        let all = Class::of(alphabet);
        let (first, last) = (alphabet[0], alphabet[alphabet.len() - 1]);
        // States for texts that so far equal neither limit, only `low`, only `high`, or both.
        let [mut free, mut above_low, mut below_high, mut both] = [next; 4];
        for (low, high) in low.bytes().zip(high.bytes()).rev() {
            let exactly = |byte: u8| Class::of(&[byte]);
            let span = |from: u8, to: u8| all.and(Class::between(from, to));
            let above = span(low, last).without(exactly(low));
            let below = span(first, high).without(exactly(high));
            let new_both = if low == high {
                self.fork(vec![(exactly(low), both)])
            } else {
                self.fork_of(vec![
                    (exactly(low), above_low),
                    (above.and(below), free),
                    (exactly(high), below_high),
                ])
            };
            above_low = self.fork_of(vec![(exactly(low), above_low), (above, free)]);
            below_high = self.fork_of(vec![(below, free), (exactly(high), below_high)]);
            free = self.one(all, free);
            both = new_both;
        }
        both
    }

    fn fork_of(&mut self, mut moves: Vec<(Class, StateId)>) -> StateId {
        moves.retain(|(class, _)| !class.is_empty());
        self.fork(moves)
    }
}
