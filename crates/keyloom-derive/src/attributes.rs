//! Parses `#[record]`, `#[index]`, `#[unique]`, `#[geo]` and `#[field]`.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Ident, LitStr, Result, Token};

use crate::literals::{Scalar, comma, flag, number, text, texts};

/// `#[record(key = "…", collection = "…", area = "…", access = "owned", owner = "…",
/// expires_at = "…", history(versions = 20))]`.
pub(crate) struct RecordAttribute {
    pub(crate) key: LitStr,
    pub(crate) collection: Option<LitStr>,
    pub(crate) area: Option<LitStr>,
    /// The variant of `keyloom::Access`.
    pub(crate) access: Option<Ident>,
    pub(crate) owner: Option<LitStr>,
    /// The path of the field that says when a record expires.
    pub(crate) expires_at: Option<LitStr>,
    /// An expression that gives the text of a JSON Schema.
    pub(crate) body: Option<syn::Expr>,
    pub(crate) history: Option<HistoryAttribute>,
}

/// `history(versions = 20, days = 90)`.
#[derive(Default)]
pub(crate) struct HistoryAttribute {
    pub(crate) versions: Option<usize>,
    pub(crate) days: Option<usize>,
}

/// The kinds of indexes, each with an attribute of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexKind {
    Value,
    Unique,
    Geo,
}

/// `#[index(NAME = "TEMPLATE", holds = "…", where(…), max = 8, claims, sparse = false)]`.
pub(crate) struct IndexAttribute {
    pub(crate) kind: IndexKind,
    pub(crate) name: Ident,
    pub(crate) key: LitStr,
    pub(crate) area: Option<LitStr>,
    pub(crate) holds: Option<LitStr>,
    pub(crate) condition: Vec<(LitStr, TestAttribute)>,
    pub(crate) max: Option<usize>,
    pub(crate) claims: Option<bool>,
    pub(crate) sparse: Option<bool>,
}

/// The part after the name of a field in `where(…)`.
pub(crate) enum TestAttribute {
    Equals(Scalar),
    OneOf(Vec<Scalar>),
    Compare(Vec<(Ident, Scalar)>),
}

/// `#[field(type = "…", …)]`, on a field or, with `path`, on the struct.
#[derive(Default)]
pub(crate) struct FieldAttribute {
    pub(crate) path: Option<LitStr>,
    pub(crate) kind: Option<LitStr>,
    pub(crate) digits: Option<u8>,
    pub(crate) version: Option<u8>,
    pub(crate) pattern: Option<LitStr>,
    pub(crate) values: Option<Vec<LitStr>>,
    pub(crate) lat: Option<LitStr>,
    pub(crate) lon: Option<LitStr>,
    pub(crate) of: Option<LitStr>,
    pub(crate) generate: Option<bool>,
    pub(crate) required: Option<bool>,
}

impl RecordAttribute {
    /// The one `#[record]` of a struct.
    pub(crate) fn read(attributes: &[Attribute], owner: &Ident) -> Result<Self> {
        let mut found = named(attributes, "record");
        let Some(first) = found.next() else {
            let message = "a record needs its key: #[record(key = \"note:{id}\")]";
            return Err(syn::Error::new(owner.span(), message));
        };
        if let Some(second) = found.next() {
            return Err(syn::Error::new_spanned(second, "#[record] stands twice"));
        }
        first.parse_args()
    }
}

impl Parse for RecordAttribute {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (mut key, mut collection, mut area, mut body) = (None, None, None, None);
        let (mut access, mut owner, mut expires_at, mut history) = (None, None, None, None);
        while !input.is_empty() {
            let option: Ident = input.call(Ident::parse_any)?;
            match option.to_string().as_str() {
                "key" => key = Some(text(input)?),
                "collection" => collection = Some(text(input)?),
                "area" => area = Some(text(input)?),
                "access" => access = Some(access_variant(&text(input)?)?),
                "owner" => owner = Some(text(input)?),
                "expires_at" => expires_at = Some(text(input)?),
                "body" => {
                    input.parse::<Token![=]>()?;
                    body = Some(input.parse()?);
                }
                "history" => {
                    let bounds;
                    syn::parenthesized!(bounds in input);
                    history = Some(bounds.parse()?);
                }
                _ => {
                    let known = "`key`, `collection`, `area`, `access`, `owner`, `expires_at`, \
                                 `body` and `history(…)`";
                    return Err(unknown(&option, known));
                }
            }
            comma(input)?;
        }
        let key =
            key.ok_or_else(|| syn::Error::new(Span::call_site(), "#[record] needs `key = \"…\"`"))?;
        Ok(RecordAttribute { key, collection, area, access, owner, expires_at, body, history })
    }
}

impl Parse for HistoryAttribute {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut history = HistoryAttribute::default();
        while !input.is_empty() {
            let option: Ident = input.call(Ident::parse_any)?;
            match option.to_string().as_str() {
                "versions" => history.versions = Some(number(input)?),
                "days" => history.days = Some(number(input)?),
                _ => return Err(unknown(&option, "`versions` and `days`")),
            }
            comma(input)?;
        }
        Ok(history)
    }
}

/// The variant of `keyloom::Access` with this name in schema files.
fn access_variant(name: &LitStr) -> Result<Ident> {
    let variant = match name.value().as_str() {
        "shared" => "Shared",
        "read-only" => "ReadOnly",
        "owned" => "Owned",
        "hybrid" => "Hybrid",
        _ => {
            let message = "access is \"shared\", \"read-only\", \"owned\" or \"hybrid\"";
            return Err(syn::Error::new(name.span(), message));
        }
    };
    Ok(Ident::new(variant, name.span()))
}

impl IndexAttribute {
    /// All indexes of a struct, in the order of their attributes.
    pub(crate) fn read_all(attributes: &[Attribute]) -> Result<Vec<Self>> {
        let kinds =
            [("index", IndexKind::Value), ("unique", IndexKind::Unique), ("geo", IndexKind::Geo)];
        let mut all: Vec<Self> = Vec::new();
        for attribute in attributes {
            let kind = kinds.iter().find(|(name, _)| attribute.path().is_ident(name));
            let Some((_, kind)) = kind else { continue };
            let index: Self = attribute
                .parse_args_with(|input: ParseStream<'_>| IndexAttribute::parse(*kind, input))?;
            if ["key", "record"].iter().any(|reserved| index.name == reserved) {
                return Err(syn::Error::new(index.name.span(), "this name is reserved"));
            }
            if all.iter().any(|other| other.name == index.name) {
                return Err(syn::Error::new(index.name.span(), "two indexes have this name"));
            }
            all.push(index);
        }
        Ok(all)
    }

    fn parse(kind: IndexKind, input: ParseStream<'_>) -> Result<Self> {
        let name: Ident = input.parse()?;
        let mut index = IndexAttribute {
            kind,
            name,
            key: text(input)?,
            area: None,
            holds: None,
            condition: Vec::new(),
            max: None,
            claims: None,
            sparse: None,
        };
        comma(input)?;
        while !input.is_empty() {
            let option: Ident = input.call(Ident::parse_any)?;
            match option.to_string().as_str() {
                "area" => index.area = Some(text(input)?),
                "holds" => index.holds = Some(text(input)?),
                "max" => index.max = Some(number(input)?),
                "claims" => index.claims = Some(flag(input)?),
                "sparse" => index.sparse = Some(flag(input)?),
                "where" => index.condition = condition(input)?,
                _ => {
                    let known = "`area`, `holds`, `max`, `claims`, `sparse` and `where(…)`";
                    return Err(unknown(&option, known));
                }
            }
            comma(input)?;
        }
        Ok(index)
    }
}

/// `(status = "pending", priority = { gte = 3 }, "data.kind" = ["a", "b"])`.
pub(crate) fn condition(input: ParseStream<'_>) -> Result<Vec<(LitStr, TestAttribute)>> {
    let tests;
    syn::parenthesized!(tests in input);
    let mut condition = Vec::new();
    while !tests.is_empty() {
        let path = path(&tests)?;
        tests.parse::<Token![=]>()?;
        condition.push((path, tests.parse()?));
        comma(&tests)?;
    }
    Ok(condition)
}

/// A field's path in JSON: `status`, `data.kind`, or in quotes.
fn path(input: ParseStream<'_>) -> Result<LitStr> {
    if input.peek(LitStr) {
        return input.parse();
    }
    let first: Ident = input.call(Ident::parse_any)?;
    let mut path = first.unraw().to_string();
    while input.parse::<Option<Token![.]>>()?.is_some() {
        let name: Ident = input.call(Ident::parse_any)?;
        path = format!("{path}.{}", name.unraw());
    }
    Ok(LitStr::new(&path, first.span()))
}

impl Parse for TestAttribute {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(syn::token::Bracket) {
            let inside;
            syn::bracketed!(inside in input);
            let values = inside.parse_terminated(Scalar::parse, Token![,])?;
            return Ok(TestAttribute::OneOf(values.into_iter().collect()));
        }
        if !input.peek(syn::token::Brace) {
            return Ok(TestAttribute::Equals(input.parse()?));
        }
        let inside;
        syn::braced!(inside in input);
        let mut comparisons = Vec::new();
        while !inside.is_empty() {
            let name: Ident = inside.parse()?;
            if !["present", "gt", "gte", "lt", "lte"].iter().any(|known| name == known) {
                return Err(unknown(&name, "`present`, `gt`, `gte`, `lt` and `lte`"));
            }
            inside.parse::<Token![=]>()?;
            comparisons.push((name, inside.parse()?));
            comma(&inside)?;
        }
        Ok(TestAttribute::Compare(comparisons))
    }
}

impl FieldAttribute {
    /// Every `#[field]` among the attributes.
    pub(crate) fn read_all(attributes: &[Attribute]) -> Result<Vec<(Span, Self)>> {
        named(attributes, "field")
            .map(|attribute| {
                let span = attribute.path().get_ident().map_or_else(Span::call_site, Ident::span);
                match attribute.meta {
                    syn::Meta::Path(_) => Ok((span, FieldAttribute::default())),
                    _ => Ok((span, attribute.parse_args()?)),
                }
            })
            .collect()
    }
}

impl Parse for FieldAttribute {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut field = FieldAttribute::default();
        while !input.is_empty() {
            let option: Ident = input.call(Ident::parse_any)?;
            match option.to_string().as_str() {
                "path" => field.path = Some(text(input)?),
                "type" => field.kind = Some(text(input)?),
                "digits" => field.digits = Some(number(input)?),
                "version" => field.version = Some(number(input)?),
                "pattern" => field.pattern = Some(text(input)?),
                "values" => field.values = Some(texts(input)?),
                "lat" => field.lat = Some(text(input)?),
                "lon" => field.lon = Some(text(input)?),
                "of" => field.of = Some(text(input)?),
                "generate" => field.generate = Some(flag(input)?),
                "required" => field.required = Some(flag(input)?),
                _ => {
                    let known = "`type`, `digits`, `version`, `pattern`, `values`, `lat`, `lon`, \
                                 `of`, `generate`, `required` and, on the struct, `path`";
                    return Err(unknown(&option, known));
                }
            }
            comma(input)?;
        }
        Ok(field)
    }
}

fn named<'a>(
    attributes: &'a [Attribute],
    name: &'static str,
) -> impl Iterator<Item = &'a Attribute> {
    attributes.iter().filter(move |attribute| attribute.path().is_ident(name))
}

pub(crate) fn unknown(option: &Ident, known: &str) -> syn::Error {
    syn::Error::new(option.span(), format!("`{option}` is not known here; there are {known}"))
}
