//! `#[derive(Choice)]`: an enum of plain variants as the type of a field.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Data, DeriveInput, Fields, Ident, Result, Token};

use crate::literals::comma;
use crate::serde_names::SerdeNames;

struct Variant<'i> {
    ident: &'i Ident,
    /// Its name in JSON.
    name: String,
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let variants = variants(input)?;
    let owner = &input.ident;
    let idents: Vec<&Ident> = variants.iter().map(|variant| variant.ident).collect();
    let names: Vec<&String> = variants.iter().map(|variant| &variant.name).collect();
    let transitions = transitions(input, &variants)?;
    let illegal = illegal(input, transitions.is_some())?;
    let transitions = match transitions {
        Some(transitions) => quote!(::std::option::Option::Some(#transitions)),
        None => quote!(::std::option::Option::None),
    };
    let equals = [quote!(#owner), quote!(&#owner)].map(|by| equals(owner, &by));
    Ok(quote! {
        #[automatically_derived]
        impl ::keyloom::Choice for #owner {
            fn name(&self) -> &'static str {
                match self {
                    #(#owner::#idents => #names,)*
                }
            }
        }

        #[automatically_derived]
        impl ::keyloom::typed::Field for #owner {
            type Segment = #owner;

            fn field_type() -> ::keyloom::FieldType {
                ::keyloom::FieldType::Enum {
                    values: ::std::vec![#(::std::string::String::from(#names)),*],
                    transitions: #transitions,
                    illegal: ::keyloom::Illegal::#illegal,
                }
            }
        }

        #[automatically_derived]
        impl ::std::convert::From<#owner> for ::keyloom::typed::Value {
            fn from(choice: #owner) -> Self {
                ::keyloom::typed::Value::from(::keyloom::Choice::name(&choice))
            }
        }

        impl ::keyloom::KeyFields for #owner {
            fn into_values(self) -> ::std::vec::Vec<::keyloom::typed::Value> {
                ::std::vec![self.into()]
            }
        }

        #(#equals)*
    })
}

fn equals(owner: &Ident, by: &TokenStream) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl ::keyloom::typed::Equals<#owner> for #by {
            fn into_value(self) -> ::keyloom::typed::Value {
                ::keyloom::typed::Value::from(<#owner as ::keyloom::Choice>::name(&self))
            }
        }

        #[automatically_derived]
        impl ::keyloom::typed::Selects<#owner> for #by {
            type Then<Fixed, Ranged> = Fixed;

            fn select<T, Fixed, Ranged>(self, parts: ::keyloom::typed::QueryParts<T>) -> Fixed
            where
                Fixed: ::std::convert::From<::keyloom::typed::QueryParts<T>>,
                Ranged: ::std::convert::From<::keyloom::typed::QueryParts<T>>,
            {
                parts.fix(::keyloom::typed::Equals::<#owner>::into_value(self)).into()
            }
        }
    }
}

fn variants(input: &DeriveInput) -> Result<Vec<Variant<'_>>> {
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new(input.ident.span(), "a choice is an enum"));
    };
    let container = SerdeNames::read(&input.attrs)?;
    data.variants
        .iter()
        .map(|variant| {
            if !matches!(variant.fields, Fields::Unit) {
                let message = "a choice is one of several strings, so that no variant has fields";
                return Err(syn::Error::new_spanned(variant, message));
            }
            let plain = variant.ident.unraw().to_string();
            let renamed = || container.rename_all.map(|rule| rule.of_variant(&plain));
            let name = SerdeNames::read(&variant.attrs)?.rename.or_else(renamed).unwrap_or(plain);
            Ok(Variant { ident: &variant.ident, name })
        })
        .collect()
}

/// `#[transitions(Pending = [Approved, Denied])]`, as the map of a declaration.
fn transitions(input: &DeriveInput, variants: &[Variant<'_>]) -> Result<Option<TokenStream>> {
    let attribute = input.attrs.iter().find(|found| found.path().is_ident("transitions"));
    let Some(attribute) = attribute else { return Ok(None) };
    let pairs = attribute.parse_args_with(|input: ParseStream<'_>| {
        let mut pairs = Vec::new();
        while !input.is_empty() {
            let from = named(&input.parse()?, variants)?;
            input.parse::<Token![=]>()?;
            let inside;
            syn::bracketed!(inside in input);
            let targets = inside.parse_terminated(|input| input.parse::<Ident>(), Token![,])?;
            let targets =
                targets.iter().map(|to| named(to, variants)).collect::<Result<Vec<_>>>()?;
            pairs.push(quote! {
                (
                    ::std::string::String::from(#from),
                    ::std::vec![#(::std::string::String::from(#targets)),*],
                )
            });
            comma(input)?;
        }
        Ok(pairs)
    })?;
    Ok(Some(quote!(::std::iter::FromIterator::from_iter([#(#pairs),*]))))
}

fn named<'v>(ident: &Ident, variants: &'v [Variant<'_>]) -> Result<&'v String> {
    let found = variants.iter().find(|variant| variant.ident == ident);
    found
        .map(|variant| &variant.name)
        .ok_or_else(|| syn::Error::new(ident.span(), format!("there is no variant `{ident}`")))
}

/// `#[illegal(ignore)]` or `#[illegal(error)]`: what happens to every other transition.
fn illegal(input: &DeriveInput, has_transitions: bool) -> Result<Ident> {
    let attribute = input.attrs.iter().find(|found| found.path().is_ident("illegal"));
    let Some(attribute) = attribute else {
        return Ok(Ident::new("Error", input.ident.span()));
    };
    if !has_transitions {
        let message = "#[illegal] says what becomes of other transitions than #[transitions]";
        return Err(syn::Error::new_spanned(attribute, message));
    }
    let word: Ident = attribute.parse_args()?;
    match word.to_string().as_str() {
        "ignore" => Ok(Ident::new("Ignore", word.span())),
        "error" => Ok(Ident::new("Error", word.span())),
        _ => Err(syn::Error::new(word.span(), "an illegal transition is an `error` or `ignore`d")),
    }
}
