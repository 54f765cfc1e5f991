//! `/v1/schedules`: rules that say when, and what they create.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use tourbillon_schedule::Exclusion;
use tourbillon_store::{ScheduleRecord, Task};
use tourbillon_wire as wire;
use tourbillon_wire::{
    NamespaceQuery, NewCalendar, NewSchedule, Preview, PreviewQuery, PreviewRequest, Problem,
    ScheduleListQuery, Timestamp, TriggerReply,
};
use uuid::Uuid;

use super::{list, reply};
use crate::body::{Doc, Params, PathName};
use crate::convert::Judge;
use crate::convert::name::name;
use crate::convert::number::within;
use crate::convert::time;
use crate::doors::Caller;
use crate::failure::{Failure, Result};
use crate::state::App;
use crate::{plan, show};

/// Occurrences of a preview unless asked otherwise.
const PREVIEW_DEFAULT: u32 = 10;

/// List schedules by name.
#[utoipa::path(
    get, path = "/v1/schedules", tag = "schedules",
    params(ScheduleListQuery),
    responses(
        (status = 200, description = "A page.", body = wire::Page<wire::Schedule>),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Params(query): Params<ScheduleListQuery>,
) -> Result<Response> {
    page(&app, query).await.map(|page| reply::ok(&page))
}

/// A page of schedules as shown.
pub(crate) async fn page(
    app: &App,
    query: ScheduleListQuery,
) -> Result<wire::Page<wire::Schedule>> {
    let namespace = app.namespace(query.namespace)?;
    let limit = list::limit(query.limit, app.limits())?;
    let after = query.cursor.as_deref().map(list::name_cursor).transpose()?;
    let Some(id) = app.namespace_id(&namespace).await? else {
        return Ok(wire::Page::whole(Vec::new()));
    };
    let found = app.node.query(move |q| {
        let mut records = q.schedules(id, after.as_deref(), limit + 1)?;
        let more = records.len() > limit;
        records.truncate(limit);
        let with_last = records.into_iter().map(|r| {
            let last = q.last_runs(r.uid, 1)?.pop();
            Ok((r, last))
        });
        Ok((with_last.collect::<Result<Vec<_>, tourbillon_store::StoreError>>()?, more))
    });
    let (records, more) = found.await?;
    let last = records.last().filter(|_| more);
    let next_cursor = last.map(|(r, _)| list::name_cursor_text(&r.name));
    let mut items = Vec::with_capacity(records.len());
    for (record, last) in &records {
        items.push(shown(app, &namespace, record, last.as_ref()).await?);
    }
    Ok(wire::Page { items, next_cursor, scanned_to: None })
}

/// Show a schedule.
#[utoipa::path(
    get, path = "/v1/schedules/{name}", tag = "schedules",
    params(("name" = String, Path, description = "The schedule."), NamespaceQuery),
    responses(
        (status = 200, description = "The schedule.", body = wire::Schedule),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn show(
    State(app): State<App>,
    PathName(name): PathName,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let (record, last) = find(&app, &namespace, &name).await?;
    Ok(reply::ok(&shown(&app, &namespace, &record, last.as_ref()).await?))
}

/// Create a schedule, or replace it. The same document twice changes nothing.
#[utoipa::path(
    put, path = "/v1/schedules/{name}", tag = "schedules",
    params(("name" = String, Path, description = "The schedule."), NamespaceQuery),
    request_body = NewSchedule,
    responses(
        (status = 201, description = "It was created.", body = wire::Schedule),
        (status = 200, description = "It was replaced, or is the same.", body = wire::Schedule),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn put(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathName(schedule): PathName,
    Params(query): Params<NamespaceQuery>,
    Doc(new): Doc<NewSchedule>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    name(&schedule, "name", app.limits())?;
    let paused = match new.paused {
        Some(paused) => paused,
        None => stored(&app, &namespace, &schedule).await?.is_some_and(|r| r.paused),
    };
    let draft = app.judge(&namespace, &caller).schedule(&schedule, new, paused)?;
    app.days(&namespace, &draft.doc.exclude, &[])?;
    let put = app.put_schedule(draft, &caller).await?;
    let status = if put.created { StatusCode::CREATED } else { StatusCode::OK };
    let last = last_run(&app, put.record.uid).await?;
    Ok(reply::json(status, &shown(&app, &namespace, &put.record, last.as_ref()).await?))
}

/// Remove a schedule. Nothing of it starts any more; what runs goes on.
#[utoipa::path(
    delete, path = "/v1/schedules/{name}", tag = "schedules",
    params(("name" = String, Path, description = "The schedule."), NamespaceQuery),
    responses(
        (status = 204, description = "It is gone."),
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
    app.delete_schedule(&namespace, &name, &caller).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Pause a schedule: it plans nothing.
#[utoipa::path(
    post, path = "/v1/schedules/{name}/pause", tag = "schedules",
    params(("name" = String, Path, description = "The schedule."), NamespaceQuery),
    responses(
        (status = 200, description = "The schedule as it is now.", body = wire::Schedule),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn pause(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathName(name): PathName,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    paused(&app, query, &name, true, &caller).await
}

/// Resume a schedule.
#[utoipa::path(
    post, path = "/v1/schedules/{name}/resume", tag = "schedules",
    params(("name" = String, Path, description = "The schedule."), NamespaceQuery),
    responses(
        (status = 200, description = "The schedule as it is now.", body = wire::Schedule),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn resume(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathName(name): PathName,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    paused(&app, query, &name, false, &caller).await
}

async fn paused(
    app: &App,
    query: NamespaceQuery,
    name: &str,
    paused: bool,
    by: &Caller,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let record = app.pause_schedule(&namespace, name, paused, by).await?;
    let last = last_run(app, record.uid).await?;
    Ok(reply::ok(&shown(app, &namespace, &record, last.as_ref()).await?))
}

/// Run a schedule's task now, beside its plan.
#[utoipa::path(
    post, path = "/v1/schedules/{name}/trigger", tag = "schedules",
    params(("name" = String, Path, description = "The schedule."), NamespaceQuery),
    responses(
        (status = 201, description = "The task was created.", body = TriggerReply),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn trigger(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathName(name): PathName,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let id = app.trigger(&namespace, &name, &caller).await?;
    let found = super::task::record(&app, &namespace, id).await;
    let origin = match found {
        Ok(Task { schedule: Some(link), .. }) => link.origin,
        _ => format!("trigger:{id}"),
    };
    let reply = TriggerReply { task_id: Uuid::from_u128(id.0), origin };
    Ok(reply::json(StatusCode::CREATED, &reply))
}

/// Show the next occurrences of a schedule, and why they are there.
#[utoipa::path(
    get, path = "/v1/schedules/{name}/preview", tag = "schedules",
    params(("name" = String, Path, description = "The schedule."), PreviewQuery),
    responses(
        (status = 200, description = "The occurrences.", body = Preview),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn preview(
    State(app): State<App>,
    PathName(name): PathName,
    Params(query): Params<PreviewQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let (n, after) = range(&app, query.n, query.after)?;
    let (record, _) = find(&app, &namespace, &name).await?;
    let exclude = &record.doc.exclude;
    let days = app.days(&namespace, exclude, &[])?;
    let timing = plan::timing(&record.doc, &record.name)?.with_exclusions(days);
    Ok(reply::ok(&plan::preview(&timing, exclude, after, n)))
}

/// Show the occurrences of a schedule without storing it.
#[utoipa::path(
    post, path = "/v1/schedules/preview", tag = "schedules",
    params(NamespaceQuery),
    request_body = PreviewRequest,
    responses(
        (status = 200, description = "The occurrences.", body = Preview),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn preview_unstored(
    State(app): State<App>,
    Params(query): Params<NamespaceQuery>,
    Doc(request): Doc<PreviewRequest>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let (n, after) = range(&app, request.n, request.after)?;
    let schedule = request.schedule;
    let called = schedule.name.clone().unwrap_or_else(|| "preview".to_owned());
    // Nothing is created, so a command needs no token here.
    let judge = app.judge(&namespace, &Caller { trusted: true, peer: None });
    let besides = besides(&app, &judge, request.calendars)?;
    let draft = judge.schedule(&called, schedule, false).map_err(|f| f.under("schedule"))?;
    let exclude = &draft.doc.exclude;
    let days = app.days(&namespace, exclude, &besides).map_err(|f| f.under("schedule"))?;
    let timing = plan::timing(&draft.doc, &called).map_err(|f| f.under("schedule"))?;
    Ok(reply::ok(&plan::preview(&timing.with_exclusions(days), exclude, after, n)))
}

/// The calendars that a preview is given, by name.
fn besides(
    app: &App,
    judge: &Judge<'_>,
    given: Vec<NewCalendar>,
) -> Result<Vec<(String, Arc<Exclusion>)>> {
    let most = app.limits().excludes;
    if given.len() > most {
        let detail = format!("there are {}", given.len());
        return Err(Failure::invalid("calendars", detail, format!("at most {most} calendars")));
    }
    let judged = given.into_iter().enumerate().map(|(index, calendar)| {
        let called = calendar.name.clone().unwrap_or_default();
        let draft = judge.calendar(&called, calendar);
        let draft = draft.map_err(|failure| failure.under(&format!("calendars[{index}]")))?;
        Ok((draft.name, draft.days))
    });
    judged.collect()
}

fn range(app: &App, n: Option<u32>, after: Option<Timestamp>) -> Result<(usize, i64)> {
    let n = within(n.unwrap_or(PREVIEW_DEFAULT) as usize, "n", 1, app.limits().preview)?;
    let after = after.map(|t| time::instant(t, "after")).transpose()?;
    Ok((n, after.unwrap_or_else(|| app.node.now()).0))
}

async fn stored(app: &App, namespace: &str, name: &str) -> Result<Option<ScheduleRecord>> {
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    let found = app.node.query(move |q| match q.namespace(&namespace)? {
        Some(id) => q.schedule(id, &name),
        None => Ok(None),
    });
    Ok(found.await?)
}

/// A schedule with its latest finished task.
pub(crate) async fn find(
    app: &App,
    namespace: &str,
    name: &str,
) -> Result<(ScheduleRecord, Option<Task>)> {
    let found = stored(app, namespace, name).await?;
    let record = found.ok_or_else(|| Failure::not_found("schedule"))?;
    let last = last_run(app, record.uid).await?;
    Ok((record, last))
}

async fn last_run(app: &App, uid: u128) -> Result<Option<Task>> {
    Ok(app.node.query(move |q| q.last_runs(uid, 1)).await?.pop())
}

/// A schedule as shown.
pub(crate) async fn shown(
    app: &App,
    namespace: &str,
    record: &ScheduleRecord,
    last: Option<&Task>,
) -> Result<wire::Schedule> {
    let queue = app.queue_name(record.partition.queue);
    Ok(show::schedule::schedule(record, namespace, &queue.name, last, app.node.now()))
}
