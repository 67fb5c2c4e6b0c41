//! The parameters of a request, each known and each once.

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

use crate::path::decode;
use crate::problem::Problem;

/// The parameters of a request, in the order in which they came. Whoever answers takes what they
/// know, and refuses the rest by [`finish`](Self::finish).
#[derive(Clone, Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Reads a query string.
    pub(crate) fn read(query: &str) -> Self {
        Params(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// The parameters of a request.
    pub(crate) fn of(uri: &Uri) -> Result<Self, Problem> {
        let query = uri.query().unwrap_or_default();
        // The reader of forms would put another character in place of what it cannot decode, and
        // the question would be another one. Separators are ASCII: the whole decodes if all do.
        if query.contains('%') {
            decode(query)?;
        }
        Ok(Params::read(query))
    }

    /// The parameter of that name as bytes, which need not be text; empty where it is missing.
    pub(crate) fn bytes_of(query: &str, name: &str) -> Vec<u8> {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let mut named = pairs.filter(|(found, _)| *found == name);
        // In a query a plus is a space, and stays one behind percent signs.
        let spaced = named.next().map(|(_, value)| value.replace('+', " "));
        spaced.map(|value| percent_decode_str(&value).collect()).unwrap_or_default()
    }

    /// Takes the parameter of that name, which may come once.
    pub(crate) fn take(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let mut found = self.take_all(|param| (param == name).then(|| name.to_owned()));
        match found.len() {
            0 | 1 => Ok(found.pop().map(|(_, value)| value)),
            _ => Err(Problem::invalid_request(format!("the parameter {name} came more than once"))),
        }
    }

    /// Takes a number.
    pub(crate) fn take_number<N: std::str::FromStr>(
        &mut self,
        name: &str,
    ) -> Result<Option<N>, Problem> {
        let Some(text) = self.take(name)? else { return Ok(None) };
        let number = text.parse().map_err(|_| {
            Problem::invalid_request(format!("the parameter {name} is no number in its range"))
                .with("value", text)
        })?;
        Ok(Some(number))
    }

    /// Takes `true` or `false`; `false` where it is missing.
    pub(crate) fn take_flag(&mut self, name: &str) -> Result<bool, Problem> {
        match self.take(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                let detail = format!("the parameter {name} is true or false");
                Err(Problem::invalid_request(detail).with("value", other))
            }
        }
    }

    /// Takes every parameter for whose name there is a new one, in order.
    pub(crate) fn take_all(
        &mut self,
        wanted: impl Fn(&str) -> Option<String>,
    ) -> Vec<(String, String)> {
        let all = std::mem::take(&mut self.0);
        let mut taken = Vec::new();
        for (name, value) in all {
            match wanted(&name) {
                Some(known) => taken.push((known, value)),
                None => self.0.push((name, value)),
            }
        }
        taken
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(Problem::invalid_request(format!("the parameter {name} is not known here")))
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Params::of(&parts.uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_need_not_be_text() {
        let query = "area=x&prefix=a%3A%ff+%2B%C3%A9&after=";
        assert_eq!(Params::bytes_of(query, "prefix"), b"a:\xff +\xc3\xa9");
        assert_eq!(Params::bytes_of(query, "after"), b"");
        assert_eq!(Params::bytes_of(query, "none"), b"");
    }
}
