//! The fields of a struct with their JSON names, and the types of paths into it.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Ident, LitStr, Result, Type};

use crate::attributes::FieldAttribute;
use crate::key::{Path, Step};
use crate::names::{identifier, snake_case};
use crate::serde_names::SerdeNames;

/// One field of the struct.
pub(crate) struct StructField {
    pub(crate) ident: Ident,
    /// Its name in JSON.
    pub(crate) name: String,
    pub(crate) rust_type: Type,
    pub(crate) attribute: Option<FieldAttribute>,
}

/// The known types of paths.
pub(crate) struct Fields {
    pub(crate) owner: Ident,
    pub(crate) of_struct: Vec<StructField>,
    /// Paths that the struct declares by `#[field(path = "…", …)]`.
    pub(crate) by_path: Vec<(LitStr, FieldAttribute)>,
    /// Whether some names come from a flattened field, which the macro cannot see.
    has_flattened: bool,
}

/// A path of a template, with the field that it leads to.
pub(crate) enum Resolved<'f> {
    /// `#[field(path = "…")]`.
    Declared(&'f FieldAttribute),
    /// A field of the struct.
    Field(&'f StructField),
    /// `tags.*`: the elements of a field of the struct.
    Element(&'f StructField),
    /// `steps.*key`: the names of a map.
    MapName(Option<&'f StructField>),
}

impl Fields {
    pub(crate) fn read(input: &DeriveInput) -> Result<Self> {
        let Data::Struct(data) = &input.data else {
            return Err(syn::Error::new(input.ident.span(), "a record is a struct"));
        };
        let container = SerdeNames::read(&input.attrs)?;
        let mut of_struct = Vec::new();
        let mut has_flattened = false;
        for field in &data.fields {
            let Some(ident) = &field.ident else {
                return Err(syn::Error::new_spanned(field, "a record's fields have names"));
            };
            let names = SerdeNames::read(&field.attrs)?;
            has_flattened |= names.flatten;
            let attribute = one_attribute(FieldAttribute::read_all(&field.attrs)?)?;
            if names.skip || names.flatten {
                continue;
            }
            let plain = ident.unraw().to_string();
            let renamed = || container.rename_all.map(|rule| rule.of_field(&plain));
            of_struct.push(StructField {
                ident: ident.clone(),
                name: names.rename.or_else(renamed).unwrap_or(plain),
                rust_type: field.ty.clone(),
                attribute,
            });
        }
        let by_path = FieldAttribute::read_all(&input.attrs)?
            .into_iter()
            .map(|(span, attribute)| with_path(span, attribute))
            .collect::<Result<_>>()?;
        Ok(Fields { owner: input.ident.clone(), of_struct, by_path, has_flattened })
    }

    /// The names of all members, as an expression.
    pub(crate) fn members(&self) -> TokenStream {
        let names = self.of_struct.iter().map(|field| &field.name);
        match self.has_flattened {
            true => quote!(::std::option::Option::None),
            false => quote!(::std::option::Option::Some(&[#(#names),*])),
        }
    }

    /// The type of a path, or an error at the template that names it.
    pub(crate) fn resolve(&self, path: &Path, span: Span) -> Result<Resolved<'_>> {
        let text = path.to_string();
        if let Some((_, declared)) = self.by_path.iter().find(|(path, _)| path.value() == text) {
            return Ok(Resolved::Declared(declared));
        }
        let Some(Step::Name(first)) = path.0.first() else {
            return Err(syn::Error::new(span, format!("`{text}` does not begin with a name")));
        };
        let field = self.of_struct.iter().find(|field| field.name == *first);
        match (field, &path.0[1..]) {
            (Some(field), []) => Ok(Resolved::Field(field)),
            (Some(field), [Step::Each]) => Ok(Resolved::Element(field)),
            (field, [.., Step::EachKey]) if field.is_some() || self.has_flattened => {
                Ok(Resolved::MapName(field.filter(|_| path.0.len() == 2)))
            }
            (None, _) if !self.has_flattened => Err(self.unknown(first, span)),
            _ => Err(syn::Error::new(
                span,
                format!(
                    "the type of `{text}` cannot be seen from here; declare it on the struct: \
                     #[field(path = \"{text}\", type = \"…\")]"
                ),
            )),
        }
    }

    /// Refuses a name that is not a field of the struct.
    pub(crate) fn expect(&self, name: &str, span: Span) -> Result<()> {
        let is_known = self.has_flattened || self.of_struct.iter().any(|field| field.name == name);
        if is_known { Ok(()) } else { Err(self.unknown(name, span)) }
    }

    fn unknown(&self, name: &str, span: Span) -> syn::Error {
        let known: Vec<String> =
            self.of_struct.iter().map(|field| format!("`{}`", field.name)).collect();
        let owner = &self.owner;
        let known = known.join(", ");
        syn::Error::new(span, format!("`{name}` is not a field of `{owner}`; it has {known}"))
    }
}

/// The fields as written in the struct.
pub(crate) fn named_fields(input: &DeriveInput) -> impl Iterator<Item = &syn::Field> {
    let fields = match &input.data {
        Data::Struct(data) => Some(&data.fields),
        _ => None,
    };
    fields.into_iter().flatten()
}

impl Resolved<'_> {
    /// The name of the method, or of the argument, for a value of the path.
    pub(crate) fn method(&self, path: &Path, span: Span) -> Ident {
        match self {
            Resolved::Field(field) | Resolved::Element(field) => {
                let mut ident = field.ident.clone();
                ident.set_span(span);
                ident
            }
            Resolved::Declared(_) | Resolved::MapName(_) => {
                identifier(&snake_case(&path.to_string()), span)
            }
        }
    }

    /// The type that queries compare the path with.
    pub(crate) fn segment(&self) -> TokenStream {
        match self {
            Resolved::Declared(attribute) => attribute.segment().unwrap_or_else(text_segment),
            Resolved::Field(field) => {
                let overridden = field.attribute.as_ref().and_then(FieldAttribute::segment);
                let rust_type = &field.rust_type;
                overridden.unwrap_or_else(|| quote!(::keyloom::typed::Segment<#rust_type>))
            }
            Resolved::Element(field) => {
                let rust_type = &field.rust_type;
                quote!(::keyloom::typed::ElementSegment<#rust_type>)
            }
            Resolved::MapName(_) => text_segment(),
        }
    }

    /// Whether lists can run along its values: times and numbers. The macro can only judge a type
    /// by its name.
    pub(crate) fn is_scale(&self) -> bool {
        const SCALES: [&str; 4] = ["integer", "float", "timestamp", "datetime"];
        let declared = |attribute: &FieldAttribute| {
            attribute.kind_name().map(|kind| SCALES.contains(&kind.as_str()))
        };
        match self {
            Resolved::Declared(attribute) => declared(attribute).unwrap_or(false),
            Resolved::Field(field) => field
                .attribute
                .as_ref()
                .and_then(declared)
                .unwrap_or_else(|| is_scale_type(&field.rust_type)),
            Resolved::Element(field) => is_scale_type(&field.rust_type),
            Resolved::MapName(_) => false,
        }
    }
}

fn text_segment() -> TokenStream {
    quote!(::std::string::String)
}

fn is_scale_type(rust_type: &Type) -> bool {
    const SCALES: [&str; 14] = [
        "Timestamp",
        "DateTime",
        "i8",
        "i16",
        "i32",
        "i64",
        "isize",
        "u8",
        "u16",
        "u32",
        "u64",
        "usize",
        "f32",
        "f64",
    ];
    let Type::Path(path) = rust_type else { return false };
    let Some(last) = path.path.segments.last() else { return false };
    if let syn::PathArguments::AngleBracketed(arguments) = &last.arguments {
        // `Option<Timestamp>`, `Vec<i64>`, `BTreeMap<String, Timestamp>`.
        return arguments.args.iter().rev().any(
            |argument| matches!(argument, syn::GenericArgument::Type(inner) if is_scale_type(inner)),
        );
    }
    SCALES.iter().any(|scale| last.ident == scale)
}

fn one_attribute(mut found: Vec<(Span, FieldAttribute)>) -> Result<Option<FieldAttribute>> {
    if let Some((span, _)) = found.get(1) {
        return Err(syn::Error::new(*span, "#[field] stands twice"));
    }
    match found.pop() {
        Some((_, FieldAttribute { path: Some(path), .. })) => Err(syn::Error::new(
            path.span(),
            "`path` belongs on the struct; a field has the path of its name",
        )),
        found => Ok(found.map(|(_, attribute)| attribute)),
    }
}

fn with_path(span: Span, attribute: FieldAttribute) -> Result<(LitStr, FieldAttribute)> {
    let Some(path) = attribute.path.clone() else {
        let message = "on the struct, #[field] needs a `path`: #[field(path = \"data.user\", …)]";
        return Err(syn::Error::new(span, message));
    };
    Path::parse(&path.value()).map_err(|reason| syn::Error::new(path.span(), reason))?;
    if attribute.kind_name().is_none() {
        let message = "the type of a path cannot be seen from here; add `type = \"…\"`";
        return Err(syn::Error::new(path.span(), message));
    }
    Ok((path, attribute))
}
