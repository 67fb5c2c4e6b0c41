//! The records that every rival stores, and which of them are asked for.
//!
//! A record is a pure function of its number, so that all rivals hold the same bytes, and a store
//! that was loaded earlier can be measured again.

use serde_json::Value;

/// The length of every record's JSON text.
pub const RECORD_BYTES: usize = 400;

/// How many records a user has made on average, and must decide on average.
pub const RECORDS_PER_USER: u64 = 100;

/// When the first record was created; each later one a millisecond after the one before.
const FIRST_CREATED_MS: u64 = 1_700_000_000_000;

const ID_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const CODE_ALPHABET: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";

/// One approval, in the forms that the rivals take it in.
pub struct Approval {
    pub id: String,
    pub requester: String,
    pub approver: String,
    pub created_ms: u64,
    pub code: String,
    pub text: String,
    pub json: Value,
}

impl Approval {
    /// The record of that number, in a store for so many users.
    pub fn new(number: u64, users: u64) -> Self {
        let unread = Approval::unread(number, users);
        Approval { json: serde_json::from_str(&unread.text).unwrap_or_default(), ..unread }
    }

    /// As [`new`](Self::new), for those who take it as text: the JSON is not read.
    pub fn unread(number: u64, users: u64) -> Self {
        let id = id(number);
        let requester = user(mix(number ^ 0x5eed_0001) % users);
        let approver = user(mix(number ^ 0x5eed_0002) % users);
        let created_ms = FIRST_CREATED_MS + number;
        let code = code(number);
        let head = format!(
            r#"{{"id":"{id}","requester_id":"{requester}","approver_id":"{approver}","created_at":{created_ms},"code":"{code}","status":"pending","reason":""#
        );
        let reason = prose(number, RECORD_BYTES - head.len() - 2);
        let text = format!("{head}{reason}\"}}");
        debug_assert_eq!(text.len(), RECORD_BYTES);
        Approval { id, requester, approver, created_ms, code, text, json: Value::Null }
    }
}

/// How many users a store of so many records has.
pub fn users_of(records: u64) -> u64 {
    (records / RECORDS_PER_USER).max(1)
}

/// The user of that number.
pub fn user(number: u64) -> String {
    format!("user-{number:07}")
}

/// An id as Keyloom makes them: 10 characters of time, 16 that look random, so that ids sort by
/// creation.
pub fn id(number: u64) -> String {
    let random = u128::from(mix(number)) << 16 | u128::from(mix(number ^ 0x1d) & 0xffff);
    let bits = u128::from(FIRST_CREATED_MS + number) << 80 | random;
    (0..26)
        .rev()
        .map(|place| char::from(ID_ALPHABET[(bits >> (5 * place)) as usize & 31]))
        .collect()
}

/// A code that no other number has: 30 bits, permuted.
pub fn code(number: u64) -> String {
    // Multiplication by an odd number, and xor with a shift of itself, permute 30 bits.
    const BITS: u64 = (1 << 30) - 1;
    let mut bits = number.wrapping_mul(0x2545_f491) & BITS;
    bits ^= bits >> 13;
    bits = bits.wrapping_mul(0x19d6_99a5) & BITS;
    bits ^= bits >> 16;
    let letters =
        (0..6).map(|place| char::from(CODE_ALPHABET[(bits >> (5 * place)) as usize & 31]));
    format!("A-{}", letters.collect::<String>())
}

/// Text that compresses about as well as prose does.
fn prose(number: u64, length: usize) -> String {
    const WORDS: [&str; 16] = [
        "travel ",
        "to ",
        "the ",
        "customer ",
        "in ",
        "spring ",
        "budget ",
        "for ",
        "four ",
        "nights ",
        "with ",
        "approval ",
        "pending ",
        "review ",
        "of ",
        "costs ",
    ];
    let mut random = Random(number);
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        let draw = random.next();
        text.push_str(WORDS[draw as usize & 15]);
        if draw & 0xf0 == 0 {
            text.push_str(&format!("{:x} ", draw >> 40));
        }
    }
    text.truncate(length);
    text
}

/// SplitMix64's finaliser: every bit of the number reaches every bit of the answer.
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn
    }

    /// From 0 (inclusive) to 1 (exclusive).
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// How often each of so many things is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Zipf with exponent 0.99: the most popular one about 10 times as often as the tenth.
    Zipf,
    /// All alike.
    Uniform,
}

impl Spread {
    pub fn name(self) -> &'static str {
        match self {
            Spread::Zipf => "Zipf",
            Spread::Uniform => "uniform",
        }
    }

    /// Draws `draws` numbers below `count`. Popular numbers lie scattered, not side by side.
    pub fn draw(self, count: u64, draws: usize, seed: u64) -> Vec<u64> {
        let mut random = Random(seed);
        match self {
            Spread::Uniform => (0..draws).map(|_| random.next() % count).collect(),
            Spread::Zipf => {
                let zipf = Zipf::new(count);
                (0..draws).map(|_| mix(zipf.rank(&mut random)) % count).collect()
            }
        }
    }
}

/// Draws ranks by the method of Gray and others, "Quickly generating billion-record synthetic
/// databases" (1994), which YCSB uses as well.
struct Zipf {
    count: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
}

const ZIPF_EXPONENT: f64 = 0.99;

impl Zipf {
    fn new(count: u64) -> Self {
        let zeta_of =
            |count: u64| (1..=count).map(|rank| (rank as f64).powf(-ZIPF_EXPONENT)).sum::<f64>();
        let zeta = zeta_of(count);
        let eta =
            (1.0 - (2.0 / count as f64).powf(1.0 - ZIPF_EXPONENT)) / (1.0 - zeta_of(2) / zeta);
        Zipf { count: count as f64, alpha: 1.0 / (1.0 - ZIPF_EXPONENT), zeta, eta }
    }

    fn rank(&self, random: &mut Random) -> u64 {
        let u = random.fraction();
        let uz = u * self.zeta;
        if uz < 1.0 {
            0
        } else if uz < 1.0 + 0.5_f64.powf(ZIPF_EXPONENT) {
            1
        } else {
            (self.count * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn records_have_their_length_and_codes_do_not_repeat() {
        let mut codes = HashSet::new();
        for number in 0..200_000 {
            assert!(codes.insert(code(number)));
        }
        for number in [0, 1, 999, 9_999_999] {
            let approval = Approval::new(number, 100_000);
            assert_eq!(approval.text.len(), RECORD_BYTES);
            assert_eq!(approval.json["id"], approval.id.as_str());
        }
    }

    #[test]
    fn zipf_prefers_low_ranks() {
        let zipf = Zipf::new(1_000);
        let mut random = Random(7);
        let ranks: Vec<u64> = (0..100_000).map(|_| zipf.rank(&mut random)).collect();
        assert!(ranks.iter().all(|&rank| rank < 1_000));
        let of = |wanted: u64| ranks.iter().filter(|&&rank| rank == wanted).count() as f64;
        assert!((of(0) / of(9) - 10_f64.powf(0.99)).abs() < 1.5);
    }
}
