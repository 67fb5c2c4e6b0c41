//! The states for date-times that exist: with the lengths of months, and leap days.

use super::{Automaton, StateId};
use crate::key::class::Class;

const EVEN: &[u8] = b"02468";
const ODD: &[u8] = b"13579";
const ANY: &[u8] = b"0123456789";

impl Automaton {
    pub(super) fn date_times(&mut self, desc: bool, next: StateId) -> StateId {
        Calendar { states: self, desc }.date_times(next)
    }
}

/// Builds the states for the ascending form, and writes them in the wanted direction.
struct Calendar<'a> {
    states: &'a mut Automaton,
    desc: bool,
}

impl Calendar<'_> {
    fn date_times(&mut self, next: StateId) -> StateId {
        let time = self.time(next);
        let day = self.days(time);
        let common = self.months(day.feb_common, &day);
        let leap = self.months(day.feb_leap, &day);
        // The last digit decides whether it is a leap year, depending on the digits before it.
        let year = |this: &mut Self, leap_digits: &[u8]| {
            let common_digits: Vec<u8> =
                ANY.iter().copied().filter(|digit| !leap_digits.contains(digit)).collect();
            this.fork(&[(leap_digits, leap), (&common_digits, common)])
        };
        let after_odd = year(self, b"26");
        let after_even = year(self, b"048");
        // The years 1900 and 2100 are common, 1904 and 2104 are not.
        let after_zero = year(self, b"48");
        let leap_century = self.fork(&[(EVEN, after_even), (ODD, after_odd)]);
        let common_century =
            self.fork(&[(b"0", after_zero), (b"2468", after_even), (ODD, after_odd)]);
        let even = self.fork(&[(b"048", leap_century), (b"1235679", common_century)]);
        let odd = self.fork(&[(b"26", leap_century), (b"01345789", common_century)]);
        self.fork(&[(EVEN, even), (ODD, odd)])
    }

    /// `-MM` and the rest, with this February.
    fn months(&mut self, february: StateId, day: &Days) -> StateId {
        let after_zero = self.fork(&[(b"13578", day.long), (b"469", day.short), (b"2", february)]);
        let after_one = self.fork(&[(b"02", day.long), (b"1", day.short)]);
        let month = self.fork(&[(b"0", after_zero), (b"1", after_one)]);
        self.fork(&[(b"-", month)])
    }

    /// `-DD` and the rest, for months of each length.
    fn days(&mut self, time: StateId) -> Days {
        let from_one = self.fork(&[(b"123456789", time)]);
        let any = self.fork(&[(ANY, time)]);
        let to_eight = self.fork(&[(b"012345678", time)]);
        let zero = self.fork(&[(b"0", time)]);
        let zero_or_one = self.fork(&[(b"01", time)]);
        let mut month = |days: &[(&[u8], StateId)]| {
            let day = self.fork(days);
            self.fork(&[(b"-", day)])
        };
        Days {
            feb_common: month(&[(b"0", from_one), (b"1", any), (b"2", to_eight)]),
            feb_leap: month(&[(b"0", from_one), (b"12", any)]),
            short: month(&[(b"0", from_one), (b"12", any), (b"3", zero)]),
            long: month(&[(b"0", from_one), (b"12", any), (b"3", zero_or_one)]),
        }
    }

    /// `THH:MM:SS.mmmZ`.
    fn time(&mut self, next: StateId) -> StateId {
        let sixty: &[&[u8]] = &[b"012345", ANY];
        let tail = [&[b":" as &[u8]], sixty, &[b":"], sixty, &[b".", ANY, ANY, ANY, b"Z"]].concat();
        let minutes = tail.iter().rev().fold(next, |next, class| self.fork(&[(class, next)]));
        let any_hour = self.fork(&[(ANY, minutes)]);
        let late_hour = self.fork(&[(b"0123", minutes)]);
        let hour = self.fork(&[(b"01", any_hour), (b"2", late_hour)]);
        self.fork(&[(b"T", hour)])
    }

    fn fork(&mut self, moves: &[(&[u8], StateId)]) -> StateId {
        let moves = moves
            .iter()
            .map(|&(bytes, next)| {
                let mirror = |byte: u8| match byte {
                    b'0'..=b'9' if self.desc => b'0' + b'9' - byte,
                    _ => byte,
                };
                (Class::of(bytes).map(mirror), next)
            })
            .collect();
        self.states.fork(moves)
    }
}

/// The states before `-DD`.
struct Days {
    feb_common: StateId,
    feb_leap: StateId,
    short: StateId,
    long: StateId,
}
