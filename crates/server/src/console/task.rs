//! One task: its life as a time line, its attempts and what they printed.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use tourbillon_store::{Output, TaskId};
use tourbillon_wire::{Attempt, Target, Task, TaskState, Timestamp};

use super::context::{Context, segment};
use super::form::Form;
use super::page::{Live, badge, button, exact, page, span, table, when};
use super::text::Text;
use crate::api::task as api;
use crate::body::{PathTask, task_id};
use crate::failure::{Failure, Result};
use crate::show;
use crate::show::at;
use crate::state::App;

/// Bytes of an output shown in the page; the whole is a click away.
const SHOWN_BYTES: usize = 16 << 10;

/// The page.
pub(crate) async fn show(
    State(app): State<App>,
    cx: Context,
    PathTask(id): PathTask,
) -> Result<Response> {
    let record = api::record(&app, &cx.namespace, id).await?;
    let queue = app.queue_name(record.queue());
    let now = app.node.now();
    let task = show::task::task(&record, &queue, now, true);
    let last = task.attempts.last().map(|a| a.n);
    let n = cx.param("attempt").and_then(|n| n.parse().ok()).or(last);
    let printed = match n {
        Some(n) if app.node.live_output(record.seq, n).is_none() => {
            let seq = record.seq;
            app.node.query(move |q| q.output(seq, n)).await?
        }
        _ => None,
    };
    let now = at(now);
    let t = cx.t;
    let main = html! {
        div.head {
            h1 { (task.kind) }
            (badge(t, task.state.as_str()))
            @if task.cancelling { span.badge { (t.cancelling) } }
            div.actions { (actions(&cx, &task)) }
        }
        p.muted.mono { (task.id) }
        div.pair {
            section.panel { h2 { (t.time_line) } (time_line(t, &task, now)) }
            section.panel { (facts(&cx, &task)) }
        }
        @if let Some(payload) = &task.payload { h2 { (t.payload) } pre { (pretty(payload.get())) } }
        @if let Some(result) = &task.result { h2 { (t.result) } pre { (pretty(result.get())) } }
        @if let Some(progress) = &task.progress { h2 { (t.progress) } pre { (pretty(progress.get())) } }
        h2 { (t.attempts) }
        @if task.attempts.is_empty() { p.muted { (t.no_attempts) } }
        @else { (attempts(&cx, &task, now)) }
        @if let Some(attempt) = task.attempts.iter().find(|a| Some(a.n) == n) {
            h2 { (t.output) " · " (attempt.n) }
            (output(&cx, &task, attempt, printed.as_ref()))
        }
    };
    Ok(page(&cx, &task.kind, Live::Yes, main))
}

fn actions(cx: &Context, task: &Task) -> Markup {
    let t = cx.t;
    let action = |name: &str| cx.link(&format!("/tasks/{}/{name}", task.id), &[]);
    html! {
        @match task.state {
            TaskState::Scheduled | TaskState::Ready => {
                @if task.state == TaskState::Scheduled { (button(&action("run"), t.run_now, "")) }
                (button(&action("cancel"), t.cancel, "danger"))
            }
            TaskState::Running => {
                @if !task.cancelling { (button(&action("cancel"), t.cancel, "danger")) }
            }
            _ => (button(&action("retry"), t.retry, "")),
        }
    }
}

/// One point of a task's life.
struct Point {
    at: Timestamp,
    class: String,
    what: Markup,
}

/// From created to final, in order of time, with the time between.
fn time_line(t: &Text, task: &Task, now: Timestamp) -> Markup {
    let points = points(t, task);
    html! {
        ol.line {
            @for (index, point) in points.iter().enumerate() {
                @let before = index.checked_sub(1).and_then(|i| points.get(i));
                li class=(if point.at > now { "future" } else { &point.class }) {
                    (point.what) " " span.muted { (exact(point.at)) }
                    @if let Some(before) = before {
                        @let gap = point.at.as_micros().saturating_sub(before.at.as_micros());
                        @if gap > 0 { span.gap { "+" (span(gap.unsigned_abs())) } }
                    }
                }
            }
        }
    }
}

fn points(t: &Text, task: &Task) -> Vec<Point> {
    let point =
        |at: Timestamp, class: &str, what: Markup| Point { at, class: class.to_owned(), what };
    let mut points = vec![point(task.created_at, "", html! { (t.created) })];
    if task.attempts.is_empty() {
        points.push(point(task.due_at, "ready", html! { (t.due) }));
    }
    for a in &task.attempts {
        let due = Timestamp::from_micros(a.started_at.as_micros() - a.lateness_ms * 1_000);
        if a.n == 1 && due > task.created_at {
            points.push(point(due, "ready", html! { (t.due) }));
        }
        let started = html! { (t.started) " · " (a.n) @if a.lateness_ms > 0 { span.gap { (t.waits) " " (span(a.lateness_ms.unsigned_abs() * 1_000)) } } };
        points.push(point(a.started_at, "running", started));
        if let (Some(ended), Some(outcome)) = (a.ended_at, a.outcome) {
            points.push(point(ended, outcome.as_str(), badge(t, outcome.as_str())));
        }
    }
    let waits = matches!(task.state, TaskState::Scheduled | TaskState::Ready);
    if waits && !task.attempts.is_empty() {
        points.push(point(task.due_at, "ready", html! { (t.due) }));
    }
    // The end of the last attempt is the end of the task, most of the time.
    let told = task.attempts.last().is_some_and(|a| {
        a.ended_at == task.finished_at
            && a.outcome.is_some_and(|o| o.as_str() == task.state.as_str())
    });
    if let Some(finished) = task.finished_at.filter(|_| !told) {
        points.push(point(finished, task.state.as_str(), badge(t, task.state.as_str())));
    }
    // Stable, so that what happens in one instant stays in the order of a life.
    points.sort_by_key(|p| p.at);
    points
}

fn facts(cx: &Context, task: &Task) -> Markup {
    let t = cx.t;
    let fact = |name: &str, value: Option<Markup>| {
        html! { @if let Some(value) = value { dt { (name) } dd { (value) } } }
    };
    let text = |value: &Option<String>| value.as_ref().map(|v| html! { (v) });
    let schedule = task.schedule.as_ref().map(|name| {
        html! { a href=(cx.link(&format!("/schedules/{}", segment(name)), &[])) { (name) } }
    });
    html! {
        dl.facts {
            dt { (t.queue) } dd { a href=(cx.link("/tasks", &[("queue", &task.queue)])) { (task.queue) } }
            (fact(t.key, text(&task.key)))
            dt { (t.target) } dd { (target(&task.target)) }
            (fact(t.schedule, schedule))
            (fact(t.logical_time, task.logical_time.map(exact)))
            (fact(t.origin, text(&task.origin)))
            dt { (t.priority) } dd { (task.priority) }
            (fact(t.timeout, task.timeout.map(|d| html! { (d.to_string()) })))
            (fact(t.expires, task.expires_at.map(exact)))
            @if task.at_most_once { dt { (t.at_most_once) } dd { "✓" } }
            (fact(t.retry_policy, task.retry.as_ref().and_then(|r| serde_json::to_string(r).ok()).map(|r| html! { code { (r) } })))
            (fact(t.concurrency_key, text(&task.concurrency_key)))
            @if !task.tags.is_empty() {
                dt { (t.tags) }
                dd { @for (name, value) in task.tags.iter() { span.badge { (name) "=" (value) } " " } }
            }
            (fact(t.reason, text(&task.outcome_reason)))
            @if let Some(s) = &task.skipped {
                dt { (t.skipped) } dd { (s.count) " × " (s.reason) ": " (exact(s.from)) " … " (exact(s.to)) }
            }
            @if task.lost > 0 { dt { (t.lost) } dd { (task.lost) } }
            dt { (t.version) } dd { (task.version) }
        }
    }
}

/// A target in one line.
pub(crate) fn target(target: &Target) -> Markup {
    html! {
        @match target {
            Target::Http(http) => code { (http.method.as_deref().unwrap_or("POST")) " " (http.url) },
            Target::Command(command) => code { (command.argv.join(" ")) },
            Target::Worker(_) => { "worker" },
        }
    }
}

fn attempts(cx: &Context, task: &Task, now: Timestamp) -> Markup {
    let t = cx.t;
    let head = ["#", t.outcome, t.started, t.lateness, t.duration, t.node, t.error, t.output];
    table(
        &head,
        html! {
            @for a in &task.attempts {
                tr {
                    td { (a.n) }
                    td { (badge(t, a.outcome.map_or("running", |o| o.as_str()))) }
                    td { (when(t, a.started_at, now)) }
                    td { (span(a.lateness_ms.max(0).unsigned_abs() * 1_000)) }
                    td { @if let Some(ms) = a.duration_ms { (span(ms * 1_000)) } }
                    td { (a.node) @if let Some(worker) = &a.worker { " · " (worker) } }
                    td.wide {
                        @if let Some(status) = a.http_status { "HTTP " (status) " " }
                        @if let Some(code) = a.exit_code { "exit " (code) " " }
                        (a.error.as_deref().unwrap_or(""))
                    }
                    td {
                        @if let Some(info) = &a.output {
                            a href=(cx.link(&format!("/tasks/{}", task.id), &[("attempt", &a.n.to_string())])) {
                                @if info.bytes > 0 { (info.bytes) " B" } @else { (t.output) }
                            }
                        }
                    }
                }
            }
        },
    )
}

fn output(cx: &Context, task: &Task, attempt: &Attempt, printed: Option<&Output>) -> Markup {
    let t = cx.t;
    let Some(info) = &attempt.output else { return html! { p.muted { (t.no_output) } } };
    let url = |follow: &str| cx.link(&info.url, &[("follow", follow)]);
    let text = printed.map(|o| {
        let mut bytes = o.head.clone();
        if o.is_truncated() {
            let left_out = o.total - (o.head.len() + o.tail.len()) as u64;
            bytes.extend_from_slice(format!("\n… {left_out} B …\n").as_bytes());
        }
        bytes.extend_from_slice(&o.tail);
        let from = bytes.len().saturating_sub(SHOWN_BYTES);
        String::from_utf8_lossy(&bytes[from..]).into_owned()
    });
    html! {
        @if task.state == TaskState::Running && attempt.outcome.is_none() {
            pre data-url=(url("true")) {}
        } @else if let Some(text) = text.filter(|text| !text.is_empty()) {
            pre { (text) }
        } @else {
            p.muted { (t.no_output) }
        }
        p { a href=(url("")) { (t.whole_output) } }
    }
}

/// JSON, indented where it is not too long.
pub(crate) fn pretty(text: &str) -> String {
    if text.len() > SHOWN_BYTES {
        return text.chars().take(SHOWN_BYTES).chain(['…']).collect();
    }
    let value = serde_json::from_str::<serde_json::Value>(text);
    value
        .ok()
        .and_then(|v| serde_json::to_string_pretty(&v).ok())
        .unwrap_or_else(|| text.to_owned())
}

/// Does something to a task and shows it again.
pub(crate) async fn act(
    State(app): State<App>,
    cx: Context,
    Path((id, action)): Path<(String, String)>,
    _form: Form,
) -> Result<Response> {
    let id: TaskId = task_id(&id)?;
    match action.as_str() {
        "cancel" => app.cancel(&cx.namespace, id, &cx.caller).await.map(drop)?,
        "run" => app.run_now(&cx.namespace, id, &cx.caller).await?,
        "retry" => app.retry(&cx.namespace, id, &cx.caller).await?,
        _ => return Err(Failure::not_found("path")),
    }
    let back = cx.link(&format!("/tasks/{id}"), &[("done", "yes")]);
    Ok(Redirect::to(&back).into_response())
}
