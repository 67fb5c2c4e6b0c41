//! Protects against forms that are sent twice. Each form has a random key of its own, which becomes
//! the idempotency key of the write. So a second click, or the same request sent again, changes
//! nothing and leads to the same page.

use maud::{Markup, html};

use crate::auth::random_text;

/// The name of the field that holds the key.
pub(super) const FIELD: &str = "once";

/// The key of a form. A form that comes back with an error keeps its key, so that a write that may
/// have happened does not happen again. Otherwise the key is new.
pub(super) fn field(kept: Option<&str>) -> Markup {
    let key = kept.map_or_else(random_text, str::to_owned);
    html! { input type="hidden" name=(FIELD) value=(key); }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_have_different_keys_and_keep_their_own() {
        assert_ne!(field(None).into_string(), field(None).into_string());
        let kept = field(Some("a\"b")).into_string();
        assert_eq!(kept, r#"<input type="hidden" name="once" value="a&quot;b">"#);
    }
}
