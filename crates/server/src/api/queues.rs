//! `/v1/queues`: limits, pause, purge.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use tourbillon_wire as wire;
use tourbillon_wire::{
    ManyRequest, NamespaceQuery, NewQueue, Problem, PurgeReply, ScheduleListQuery, TaskFilter,
    TaskState,
};

use super::many::{Action, many};
use super::{list, reply};
use crate::body::{Doc, Params, PathName};
use crate::convert::name::name;
use crate::doors::Caller;
use crate::failure::{Failure, Result};
use crate::show;
use crate::state::App;

/// List queues by name, with counts.
#[utoipa::path(
    get, path = "/v1/queues", tag = "queues",
    params(ScheduleListQuery),
    responses(
        (status = 200, description = "A page.", body = wire::Page<wire::Queue>),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Params(query): Params<ScheduleListQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let limit = list::limit(query.limit, app.limits())?;
    let after = query.cursor.as_deref().map(list::name_cursor).transpose()?;
    let mut views = app.node.queues(&namespace).await?;
    views.sort_by(|a, b| a.record.name.cmp(&b.record.name));
    if let Some(after) = after {
        views.retain(|v| v.record.name > after);
    }
    let more = views.len() > limit;
    views.truncate(limit);
    let last = views.last().filter(|_| more);
    Ok(reply::ok(&wire::Page {
        next_cursor: last.map(|v| list::name_cursor_text(&v.record.name)),
        scanned_to: None,
        items: views.iter().map(show::queue::queue).collect(),
    }))
}

/// Show a queue.
#[utoipa::path(
    get, path = "/v1/queues/{name}", tag = "queues",
    params(("name" = String, Path, description = "The queue."), NamespaceQuery),
    responses(
        (status = 200, description = "The queue.", body = wire::Queue),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn show(
    State(app): State<App>,
    PathName(name): PathName,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    Ok(reply::ok(&read(&app, &namespace, &name).await?))
}

/// Create a queue, or replace its limits and defaults.
#[utoipa::path(
    put, path = "/v1/queues/{name}", tag = "queues",
    params(("name" = String, Path, description = "The queue."), NamespaceQuery),
    request_body = NewQueue,
    responses(
        (status = 200, description = "The queue as it is now.", body = wire::Queue),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn put(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathName(queue): PathName,
    Params(query): Params<NamespaceQuery>,
    Doc(new): Doc<NewQueue>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    name(&queue, "name", app.limits())?;
    let now = app.node.queue(&namespace, &queue).await?;
    let paused = now.is_some_and(|v| v.record.config.paused);
    let draft = app.judge(&namespace, &caller).queue(&queue, new, paused)?;
    app.put_queue(draft, &caller).await?;
    Ok(reply::ok(&read(&app, &namespace, &queue).await?))
}

/// Pause a queue: nothing of it starts.
#[utoipa::path(
    post, path = "/v1/queues/{name}/pause", tag = "queues",
    params(("name" = String, Path, description = "The queue."), NamespaceQuery),
    responses(
        (status = 200, description = "The queue as it is now.", body = wire::Queue),
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

/// Resume a queue.
#[utoipa::path(
    post, path = "/v1/queues/{name}/resume", tag = "queues",
    params(("name" = String, Path, description = "The queue."), NamespaceQuery),
    responses(
        (status = 200, description = "The queue as it is now.", body = wire::Queue),
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
    app.pause_queue(&namespace, name, paused, by).await?;
    Ok(reply::ok(&read(app, &namespace, name).await?))
}

/// Cancel the tasks of a queue that have not started.
///
/// At most 1,000; `more` says whether to ask again.
#[utoipa::path(
    post, path = "/v1/queues/{name}/purge", tag = "queues",
    params(("name" = String, Path, description = "The queue."), NamespaceQuery),
    responses(
        (status = 200, description = "How many were cancelled.", body = PurgeReply),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn purge(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathName(name): PathName,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    read(&app, &namespace, &name).await?;
    let filter = TaskFilter {
        queue: Some(name),
        state: Some(TaskState::Scheduled),
        ..TaskFilter::default()
    };
    let request = ManyRequest { filter, dry_run: false };
    let done = many(&app, &namespace, request, Action::Cancel, &caller).await?;
    Ok(reply::ok(&PurgeReply { cancelled: done.changed, more: done.more }))
}

async fn read(app: &App, namespace: &str, name: &str) -> Result<wire::Queue> {
    let view = app.node.queue(namespace, name).await?;
    view.as_ref().map(show::queue::queue).ok_or_else(|| Failure::not_found("queue"))
}
