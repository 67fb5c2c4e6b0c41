//! `#[derive(Record)]`: reads a struct and generates its implementation.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result, Type};

use crate::aggregates::AggregateAttribute;
use crate::attributes::{IndexAttribute, RecordAttribute};
use crate::counters::Counter;
use crate::fields::Fields;
use crate::names::snake_case;
use crate::templates::Template;
use crate::{declaration, expiry, queries};

/// The struct after parsing.
pub(crate) struct Record<'i> {
    pub(crate) input: &'i DeriveInput,
    pub(crate) attribute: RecordAttribute,
    /// The type of the field by which records expire, if the Rust type decides the field's type.
    pub(crate) end: Option<Type>,
    pub(crate) fields: Fields,
    /// The template of the record's key.
    pub(crate) key: Template,
    /// Every index with its template.
    pub(crate) indexes: Vec<(IndexAttribute, Template)>,
    pub(crate) aggregates: Vec<AggregateAttribute>,
    pub(crate) counters: Vec<Counter>,
}

impl<'i> Record<'i> {
    fn read(input: &'i DeriveInput) -> Result<Self> {
        if !input.generics.params.is_empty() {
            let message = "a record has no parameters: its type names one collection";
            return Err(syn::Error::new_spanned(&input.generics, message));
        }
        let attribute = RecordAttribute::read(&input.attrs, &input.ident)?;
        let fields = Fields::read(input)?;
        let key = Template::read(&attribute.key, &fields)?;
        let indexes = IndexAttribute::read_all(&input.attrs)?;
        let aggregates = AggregateAttribute::read_all(&input.attrs, &indexes, &fields)?;
        let indexes = indexes
            .into_iter()
            .map(|index| Ok((Template::read(&index.key, &fields)?, index)))
            .map(|read: Result<_>| read.map(|(template, index)| (index, template)))
            .collect::<Result<_>>()?;
        let end =
            attribute.expires_at.as_ref().map(|path| expiry::end(path, &fields)).transpose()?;
        let counters = Counter::read_all(input, &fields)?;
        let end = end.flatten();
        Ok(Record { input, attribute, end, fields, key, indexes, aggregates, counters })
    }
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let record = Record::read(input)?;
    let name = &input.ident;
    let collection = match &record.attribute.collection {
        Some(name) => name.value(),
        None => snake_case(&name.to_string()),
    };
    let key = &record.attribute.key;
    let declaration = declaration::expand(&record)?;
    let queries_name = queries::trait_name(&record);
    let queries = queries::expand(&record);
    let members = record.fields.members();
    Ok(quote! {
        #[automatically_derived]
        impl ::keyloom::Record for #name {
            const COLLECTION: &'static str = #collection;
            type Queries = dyn #queries_name;

            fn declaration() -> ::keyloom::Result<::keyloom::CollectionDeclaration> {
                #[allow(unused_imports)]
                use ::keyloom::typed::{ProbeChoice as _, ProbeOther as _};
                #[allow(unused_mut)]
                let mut collection = ::keyloom::CollectionDeclaration::new(#key);
                #declaration
                ::std::result::Result::Ok(collection)
            }

            fn members() -> ::std::option::Option<&'static [&'static str]> {
                #members
            }

            fn queries<W: ::keyloom::typed::TypedQueries<Self>>(of: &W) -> &Self::Queries {
                of
            }
        }

        #queries
    })
}
