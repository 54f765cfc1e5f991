//! Exclusion calendars: the list, and one with the days that it leaves out next.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use tourbillon_engine::calendars::days_of;
use tourbillon_schedule::{Exclusion, Micros};
use tourbillon_wire::{Calendar, NewCalendar, ScheduleListQuery};

use super::context::{Context, segment};
use super::form::Form;
use super::page::{Live, button, number, page, table, when};
use super::schedules;
use crate::api::calendars as api;
use crate::failure::{Failure, Result};
use crate::show;
use crate::show::at;
use crate::state::App;

/// Next days shown of one calendar, and in the list.
const DAYS: usize = 30;
const DAYS_LISTED: usize = 3;

/// The list.
pub(crate) async fn list(State(app): State<App>, cx: Context) -> Result<Response> {
    let t = cx.t;
    let query = ScheduleListQuery {
        namespace: Some(cx.namespace.clone()),
        cursor: cx.param("cursor"),
        limit: None,
    };
    let found = api::page(&app, query).await?;
    let now = app.node.now();
    let known = app.node.calendars();
    let namespace = app.node.namespace_id(&cx.namespace).unwrap_or_default();
    let head = [t.calendar, t.days_given, t.next_days, t.changed_at];
    let main = html! {
        h1 { (t.calendars) }
        @if found.items.is_empty() { p.muted { (t.no_calendars) } }
        @else {
            (table(&head, html! {
                @for c in &found.items {
                    tr {
                        td.wide { a href=(cx.link(&path(&c.name), &[])) { (c.name) } }
                        td { (given(&cx, c)) }
                        td.mono {
                            @if let Some(known) = known.get(namespace, &c.name) {
                                (next_days(&known.days, now.0, DAYS_LISTED).join(", "))
                            }
                        }
                        td { (when(t, c.updated_at, at(now))) }
                    }
                }
            }))
        }
        @if let Some(cursor) = &found.next_cursor {
            div.pages { a rel="next" href=(cx.link("/calendars", &[("cursor", cursor)])) { (t.next) " →" } }
        }
    };
    Ok(page(&cx, t.calendars, Live::Yes, main))
}

/// One calendar.
pub(crate) async fn show(
    State(app): State<App>,
    cx: Context,
    Path(name): Path<String>,
) -> Result<Response> {
    let t = cx.t;
    let (record, used_by) = api::find(&app, &cx.namespace, &name).await?;
    let days = days_of(&record.doc).unwrap_or_default();
    let c = show::calendar::calendar(&record, used_by);
    let now = app.node.now();
    let document = serde_json::to_string_pretty(&NewCalendar::from(c.clone())).unwrap_or_default();
    let main = html! {
        div.head {
            h1 { (c.name) }
            div.actions { (button(&cx.link(&format!("{}/ask-delete", path(&c.name)), &[]), t.delete, "danger")) }
        }
        section.panel {
            dl.facts {
                dt { (t.days_given) } dd { (given(&cx, &c)) }
                dt { (t.used_by) } dd {
                    @if c.used_by.is_empty() { span.muted { (t.nobody) } }
                    @for (index, name) in c.used_by.iter().enumerate() {
                        @if index > 0 { ", " }
                        a href=(cx.link(&schedules::path(name), &[])) { (name) }
                    }
                }
                dt { (t.changed_at) } dd { (when(t, c.updated_at, at(now))) }
                dt { (t.version) } dd { (c.version) }
            }
        }
        h2 { (t.next_days) }
        (days_table(&cx, &days, now.0))
        h2 { (t.document) }
        pre { (document) }
    };
    Ok(page(&cx, &c.name, Live::Yes, main))
}

fn days_table(cx: &Context, days: &Exclusion, now: Micros) -> Markup {
    let rows: Vec<_> = days.days_from(now).take(DAYS).collect();
    html! {
        @if rows.is_empty() { p.muted { (cx.t.no_days) } }
        @else {
            (table(&[cx.t.day, cx.t.why], html! {
                @for (day, reason) in &rows {
                    tr { td.mono { (day) } td.mono { (reason.to_string()) } }
                }
            }))
        }
    }
}

fn next_days(days: &Exclusion, now: Micros, n: usize) -> Vec<String> {
    days.days_from(now).take(n).map(|(day, _)| day).collect()
}

/// What was given, in numbers.
fn given(cx: &Context, c: &Calendar) -> Markup {
    let t = cx.t;
    let parts = [
        (t.dates, c.dates.len()),
        (t.ranges, c.ranges.len()),
        (t.ics_events, c.ics.as_deref().map_or(0, |text| text.matches("BEGIN:VEVENT").count())),
    ];
    html! {
        @for (name, n) in parts.iter().filter(|(_, n)| *n > 0) {
            span { (name) " " (number(*n as u64)) } " "
        }
        @if !c.weekdays.is_empty() { span { (c.weekdays.join(", ")) } }
    }
}

/// The page of a calendar.
pub(crate) fn path(name: &str) -> String {
    format!("/calendars/{}", segment(name))
}

/// Removes a calendar, having asked.
pub(crate) async fn act(
    State(app): State<App>,
    cx: Context,
    Path((name, action)): Path<(String, String)>,
    _form: Form,
) -> Result<Response> {
    let t = cx.t;
    match action.as_str() {
        "ask-delete" => {
            let main = html! {
                h1 { (t.delete) ": " (name) }
                div.actions {
                    (button(&cx.link(&format!("{}/delete", path(&name)), &[]), t.delete, "danger"))
                    a.button href=(cx.link(&path(&name), &[])) { (t.back) }
                }
            };
            Ok(page(&cx, t.delete, Live::No, main))
        }
        "delete" => {
            app.delete_calendar(&cx.namespace, &name, &cx.caller).await?;
            Ok(Redirect::to(&cx.link("/calendars", &[("done", "yes")])).into_response())
        }
        _ => Err(Failure::not_found("path")),
    }
}
