//! `/v1/calendars`: days on which the schedules that name them have no occurrences.

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use tourbillon_store::CalendarRecord;
use tourbillon_wire as wire;
use tourbillon_wire::{NamespaceQuery, NewCalendar, Problem, ScheduleListQuery};

use super::{list, reply};
use crate::body::{Doc, Params, PathName};
use crate::doors::Caller;
use crate::failure::{Failure, Result};
use crate::show;
use crate::state::App;

/// Schedules shown that name a calendar.
const USED_BY_MAX: usize = 100;

/// List exclusion calendars by name.
#[utoipa::path(
    get, path = "/v1/calendars", tag = "calendars",
    params(ScheduleListQuery),
    responses(
        (status = 200, description = "A page, without the schedules that name them.", body = wire::Page<wire::Calendar>),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Params(query): Params<ScheduleListQuery>,
) -> Result<Response> {
    page(&app, query).await.map(|page| reply::ok(&page))
}

/// A page of calendars as shown.
pub(crate) async fn page(
    app: &App,
    query: ScheduleListQuery,
) -> Result<wire::Page<wire::Calendar>> {
    let namespace = app.namespace(query.namespace)?;
    let limit = list::limit(query.limit, app.limits())?;
    let after = query.cursor.as_deref().map(list::name_cursor).transpose()?;
    let Some(id) = app.namespace_id(&namespace).await? else {
        return Ok(wire::Page::whole(Vec::new()));
    };
    let found = app.node.query(move |q| q.calendars(id, after.as_deref(), limit + 1));
    let mut records = found.await?;
    let more = records.len() > limit;
    records.truncate(limit);
    let last = records.last().filter(|_| more);
    Ok(wire::Page {
        next_cursor: last.map(|r| list::name_cursor_text(&r.name)),
        scanned_to: None,
        items: records.iter().map(|r| show::calendar::calendar(r, Vec::new())).collect(),
    })
}

/// Show an exclusion calendar, and which schedules name it.
#[utoipa::path(
    get, path = "/v1/calendars/{name}", tag = "calendars",
    params(("name" = String, Path, description = "The calendar."), NamespaceQuery),
    responses(
        (status = 200, description = "The calendar.", body = wire::Calendar),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn show(
    State(app): State<App>,
    PathName(name): PathName,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let (record, used_by) = find(&app, &namespace, &name).await?;
    Ok(reply::ok(&show::calendar::calendar(&record, used_by)))
}

/// Create an exclusion calendar, or replace it. The same document twice changes nothing.
///
/// When it answers, the next occurrence of every schedule that names the calendar is by its new
/// days. An occurrence whose time has come stays.
#[utoipa::path(
    put, path = "/v1/calendars/{name}", tag = "calendars",
    params(("name" = String, Path, description = "The calendar."), NamespaceQuery),
    request_body = NewCalendar,
    responses(
        (status = 201, description = "It was created.", body = wire::Calendar),
        (status = 200, description = "It was replaced, or is the same.", body = wire::Calendar),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn put(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathName(calendar): PathName,
    Params(query): Params<NamespaceQuery>,
    Doc(new): Doc<NewCalendar>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let draft = app.judge(&namespace, &caller).calendar(&calendar, new)?;
    has_room(&app, &namespace, &calendar)?;
    let put = app.put_calendar(draft, &caller).await?;
    let status = if put.created { StatusCode::CREATED } else { StatusCode::OK };
    let used_by = used_by(&app, &put.record).await?;
    Ok(reply::json(status, &show::calendar::calendar(&put.record, used_by)))
}

/// Remove an exclusion calendar that no schedule names.
#[utoipa::path(
    delete, path = "/v1/calendars/{name}", tag = "calendars",
    params(("name" = String, Path, description = "The calendar."), NamespaceQuery),
    responses(
        (status = 204, description = "It is gone."),
        (status = 409, description = "Schedules name it: `in_use`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn remove(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathName(name): PathName,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    app.delete_calendar(&namespace, &name, &caller).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A node keeps the days of all calendars in memory, so there is a bound on them.
fn has_room(app: &App, namespace: &str, name: &str) -> Result<()> {
    let most = app.limits().calendars;
    let calendars = app.node.calendars();
    let id = app.node.namespace_id(namespace).unwrap_or_default();
    if calendars.get(id, name).is_some() || calendars.of(id).count() < most {
        return Ok(());
    }
    Err(Failure::invalid(
        "name",
        format!("there are {most} calendars already"),
        "the name of one of them, or fewer of them in this namespace",
    ))
}

/// A calendar with the schedules that name it.
pub(crate) async fn find(
    app: &App,
    namespace: &str,
    name: &str,
) -> Result<(CalendarRecord, Vec<String>)> {
    let not_found = || Failure::not_found("calendar");
    let id = app.namespace_id(namespace).await?.ok_or_else(not_found)?;
    let name = name.to_owned();
    let record = app.node.query(move |q| q.calendar(id, &name)).await?.ok_or_else(not_found)?;
    let used_by = used_by(app, &record).await?;
    Ok((record, used_by))
}

async fn used_by(app: &App, record: &CalendarRecord) -> Result<Vec<String>> {
    let (id, name) = (record.namespace, record.name.clone());
    Ok(app.node.query(move |q| q.calendar_users(id, &name, USED_BY_MAX)).await?)
}
