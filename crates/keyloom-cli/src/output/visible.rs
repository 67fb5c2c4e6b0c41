//! Makes stored text safe for a terminal: nothing in it moves the cursor, changes colours, or
//! reverses the direction of writing.

/// Whether a terminal would do something other than show the character.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Text in one line, with all control characters written out.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            letter if is_hidden(letter) => {
                shown.push_str(&format!("\\u{{{:x}}}", u32::from(letter)));
            }
            letter => shown.push(letter),
        }
    }
    shown
}

/// JSON text with the same meaning, with all control characters as `\uXXXX`. In JSON such
/// characters occur only within strings; the line ends of pretty-printed JSON stay.
pub(crate) fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter != '\n' && is_hidden(letter) {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(letter);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_shown_and_not_sent() {
        let evil = "a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}b\r\n\u{e0041}";
        assert_eq!(visible(evil), r"a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}b\r\n\u{e0041}");
        assert_eq!(visible("ﬁne – ünïcode 日本 🎉"), "ﬁne – ünïcode 日本 🎉");
    }

    #[test]
    fn json_stays_the_same_json() {
        // Every hidden character, and a sample of the others.
        let letters = (0..=0x10_ffff).filter_map(char::from_u32);
        for code in
            letters.filter(|letter| is_hidden(*letter) || u32::from(*letter).is_multiple_of(97))
        {
            let value = serde_json::json!({ "text": format!("a{code}b") });
            let shown = visible_json(&value.to_string());
            assert!(!shown.chars().any(is_hidden), "{shown:?}");
            let read: serde_json::Value = serde_json::from_str(&shown).unwrap_or_default();
            assert_eq!(read, value);
        }
    }
}
