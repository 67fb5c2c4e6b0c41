//! Values in attributes.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Lit, LitBool, LitStr, Result, Token};

/// A string, a number or a boolean, which becomes a JSON value.
pub(crate) struct Scalar {
    negative: bool,
    literal: Lit,
}

impl Parse for Scalar {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let negative = input.parse::<Option<Token![-]>>()?.is_some();
        let literal: Lit = input.parse()?;
        match &literal {
            Lit::Int(_) | Lit::Float(_) => {}
            Lit::Str(_) | Lit::Bool(_) if !negative => {}
            other => {
                let message = "a string, a number or a boolean is expected here";
                return Err(syn::Error::new(other.span(), message));
            }
        }
        Ok(Scalar { negative, literal })
    }
}

impl ToTokens for Scalar {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let minus = self.negative.then(|| quote!(-));
        let literal = &self.literal;
        // A number without a suffix would be an `i32`.
        let number = match literal {
            Lit::Int(_) => quote!({ let number: i64 = #minus #literal; number }),
            Lit::Float(_) => quote!({ let number: f64 = #minus #literal; number }),
            _ => quote!(#literal),
        };
        tokens.extend(quote!(::keyloom::typed::Value::from(#number)));
    }
}

/// `flag`, or `flag = true`.
pub(crate) fn flag(input: ParseStream<'_>) -> Result<bool> {
    match input.parse::<Option<Token![=]>>()? {
        Some(_) => Ok(input.parse::<LitBool>()?.value),
        None => Ok(true),
    }
}

/// `= "text"`.
pub(crate) fn text(input: ParseStream<'_>) -> Result<LitStr> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// `= 3`, as the number type of the declaration's field.
pub(crate) fn number<N: std::str::FromStr<Err: std::fmt::Display>>(
    input: ParseStream<'_>,
) -> Result<N> {
    input.parse::<Token![=]>()?;
    input.parse::<syn::LitInt>()?.base10_parse()
}

/// `= -3`.
pub(crate) fn signed(input: ParseStream<'_>) -> Result<i64> {
    input.parse::<Token![=]>()?;
    let minus = input.parse::<Option<Token![-]>>()?.map_or("", |_| "-");
    let literal: syn::LitInt = input.parse()?;
    format!("{minus}{}", literal.base10_digits())
        .parse()
        .map_err(|error| syn::Error::new(literal.span(), error))
}

/// `= ["a", "b"]`.
pub(crate) fn texts(input: ParseStream<'_>) -> Result<Vec<LitStr>> {
    input.parse::<Token![=]>()?;
    let inside;
    syn::bracketed!(inside in input);
    let texts = inside.parse_terminated(|input| input.parse::<LitStr>(), Token![,])?;
    Ok(texts.into_iter().collect())
}

/// An optional `,` between options; nothing else is allowed.
pub(crate) fn comma(input: ParseStream<'_>) -> Result<()> {
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok(())
}
