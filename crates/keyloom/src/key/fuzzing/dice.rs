//! Makes templates, values and keys from arbitrary bytes, with a preference for edge cases.

use std::ops::Bound;

use serde_json::{Value, json};

use crate::key::codec::alphabet::ID_ALPHABET;
use crate::key::{CODE_ALPHABET, CodePattern, Codec, Kind, Pattern, Segment, Span, Template};

/// Literals that may follow a text, and others that may not.
const SEPARATORS: [&str; 12] = [":", "-", "_", "/", "!", "~", ":x:", "#", ".tag.", "::", "\"", "&"];
const LITERALS: [&str; 8] = ["a", "0", "é", "user:", "", "-", "F", "1:"];
/// Pieces that break careless encodings: separators, escapes, terminators, hex digits, limits.
const PIECES: [&str; 28] = [
    "",
    "a",
    "b",
    ":",
    "-",
    "_",
    "/",
    "!",
    "~",
    "%",
    "%3A",
    "%25",
    "#",
    ".",
    "\0",
    "\u{1}",
    "\u{1f}",
    " ",
    "$",
    "&",
    "\u{7f}",
    "\u{80}",
    "é",
    "\u{7ff}",
    "\u{800}",
    "\u{ffff}",
    "😀",
    "\u{10ffff}",
];
const ENUM_NAMES: [&str; 12] =
    ["", "a", "ab", "a:", "a-b", "B", "running", "SUCCEEDED", "TIMED_OUT", "é", "a~", "a!"];
const CODE_PATTERNS: [&str; 4] = ["A-******", "*", "é*-", "**:*"];
const DATE_TIMES: [&str; 6] = [
    "0000-01-01T00:00:00.000Z",
    "2000-02-29T12:00:00.000Z",
    "2023-02-28T23:59:59.999Z",
    "2024-02-29T00:00:00.000Z",
    "2024-04-30T00:00:00.001Z",
    "9999-12-31T23:59:59.999Z",
];

/// Reads choices from bytes; when they run out, every choice is the first.
pub(super) struct Dice<'d> {
    data: &'d [u8],
}

impl<'d> Dice<'d> {
    pub(super) fn new(data: &'d [u8]) -> Self {
        Dice { data }
    }

    fn byte(&mut self) -> u8 {
        match self.data.split_first() {
            Some((&byte, rest)) => {
                self.data = rest;
                byte
            }
            None => 0,
        }
    }

    /// A number below `end`, which is at least 1 and at most 256.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    /// True once in this many times.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 1
    }

    fn pick<'p, T>(&mut self, items: &'p [T]) -> &'p T {
        &items[self.below(items.len())]
    }

    fn number(&mut self) -> u64 {
        u64::from_be_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// The next bytes themselves.
    pub(super) fn rest_of(&mut self, bytes_max: usize) -> Vec<u8> {
        let (bytes, rest) = self.data.split_at(self.data.len().min(bytes_max));
        self.data = rest;
        bytes.to_vec()
    }

    /// A template of up to five segments, if the choices make a valid one.
    pub(super) fn template(&mut self) -> Option<Template> {
        let mut source = String::new();
        let mut kinds = Vec::new();
        if !self.once_in(4) {
            source.push_str(self.pick::<&str>(&["", "k:", "user:", "u"]));
        }
        for number in 0..self.below(6) {
            kinds.push((format!("f{number}"), self.segment(number, &mut source)));
            match self.below(8) {
                0 => {}
                1 => source.push_str(self.pick::<&str>(&LITERALS)),
                _ => source.push_str(self.pick::<&str>(&SEPARATORS)),
            }
        }
        // Usually a key ends with a segment.
        if let Some(open) = source.rfind('}').filter(|_| !self.once_in(4)) {
            source.truncate(open + 1);
        }
        build(&source, &kinds)
    }

    /// The template of an index, and the template of a record whose fields the index has.
    pub(super) fn index_and_record(&mut self) -> Option<(Template, Template)> {
        let index = self.template()?;
        let kinds: Vec<(String, Kind)> = index
            .segments()
            .map(|segment| (segment.path.to_string(), kind_of(&segment.codec)))
            .collect();
        let mut source = String::from(*self.pick(&["r:", "", "record/"]));
        for _ in 0..1 + self.below(3) {
            let segment = index.segments().nth(self.below(kinds.len()))?;
            let modifiers = match (&segment.codec, self.below(4)) {
                (Codec::Text, 1) => " sorted",
                (Codec::Raw, 1..) => " raw",
                (Codec::SortedText, 1) => "",
                (Codec::SortedText, _) => " sorted",
                _ => "",
            };
            let geohash = match segment.codec {
                Codec::Geohash { chars, .. } => format!(" geohash {chars}"),
                _ => String::new(),
            };
            let desc = if segment.desc { " desc" } else { "" };
            source.push_str(&format!("{{{}{modifiers}{geohash}{desc}}}", segment.path));
            source.push_str(self.pick::<&str>(&SEPARATORS));
        }
        if !self.once_in(4) {
            source.truncate(source.rfind('}')? + 1);
        }
        Some((index, build(&source, &kinds)?))
    }

    /// Writes a placeholder and says what type its field has.
    fn segment(&mut self, number: usize, source: &mut String) -> Kind {
        let desc = if self.once_in(2) { " desc" } else { "" };
        let (kind, modifiers) = match self.below(14) {
            0 => (Kind::Text, String::new()),
            1 | 2 => (Kind::Text, format!(" sorted{desc}")),
            3 => (Kind::Text, " raw".into()),
            4 => (Kind::Integer { digits: 1 + self.below(19) as u8 }, desc.into()),
            5 => (Kind::Float, desc.into()),
            6 => (Kind::Boolean, desc.into()),
            7 => {
                let count = 1 + self.below(4);
                let values = (0..count).map(|_| String::from(*self.pick(&ENUM_NAMES))).collect();
                (Kind::Enum { values }, desc.into())
            }
            8 => (Kind::Timestamp, desc.into()),
            9 => (Kind::DateTime, desc.into()),
            10 => (Kind::Uuid { version: *self.pick(&[None, Some(4), Some(7)]) }, desc.into()),
            11 => (Kind::Id, desc.into()),
            12 => (Kind::Code(CodePattern((*self.pick(&CODE_PATTERNS)).into())), desc.into()),
            _ => {
                let modifiers = format!(" geohash {}{desc}", 1 + self.below(12));
                (Kind::Point { lat: "lat".into(), lon: "lon".into() }, modifiers)
            }
        };
        source.push_str(&format!("{{f{number}{modifiers}}}"));
        kind
    }

    /// A value for each segment.
    pub(super) fn values(&mut self, template: &Template) -> Vec<Value> {
        template.segments().map(|segment| self.value(&segment.codec)).collect()
    }

    /// Values whose first ones usually equal those of `values`.
    pub(super) fn values_like(&mut self, template: &Template, values: &[Value]) -> Vec<Value> {
        let keep = self.below(values.len() + 1);
        template
            .segments()
            .zip(values)
            .enumerate()
            .map(|(place, (segment, value))| match (place < keep, &segment.codec, value) {
                (true, ..) => value.clone(),
                (false, Codec::Text | Codec::SortedText | Codec::Raw, Value::String(text)) => {
                    self.text_like(text).into()
                }
                (false, codec, _) => self.value(codec),
            })
            .collect()
    }

    fn value(&mut self, codec: &Codec) -> Value {
        match codec {
            Codec::Text | Codec::SortedText | Codec::Raw => self.text().into(),
            Codec::Integer { digits } => {
                let power = 10i64.checked_pow(u32::from(*digits)).unwrap_or(i64::MAX);
                match self.below(8) {
                    0 => json!(0),
                    1 => json!(-1),
                    2 => json!(power - 1),
                    3 if power == i64::MAX => json!(i64::MIN),
                    3 => json!(-power),
                    4 => json!(i64::from(self.byte()) % power),
                    _ => json!(self.number() as i64 % power),
                }
            }
            Codec::Float => match self.below(8) {
                0 => json!(0),
                1 => json!(-0.0),
                2 => json!(f64::MAX),
                3 => json!(-f64::MIN_POSITIVE),
                4 => json!(i64::from(self.byte()) - 128),
                5 => json!(f64::from(self.byte()) / 3.0 - 40.0),
                _ => {
                    let float = f64::from_bits(self.number());
                    json!(if float.is_finite() { float } else { 1.5 })
                }
            },
            Codec::Boolean => json!(self.once_in(2)),
            Codec::Enum { values } => json!(self.pick(values)),
            Codec::Timestamp => match self.below(4) {
                0 => json!(0),
                1 => json!(9_999_999_999_999u64),
                2 => json!(self.byte()),
                _ => json!(self.number() % 10_000_000_000_000),
            },
            Codec::DateTime if self.once_in(2) => json!(self.pick(&DATE_TIMES)),
            Codec::DateTime => json!(format!(
                "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                self.number() % 10_000,
                1 + self.below(12),
                1 + self.below(28),
                self.below(24),
                self.below(60),
                self.below(60),
                self.number() % 1000
            )),
            Codec::Uuid { version } => {
                let digits = (0..32).map(|place| match (place, version) {
                    (12, Some(version)) => format!("{version}"),
                    (16, Some(_)) => format!("{:x}", 8 + self.below(4)),
                    _ => format!("{:x}", self.below(16)),
                });
                Value::String(digits.collect())
            }
            Codec::Id => self.letters(ID_ALPHABET, 26).into(),
            Codec::Code(CodePattern(pattern)) => pattern
                .chars()
                .map(
                    |place| {
                        if place == '*' { self.letters(CODE_ALPHABET, 1) } else { place.into() }
                    },
                )
                .collect::<String>()
                .into(),
            Codec::Geohash { .. } => {
                let mut degrees = |limit: f64| match self.below(4) {
                    0 => -limit,
                    1 => limit,
                    _ => (self.number() as f64 / u64::MAX as f64 * 2.0 - 1.0) * limit,
                };
                json!({"lat": degrees(90.0), "lon": degrees(180.0)})
            }
        }
    }

    fn letters(&mut self, alphabet: &[u8], count: usize) -> String {
        (0..count).map(|_| char::from(*self.pick(alphabet))).collect()
    }

    fn text(&mut self) -> String {
        (0..self.below(6))
            .map(|_| match self.below(8) {
                1 => char::from_u32(self.number() as u32 % 0x11_0000).unwrap_or('x').to_string(),
                _ => String::from(*self.pick(&PIECES)),
            })
            .collect()
    }

    /// A text similar to another one: longer, shorter, or a different one.
    fn text_like(&mut self, text: &str) -> String {
        match self.below(4) {
            0 => text.to_owned() + *self.pick(&PIECES),
            1 => text.chars().take(self.below(4)).collect(),
            2 => text.into(),
            _ => self.text(),
        }
    }

    /// A span over a segment, which its codec may or may not allow; sometimes none.
    pub(super) fn span(&mut self, segment: &Segment) -> Option<Span> {
        let codec = &segment.codec;
        match self.below(4) {
            0 => None,
            1 if !matches!(codec, Codec::Integer { .. } | Codec::Float | Codec::Boolean) => {
                let text = match self.value(codec) {
                    Value::String(text) => text,
                    _ => self.letters(b"0123456789bcdefghjkmnpqrstuvwxyz", 12),
                };
                Some(Span::Prefix(text.chars().take(self.below(5)).collect()))
            }
            _ => {
                let mut bound = || match self.below(3) {
                    0 => Bound::Unbounded,
                    1 => Bound::Included(self.value(codec)),
                    _ => Bound::Excluded(self.value(codec)),
                };
                Some(Span::Between(bound(), bound()))
            }
        }
    }

    /// The key with one or two small changes.
    pub(super) fn damaged(&mut self, key: &[u8]) -> Vec<u8> {
        let mut key = key.to_vec();
        for _ in 0..1 + self.below(2) {
            let place = self.below(key.len() + 1);
            let byte = match self.below(3) {
                0 => self.byte(),
                1 => *self.pick(b"%!~:-0aAfFzZ\xff\x00"),
                _ => key.get(self.below(key.len())).copied().unwrap_or_default(),
            };
            match (self.below(4), place < key.len()) {
                (0, true) => key[place] = byte,
                (1, true) => drop(key.remove(place)),
                (2, _) => key.truncate(place),
                _ => key.insert(place, byte),
            }
        }
        key
    }
}

fn build(source: &str, kinds: &[(String, Kind)]) -> Option<Template> {
    let pattern = Pattern::parse(source).ok()?;
    let kind_of = |path: &crate::key::Path| {
        kinds.iter().find(|(name, _)| path.to_string() == *name).map(|(_, kind)| kind.clone())
    };
    Template::new(&pattern, kind_of).ok()
}

/// The type of a codec's values.
fn kind_of(codec: &Codec) -> Kind {
    match codec.clone() {
        Codec::Text | Codec::SortedText | Codec::Raw => Kind::Text,
        Codec::Integer { digits } => Kind::Integer { digits },
        Codec::Float => Kind::Float,
        Codec::Boolean => Kind::Boolean,
        Codec::Enum { values } => Kind::Enum { values },
        Codec::Timestamp => Kind::Timestamp,
        Codec::DateTime => Kind::DateTime,
        Codec::Uuid { version } => Kind::Uuid { version },
        Codec::Id => Kind::Id,
        Codec::Code(pattern) => Kind::Code(pattern),
        Codec::Geohash { lat, lon, .. } => Kind::Point { lat, lon },
    }
}
