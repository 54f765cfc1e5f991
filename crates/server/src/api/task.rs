//! `/v1/tasks/{id}`: one task.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use tourbillon_node::api::Cancelled;
use tourbillon_store as store;
use tourbillon_store::TaskId;
use tourbillon_wire as wire;
use tourbillon_wire::{CancelReply, CancelState, NamespaceQuery, Problem, TaskPatch, code};
use uuid::Uuid;

use super::reply;
use crate::body::{Doc, Params, PathTask};
use crate::doors::Caller;
use crate::failure::{Failure, Result};
use crate::show;
use crate::state::App;

/// Show a task with its payload and attempts.
#[utoipa::path(
    get, path = "/v1/tasks/{id}", tag = "tasks",
    params(("id" = Uuid, Path, description = "The task."), NamespaceQuery),
    responses(
        (status = 200, description = "The task.", body = wire::Task),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn show(
    State(app): State<App>,
    PathTask(id): PathTask,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    Ok(reply::ok(&read(&app, &namespace, id).await?))
}

/// Change a task that has not started.
#[utoipa::path(
    patch, path = "/v1/tasks/{id}", tag = "tasks",
    params(("id" = Uuid, Path, description = "The task."), NamespaceQuery),
    request_body = TaskPatch,
    responses(
        (status = 200, description = "The task as it is now.", body = wire::Task),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn edit(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathTask(id): PathTask,
    Params(query): Params<NamespaceQuery>,
    Doc(patch): Doc<TaskPatch>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let task = record(&app, &namespace, id).await?;
    if let Some(version) = patch.version
        && version != u64::from(task.version)
    {
        return Err(Failure::new(409, code::VERSION_CONFLICT)
            .field("version")
            .detail(format!("the task has version {}", task.version))
            .expected("the version as it is now; read the task again"));
    }
    let patch = app.judge(&namespace, &caller).patch(patch, task.spec.at_most_once)?;
    app.edit(&namespace, id, patch, &caller).await?;
    Ok(reply::ok(&read(&app, &namespace, id).await?))
}

/// Cancel a task.
///
/// 200: it will not start. 202: its attempt is being stopped. 409: it is over.
#[utoipa::path(
    delete, path = "/v1/tasks/{id}", tag = "tasks",
    params(("id" = Uuid, Path, description = "The task."), NamespaceQuery),
    responses(
        (status = 200, description = "It will not start.", body = CancelReply),
        (status = 202, description = "Its attempt is being stopped.", body = CancelReply),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathTask(id): PathTask,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let (status, state) = match app.cancel(&namespace, id, &caller).await? {
        Cancelled::Cancelled => (StatusCode::OK, CancelState::Cancelled),
        Cancelled::Cancelling => (StatusCode::ACCEPTED, CancelState::Cancelling),
    };
    Ok(reply::json(status, &CancelReply { id: Uuid::from_u128(id.0), state }))
}

/// Run a scheduled task now.
#[utoipa::path(
    post, path = "/v1/tasks/{id}/run", tag = "tasks",
    params(("id" = Uuid, Path, description = "The task."), NamespaceQuery),
    responses(
        (status = 200, description = "The task as it is now.", body = wire::Task),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn run(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathTask(id): PathTask,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    app.run_now(&namespace, id, &caller).await?;
    Ok(reply::ok(&read(&app, &namespace, id).await?))
}

/// Try a task that is over again.
#[utoipa::path(
    post, path = "/v1/tasks/{id}/retry", tag = "tasks",
    params(("id" = Uuid, Path, description = "The task."), NamespaceQuery),
    responses(
        (status = 200, description = "The task as it is now.", body = wire::Task),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn retry(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathTask(id): PathTask,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    app.retry(&namespace, id, &caller).await.map_err(|e| Failure::from(e).alone())?;
    Ok(reply::ok(&read(&app, &namespace, id).await?))
}

/// A task as shown, whole.
pub(crate) async fn read(app: &App, namespace: &str, id: TaskId) -> Result<wire::Task> {
    let task = record(app, namespace, id).await?;
    let queue = app.queue_name(task.queue());
    Ok(show::task::task(&task, &queue, app.node.now(), true))
}

/// A task as the store has it.
pub(crate) async fn record(app: &App, namespace: &str, id: TaskId) -> Result<store::Task> {
    let namespace = namespace.to_owned();
    let found = app.node.query(move |q| match q.namespace(&namespace)? {
        Some(namespace) => q.task(namespace, id),
        None => Ok(None),
    });
    found.await?.ok_or_else(|| Failure::not_found("task"))
}
