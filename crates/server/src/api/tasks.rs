//! `POST` and `GET /v1/tasks`: one task to create, and lists.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use tourbillon_store::{Task, Time};
use tourbillon_wire as wire;
use tourbillon_wire::{NamespaceQuery, NewTask, Problem, TaskListQuery, code};

use super::list::{self, Wanted};
use super::reply;
use crate::body::{Doc, Params};
use crate::doors::Caller;
use crate::failure::{Failure, Result};
use crate::show;
use crate::state::App;

/// Create a task.
///
/// Answers 200 instead of 201 when the same task exists already: the same id and body again, or
/// the key is held and `on_conflict` is `keep`. The payload is not repeated in the reply.
#[utoipa::path(
    post, path = "/v1/tasks", tag = "tasks",
    params(NamespaceQuery),
    request_body = NewTask,
    responses(
        (status = 201, description = "It was created.", body = wire::Task),
        (status = 200, description = "It existed.", body = wire::Task),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn create(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(query): Params<NamespaceQuery>,
    Doc(new): Doc<NewTask>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let draft = app.judge(&namespace, &caller).task(new)?;
    let mut shown = show::task::draft(&draft);
    let mut answers = app.create(vec![draft], &caller).await.map_err(Failure::alone)?;
    let created = answers.pop().ok_or_else(|| Failure::new(500, code::INTERNAL))?;
    if created.existing {
        let task = super::task::read(&app, &shown.namespace, created.id).await?;
        return Ok(reply::ok(&task));
    }
    show::task::created(&mut shown, &created);
    Ok(reply::json(StatusCode::CREATED, &shown))
}

/// List tasks.
///
/// Newest first; with `due_after` or `due_before`, and for the state `ready`, by due time instead.
/// Payloads and attempts are left out. The state `scheduled` includes the ready ones.
#[utoipa::path(
    get, path = "/v1/tasks", tag = "tasks",
    params(TaskListQuery),
    responses(
        (status = 200, description = "A page.", body = wire::Page<wire::Task>),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(
    State(app): State<App>,
    Params(query): Params<TaskListQuery>,
) -> Result<Response> {
    page(&app, query).await.map(|page| reply::ok(&page))
}

/// A page of tasks as shown.
pub(crate) async fn page(app: &App, query: TaskListQuery) -> Result<wire::Page<wire::Task>> {
    let namespace = app.namespace(query.namespace)?;
    let limit = list::limit(query.limit, app.limits())?;
    let wanted = Wanted {
        queue: query.queue,
        state: query.state,
        kind: query.kind,
        key: query.key,
        schedule: query.schedule,
        due_after: query.due_after,
        due_before: query.due_before,
    };
    let cursor = query.cursor.as_deref().map(|c| list::cursor(c, wanted.by_due())).transpose()?;
    let Some(filter) = list::filter(app, &namespace, wanted, None).await? else {
        return Ok(wire::Page::whole(Vec::new()));
    };
    let page = app.node.query(move |q| q.list(&filter, cursor, limit)).await?;
    Ok(wire::Page {
        items: tasks(app, &page.tasks, app.node.now()).await?,
        scanned_to: list::scanned_to(&page),
        next_cursor: page.next.map(list::cursor_text),
    })
}

async fn tasks(app: &App, tasks: &[Task], now: Time) -> Result<Vec<wire::Task>> {
    let mut shown = Vec::with_capacity(tasks.len());
    for task in tasks {
        let queue = app.queue_name(task.queue());
        shown.push(show::task::task(task, &queue, now, false));
    }
    Ok(shown)
}
