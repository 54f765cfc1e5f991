//! The first page: how things stand, and the last hour.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use tourbillon_node::api::Status;
use tourbillon_wire::{SeriesPoint, SeriesQuery, StateCounts, Stats, TaskListQuery, TaskState};

use super::chart;
use super::context::Context;
use super::page::{Live, badge, exact, millis, number, page, table};
use super::tasks::rows;
use crate::api;
use crate::failure::Result;
use crate::show::at;
use crate::state::App;

const HOUR: i64 = 3_600_000_000;
/// Failures shown.
const FAILURES: u32 = 8;

pub(crate) async fn show(State(app): State<App>, cx: Context) -> Result<Response> {
    let t = cx.t;
    let stats = api::stats::stats(&app, &cx.namespace, HOUR).await?;
    let query = SeriesQuery { namespace: Some(cx.namespace.clone()), ..SeriesQuery::default() };
    let series = api::stats::series(&app, query).await?;
    let failures = TaskListQuery {
        namespace: Some(cx.namespace.clone()),
        state: Some(TaskState::Failed),
        limit: Some(FAILURES),
        ..TaskListQuery::default()
    };
    let failures = api::tasks::page(&app, failures).await?.items;
    let status = app.node.status();
    let empty = stats.counts == StateCounts::default();
    let main = html! {
        h1 { (t.overview) }
        (cards(&cx, &stats.counts))
        @if empty { (first_steps(&cx, &app)) }
        h2 { (t.last_hour) }
        (hour(&cx, &stats, &series.points))
        @if !stats.queues.is_empty() {
            h2 { (t.queues) }
            (queues(&cx, &stats))
        }
        h2 { (t.latest_failures) }
        @if failures.is_empty() { p.muted { (t.nothing_failed) } }
        @else { (rows(&cx, &failures, stats.now)) }
        h2 { (t.this_node) }
        (node(&cx, &status))
    };
    Ok(page(&cx, t.overview, Live::Yes, main))
}

fn cards(cx: &Context, counts: &StateCounts) -> Markup {
    let states = [
        ("scheduled", counts.scheduled),
        ("ready", counts.ready),
        ("running", counts.running),
        ("succeeded", counts.succeeded),
        ("failed", counts.failed),
        ("cancelled", counts.cancelled),
        ("expired", counts.expired),
        ("skipped", counts.skipped),
    ];
    html! {
        div.cards {
            @for (state, n) in states {
                a class=(if n > 0 { format!("card {state}") } else { "card".to_owned() })
                    href=(cx.link("/tasks", &[("state", state)])) {
                    b { (number(n)) }
                    span { (cx.t.word(state)) }
                }
            }
        }
    }
}

fn first_steps(cx: &Context, app: &App) -> Markup {
    let address = app.options.advertise.clone().unwrap_or_else(|| app.options.listen.to_string());
    let call = format!(
        "curl http://{address}/v1/tasks -H 'content-type: application/json' \\\n  -d '{{\"kind\":\"hello\",\"delay\":\"30s\",\"target\":{{\"worker\":{{}}}}}}'"
    );
    html! {
        p.muted { (cx.t.no_tasks_yet) }
        pre { (call) }
    }
}

fn hour(cx: &Context, stats: &Stats, points: &[SeriesPoint]) -> Markup {
    let t = cx.t;
    let peak = points.iter().map(|p| p.succeeded + p.failed).max().unwrap_or(0);
    let late = |p: &SeriesPoint| (p.lateness_ms.count > 0).then_some(p.lateness_ms.p99);
    let worst = points.iter().filter_map(late).fold(0.0, f64::max);
    html! {
        div.pair {
            section.panel {
                h2 { (t.throughput) }
                (chart::bars(points, t.throughput))
                p.figures {
                    span { (t.started) " " (number(stats.started)) }
                    span { (t.peak) " " (number(peak)) }
                }
            }
            section.panel {
                h2 { (t.lateness_p99) }
                (chart::curve(points, late, t.lateness_p99))
                p.figures {
                    span { "p50 " (millis(stats.lateness_ms.p50)) " · p99 " (millis(stats.lateness_ms.p99)) }
                    span { (t.peak) " " (millis(worst)) }
                }
            }
        }
    }
}

fn queues(cx: &Context, stats: &Stats) -> Markup {
    let t = cx.t;
    let head =
        [t.queue, t.scheduled, t.ready, t.running, t.failed, t.started, t.lateness, t.duration];
    table(
        &head,
        html! {
            @for q in &stats.queues {
                tr {
                    td {
                        a href=(cx.link("/tasks", &[("queue", &q.queue)])) { (q.queue) }
                        @if q.paused { " " (badge_paused(cx)) }
                    }
                    td { (number(q.counts.scheduled)) }
                    td { (number(q.counts.ready)) }
                    td { (number(q.counts.running)) " / " (q.concurrency) }
                    td { (number(q.counts.failed)) }
                    td { (number(q.started)) }
                    td { "p50 " (millis(q.lateness_ms.p50)) " · p99 " (millis(q.lateness_ms.p99)) }
                    td { "p50 " (millis(q.duration_ms.p50)) " · p99 " (millis(q.duration_ms.p99)) }
                }
            }
        },
    )
}

fn badge_paused(cx: &Context) -> Markup {
    html! { span.badge.paused { (cx.t.paused) } }
}

fn node(cx: &Context, status: &Status) -> Markup {
    let t = cx.t;
    html! {
        div.panel {
            dl.facts {
                dt { (t.node) }
                dd {
                    (status.node) " "
                    @match &status.ready {
                        Ok(()) => span.badge.active { (t.takes_work) },
                        Err(why) => { (badge(t, "failed")) " " (t.takes_no_work) ": " (why) },
                    }
                }
                dt { (t.up_since) } dd { (exact(at(status.started_at))) }
                dt { (t.resident) } dd { (number(status.resident as u64)) }
                dt { (t.attempts_running) } dd { (number(status.running as u64)) }
                dt { (t.backlog) } dd { (number(status.backlog as u64)) }
                dt { (t.store) } dd { (status.store.name) " · " (status.store.detail) }
            }
        }
    }
}
