//! `#[counter]`, on the struct with a path, or on a field of the struct.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, DeriveInput, Ident, LitStr, Meta, Result, Type};

use crate::attributes::unknown;
use crate::fields::{Fields, named_fields};
use crate::key::{Path, Step};
use crate::literals::{comma, signed};

/// A declared counter, or a family of counters.
pub(crate) struct Counter {
    path: LitStr,
    bounds: Bounds,
    /// The type that shows the counter, if it is the type of a field.
    rust_type: Option<Type>,
}

#[derive(Default)]
struct Bounds {
    min: Option<i64>,
    max: Option<i64>,
}

impl Counter {
    /// Every counter of a struct: `#[counter("stats.running", min = 0)]` on the struct itself,
    /// `#[counter(min = 0)]` on a field.
    pub(crate) fn read_all(input: &DeriveInput, fields: &Fields) -> Result<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        for attribute in own(&input.attrs) {
            let mut counter: Counter = attribute.parse_args()?;
            // The macro cannot see the type at the end of a longer path.
            let whole = fields.of_struct.iter().find(|field| field.name == counter.path.value());
            counter.rust_type = whole.map(|field| field.rust_type.clone());
            all.push(counter);
        }
        for field in named_fields(input) {
            let Some(ident) = &field.ident else { continue };
            let found = fields.of_struct.iter().find(|known| known.ident == *ident);
            for attribute in own(&field.attrs) {
                let Some(found) = found else {
                    let message = "a field that is skipped or flattened has no path of its own; \
                                   declare its counters on the struct";
                    return Err(syn::Error::new_spanned(attribute, message));
                };
                let bounds = match attribute.meta {
                    Meta::Path(_) => Bounds::default(),
                    _ => attribute.parse_args()?,
                };
                let path = LitStr::new(&found.name, ident.unraw().span());
                all.push(Counter { path, bounds, rust_type: Some(field.ty.clone()) });
            }
        }
        for (place, counter) in all.iter().enumerate() {
            counter.check(fields)?;
            if all[..place].iter().any(|other| other.path.value() == counter.path.value()) {
                return Err(syn::Error::new(counter.path.span(), "two counters have this name"));
            }
        }
        Ok(all)
    }

    /// The statement that declares it on a variable `collection`.
    pub(crate) fn declaration(&self) -> TokenStream {
        let Counter { path, bounds: Bounds { min, max }, rust_type } = self;
        let bound = |bound: &Option<i64>| match bound {
            Some(number) => quote!(::std::option::Option::Some(#number)),
            None => quote!(::std::option::Option::None),
        };
        let (min, max) = (bound(min), bound(max));
        let checked = rust_type.iter().map(|rust_type| {
            quote_spanned!(rust_type.span() => ::keyloom::typed::expect_counter::<#rust_type>();)
        });
        quote! {
            #(#checked)*
            collection.counters.insert(
                ::std::string::String::from(#path),
                ::keyloom::CounterDeclaration { min: #min, max: #max },
            );
        }
    }

    /// Checks that the path leads into the struct, so that the type shows the counter.
    fn check(&self, fields: &Fields) -> Result<()> {
        let wrong = |reason| syn::Error::new(self.path.span(), reason);
        let path = Path::parse(&self.path.value()).map_err(wrong)?;
        match path.0.first() {
            Some(Step::Name(first)) => fields.expect(first, self.path.span()),
            _ => Ok(()),
        }
    }
}

impl Parse for Counter {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let path: LitStr = input.parse().map_err(|error| {
            let message = "on the struct, #[counter] begins with a path in quotes: \
                           #[counter(\"stats.running\", min = 0)]";
            syn::Error::new(error.span(), message)
        })?;
        comma(input)?;
        Ok(Counter { path, bounds: input.parse()?, rust_type: None })
    }
}

impl Parse for Bounds {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut bounds = Bounds::default();
        while !input.is_empty() {
            let option: Ident = input.call(Ident::parse_any)?;
            match option.to_string().as_str() {
                "min" => bounds.min = Some(signed(input)?),
                "max" => bounds.max = Some(signed(input)?),
                _ => return Err(unknown(&option, "`min` and `max`")),
            }
            comma(input)?;
        }
        Ok(bounds)
    }
}

fn own(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("counter"))
}
