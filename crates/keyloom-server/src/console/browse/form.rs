//! The form of a query: an index, the values of its fields, filters, order and page.

use keyloom::FieldType;
use maud::{Markup, html};

use super::BrowsePage;
use super::question::{BY_KEY, COMPARISONS, GeoInput};
use crate::console::declared::fields;
use crate::console::draw::visible;
use crate::console::links::Links;

/// The sizes of pages that the form offers.
const LIMITS: [usize; 4] = [20, 50, 100, 500];

impl BrowsePage {
    pub(super) fn form(&self, links: &Links) -> Markup {
        let path = Links::collection_path(&self.collection);
        html! {
            form.question action=(links.bare(&path)) {
                @if let Some(user) = links.user() { input type="hidden" name="as" value=(user); }
                // The index that the other fields belong to.
                input type="hidden" name="was" value=(self.question.index.as_deref().unwrap_or(BY_KEY));
                div.row {
                    label for="index" { "Browse by" }
                    select #index name="index" data-submit="" {
                        option value="" selected[self.question.index.is_none()] { "key" }
                        @for way in &self.indexes {
                            option value=(way.name)
                                selected[self.question.index.as_ref() == Some(&way.name)] {
                                (way.kind) " " (way.name)
                            }
                        }
                    }
                    button.quiet.unscripted { "Choose" }
                }
                @if let Some(place) = &self.question.place { (self.around(place)) }
                @else if let Some(template) = self.chosen() {
                    fieldset {
                        legend { "Values of its fields, from the left" }
                        @for (path, modifiers) in fields(template) {
                            (self.field(path, modifiers))
                        }
                    }
                }
                @if self.question.place.is_none() { (self.filters()) }
                div.row {
                    @if self.question.place.is_none() {
                        span.pair { label for="order" { "Order" } (self.order()) }
                    }
                    span.pair {
                        label for="limit" { "Per page" }
                        select #limit name="limit" {
                            @for limit in LIMITS {
                                option value=(limit) selected[self.question.limit == limit] { (limit) }
                            }
                        }
                    }
                    @if self.question.place.is_none() {
                        label.check {
                            input type="checkbox" name="keys_only" value="true"
                                checked[self.question.keys_only];
                            " Keys only"
                        }
                    }
                }
                p.actions {
                    button { "Show" }
                    a.button.quiet href=(links.collection(&self.collection)) { "Reset" }
                }
            }
        }
    }

    /// The template of the chosen index; `None` for the records themselves, whose first field
    /// already names one record.
    pub(super) fn chosen(&self) -> Option<&str> {
        let name = self.question.index.as_ref()?;
        self.indexes.iter().find(|way| way.name == *name).map(|way| way.template.as_str())
    }

    /// The inputs for a place, and for the fields that come before it in the index.
    fn around(&self, place: &GeoInput) -> Markup {
        let input = |name: &str, label: &str, hint: &str, value: &str| {
            html! {
                div.row.field {
                    label.name for=(name) { (label) }
                    input #(name) name=(name) value=(value) placeholder=(hint) size="14"
                        inputmode="decimal" autocomplete="off";
                }
            }
        };
        let template = self.chosen().unwrap_or_default();
        let before = fields(template).take_while(|(_, modifiers)| !modifiers.contains("geohash"));
        html! {
            fieldset {
                legend { "Around a place, nearest first" }
                @for (path, _) in before {
                    div.row.field {
                        label.mono.name for={ "where-" (path) } { (path) }
                        input #{ "where-" (path) } name={ "where." (path) } placeholder="= value"
                            value=[self.question.condition(path, "")] size="14" autocomplete="off"
                            spellcheck="false";
                    }
                }
                (input("lat", "Latitude", "−90 to 90", &place.lat))
                (input("lon", "Longitude", "−180 to 180", &place.lon))
                (input("radius_m", "Within metres", "however far", &place.radius_m))
            }
        }
    }

    /// The inputs for one field: its value, and a range if it has an order.
    fn field(&self, path: &str, modifiers: &str) -> Markup {
        let field_type = self.declared.fields.get(path).map(|field| &field.field_type);
        let is_ordered = modifiers.contains("sorted")
            || !matches!(
                field_type,
                None | Some(FieldType::Text | FieldType::Map | FieldType::Point { .. })
            );
        let said = |comparison| self.question.condition(path, comparison);
        let input = |ending: &'static str, label: &str, hint: &str| {
            let id = format!("where-{path}{ending}");
            let comparison = ending.trim_start_matches('.');
            html! {
                label.unseen for=(id) { (path) " " (label) }
                input #(id) name={ "where." (path) (ending) } value=[said(comparison)]
                    placeholder=(hint) size="14" autocomplete="off" spellcheck="false";
            }
        };
        html! {
            div.row.field {
                span.mono.name { (path) }
                @match field_type {
                    Some(FieldType::Enum { values, .. }) => {
                        label.unseen for={ "where-" (path) } { (path) " is" }
                        select #{ "where-" (path) } name={ "where." (path) } {
                            option value="" { "any" }
                            @for value in values {
                                option value=(value) selected[said("") == Some(value)] { (value) }
                            }
                        }
                    }
                    _ => (input("", "is", "= value")),
                }
                @if is_ordered && !matches!(field_type, Some(FieldType::Enum { .. } | FieldType::Boolean)) {
                    (input(".gte", "is at least", "≥ from"))
                    (input(".lte", "is at most", "≤ to"))
                }
            }
        }
    }

    fn filters(&self) -> Markup {
        html! {
            details open[!self.question.filters.is_empty()] {
                summary { "Filter what was read" }
                @for (at, said) in self.question.filters.iter().enumerate() {
                    div.row.field {
                        label.mono for={ "filter-" (at) } { (visible(&said.field)) " " (said.sign()) }
                        input #{ "filter-" (at) } name=(said.param("filter.")) value=(said.value)
                            size="14" autocomplete="off";
                    }
                }
                div.row.field {
                    label.unseen for="add-field" { "Field to filter by" }
                    input #add-field name="add_field" placeholder="field" size="12"
                        autocomplete="off" list="fields";
                    label.unseen for="add-comparison" { "Comparison" }
                    select #add-comparison name="add_comparison" {
                        @for (ending, sign) in COMPARISONS.iter().filter(|(it, _)| *it != ".prefix") {
                            option value=(ending.trim_start_matches('.')) { (sign) }
                        }
                    }
                    label.unseen for="add-value" { "Value to compare with" }
                    input #add-value name="add_value" placeholder="value" size="14"
                        autocomplete="off";
                }
                datalist #fields { @for name in self.declared.fields.keys() { option value=(name) {} } }
            }
        }
    }

    /// The fields that the index can order by, in both directions.
    fn order(&self) -> Markup {
        let order = self.question.order.as_deref().unwrap_or_default();
        let template = self.chosen().unwrap_or(&self.template);
        let is_ordered = |path: &str, modifiers: &str| {
            let declared = self.declared.fields.get(path).map(|field| &field.field_type);
            modifiers.contains("sorted")
                || matches!(
                    declared,
                    Some(
                        FieldType::Integer { .. }
                            | FieldType::Float
                            | FieldType::Timestamp
                            | FieldType::Datetime
                            | FieldType::Id
                            | FieldType::Uuid { .. }
                    )
                )
        };
        html! {
            select #order name="order" {
                option value="" {
                    @if self.chosen().is_some() { "as the index has it" } @else { "as the keys lie" }
                }
                @for (path, modifiers) in fields(template) {
                    @if is_ordered(path, modifiers) {
                        option value=(path) selected[order == path] { (path) ", lowest first" }
                        @let descending = format!("-{path}");
                        option value=(descending) selected[order == descending] {
                            (path) ", highest first"
                        }
                    }
                }
            }
        }
    }
}
