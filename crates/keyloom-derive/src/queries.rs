//! The queries of a collection: a method for each index, and a type for each step of a query.
//!
//! `approval:index:requester:{requester_id}:{created_at desc}:{id}` becomes
//!
//! | expression | type | next segment |
//! | --- | --- | --- |
//! | `approvals.by_requester("ana")` | `ApprovalByRequester` | `created_at` |
//! | `….created_at(time)` | `ApprovalByRequesterCreatedAt` | `id` |
//! | `….created_at(since..)` | `TypedQuery<Approval, Ranged<Timestamp>>` | – |
//! | `….id(id)` | `TypedQuery<Approval, Settled>` | – |
//!
//! Every step derefs to `TypedQuery`, which has the common methods: order, filters, pages.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, Visibility};

use crate::attributes::IndexKind;
use crate::names::{identifier, pascal_case, snake_case};
use crate::record::Record;
use crate::templates::{Segment, Template};

/// The methods that every step has. The method of a field with such a name gets an underscore.
const RESERVED: [&str; 18] = [
    "ascending",
    "count",
    "descending",
    "document_pages",
    "documents",
    "explain",
    "filter",
    "first",
    "key_pages",
    "keys",
    "limit",
    "newest",
    "oldest",
    "or",
    "page",
    "pages",
    "range",
    "starts_with",
];

/// `ApprovalQueries`.
pub(crate) fn trait_name(record: &Record<'_>) -> Ident {
    format_ident!("{}Queries", record.input.ident)
}

pub(crate) fn expand(record: &Record<'_>) -> TokenStream {
    let owner = &record.input.ident;
    let visibility = &record.input.vis;
    let name = trait_name(record);
    let about = format!("The ways into the collection of [`{owner}`]: one for each index.");
    let (methods, steps): (Vec<_>, Vec<_>) = chains(record).iter().map(Chain::expand).unzip();
    let others = record.indexes.iter().filter_map(|(index, template)| match index.kind {
        IndexKind::Value => None,
        IndexKind::Unique => Some(unique(owner, &index.name, template)),
        IndexKind::Geo => Some(near(owner, &index.name, template)),
    });
    quote! {
        #[doc = #about]
        #visibility trait #name: ::keyloom::typed::TypedQueries<#owner> {}

        impl<W: ::keyloom::typed::TypedQueries<#owner>> #name for W {}

        // Inherent methods of a trait object can be called without an import.
        #[allow(dead_code)]
        impl dyn #name {
            #(#methods)*
            #(#others)*

            /// Reads the whole collection, in the order of its keys.
            pub fn scan(&self) -> ::keyloom::typed::TypedQuery<#owner, ::keyloom::typed::Settled> {
                ::keyloom::typed::TypedQueries::<#owner>::whole(self)
            }
        }

        #(#steps)*
    }
}

/// Every template that queries can walk along: those of the value indexes, and that of the record's
/// own key if it has several parts.
fn chains<'r>(record: &'r Record<'_>) -> Vec<Chain<'r>> {
    let indexes = record.indexes.iter().filter(|(index, _)| index.kind == IndexKind::Value);
    let chain = |index: Option<&Ident>, template: &'r Template| {
        Chain::new(&record.input.ident, &record.input.vis, index, template)
    };
    let mut chains: Vec<Chain<'r>> =
        indexes.map(|(index, template)| chain(Some(&index.name), template)).collect();
    if record.key.segments.len() > 1 {
        chains.push(chain(None, &record.key));
    }
    chains
}

/// One template as a chain of steps.
struct Chain<'r> {
    owner: &'r Ident,
    visibility: &'r Visibility,
    /// The index; `None` for the record's own key.
    index: Option<String>,
    method: Ident,
    template: &'r Template,
    /// The type of each step, by the number of fixed segments. `None` if nothing is left to fix, or
    /// if there is no such step.
    steps: Vec<Option<Ident>>,
}

impl<'r> Chain<'r> {
    fn new(
        owner: &'r Ident,
        visibility: &'r Visibility,
        index: Option<&Ident>,
        template: &'r Template,
    ) -> Self {
        let name = index.map_or_else(|| "key".to_owned(), Ident::to_string);
        let span = template.literal.span();
        let first_fixed = if begins_open(template) { 0 } else { 1 };
        let mut step = format!("{owner}By{}", pascal_case(&name));
        let mut steps = Vec::new();
        for fixed in 0..=template.segments.len() {
            if fixed > first_fixed {
                step.push_str(&pascal_case(&template.segments[fixed - 1].method.to_string()));
            }
            let exists = fixed >= first_fixed && fixed < template.segments.len();
            steps.push(exists.then(|| Ident::new(&step, span)));
        }
        Chain {
            owner,
            visibility,
            index: index.map(Ident::to_string),
            method: identifier(&format!("by_{}", snake_case(&name)), span),
            template,
            steps,
        }
    }

    /// The method that starts the chain, and the types of its steps.
    fn expand(&self) -> (TokenStream, TokenStream) {
        let steps = (0..self.steps.len()).filter_map(|fixed| self.step(fixed));
        (self.beginning(), steps.collect())
    }

    fn beginning(&self) -> TokenStream {
        let Chain { owner, method, template, .. } = self;
        let paths = template.paths();
        let index = match &self.index {
            Some(name) => quote!(::std::option::Option::Some(#name)),
            None => quote!(::std::option::Option::None),
        };
        let parts =
            quote!(::keyloom::typed::TypedQueries::<#owner>::query(self, #index, &[#(#paths),*]));
        let source = template.literal.value();
        let about = match &self.index {
            Some(name) => format!("By the index `{name}`: `{source}`."),
            None => format!("By the record's key: `{source}`."),
        };
        match (&self.steps[0], template.segments.first()) {
            (Some(step), _) => quote! {
                #[doc = #about]
                pub fn #method(&self) -> #step {
                    ::std::convert::From::from(#parts)
                }
            },
            (None, Some(first)) => {
                let Segment { value, .. } = first;
                let argument = &first.method;
                let then = self.then(0);
                quote! {
                    #[doc = #about]
                    pub fn #method<S: ::keyloom::typed::Selects<#value>>(
                        &self,
                        #argument: S,
                    ) -> #then {
                        ::keyloom::typed::Selects::select(#argument, #parts)
                    }
                }
            }
            // A template without placeholders has a single key, and nothing to walk along.
            (None, None) => TokenStream::new(),
        }
    }

    /// The type after this many fixed segments, with a method for the next one.
    fn step(&self, fixed: usize) -> Option<TokenStream> {
        let name = self.steps.get(fixed)?.as_ref()?;
        let Segment { value, method, path, .. } = self.template.segments.get(fixed)?;
        let Chain { owner, visibility, template, .. } = self;
        let method = unreserved(method);
        let then = self.then(fixed);
        let source = template.literal.value();
        let about = format!("A query of [`{owner}`] along `{source}`, before `{path}`.");
        let about_method = format!("Fixes `{path}`, or its range where it has an order.");
        let query = quote!(::keyloom::typed::TypedQuery<#owner, ::keyloom::typed::Open<#value>>);
        Some(quote! {
            #[doc = #about]
            #[must_use = "a query does nothing until a page of it is awaited"]
            #[derive(Clone, Debug)]
            #visibility struct #name(#query);

            #[allow(dead_code)]
            impl #name {
                #[doc = #about_method]
                pub fn #method<S: ::keyloom::typed::Selects<#value>>(&self, #method: S) -> #then {
                    ::keyloom::typed::Selects::select(#method, self.0.clone().into())
                }
            }

            impl ::std::convert::From<::keyloom::typed::QueryParts<#owner>> for #name {
                fn from(parts: ::keyloom::typed::QueryParts<#owner>) -> Self {
                    #name(parts.into())
                }
            }

            impl ::std::ops::Deref for #name {
                type Target = #query;

                fn deref(&self) -> &Self::Target {
                    &self.0
                }
            }

            impl ::std::convert::AsRef<#query> for #name {
                fn as_ref(&self) -> &#query {
                    &self.0
                }
            }
        })
    }

    /// The type after the segment with this number: a value leads to the next step, a range to the
    /// end.
    fn then(&self, segment: usize) -> TokenStream {
        let Chain { owner, template, .. } = self;
        let value = &template.segments[segment].value;
        let fixed = match self.steps.get(segment + 1).and_then(Option::as_ref) {
            Some(step) => quote!(#step),
            None => quote!(::keyloom::typed::TypedQuery<#owner, ::keyloom::typed::Settled>),
        };
        let ranged = quote!(::keyloom::typed::TypedQuery<#owner, ::keyloom::typed::Ranged<#value>>);
        quote!(S::Then<#fixed, #ranged>)
    }
}

/// Whether a list may begin before the first segment is fixed.
fn begins_open(template: &Template) -> bool {
    template.segments.first().is_some_and(|segment| segment.is_scale)
}

fn unreserved(method: &Ident) -> Ident {
    match RESERVED.iter().any(|reserved| method == reserved) {
        true => format_ident!("{method}_"),
        false => method.clone(),
    }
}

/// `by_code(code)`: every segment of a unique index is an argument.
fn unique(owner: &Ident, name: &Ident, template: &Template) -> TokenStream {
    let method = format_ident!("by_{}", snake_case(&name.to_string()));
    let index = name.to_string();
    let about = format!("The record that holds a unique value: `{}`.", template.literal.value());
    let arguments: Vec<&Ident> = template.segments.iter().map(|segment| &segment.method).collect();
    let values = template.segments.iter().map(|segment| &segment.value);
    quote! {
        #[doc = #about]
        pub fn #method(
            &self,
            #(#arguments: impl ::keyloom::typed::Equals<#values>),*
        ) -> ::keyloom::typed::TypedLookup<#owner> {
            let values = ::std::vec![#(::keyloom::typed::Equals::into_value(#arguments)),*];
            ::keyloom::typed::TypedQueries::<#owner>::lookup(self, #index, values)
        }
    }
}

/// `by_position(place)`: the segments before the geohash are fixed, and the place is the last
/// argument.
fn near(owner: &Ident, name: &Ident, template: &Template) -> TokenStream {
    let method = format_ident!("by_{}", snake_case(&name.to_string()));
    let index = name.to_string();
    let about = format!("What is near a place, nearest first: `{}`.", template.literal.value());
    let before: Vec<&Segment> =
        template.segments.iter().take_while(|segment| !segment.is_geohash).collect();
    let arguments: Vec<&Ident> = before.iter().map(|segment| &segment.method).collect();
    let values = before.iter().map(|segment| &segment.value);
    let paths = before.iter().map(|segment| segment.path.to_string());
    quote! {
        #[doc = #about]
        pub fn #method(
            &self,
            #(#arguments: impl ::keyloom::typed::Equals<#values>,)*
            place: impl ::std::convert::Into<::keyloom::Point>,
        ) -> ::keyloom::typed::TypedNear<#owner> {
            let near = ::keyloom::typed::TypedQueries::<#owner>::near(self, #index, place.into());
            #(let near =
                near.equal(#paths, ::keyloom::typed::Equals::into_value(#arguments));)*
            near
        }
    }
}
