//! Enums as fields.

use std::marker::PhantomData;

use super::field::Field;
use crate::schema::FieldType;

/// One of several strings: an enum of plain variants. Made by
/// [`#[derive(Choice)]`](macro@crate::Choice).
pub trait Choice: Field {
    /// The variant's name in JSON.
    fn name(&self) -> &'static str;
}

/// Tells at compile time whether a field's type is a choice. Two traits have a method of the same
/// name. Method lookup finds the first trait's method for a choice. For every other type it finds
/// only the second's, which is one reference further away.
pub struct Probe<F>(PhantomData<F>);

/// The answer for choices.
pub trait ProbeChoice {
    /// The type to declare.
    fn choice(&self) -> Option<FieldType>;
}

/// The answer for everything else.
pub trait ProbeOther {
    /// Nothing to declare.
    fn choice(&self) -> Option<FieldType>;
}

impl<F> Probe<F> {
    /// A probe of this type.
    #[allow(clippy::new_without_default, reason = "only generated code makes one")]
    pub fn new() -> Self {
        Probe(PhantomData)
    }
}

impl<F: Choice> ProbeChoice for Probe<F> {
    fn choice(&self) -> Option<FieldType> {
        Some(F::field_type())
    }
}

impl<F: Choice> ProbeChoice for Probe<Option<F>> {
    fn choice(&self) -> Option<FieldType> {
        Some(F::field_type())
    }
}

impl<F> ProbeOther for &Probe<F> {
    fn choice(&self) -> Option<FieldType> {
        None
    }
}
