//! The keys of aggregates, for people.

use serde_json::json;

use super::write::share;
use crate::own::OwnKind;
use crate::schema::{Aggregate, COUNT, SUM};
use crate::side::kind::{Example, OwnPattern};

pub(super) fn describe(example: &Example<'_>, aggregate: &Aggregate) -> [OwnPattern; 2] {
    let Aggregate { collection: of, name, summed, template, .. } = aggregate;
    let shared = share(example.collection, aggregate, example.value).ok().flatten();
    let (group, amount) = match &shared {
        Some(share) => (share.group.clone(), share.amount),
        None => (template.source.clone().into(), 1),
    };
    let groups: Vec<String> = aggregate.group.iter().map(|path| format!("{path} = …")).collect();
    let asked =
        if groups.is_empty() { String::new() } else { format!(" where {}", groups.join(" and ")) };
    let (verb, value) = match summed {
        None => ("counted", json!({ COUNT: 1 })),
        Some(_) => ("summed", json!({ COUNT: 1, SUM: amount })),
    };
    let (cells, marks) = (OwnKind::AggregateCell.words(), OwnKind::AggregateMark.words());
    let cell = OwnPattern {
        template: format!("{cells}{of}:{name}:{{generation}}{}{{cell}}", template.source),
        index: Some(name.clone()),
        what: match summed {
            None => format!("How many records of {of} are in a group, or a part of that."),
            Some(path) => format!("What {path} of a group of {of} comes to, or a part of that."),
        },
        holds: "integers: how many, and the sum if it is one",
        key: aggregate.cell(1, &group, 0).key,
        value: value.to_string(),
        read_by: format!("{verb} {name}{asked}; groups"),
    };
    let mark = OwnPattern {
        template: format!("{marks}{of}:{name}:{{generation}}:{{SHA-256 of the record's key}}"),
        index: Some(name.clone()),
        what: format!("That {name}, while it is being counted, has counted a record."),
        holds: "nothing",
        key: aggregate.mark(2, example.key).key,
        value: String::new(),
        read_by: "writes, build, recount".to_owned(),
    };
    [cell, mark]
}
