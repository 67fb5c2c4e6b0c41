//! Templates with the types of their placeholders.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Ident, LitStr, Result};

use crate::fields::{Fields, Resolved};
use crate::key::{Path, Pattern, PatternPart, Placeholder};

/// A template of the struct, parsed and resolved.
pub(crate) struct Template {
    pub(crate) literal: LitStr,
    pub(crate) segments: Vec<Segment>,
}

/// One placeholder.
pub(crate) struct Segment {
    pub(crate) path: Path,
    /// The name of the method or argument for its value.
    pub(crate) method: Ident,
    /// The type that queries compare its value with.
    pub(crate) value: TokenStream,
    /// Whether lists can run along it, so that a query need not fix it.
    pub(crate) is_scale: bool,
    pub(crate) is_geohash: bool,
}

impl Template {
    pub(crate) fn read(literal: &LitStr, fields: &Fields) -> Result<Self> {
        let span = literal.span();
        let pattern =
            Pattern::parse(&literal.value()).map_err(|reason| syn::Error::new(span, reason))?;
        let segments = pattern
            .parts
            .iter()
            .filter_map(|part| match part {
                PatternPart::Literal(_) => None,
                PatternPart::Placeholder(placeholder) => Some(placeholder),
            })
            .map(|placeholder| segment(placeholder, fields, span))
            .collect::<Result<_>>()?;
        Ok(Template { literal: literal.clone(), segments })
    }

    /// The paths of its placeholders, as texts.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.segments.iter().map(|segment| segment.path.to_string()).collect()
    }
}

fn segment(placeholder: &Placeholder, fields: &Fields, span: Span) -> Result<Segment> {
    let Placeholder { path, desc, sorted, raw, geohash } = placeholder;
    let resolved: Resolved<'_> = fields.resolve(path, span)?;
    let value = match (sorted, raw) {
        (true, _) => quote!(::keyloom::typed::SortedText),
        (_, true) => quote!(::std::string::String),
        _ => resolved.segment(),
    };
    Ok(Segment {
        path: path.clone(),
        method: resolved.method(path, span),
        value,
        is_scale: *desc || *sorted || resolved.is_scale(),
        is_geohash: geohash.is_some(),
    })
}
