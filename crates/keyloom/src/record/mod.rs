//! Records as versioned JSON, apart from how they are stored.

mod carry_over;
mod check;
mod counters;
mod document;
mod generate;
mod key;
mod merge;
mod random;
mod stored;
mod version;
mod whole;

pub(crate) use carry_over::{Carried, carry_over};
pub(crate) use check::{
    Passage, check_new, check_over, check_size, check_transitions, is_about_what_stays, misfits,
    with_indexes_of,
};
pub(crate) use counters::{check_aside, set_aside, show, shown, shown_counters};
pub use document::Document;
pub(crate) use generate::{draws_key, fill_generated, forget_generated, new_id, new_uuid, set};
pub use key::Key;
pub(crate) use merge::{check_patch, merge};
pub(crate) use random::{random_bytes, random_fraction};
pub(crate) use stored::{key_of_values, read_record, record_key};
pub use version::Version;
pub(crate) use version::now_ms;
pub(crate) use whole::write_whole_numbers;
