//! `#[record(expires_at = "…")]`: the field that says when a record expires.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{LitStr, Result, Type};

use crate::attributes::FieldAttribute;
use crate::fields::{Fields, Resolved, StructField};
use crate::key::Path;

/// The type of the field at the path, for the compiler to check. `None` if an attribute gives the
/// type in JSON, which is checked here.
pub(crate) fn end(literal: &LitStr, fields: &Fields) -> Result<Option<Type>> {
    let wrong = |reason| syn::Error::new(literal.span(), reason);
    let path = Path::parse(&literal.value()).map_err(wrong)?;
    match fields.resolve(&path, literal.span())? {
        Resolved::Declared(attribute) => check(literal, attribute).map(|()| None),
        Resolved::Field(StructField { attribute: Some(attribute), .. })
            if attribute.kind_name().is_some() =>
        {
            check(literal, attribute).map(|()| None)
        }
        Resolved::Field(field) => Ok(Some(field.rust_type.clone())),
        Resolved::Element(_) | Resolved::MapName(_) => {
            Err(syn::Error::new(literal.span(), "a record ends once: name a field without `*`"))
        }
    }
}

fn check(literal: &LitStr, attribute: &FieldAttribute) -> Result<()> {
    match attribute.kind_name().as_deref() {
        Some("timestamp" | "datetime") => Ok(()),
        kind => {
            let message = format!(
                "a record ends at a moment: a field of type timestamp or datetime, not {}",
                kind.unwrap_or("one without a type")
            );
            Err(syn::Error::new(literal.span(), message))
        }
    }
}

/// A statement that compiles only if the type is a point in time.
pub(crate) fn checked(end: &Type) -> TokenStream {
    quote_spanned!(end.span() => ::keyloom::typed::expect_moment::<#end>();)
}
