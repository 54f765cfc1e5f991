//! Tasks: the list with its filter, and actions on all that match.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use tourbillon_store::TaskId;
use tourbillon_wire as wire;
use tourbillon_wire::{ManyRequest, Page, Task, TaskFilter, TaskListQuery, TaskState, Timestamp};

use super::context::Context;
use super::form::Form;
use super::page::{Live, badge, number, page, table, when};
use crate::api::many::{Action, many};
use crate::api::tasks as list;
use crate::failure::Result;
use crate::show::at;
use crate::state::App;

/// Tasks on a page.
const PAGE: u32 = 50;

/// The list.
pub(crate) async fn show(State(app): State<App>, cx: Context) -> Result<Response> {
    let state = cx.state();
    list_page(&app, &cx, cx.t.tasks, state).await
}

/// The list of what failed.
pub(crate) async fn dead_letters(State(app): State<App>, cx: Context) -> Result<Response> {
    list_page(&app, &cx, cx.t.dead_letters, Some(TaskState::Failed)).await
}

async fn list_page(
    app: &App,
    cx: &Context,
    title: &str,
    state: Option<TaskState>,
) -> Result<Response> {
    let wanted = cx.param("find");
    if let Some(id) = wanted.as_deref().and_then(|text| text.parse::<TaskId>().ok()) {
        return Ok(Redirect::to(&cx.link(&format!("/tasks/{id}"), &[])).into_response());
    }
    let filter = Filter {
        queue: cx.param("queue"),
        state,
        kind: cx.param("kind"),
        key: wanted,
        schedule: cx.param("schedule"),
    };
    let query = TaskListQuery {
        namespace: Some(cx.namespace.clone()),
        queue: filter.queue.clone(),
        state,
        kind: filter.kind.clone(),
        key: filter.key.clone(),
        schedule: filter.schedule.clone(),
        due_after: None,
        due_before: None,
        cursor: cx.param("cursor"),
        limit: Some(PAGE),
    };
    let found = list::page(app, query).await?;
    let queues = app.node.queues(&cx.namespace).await?;
    let mut names: Vec<String> = queues.into_iter().map(|v| v.record.name).collect();
    names.sort();
    let main = html! {
        div.head {
            h1 { (title) }
            div.actions { (bulk_buttons(cx, &filter)) }
        }
        (filter_form(cx, &filter, &names))
        @if found.items.is_empty() { p.muted { (cx.t.no_tasks) } }
        @else { (rows(cx, &found.items, at(app.node.now()))) }
        @if found.scanned_to.is_some() { p.muted { (cx.t.cut_short) } }
        (pages(cx, &found))
    };
    Ok(page(cx, title, Live::Yes, main))
}

/// What the list is narrowed to.
struct Filter {
    queue: Option<String>,
    state: Option<TaskState>,
    kind: Option<String>,
    key: Option<String>,
    schedule: Option<String>,
}

impl Filter {
    fn params(&self) -> [(&'static str, &str); 5] {
        [
            ("queue", self.queue.as_deref().unwrap_or("")),
            ("state", self.state.map_or("", TaskState::as_str)),
            ("kind", self.kind.as_deref().unwrap_or("")),
            ("find", self.key.as_deref().unwrap_or("")),
            ("schedule", self.schedule.as_deref().unwrap_or("")),
        ]
    }

    fn is_empty(&self) -> bool {
        self.params().iter().all(|(_, value)| value.is_empty())
    }
}

fn filter_form(cx: &Context, filter: &Filter, queues: &[String]) -> Markup {
    let t = cx.t;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    html! {
        form.filter method="get" action="/tasks" role="search" {
            (namespace_field(cx))
            input type="search" name="find" placeholder=(t.id_or_key) aria-label=(t.id_or_key) value=(text(&filter.key));
            select name="state" aria-label=(t.state) {
                option value="" { (t.any_state) }
                @for state in TaskState::ALL {
                    option value=(state.as_str()) selected[filter.state == Some(state)] { (t.word(state.as_str())) }
                }
            }
            select name="queue" aria-label=(t.queue) {
                option value="" { (t.any_queue) }
                @for queue in queues {
                    option value=(queue) selected[filter.queue.as_ref() == Some(queue)] { (queue) }
                }
            }
            input name="kind" placeholder=(t.kind) aria-label=(t.kind) value=(text(&filter.kind));
            input name="schedule" placeholder=(t.schedule) aria-label=(t.schedule) value=(text(&filter.schedule));
            button.primary { (t.search) }
        }
    }
}

fn namespace_field(cx: &Context) -> Markup {
    html! {
        @if cx.namespace != crate::convert::task::DEFAULT {
            input type="hidden" name="namespace" value=(cx.namespace);
        }
    }
}

/// The buttons that act on everything that matches; they lead to a page that asks first.
fn bulk_buttons(cx: &Context, filter: &Filter) -> Markup {
    let over = filter.state.map(TaskState::is_final);
    html! {
        @if !filter.is_empty() {
            @if over != Some(true) { (bulk_form(cx, filter, "cancel", cx.t.cancel_matching, "danger", false)) }
            @if over == Some(true) { (bulk_form(cx, filter, "retry", cx.t.retry_matching, "", false)) }
        }
    }
}

fn bulk_form(
    cx: &Context,
    filter: &Filter,
    action: &str,
    label: &str,
    class: &str,
    confirmed: bool,
) -> Markup {
    html! {
        form method="post" action=(cx.link(&format!("/bulk/{action}"), &[])) {
            @for (name, value) in filter.params().iter().filter(|(_, value)| !value.is_empty()) {
                input type="hidden" name=(name) value=(value);
            }
            @if confirmed { input type="hidden" name="confirmed" value="yes"; }
            button class=(class) { (label) }
        }
    }
}

/// Cancels what matches, after asking.
pub(crate) async fn cancel_all(
    State(app): State<App>,
    cx: Context,
    form: Form,
) -> Result<Response> {
    bulk(&app, &cx, &form, Action::Cancel).await
}

/// Tries again what matches, after asking.
pub(crate) async fn retry_all(State(app): State<App>, cx: Context, form: Form) -> Result<Response> {
    bulk(&app, &cx, &form, Action::Retry).await
}

async fn bulk(app: &App, cx: &Context, form: &Form, action: Action) -> Result<Response> {
    let t = cx.t;
    let filter = Filter {
        queue: form.get("queue"),
        state: form.get("state").and_then(|s| s.parse().ok()),
        kind: form.get("kind"),
        key: form.get("find"),
        schedule: form.get("schedule"),
    };
    let confirmed = form.get("confirmed").is_some();
    let request = ManyRequest {
        filter: TaskFilter {
            queue: filter.queue.clone(),
            state: filter.state,
            kind: filter.kind.clone(),
            key: filter.key.clone(),
            schedule: filter.schedule.clone(),
            ..TaskFilter::default()
        },
        dry_run: !confirmed,
    };
    let reply = many(app, &cx.namespace, request, action, &cx.caller).await?;
    let back = cx.link("/tasks", &filter.params());
    let (path, title, asks) = match action {
        Action::Cancel => ("cancel", t.cancel_matching, t.about_to_cancel),
        Action::Retry => ("retry", t.retry_matching, t.about_to_retry),
    };
    let main = html! {
        h1 { (title) }
        @if confirmed {
            dl.facts {
                dt { (t.changed) } dd { (number(reply.changed)) }
                dt { (t.refused) } dd { (number(reply.refused)) }
            }
            @if reply.more { p { (t.more_remain) } }
        } @else {
            p { (asks) ": " b { (number(reply.matched)) } @if reply.more { " (" (t.or_more) ")" } }
        }
        div.actions {
            @if !confirmed || reply.more { (bulk_form(cx, &filter, path, t.confirm, "primary", true)) }
            a.button href=(back) { (t.back) }
        }
    };
    Ok(page(cx, title, Live::No, main))
}

/// Tasks as a table.
pub(crate) fn rows(cx: &Context, tasks: &[Task], now: Timestamp) -> Markup {
    let t = cx.t;
    let head = [t.state, t.kind, t.key, t.queue, t.due, t.attempts, t.reason];
    table(
        &head,
        html! {
            @for task in tasks {
                tr {
                    td {
                        a href=(cx.link(&format!("/tasks/{}", task.id), &[])) { (badge(t, task.state.as_str())) }
                    }
                    td.wide { a href=(cx.link(&format!("/tasks/{}", task.id), &[])) { (task.kind) } }
                    td.wide { (task.key.as_deref().unwrap_or("")) }
                    td { (task.queue) }
                    td { (when(t, task.due_at, now)) }
                    td { (task.attempt) }
                    td.wide { (why(task)) }
                }
            }
        },
    )
}

fn why(task: &Task) -> String {
    match (&task.outcome_reason, &task.skipped) {
        (Some(reason), _) => reason.clone(),
        (None, Some(skipped)) => format!("{} × {}", skipped.count, skipped.reason),
        _ => String::new(),
    }
}

fn pages(cx: &Context, found: &Page<wire::Task>) -> Markup {
    let others: Vec<(&str, &str)> = cx
        .params
        .iter()
        .filter(|(n, _)| n != "cursor" && n != "namespace" && n != "done")
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    html! {
        div.pages {
            @if cx.param("cursor").is_some() { a href=(cx.link(&cx.path, &others)) { "← " (cx.t.newest) } }
            @if let Some(cursor) = &found.next_cursor {
                @let params: Vec<(&str, &str)> = others.iter().copied().chain([("cursor", cursor.as_str())]).collect();
                a rel="next" href=(cx.link(&cx.path, &params)) { (cx.t.older) " →" }
            }
        }
    }
}
