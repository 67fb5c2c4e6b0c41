//! Turns JSON text into the tree of values that the reader understands, with positions in the text.

use std::sync::Arc;

use serde_json::Value;

use super::problem::{Places, Problems, TextPosition, Trail};
use crate::json;

/// Parses a text. If it is not JSON, gives `None` and adds the reason to the problems.
pub(crate) fn parse(
    text: &str,
    source: &Arc<str>,
    problems: &mut Problems,
) -> Option<(Value, Places)> {
    match json::parse(text.as_bytes()) {
        Ok(value) => Some((value, places(text, source))),
        Err(json::Fault { line, column, reason }) => {
            let place = TextPosition { line, column };
            problems.add_to_text(source, Some(place), format!("not JSON: {reason}"));
            None
        }
    }
}

/// The positions of all values in a text that was parsed already.
fn places(text: &str, source: &Arc<str>) -> Places {
    let told = TextPosition { line: 1, column: 1 };
    let mut walk = Walk { text, at: 0, told, told_at: 0, source, places: Places::default() };
    walk.skip(is_blank);
    let start = walk.place();
    walk.places.insert(Trail::new(), source, Some((start, start)));
    walk.value(&Trail::new());
    walk.places
}

/// Walks through a text that is known to be JSON, and nested no deeper than a parser allows.
struct Walk<'a> {
    text: &'a str,
    /// The offset of the next byte.
    at: usize,
    /// The last reported position, and its offset. Each position is counted from the one before,
    /// since a text may be one long line.
    told: TextPosition,
    told_at: usize,
    source: &'a Arc<str>,
    places: Places,
}

impl Walk<'_> {
    fn value(&mut self, trail: &Trail) {
        match self.next() {
            Some(b'{') => self.list(b'}', |walk| walk.member(trail)),
            // Elements have the trail of their list, as in TOML.
            Some(b'[') => self.list(b']', |walk| walk.value(trail)),
            Some(b'"') => drop(self.string()),
            _ => self.skip(|byte| !b",]} \t\r\n".contains(&byte)),
        }
    }

    fn member(&mut self, trail: &Trail) {
        let name_at = self.place();
        let name = self.string();
        self.skip(|byte| byte == b':' || is_blank(byte));
        let trail: Trail = trail.iter().cloned().chain([name]).collect();
        let value_at = self.place();
        self.places.insert(trail.clone(), self.source, Some((name_at, value_at)));
        self.value(&trail);
    }

    /// The elements up to the closing bracket, separated by commas.
    fn list(&mut self, end: u8, mut one: impl FnMut(&mut Self)) {
        self.at += 1;
        loop {
            self.skip(|byte| byte == b',' || is_blank(byte));
            match self.next() {
                Some(byte) if byte != end => one(self),
                _ => break,
            }
        }
        self.at += 1;
    }

    /// The string that begins here.
    fn string(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.next()
            && byte != b'"'
        {
            self.at += if byte == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        let quoted = self.text.get(start..self.at).unwrap_or_default();
        serde_json::from_str(quoted).unwrap_or_default()
    }

    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) {
        while self.next().is_some_and(&is_skipped) {
            self.at += 1;
        }
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The position of what comes next.
    fn place(&mut self) -> TextPosition {
        for character in self.text.get(self.told_at..self.at).unwrap_or_default().chars() {
            self.told = match character {
                '\n' => TextPosition { line: self.told.line + 1, column: 1 },
                _ => TextPosition { column: self.told.column + 1, ..self.told },
            };
        }
        self.told_at = self.at;
        self.told
    }
}

fn is_blank(byte: u8) -> bool {
    b" \t\r\n".contains(&byte)
}
