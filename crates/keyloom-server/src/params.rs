//! The parameters of a request. Each must be known, and may occur once.

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use keyloom::did_you_mean;
use percent_encoding::percent_decode_str;

use crate::path::decode;
use crate::problem::Problem;

/// The parameters of a request, in order. A handler takes those that it knows, and refuses the rest
/// with [`finish`](Self::finish).
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    left: Vec<(String, String)>,
    /// The names that were asked for, present or not.
    known: Vec<&'static str>,
}

impl Params {
    /// Parses a query string.
    pub(crate) fn read(query: &str) -> Self {
        let left = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        Params { left, known: Vec::new() }
    }

    /// The parameters of a request.
    pub(crate) fn of(uri: &Uri) -> Result<Self, Problem> {
        let query = uri.query().unwrap_or_default();
        // The form parser would replace characters that it cannot decode, and thereby change the
        // request. Separators are ASCII, so the whole query decodes if all parts do.
        if query.contains('%') {
            decode(query)?;
        }
        Ok(Params::read(query))
    }

    /// The parameter with this name as bytes, which need not be text; empty if it is missing.
    pub(crate) fn bytes_of(query: &str, name: &str) -> Vec<u8> {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let mut named = pairs.filter(|(found, _)| *found == name);
        // In a query a plus means a space, unless it is percent-encoded.
        let spaced = named.next().map(|(_, value)| value.replace('+', " "));
        spaced.map(|value| percent_decode_str(&value).collect()).unwrap_or_default()
    }

    /// Takes the parameter with this name, which may occur once.
    pub(crate) fn take(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        self.known.push(name);
        let mut found = self.take_all(|param| (param == name).then(|| name.to_owned()));
        match found.len() {
            0 | 1 => Ok(found.pop().map(|(_, value)| value)),
            _ => Err(Problem::invalid_request(format!("the parameter {name} came more than once"))),
        }
    }

    /// Takes a number.
    pub(crate) fn take_number<N: std::str::FromStr>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<N>, Problem> {
        let Some(text) = self.take(name)? else { return Ok(None) };
        let number = text.parse().map_err(|_| {
            Problem::invalid_request(format!("the parameter {name} is no number in its range"))
                .with("value", text)
        })?;
        Ok(Some(number))
    }

    /// Takes `true` or `false`; `false` if it is missing.
    pub(crate) fn take_flag(&mut self, name: &'static str) -> Result<bool, Problem> {
        match self.take(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                let detail = format!("the parameter {name} is true or false");
                Err(Problem::invalid_request(detail).with("value", other))
            }
        }
    }

    /// Takes every parameter whose name `wanted` converts, in order.
    pub(crate) fn take_all(
        &mut self,
        wanted: impl Fn(&str) -> Option<String>,
    ) -> Vec<(String, String)> {
        let all = std::mem::take(&mut self.left);
        let mut taken = Vec::new();
        for (name, value) in all {
            match wanted(&name) {
                Some(known) => taken.push((known, value)),
                None => self.left.push((name, value)),
            }
        }
        taken
    }

    /// Refuses all parameters that nobody took.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        self.finish_meaning(|_| None)
    }

    /// Refuses all parameters that nobody took, with a hint if a name looks like a misspelt one.
    pub(crate) fn finish_meaning(
        self,
        meant: impl Fn(&str) -> Option<String>,
    ) -> Result<(), Problem> {
        let Some((name, _)) = self.left.first() else { return Ok(()) };
        let unknown = format!("the parameter {name} is not known here");
        let meant = meant(name).or_else(|| did_you_mean(name, &self.known).map(str::to_owned));
        Err(match meant {
            Some(meant) => {
                let detail = format!("{unknown}; did you mean {meant}?");
                Problem::invalid_request(detail).with("did_you_mean", meant)
            }
            None if self.known.is_empty() => Problem::invalid_request(unknown),
            None => {
                let known = self.known.join(", ");
                Problem::invalid_request(format!("{unknown}; those that are: {known}"))
            }
        }
        .with("parameter", name.as_str()))
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
    fn what_is_not_known_is_told_with_what_is() {
        let told = |query: &str| {
            let mut params = Params::read(query);
            let taken = ["cursor", "limit"].map(|name| params.take(name).is_ok());
            assert_eq!(taken, [true, true]);
            let finished = params.finish_meaning(|name| (name == "a").then(|| "where.a".into()));
            finished.err().map(|problem| problem.detail().to_owned())
        };
        for (query, wanted) in [
            ("limit=3", None),
            ("limt=3", Some("the parameter limt is not known here; did you mean limit?")),
            ("a=3", Some("the parameter a is not known here; did you mean where.a?")),
            ("x=3", Some("the parameter x is not known here; those that are: cursor, limit")),
        ] {
            assert_eq!(told(query).as_deref(), wanted, "{query}");
        }
    }

    #[test]
    fn bytes_need_not_be_text() {
        let query = "area=x&prefix=a%3A%ff+%2B%C3%A9&after=";
        assert_eq!(Params::bytes_of(query, "prefix"), b"a:\xff +\xc3\xa9");
        assert_eq!(Params::bytes_of(query, "after"), b"");
        assert_eq!(Params::bytes_of(query, "none"), b"");
    }
}
