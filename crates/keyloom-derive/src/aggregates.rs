//! Parses `#[count]` and `#[sum]`, and generates their declarations.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Attribute, Ident, LitStr, Result};

use crate::attributes::{IndexAttribute, TestAttribute, condition, unknown};
use crate::declaration;
use crate::fields::Fields;
use crate::key::Path;
use crate::literals::{comma, text, texts};

/// `#[count(NAME = ["field", …], where(…))]`, `#[sum(NAME = […], field = "…", where(…))]`.
pub(crate) struct AggregateAttribute {
    pub(crate) name: Ident,
    pub(crate) group: Vec<LitStr>,
    /// The summed field; `None` for a count.
    pub(crate) summed: Option<LitStr>,
    pub(crate) condition: Vec<(LitStr, TestAttribute)>,
}

impl AggregateAttribute {
    /// All aggregates of a struct, in the order of their attributes. They share one set of names
    /// with indexes.
    pub(crate) fn read_all(
        attributes: &[Attribute],
        indexes: &[IndexAttribute],
        fields: &Fields,
    ) -> Result<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        for attribute in attributes {
            let is_sum = attribute.path().is_ident("sum");
            if !is_sum && !attribute.path().is_ident("count") {
                continue;
            }
            let aggregate: Self =
                attribute.parse_args_with(|input: ParseStream<'_>| Self::parse(is_sum, input))?;
            let name = &aggregate.name;
            if ["key", "record"].iter().any(|reserved| name == reserved) {
                return Err(syn::Error::new(name.span(), "this name is reserved"));
            }
            if all.iter().any(|other| other.name == *name)
                || indexes.iter().any(|index| index.name == *name)
            {
                let message = "two indexes or aggregates have this name";
                return Err(syn::Error::new(name.span(), message));
            }
            for (literal, path) in aggregate.paths() {
                fields.resolve(&path, literal.span())?;
            }
            all.push(aggregate);
        }
        Ok(all)
    }

    fn parse(is_sum: bool, input: ParseStream<'_>) -> Result<Self> {
        let name: Ident = input.parse()?;
        let group = texts(input)?;
        let mut aggregate = AggregateAttribute { name, group, summed: None, condition: Vec::new() };
        comma(input)?;
        while !input.is_empty() {
            let option: Ident = input.call(Ident::parse_any)?;
            match option.to_string().as_str() {
                "field" if is_sum => aggregate.summed = Some(text(input)?),
                "where" => aggregate.condition = condition(input)?,
                _ if is_sum => return Err(unknown(&option, "`field` and `where(…)`")),
                _ => return Err(unknown(&option, "`where(…)`")),
            }
            comma(input)?;
        }
        if is_sum && aggregate.summed.is_none() {
            let message = "a sum needs the field that is summed: `field = \"…\"`";
            return Err(syn::Error::new(aggregate.name.span(), message));
        }
        Ok(aggregate)
    }

    /// The paths that must be fields: those of the group, and the summed one.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (LitStr, Path)> {
        let literals = self.group.iter().chain(&self.summed);
        literals.filter_map(|literal| Some((literal.clone(), Path::parse(&literal.value()).ok()?)))
    }

    /// The statement that declares it on a variable `collection`.
    pub(crate) fn declaration(&self) -> TokenStream {
        let AggregateAttribute { name, group, summed, condition } = self;
        let name = name.to_string();
        let section = if summed.is_some() { quote!(sum) } else { quote!(count) };
        let summed = summed.iter();
        let tests = condition.iter().map(|(path, test)| {
            let test = declaration::test(test);
            quote!(aggregate.condition.insert(::std::string::String::from(#path), #test);)
        });
        quote! {
            let mut aggregate = ::keyloom::AggregateDeclaration::default();
            aggregate.group = ::std::vec![#(::std::string::String::from(#group)),*];
            #(aggregate.field = ::std::option::Option::Some(::std::string::String::from(#summed));)*
            #(#tests)*
            collection.#section.insert(::std::string::String::from(#name), aggregate);
        }
    }
}
