//! `#[derive(Record)]` and `#[derive(Choice)]` for Keyloom. `keyloom` re-exports them as
//! `keyloom::Record` and `keyloom::Choice`, and documents them there.
//!
//! A struct is parsed once (`record`): its attributes (`attributes`, `aggregates`), its fields
//! under the names that serde gives them (`fields`, `serde_names`), and its templates
//! (`templates`). Two things are generated from that: the declaration of the collection
//! (`declaration`), and its queries, with one method per index and one type per step of a query
//! (`queries`).

mod aggregates;
mod attributes;
mod choice;
mod counters;
mod declaration;
mod expiry;
mod fields;
mod key;
mod literals;
mod names;
mod queries;
mod record;
mod serde_names;
mod templates;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// `keyloom` re-exports and documents it.
#[proc_macro_derive(Record, attributes(record, index, unique, geo, count, sum, field, counter))]
pub fn derive_record(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    record::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// `keyloom` re-exports and documents it.
#[proc_macro_derive(Choice, attributes(transitions, illegal))]
pub fn derive_choice(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    choice::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
