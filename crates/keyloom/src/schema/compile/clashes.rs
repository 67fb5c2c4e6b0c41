//! Checks that within an area every key belongs to only one template.

use super::indexes::Found;
use super::under;
use crate::engine::{Area, ShowKey};
use crate::key::{Template, common_key};
use crate::schema::problem::{Problems, ShowTrail, Trail};

/// Every template of a schema, with its area and the place of its declaration.
#[derive(Default)]
pub(super) struct Inventory(Vec<(Area, Trail, Template)>);

impl Inventory {
    /// Adds all templates of a collection that could be compiled.
    pub(super) fn add_all(
        &mut self,
        area: Option<&Area>,
        collection: &Trail,
        key: Option<&Template>,
        indexes: &[Found],
    ) {
        if let (Some(area), Some(key)) = (area, key) {
            self.0.push((area.clone(), under(collection, "key"), key.clone()));
        }
        for Found { trail, index } in indexes {
            self.0.push((index.area.clone(), under(trail, "key"), index.key.clone()));
        }
    }

    /// Whether keys of another template may lie between those of this one. That is so if the first
    /// literal of one of them is a prefix of the other's.
    pub(super) fn is_interleaved(&self, area: &Area, template: &Template) -> bool {
        self.0.iter().any(|(other_area, _, other)| {
            other_area == area && other != template && !begin_apart(template, other)
        })
    }

    /// Compares each pair within an area, and reports those that share a key.
    pub(super) fn check(&self, problems: &mut Problems) {
        for (position, (area, trail, template)) in self.0.iter().enumerate() {
            for (other_area, other_trail, other) in &self.0[..position] {
                if area != other_area || begin_apart(template, other) {
                    continue;
                }
                let Some(key) = common_key(template, other) else { continue };
                problems.add(
                    trail.clone(),
                    format!(
                        "`{}` and `{}` of {} could both have the key `{}`; \
                         change one of them, or put it into another area",
                        template.source,
                        other.source,
                        ShowTrail(other_trail),
                        ShowKey(&key),
                    ),
                );
            }
        }
    }
}

/// Whether the first literals differ, which separates most pairs without a search.
fn begin_apart(a: &Template, b: &Template) -> bool {
    let (a, b) = (a.first_literal(), b.first_literal());
    !a.starts_with(b) && !b.starts_with(a)
}
