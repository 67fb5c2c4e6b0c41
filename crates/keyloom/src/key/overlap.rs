//! Whether some key could belong to two templates.

use super::template::Template;

/// A key that belongs to both templates, if there is one.
pub(crate) fn common_key(_a: &Template, _b: &Template) -> Option<Vec<u8>> {
    todo!()
}
