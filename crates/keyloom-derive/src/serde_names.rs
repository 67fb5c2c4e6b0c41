//! Reads what serde's attributes say about names: `rename`, `rename_all`, `skip`, `flatten`.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, LitStr, Result, Token};

use crate::names::Rule;

/// What the attributes of a container, field or variant say about names. Serde's other attributes
/// do not change names.
#[derive(Debug, Default)]
pub(crate) struct SerdeNames {
    pub(crate) rename: Option<String>,
    pub(crate) rename_all: Option<Rule>,
    pub(crate) skip: bool,
    pub(crate) flatten: bool,
}

impl SerdeNames {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut names = SerdeNames::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            attribute.parse_nested_meta(|meta| names.take(&meta))?;
        }
        Ok(names)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("rename") {
            self.rename = Some(one_name(meta)?.value());
        } else if meta.path.is_ident("rename_all") {
            let name = one_name(meta)?;
            let rule = Rule::parse(&name.value());
            self.rename_all = Some(rule.ok_or_else(|| {
                syn::Error::new(name.span(), "this is not a rule of serde for names")
            })?);
        } else {
            self.skip |= meta.path.is_ident("skip") || meta.path.is_ident("skip_serializing");
            self.flatten |= meta.path.is_ident("flatten");
            skip_value(meta)?;
        }
        Ok(())
    }
}

/// `= "name"`. `(serialize = "a", deserialize = "b")` is refused, since records are read with the
/// names under which they were written.
fn one_name(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    if meta.input.peek(Token![=]) {
        return meta.value()?.parse();
    }
    Err(meta.error("a record has the same names when it is written and when it is read"))
}

fn skip_value(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<syn::Expr>()?;
    } else if meta.input.peek(syn::token::Paren) {
        let inside;
        syn::parenthesized!(inside in meta.input);
        inside.parse::<proc_macro2::TokenStream>()?;
    }
    Ok(())
}
