//! The values that name a record: one for each field of its key, or of a unique index's key.

use serde_json::Value;

/// One or several values, in the order of a template: `"ana"`, `42`, `("ana", "n1")`, a
/// [`Choice`](crate::Choice); `()` for none.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a value of a key nor several of them",
    note = "several values are a tuple, such as `(\"ana\", \"n1\")`; no values are `()`"
)]
pub trait KeyFields {
    /// The values.
    fn into_values(self) -> Vec<Value>;
}

impl KeyFields for () {
    fn into_values(self) -> Vec<Value> {
        Vec::new()
    }
}

impl KeyFields for Vec<Value> {
    fn into_values(self) -> Vec<Value> {
        self
    }
}

macro_rules! single {
    ($($kind:ty),*) => {$(
        impl KeyFields for $kind {
            fn into_values(self) -> Vec<Value> {
                vec![self.into()]
            }
        }
    )*};
}

single!(&str, String, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64, bool, Value);

impl KeyFields for &String {
    fn into_values(self) -> Vec<Value> {
        vec![self.as_str().into()]
    }
}

macro_rules! tuple {
    ($($part:ident),*) => {
        impl<$($part: Into<Value>),*> KeyFields for ($($part,)*) {
            fn into_values(self) -> Vec<Value> {
                #[allow(non_snake_case, reason = "the type's name serves as the value's")]
                let ($($part,)*) = self;
                vec![$($part.into()),*]
            }
        }
    };
}

tuple!(A);
tuple!(A, B);
tuple!(A, B, C);
tuple!(A, B, C, D);
tuple!(A, B, C, D, E);
tuple!(A, B, C, D, E, F);
