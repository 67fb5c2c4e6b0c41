//! Compile-time checks of the Rust types of fields that have a special role.

use super::values::{DateTime, Timestamp};

/// A Rust type that can show a counter: a whole number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot show a counter, which is a whole number",
    note = "use `i64`, or a smaller type where a bound is declared"
)]
pub trait Counted {}

/// A Rust type that can say when a record expires.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say when a record ends",
    note = "`expires_at` names a `Timestamp` or a `DateTime`, maybe in an `Option`; of another \
            type, say what it is in JSON: #[field(type = \"timestamp\")]"
)]
pub trait Moment {}

macro_rules! counted {
    ($($rust:ty),*) => {$(
        impl Counted for $rust {}
    )*};
}

counted!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);

impl Moment for Timestamp {}
impl Moment for DateTime {}

impl<C: Counted> Counted for Option<C> {}
impl<C: Counted> Counted for Box<C> {}
impl<M: Moment> Moment for Option<M> {}
impl<M: Moment> Moment for Box<M> {}

/// Compiles only for a type that can show a counter.
pub fn expect_counter<C: Counted>() {}

/// Compiles only for a type that can say when a record expires.
pub fn expect_moment<M: Moment>() {}
