//! A visitor's query of a collection, as the form and its links express it.

use keyloom::{CollectionDeclaration, Near, Query};
use serde::Serialize;

use crate::api;
use crate::config::Limits;
use crate::console::declared::fields;
use crate::params::Params;
use crate::problem::Problem;

/// How many records a page has, unless the visitor says otherwise.
pub(super) const TAKE: usize = 20;

/// The most records of a page.
const TAKE_MAX: usize = 500;

/// The form's choice for the records themselves, by their keys. No index may have this name.
pub(super) const BY_KEY: &str = "key";

/// The comparisons of fields: the ending of the parameter, and the sign for people.
pub(super) const COMPARISONS: [(&str, &str); 6] = [
    ("", "="),
    (".gt", ">"),
    (".gte", "≥"),
    (".lt", "<"),
    (".lte", "≤"),
    (".prefix", "begins with"),
];

/// A query from the form.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Question {
    pub(super) index: Option<String>,
    /// Conditions that the index answers.
    pub(super) conditions: Vec<Said>,
    /// Conditions that are checked after reading.
    pub(super) filters: Vec<Said>,
    /// `FIELD` or `-FIELD`.
    pub(super) order: Option<String>,
    pub(super) limit: usize,
    pub(super) keys_only: bool,
    pub(super) cursor: Option<String>,
    /// The place, for a geo index.
    pub(super) place: Option<GeoInput>,
}

/// A place as typed: degrees, and a radius in metres.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct GeoInput {
    pub(super) lat: String,
    pub(super) lon: String,
    /// Empty for no limit.
    pub(super) radius_m: String,
}

/// A condition on a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Said {
    pub(super) field: String,
    /// One of [`COMPARISONS`], without the dot; empty for equality.
    pub(super) comparison: &'static str,
    pub(super) value: String,
}

impl Question {
    /// Takes the parameters of the query. Empty ones are ignored, since forms send every field.
    pub(super) fn take(
        params: &mut Params,
        declared: &CollectionDeclaration,
    ) -> Result<Self, Problem> {
        let mut taken = |prefix: &'static str| -> Vec<Said> {
            let named = |name: &str| name.strip_prefix(prefix).map(str::to_owned);
            let all = params.take_all(named).into_iter();
            all.filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| said(&name, value))
                .collect()
        };
        let conditions = taken("where.");
        let mut filters = taken("filter.");
        filters.extend(added(params)?);
        let mut text = |name: &'static str| -> Result<_, Problem> {
            Ok(params.take(name)?.filter(|text| !text.is_empty()))
        };
        let (index, order, cursor) = (text("index")?, text("order")?, text("cursor")?);
        let limit = params.take_number("limit")?.unwrap_or(TAKE).clamp(1, TAKE_MAX);
        let keys_only = params.take_flag("keys_only")?;
        let place = GeoInput {
            lat: params.take("lat")?.unwrap_or_default(),
            lon: params.take("lon")?.unwrap_or_default(),
            radius_m: params.take("radius_m")?.unwrap_or_default(),
        };
        let was = params.take("was")?;
        let is_other = was.is_some_and(|was| was != index.as_deref().unwrap_or(BY_KEY));
        let place = Some(place);
        let asked = Question { index, conditions, filters, order, limit, keys_only, cursor, place };
        let asked = if is_other { asked.of_another_index(declared) } else { asked };
        Ok(asked.of_its_kind(declared))
    }

    /// The query after the visitor chose another index: it drops conditions that the form still
    /// sent for the earlier one.
    fn of_another_index(mut self, declared: &CollectionDeclaration) -> Self {
        let template = self.index.as_deref().and_then(|name| template(declared, name));
        let has = |field: &str| {
            template.is_some_and(|template| fields(template).any(|(path, _)| path == field))
        };
        self.conditions.retain(|said| has(&said.field));
        Question { order: None, cursor: None, ..self }
    }

    /// Only the parts that this kind of index supports: a search near a place has its own order,
    /// and neither filters nor keys.
    fn of_its_kind(self, declared: &CollectionDeclaration) -> Self {
        let is_geo = self.index.as_ref().is_some_and(|name| declared.geo.contains_key(name));
        match is_geo {
            true => Question { filters: Vec::new(), order: None, keys_only: false, ..self },
            false => Question { place: None, ..self },
        }
    }

    /// The parameters of the same query at another cursor; `None` begins at the start.
    pub(super) fn params(&self, cursor: Option<&str>) -> Vec<(String, String)> {
        let mut params = Vec::new();
        let mut add = |name: &str, value: &str| params.push((name.to_owned(), value.to_owned()));
        if let Some(index) = &self.index {
            add("index", index);
        }
        for said in &self.conditions {
            add(&said.param("where."), &said.value);
        }
        for said in &self.filters {
            add(&said.param("filter."), &said.value);
        }
        if let Some(order) = &self.order {
            add("order", order);
        }
        if self.limit != TAKE {
            add("limit", &self.limit.to_string());
        }
        if self.keys_only {
            add("keys_only", "true");
        }
        if let Some(GeoInput { lat, lon, radius_m }) = &self.place {
            let all = [("lat", lat), ("lon", lon), ("radius_m", radius_m)];
            all.iter()
                .filter(|(_, said)| !said.is_empty())
                .for_each(|(name, said)| add(name, said));
        }
        if let Some(cursor) = cursor {
            add("cursor", cursor);
        }
        params
    }

    /// The condition on a field.
    pub(super) fn condition(&self, field: &str, comparison: &str) -> Option<&str> {
        let is_it = |said: &&Said| said.field == field && said.comparison == comparison;
        self.conditions.iter().find(is_it).map(|said| said.value.as_str())
    }

    /// The query for the library, parsed as the API parses it.
    pub(super) fn query(
        &self,
        declared: &CollectionDeclaration,
        limits: &Limits,
    ) -> Result<Query, Problem> {
        let mut text = self.text();
        // People may filter a whole collection: the server's budget limits how much that reads.
        let is_filtered = !self.filters.is_empty();
        if self.index.is_none() && self.conditions.is_empty() && is_filtered {
            text.append_pair("scan", "true");
        }
        let asked = api::asked_page(Params::read(&text.finish()), declared, limits)?;
        Ok(asked.query)
    }

    /// The search near a place for the library, parsed as the API parses it.
    pub(super) fn near(
        &self,
        declared: &CollectionDeclaration,
        limits: &Limits,
    ) -> Result<Near, Problem> {
        api::asked_near(Params::read(&self.text().finish()), declared, limits)
    }

    /// The query as parameters of the API.
    fn text(&self) -> form_urlencoded::Serializer<'static, String> {
        let mut text = form_urlencoded::Serializer::new(String::new());
        text.extend_pairs(self.params(self.cursor.as_deref()));
        text
    }
}

impl GeoInput {
    /// Whether it is still empty.
    pub(super) fn is_open(&self) -> bool {
        self.lat.is_empty() && self.lon.is_empty()
    }
}

/// The template of an index that pages can be read by.
fn template<'d>(declared: &'d CollectionDeclaration, index: &str) -> Option<&'d str> {
    let all = [&declared.index, &declared.unique, &declared.geo];
    all.into_iter().find_map(|kind| kind.get(index)).map(|it| it.key.as_str())
}

/// The filter in the form's empty row.
fn added(params: &mut Params) -> Result<Option<Said>, Problem> {
    let field = params.take("add_field")?.unwrap_or_default();
    let comparison = params.take("add_comparison")?.unwrap_or_default();
    let value = params.take("add_value")?.unwrap_or_default();
    if field.is_empty() {
        return Ok(None);
    }
    let known = COMPARISONS.iter().map(|(ending, _)| ending.trim_start_matches('.'));
    match known.into_iter().find(|known| *known == comparison && *known != "prefix") {
        Some(comparison) => Ok(Some(Said { field, comparison, value })),
        None => Err(Problem::invalid_request("a filter compares by =, gt, gte, lt or lte")),
    }
}

fn said(name: &str, value: String) -> Said {
    let ending = COMPARISONS.iter().skip(1).find(|(ending, _)| name.ends_with(ending));
    let ending = ending.map_or("", |(ending, _)| ending);
    let field = name.strip_suffix(ending).unwrap_or(name).to_owned();
    Said { field, comparison: ending.trim_start_matches('.'), value }
}

impl Said {
    /// The name of its parameter.
    pub(super) fn param(&self, prefix: &str) -> String {
        match self.comparison {
            "" => format!("{prefix}{}", self.field),
            comparison => format!("{prefix}{}.{comparison}", self.field),
        }
    }

    /// The sign for people.
    pub(super) fn sign(&self) -> &'static str {
        let is_it = |(ending, _): &&(&str, &str)| ending.trim_start_matches('.') == self.comparison;
        COMPARISONS.iter().find(is_it).map_or("=", |(_, sign)| sign)
    }
}

#[cfg(test)]
mod tests {
    use keyloom::IndexDeclaration;

    use super::*;

    #[test]
    fn a_question_survives_its_own_links() -> Result<(), String> {
        let text = "index=by&where.a=1&where.t.gte=5&where.b=&filter.x.lt=3&order=-t&limit=50&\
                    keys_only=true&add_field=y&add_comparison=&add_value=z&cursor=c";
        let declared = CollectionDeclaration::new("a:{id}");
        let read =
            |params: &mut Params| Question::take(params, &declared).map_err(|it| format!("{it:?}"));
        let mut params = Params::read(text);
        let asked = read(&mut params)?;
        params.finish().map_err(|it| format!("{it:?}"))?;
        assert_eq!((asked.conditions.len(), asked.filters.len()), (2, 2));
        assert_eq!(asked.condition("t", "gte"), Some("5"));
        let mut query = form_urlencoded::Serializer::new(String::new());
        let again = query.extend_pairs(asked.params(Some("c"))).finish();
        let again = read(&mut Params::read(&again))?;
        assert_eq!(format!("{asked:?}"), format!("{again:?}"));
        Ok(())
    }

    fn asked(text: &str) -> Result<Question, String> {
        let mut declared = CollectionDeclaration::new("a:{id}");
        let (by, at) = ("by:{b}:{t}:{id}", "at:{b}:{place geohash 5}:{id}");
        declared.index.insert("by".to_owned(), IndexDeclaration::new(by));
        declared.geo.insert("at".to_owned(), IndexDeclaration::new(at));
        Question::take(&mut Params::read(text), &declared).map_err(|it| format!("{it:?}"))
    }

    #[test]
    fn another_index_takes_over_only_what_it_has() -> Result<(), String> {
        let same = asked("index=by&was=by&where.b=1&where.x=2&order=t&cursor=c&filter.y=3")?;
        assert_eq!((same.conditions.len(), same.filters.len()), (2, 1));
        assert!(same.order.is_some() && same.cursor.is_some());
        let other = asked("index=by&was=key&where.b=1&where.x=2&order=t&cursor=c&filter.y=3")?;
        assert_eq!((other.conditions.len(), other.filters.len()), (1, 1));
        assert!(other.order.is_none() && other.cursor.is_none());
        let none = asked("was=by&where.b=1")?;
        assert!(none.conditions.is_empty());
        // Without the parameter `was`, every condition of the URL counts.
        assert_eq!(asked("index=by&where.x=2")?.conditions.len(), 1);
        Ok(())
    }

    #[test]
    fn places_belong_to_geo_indexes_and_filters_to_others() -> Result<(), String> {
        let text = "lat=1&lon=2&radius_m=3&order=t&keys_only=true&filter.y=3&where.b=1";
        let around = asked(&format!("index=at&{text}"))?;
        let place = around.place.as_ref().map(|it| [&*it.lat, &*it.lon, &*it.radius_m]);
        assert_eq!(place, Some(["1", "2", "3"]));
        assert!(around.filters.is_empty() && around.order.is_none() && !around.keys_only);
        assert_eq!(around.conditions.len(), 1);
        let other = asked(&format!("index=by&{text}"))?;
        assert!(other.place.is_none() && other.order.is_some() && other.filters.len() == 1);
        Ok(())
    }
}
