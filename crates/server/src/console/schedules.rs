//! Schedules: the list, and one with its next and last runs.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use tourbillon_schedule::Timing;
use tourbillon_store::time::{DAY, HOUR};
use tourbillon_wire::{LeftOut, NewSchedule, Occurrence, Schedule, ScheduleListQuery, Timestamp};

use super::calendars;
use super::chart;
use super::context::{Context, segment};
use super::form::Form;
use super::page::{Live, badge, button, exact, number, page, table, when};
use super::rule::rule;
use super::task::target;
use super::tasks::rows;
use crate::api::schedules as api;
use crate::failure::{Failure, Result};
use crate::show::at;
use crate::state::App;
use crate::{plan, show};

/// Next and last runs shown.
const RUNS: usize = 15;
/// Occurrences of one hour that are told apart in the week ahead.
const HOUR_MAX: u64 = 60;

/// The list.
pub(crate) async fn list(State(app): State<App>, cx: Context) -> Result<Response> {
    let t = cx.t;
    let query = ScheduleListQuery {
        namespace: Some(cx.namespace.clone()),
        cursor: cx.param("cursor"),
        limit: None,
    };
    let found = api::page(&app, query).await?;
    let now = at(app.node.now());
    let head = [t.schedule, t.state, t.rule, t.next, t.last, t.target, ""];
    let main = html! {
        h1 { (t.schedules) }
        @if found.items.is_empty() { p.muted { (t.no_schedules) } }
        @else {
            (table(&head, html! {
                @for s in &found.items {
                    tr {
                        td.wide { a href=(cx.link(&path(&s.name), &[])) { (s.name) } }
                        td { (state(&cx, s)) }
                        td.wide { (rule(t, s)) @if !s.exclude.is_empty() { br; span.muted { (t.left_out) ": " (excluded(&cx, s)) } } }
                        td { (next(&cx, s, now)) }
                        td { @if let Some(last) = &s.last { (badge(t, last.state.as_str())) } }
                        td.wide { (target(&s.task.target)) }
                        td { (buttons(&cx, s, "small")) }
                    }
                }
            }))
        }
        @if let Some(cursor) = &found.next_cursor {
            div.pages { a rel="next" href=(cx.link("/schedules", &[("cursor", cursor)])) { (t.next) " →" } }
        }
    };
    Ok(page(&cx, t.schedules, Live::Yes, main))
}

/// One schedule.
pub(crate) async fn show(
    State(app): State<App>,
    cx: Context,
    Path(name): Path<String>,
) -> Result<Response> {
    let t = cx.t;
    let (record, last) = api::find(&app, &cx.namespace, &name).await?;
    let s = api::shown(&app, &cx.namespace, &record, last.as_ref()).await?;
    let uid = record.uid;
    let last_runs = app.node.query(move |q| q.last_runs(uid, RUNS)).await?;
    let now = app.node.now();
    let mut ran = Vec::with_capacity(last_runs.len());
    for task in &last_runs {
        let queue = app.queue_name(task.queue());
        ran.push(show::task::task(task, &queue, now, false));
    }
    let days = app.days(&cx.namespace, &record.doc.exclude, &[]);
    let timing = plan::timing(&record.doc, &record.name)
        .and_then(|timing| Ok(timing.with_exclusions(days?)))
        .ok();
    let ahead =
        timing.as_ref().map(|timing| plan::preview(timing, &record.doc.exclude, now.0, RUNS));
    let (ahead, never) = ahead.map(|p| (p.items, p.left_out)).unwrap_or_default();
    let document = serde_json::to_string_pretty(&NewSchedule::from(s.clone())).unwrap_or_default();
    let head = [t.due, s.tz.as_str(), t.why];
    let main = html! {
        div.head {
            h1 { (s.name) }
            (state(&cx, &s))
            div.actions { (buttons(&cx, &s, "")) }
        }
        div.pair {
            section.panel {
                dl.facts {
                    dt { (t.rule) } dd { (rule(t, &s)) }
                    @if !s.exclude.is_empty() { dt { (t.left_out_days) } dd { (excluded(&cx, &s)) } }
                    dt { (t.zone) } dd { (s.tz) }
                    dt { (t.next) } dd { (next(&cx, &s, at(now))) }
                    @if let Some(why) = &s.why { dt { (t.why) } dd { (t.word(why)) } }
                    dt { (t.misfire) } dd { (word(&s.misfire.policy)) }
                    dt { (t.overlap) } dd { (word(&s.overlap)) }
                    dt { (t.runs) } dd { (s.runs) @if let Some(most) = s.max_runs { " / " (most) } }
                    dt { (t.queue) } dd { (s.task.queue.as_deref().unwrap_or("default")) }
                    dt { (t.target) } dd { (target(&s.task.target)) }
                }
            }
            @if let Some(timing) = &timing {
                section.panel { h2 { (t.week_ahead) } (week(timing, now.0, t.week_ahead)) }
            }
        }
        h2 { (t.next_runs) }
        @if ahead.is_empty() { p.muted { (t.never_again) } }
        @if !ahead.is_empty() || !never.is_empty() { (table(&head, next_runs(&cx, &ahead, &never))) }
        h2 { (t.last_runs) }
        @if ran.is_empty() { p.muted { (t.none_ran) } }
        @else {
            (rows(&cx, &ran, at(now)))
            p { a href=(cx.link("/tasks", &[("schedule", &s.name)])) { (t.tasks) " →" } }
        }
        h2 { (t.document) }
        pre { (document) }
    };
    Ok(page(&cx, &s.name, Live::Yes, main))
}

/// The occurrences in order, those that calendars leave out among them.
fn next_runs(cx: &Context, ahead: &[Occurrence], never: &[LeftOut]) -> Markup {
    let t = cx.t;
    let left_out = |runs: &[LeftOut]| {
        html! {
            @for run in runs {
                tr.muted {
                    td { s { (exact(run.from)) } }
                    td.mono { (run.local) @if run.count > 1 { " × " (number(run.count)) } }
                    td {
                        (t.left_out) ": "
                        a href=(cx.link(&calendars::path(&run.calendar), &[])) { (run.calendar) }
                        ", " (run.why)
                    }
                }
            }
        }
    };
    html! {
        @for o in ahead {
            (left_out(&o.left_out))
            tr { td { (exact(o.at)) } td.mono { (o.local) } td { (t.word(&o.why)) } }
        }
        (left_out(never))
    }
}

/// The calendars that a schedule names.
fn excluded(cx: &Context, s: &Schedule) -> Markup {
    html! {
        @for (index, name) in s.exclude.iter().enumerate() {
            @if index > 0 { ", " }
            a href=(cx.link(&calendars::path(name), &[])) { (name) }
        }
    }
}

/// The page of a schedule.
pub(crate) fn path(name: &str) -> String {
    format!("/schedules/{}", segment(name))
}

fn state(cx: &Context, s: &Schedule) -> Markup {
    let (class, text) = match (s.paused, s.overdue) {
        (true, _) => ("badge paused", cx.t.paused),
        (_, true) => ("badge overdue", cx.t.overdue),
        _ => ("badge active", cx.t.active),
    };
    html! { span class=(class) { (text) } }
}

fn next(cx: &Context, s: &Schedule, now: Timestamp) -> Markup {
    html! {
        @match s.next_at {
            Some(next) => { (when(cx.t, next, now)) @if let Some(local) = &s.next_local { br; span.muted.mono { (local) } } },
            None => span.muted { "–" },
        }
    }
}

/// The word that a document has for a value.
pub(crate) fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn buttons(cx: &Context, s: &Schedule, class: &str) -> Markup {
    let t = cx.t;
    let action = |name: &str| cx.link(&format!("{}/{name}", path(&s.name)), &[]);
    html! {
        (button(&action("trigger"), t.trigger, class))
        @if s.paused { (button(&action("resume"), t.resume, class)) }
        @else { (button(&action("pause"), t.pause, class)) }
        @if class.is_empty() { (button(&action("ask-delete"), t.delete, "danger")) }
    }
}

/// How many occurrences each hour of the next seven days has, in UTC.
fn week(timing: &Timing, now: i64, label: &str) -> Markup {
    let first = now.div_euclid(DAY) * DAY;
    let hours: Vec<u32> = (0..7 * 24)
        .map(|hour| {
            let from = (first + hour * HOUR).max(now);
            let to = first + (hour + 1) * HOUR - 1;
            if from > to { 0 } else { timing.tally(from, to, HOUR_MAX).count as u32 }
        })
        .collect();
    let day = |n: i64| Timestamp::from_micros(first + n * DAY).to_string()[5..10].to_owned();
    let days: Vec<String> = (0..7).map(day).collect();
    chart::week(&hours, &days, label)
}

/// Does something to a schedule and shows it again, or the list.
pub(crate) async fn act(
    State(app): State<App>,
    cx: Context,
    Path((name, action)): Path<(String, String)>,
    _form: Form,
) -> Result<Response> {
    let (namespace, t) = (cx.namespace.as_str(), cx.t);
    let back = match action.as_str() {
        "pause" => {
            app.pause_schedule(namespace, &name, true, &cx.caller).await?;
            path(&name)
        }
        "resume" => {
            app.pause_schedule(namespace, &name, false, &cx.caller).await?;
            path(&name)
        }
        "trigger" => {
            let id = app.trigger(namespace, &name, &cx.caller).await?;
            format!("/tasks/{id}")
        }
        "ask-delete" => {
            let main = html! {
                h1 { (t.delete) ": " (name) }
                div.actions {
                    (button(&cx.link(&format!("{}/delete", path(&name)), &[]), t.delete, "danger"))
                    a.button href=(cx.link(&path(&name), &[])) { (t.back) }
                }
            };
            return Ok(page(&cx, t.delete, Live::No, main));
        }
        "delete" => {
            app.delete_schedule(namespace, &name, &cx.caller).await?;
            "/schedules".to_owned()
        }
        _ => return Err(Failure::not_found("path")),
    };
    Ok(Redirect::to(&cx.link(&back, &[("done", "yes")])).into_response())
}
