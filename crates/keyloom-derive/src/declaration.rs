//! Generates the declaration of the collection, the same as a schema file would give.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{LitStr, Result};

use crate::aggregates::AggregateAttribute;
use crate::attributes::{
    FieldAttribute, HistoryAttribute, IndexAttribute, IndexKind, TestAttribute,
};
use crate::counters::Counter;
use crate::fields::{Fields, Resolved, StructField};
use crate::key::Path;
use crate::record::Record;

/// The statements that declare fields and indexes on a variable `collection`.
pub(crate) fn expand(record: &Record) -> Result<TokenStream> {
    let fields = declared_fields(record)?;
    let indexes = record.indexes.iter().map(|(attribute, _)| index(attribute));
    let aggregates = record.aggregates.iter().map(AggregateAttribute::declaration);
    let counters = record.counters.iter().map(Counter::declaration);
    let area = record.attribute.area.iter();
    let (access, owner) = (record.attribute.access.iter(), record.attribute.owner.iter());
    let expires_at = record.attribute.expires_at.iter();
    let end = record.end.iter().map(crate::expiry::checked);
    let body = record.attribute.body.iter();
    let history = record.attribute.history.iter().map(history);
    Ok(quote! {
        #(#history)*
        #(#end)*
        #(collection.area = ::std::string::String::from(#area);)*
        #(collection.access = ::std::option::Option::Some(::keyloom::Access::#access);)*
        #(collection.owner = ::std::option::Option::Some(::std::string::String::from(#owner));)*
        #(collection.expires_at =
            ::std::option::Option::Some(::std::string::String::from(#expires_at));)*
        #(collection.body = ::std::option::Option::Some(::keyloom::typed::body(#body)?);)*
        #(#fields)*
        #(#indexes)*
        #(#aggregates)*
        #(#counters)*
    })
}

fn history(HistoryAttribute { versions, days }: &HistoryAttribute) -> TokenStream {
    let (versions, days) = (optional(versions.as_ref()), optional(days.as_ref()));
    quote! {
        collection.history = ::std::option::Option::Some(::keyloom::HistoryDeclaration {
            versions: #versions,
            days: #days,
        });
    }
}

/// Which fields are declared: those in templates and aggregates, those with `#[field]`, and
/// choices, whose transitions must always be guarded. Also those in conditions, and the one by
/// which records expire, if they are fields of the struct.
fn declared_fields(record: &Record) -> Result<Vec<TokenStream>> {
    let fields = &record.fields;
    let mut statements = Vec::new();
    let mut done: BTreeSet<String> = BTreeSet::new();
    for (path, attribute) in &fields.by_path {
        statements.push(by_attribute(path, attribute)?);
        done.insert(path.value());
    }
    for (literal, path) in named_paths(record) {
        if !done.insert(path.to_string()) {
            continue;
        }
        match fields.resolve(&path, literal.span()) {
            Ok(Resolved::Declared(_)) => {}
            Ok(Resolved::Field(field)) => statements.push(of_field(field)?),
            Ok(Resolved::Element(field)) => {
                let text = path.to_string();
                let rust_type = &field.rust_type;
                statements.push(quote! {
                    ::keyloom::typed::declare_elements::<#rust_type>(&mut collection, #text);
                });
            }
            Ok(Resolved::MapName(field)) => {
                if let Some(field) = field.filter(|field| done.insert(field.name.clone())) {
                    statements.push(of_field(field)?);
                }
            }
            // A condition may name an undeclared field; templates were checked before.
            Err(_) => {}
        }
    }
    for field in &fields.of_struct {
        if done.insert(field.name.clone()) {
            statements.push(match field.attribute {
                Some(_) => of_field(field)?,
                None => if_choice(field),
            });
        }
    }
    statements.extend(maps_above_declared_paths(fields));
    Ok(statements)
}

/// The paths in templates, aggregates, conditions and `expires_at`, each with the literal that
/// contains it.
fn named_paths(record: &Record) -> Vec<(LitStr, Path)> {
    let templates = std::iter::once(&record.key).chain(record.indexes.iter().map(|(_, key)| key));
    let in_templates = templates.flat_map(|template| {
        let path =
            |segment: &crate::templates::Segment| (template.literal.clone(), segment.path.clone());
        template.segments.iter().map(path)
    });
    let in_aggregates = record.aggregates.iter().flat_map(AggregateAttribute::paths);
    let of_indexes = record.indexes.iter().flat_map(|(attribute, _)| &attribute.condition);
    let of_aggregates = record.aggregates.iter().flat_map(|aggregate| &aggregate.condition);
    let conditions = of_indexes.chain(of_aggregates);
    let in_conditions = conditions
        .filter_map(|(literal, _)| Some((literal.clone(), Path::parse(&literal.value()).ok()?)));
    let expiry = record.attribute.expires_at.iter();
    let in_expiry =
        expiry.filter_map(|literal| Some((literal.clone(), Path::parse(&literal.value()).ok()?)));
    in_templates.chain(in_aggregates).chain(in_conditions).chain(in_expiry).collect()
}

/// Declares maps: for a declared path such as `steps.*.timeoutAt`, the type of `steps` tells that
/// it is a map.
fn maps_above_declared_paths(fields: &Fields) -> Vec<TokenStream> {
    let mut seen = BTreeSet::new();
    fields
        .by_path
        .iter()
        .filter_map(|(path, _)| Path::parse(&path.value()).ok()?.star())
        .filter_map(|star| fields.of_struct.iter().find(|field| field.name == star.to_string()))
        .filter(|field| field.attribute.is_none() && seen.insert(field.name.clone()))
        .map(|field| {
            let StructField { name, rust_type, .. } = field;
            quote!(::keyloom::typed::declare_map::<#rust_type>(&mut collection, #name);)
        })
        .collect()
}

fn of_field(field: &StructField) -> Result<TokenStream> {
    let StructField { name, rust_type, attribute, .. } = field;
    let by_type = quote!(<#rust_type as ::keyloom::typed::Field>::field_type());
    let field_type = match attribute {
        Some(attribute) => attribute.field_type()?.unwrap_or(by_type),
        None => by_type,
    };
    Ok(insert(&quote!(#name), &field_type, attribute.as_ref()))
}

fn by_attribute(path: &LitStr, attribute: &FieldAttribute) -> Result<TokenStream> {
    match attribute.field_type()? {
        Some(field_type) => Ok(insert(&quote!(#path), &field_type, Some(attribute))),
        None => Err(syn::Error::new(path.span(), "the path lacks a `type`")),
    }
}

fn insert(
    path: &TokenStream,
    field_type: &TokenStream,
    attribute: Option<&FieldAttribute>,
) -> TokenStream {
    let generate = option(attribute.and_then(|attribute| attribute.generate));
    let required = option(attribute.and_then(|attribute| attribute.required));
    quote! {
        collection.fields.insert(
            ::std::string::String::from(#path),
            ::keyloom::FieldDeclaration {
                field_type: #field_type,
                generate: #generate,
                required: #required,
            },
        );
    }
}

/// A flag that may be unset, as an expression.
fn option(flag: Option<bool>) -> TokenStream {
    match flag {
        Some(flag) => quote!(::std::option::Option::Some(#flag)),
        None => quote!(::std::option::Option::None),
    }
}

fn if_choice(field: &StructField) -> TokenStream {
    let StructField { name, rust_type, .. } = field;
    quote! {
        if let ::std::option::Option::Some(choice) =
            (&::keyloom::typed::Probe::<#rust_type>::new()).choice()
        {
            collection.fields.insert(::std::string::String::from(#name), choice.into());
        }
    }
}

fn index(attribute: &IndexAttribute) -> TokenStream {
    let IndexAttribute { kind, name, key, area, holds, condition, max, claims, sparse } = attribute;
    let name = name.to_string();
    let section = match kind {
        IndexKind::Value => quote!(index),
        IndexKind::Unique => quote!(unique),
        IndexKind::Geo => quote!(geo),
    };
    let (area, holds, max) = (area.iter(), holds.iter(), max.iter());
    let (claims, sparse) = (claims.iter(), sparse.iter());
    let tests = condition.iter().map(|(path, test)| {
        let test = self::test(test);
        quote!(index.condition.insert(::std::string::String::from(#path), #test);)
    });
    quote! {
        let mut index = ::keyloom::IndexDeclaration::new(#key);
        #(index.area = ::std::option::Option::Some(::std::string::String::from(#area));)*
        #(index.holds = ::std::option::Option::Some(::std::string::String::from(#holds));)*
        #(index.max = ::std::option::Option::Some(#max);)*
        #(index.claims = ::std::option::Option::Some(#claims);)*
        #(index.sparse = ::std::option::Option::Some(#sparse);)*
        #(#tests)*
        collection.#section.insert(::std::string::String::from(#name), index);
    }
}

pub(crate) fn test(test: &TestAttribute) -> TokenStream {
    match test {
        TestAttribute::Equals(value) => quote!(::keyloom::TestDeclaration::Equals(#value)),
        TestAttribute::OneOf(values) => {
            quote!(::keyloom::TestDeclaration::OneOf(::std::vec![#(#values),*]))
        }
        TestAttribute::Compare(comparisons) => {
            let members = comparisons.iter().map(|(name, value)| match name {
                name if name == "present" => {
                    quote!(#name: ::keyloom::typed::Value::as_bool(&#value))
                }
                name => quote!(#name: ::std::option::Option::Some(#value)),
            });
            quote! {
                ::keyloom::TestDeclaration::Compare(::std::convert::From::from(
                    ::keyloom::Comparison {
                        #(#members,)*
                        ..::std::default::Default::default()
                    },
                ))
            }
        }
    }
}

impl FieldAttribute {
    /// The name of the type: the declared one, or the only one that has the given options.
    pub(crate) fn kind_name(&self) -> Option<String> {
        let implied = [
            (self.digits.is_some(), "integer"),
            (self.version.is_some(), "uuid"),
            (self.pattern.is_some(), "code"),
            (self.values.is_some(), "enum"),
            (self.lat.is_some() || self.lon.is_some() || self.of.is_some(), "point"),
        ];
        let implied = implied.iter().find(|(is_set, _)| *is_set).map(|(_, name)| *name);
        self.kind.as_ref().map(LitStr::value).or_else(|| implied.map(str::to_owned))
    }

    /// The type that queries compare a field of this type with; `None` if the attribute sets no
    /// type.
    pub(crate) fn segment(&self) -> Option<TokenStream> {
        Some(match self.kind_name()?.as_str() {
            "integer" => quote!(::keyloom::typed::Integer),
            "float" => quote!(f64),
            "boolean" => quote!(bool),
            "timestamp" => quote!(::keyloom::Timestamp),
            "datetime" => quote!(::keyloom::DateTime),
            "uuid" => quote!(::keyloom::Uuid),
            "id" => quote!(::keyloom::Id),
            "point" => quote!(::keyloom::Point),
            _ => quote!(::std::string::String),
        })
    }

    /// The declared type; `None` if the attribute sets none.
    fn field_type(&self) -> Result<Option<TokenStream>> {
        let Some(kind) = self.kind_name() else { return Ok(None) };
        let variant = match kind.as_str() {
            "text" => quote!(Text),
            "integer" => {
                let digits =
                    self.digits.map_or_else(|| quote!(::keyloom::typed::DIGITS), |n| quote!(#n));
                quote!(Integer { digits: #digits })
            }
            "float" => quote!(Float),
            "boolean" => quote!(Boolean),
            "enum" => self.enumeration()?,
            "timestamp" => quote!(Timestamp),
            "datetime" => quote!(Datetime),
            "uuid" => {
                let version = optional(self.version.as_ref());
                quote!(Uuid { version: #version })
            }
            "id" => quote!(Id),
            "code" => {
                let pattern = self.pattern.as_ref().ok_or_else(|| self.lacks("pattern"))?;
                quote!(Code { pattern: ::std::string::String::from(#pattern) })
            }
            "point" => self.point()?,
            "map" => quote!(Map),
            _ => {
                let message = format!(
                    "`{kind}` is not a type; there are text, integer, float, boolean, enum, \
                     timestamp, datetime, uuid, id, code, point and map"
                );
                return Err(syn::Error::new(self.span(), message));
            }
        };
        Ok(Some(quote!(::keyloom::FieldType::#variant)))
    }

    fn enumeration(&self) -> Result<TokenStream> {
        let values = self.values.as_ref().ok_or_else(|| self.lacks("values"))?;
        Ok(quote! {
            Enum {
                values: ::std::vec![#(::std::string::String::from(#values)),*],
                transitions: ::std::option::Option::None,
                illegal: ::keyloom::Illegal::Error,
            }
        })
    }

    fn point(&self) -> Result<TokenStream> {
        let member = |declared: &Option<LitStr>, default| {
            declared.as_ref().map_or_else(|| quote!(#default), |name| quote!(#name))
        };
        let (lat, lon) = (member(&self.lat, "lat"), member(&self.lon, "lon"));
        let of = match self.of.as_ref().map(LitStr::value).as_deref() {
            None | Some("field") => quote!(Field),
            Some("record") => quote!(Record),
            Some(_) => {
                let message = "a point is `of` its \"field\" or of the \"record\"";
                return Err(syn::Error::new(self.span(), message));
            }
        };
        Ok(quote! {
            Point {
                lat: ::std::string::String::from(#lat),
                lon: ::std::string::String::from(#lon),
                of: ::keyloom::PointOf::#of,
            }
        })
    }

    fn lacks(&self, option: &str) -> syn::Error {
        let kind = self.kind_name().unwrap_or_default();
        syn::Error::new(self.span(), format!("a field of type {kind} needs `{option} = …`"))
    }

    fn span(&self) -> proc_macro2::Span {
        let texts = [&self.of, &self.kind, &self.path];
        let first = texts.into_iter().flatten().next();
        first.map_or_else(proc_macro2::Span::call_site, LitStr::span)
    }
}

fn optional(number: Option<&impl quote::ToTokens>) -> TokenStream {
    match number {
        Some(number) => quote!(::std::option::Option::Some(#number)),
        None => quote!(::std::option::Option::None),
    }
}
