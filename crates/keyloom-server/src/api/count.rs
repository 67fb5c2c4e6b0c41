//! Counts of ranges and of declared groups.

use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use keyloom::{Access, CollectionDeclaration, Cursor, Group, GroupQuery};
use serde_json::{Map, Value, json};

use super::{answer, asking};
use crate::api::routes::Routes;
use crate::app::App;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

pub(in crate::api) fn routes() -> Routes {
    Routes::new().route("/count", get(count)).route("/groups/{aggregate}", get(groups))
}

/// `GET /count?…`
async fn count(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
) -> Result<Response, Problem> {
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let declaration = collection.declaration().await?;
    let asked = asking::count(params, &declaration, &app.config().limits)?;
    if !asked.is_keys_only {
        return Ok(answer::json(&json!({ "count": collection.count(&asked.query).await? })));
    }
    let counted = collection.count_entries(&asked.query).await?;
    let mut members = Map::from_iter([("count".to_owned(), counted.records.into())]);
    if let Some(swept_until) = counted.swept_until {
        members.insert("swept_until".to_owned(), swept_until.into());
    }
    Ok(answer::json(&members.into()))
}

/// `GET /groups/{aggregate}?within.FIELD=&limit=&cursor=&top=`
async fn groups(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    mut params: Params,
) -> Result<Response, Problem> {
    let limits = &app.config().limits;
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let declaration = collection.declaration().await?;
    let aggregate = path.get("aggregate");
    let named = asking::equalities(&mut params, "within", &declaration)?;
    let within = within(&declaration, aggregate, named, caller.user.as_deref())?;
    let mut query = GroupQuery::new(aggregate).within(within).limit(limits.read_max);
    let top = params.take_number::<usize>("top")?;
    if let Some(top) = top {
        let top = asking::within("top", 1, limits.page_max, top)?;
        params.finish()?;
        let top = collection.top_groups(&query, top).await?;
        return Ok(answer::json(&told(&top.groups, None, top.swept_until)));
    }
    query = query.take(asking::page_size(&mut params, limits)?);
    if let Some(cursor) = params.take("cursor")? {
        query = query.from_cursor(cursor);
    }
    params.finish()?;
    let page = collection.groups(&query).await?;
    Ok(answer::json(&told(&page.groups, page.next, page.swept_until)))
}

fn told(groups: &[Group], next: Option<Cursor>, swept_until: Option<u64>) -> Value {
    let mut members = Map::from_iter([("groups".to_owned(), shown(groups))]);
    if let Some(next) = next {
        members.insert("next".to_owned(), next.to_string().into());
    }
    if let Some(moment) = swept_until {
        members.insert("swept_until".to_owned(), moment.into());
    }
    members.into()
}

fn shown(groups: &[Group]) -> Value {
    let group = |group: &Group| match group.sum {
        Some(sum) => json!({ "values": group.values, "count": group.count, "sum": sum }),
        None => json!({ "values": group.values, "count": group.count }),
    };
    groups.iter().map(group).collect()
}

/// The values of the first fields of an aggregate, in order. An acting user is the owner, and need
/// not be named.
fn within(
    declaration: &CollectionDeclaration,
    aggregate: &str,
    mut named: Vec<(String, Value)>,
    user: Option<&str>,
) -> Result<Vec<Value>, Problem> {
    let declared = declaration.count.get(aggregate).or_else(|| declaration.sum.get(aggregate));
    let fields = declared.map(|declared| declared.group.as_slice()).unwrap_or_default();
    let owner = declaration.owner.as_ref().filter(|_| declaration.access == Some(Access::Owned));
    if let (Some(owner), Some(user)) = (owner, user)
        && fields.first() == Some(owner)
        && !named.iter().any(|(field, _)| field == owner)
    {
        named.push((owner.clone(), user.into()));
    }
    let mut values = Vec::new();
    for field in fields {
        let Some(place) = named.iter().position(|(found, _)| found == field) else { break };
        values.push(named.swap_remove(place).1);
    }
    match named.first() {
        None => Ok(values),
        Some((field, _)) => {
            let fields = fields.join(", ");
            let detail = format!(
                "within.{field}: groups are narrowed by their first fields, in order: {fields}"
            );
            Err(Problem::invalid_query(detail))
        }
    }
}
