//! Analysis: success, lateness and duration by kind, and over time.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use tourbillon_store::time::{DAY, HOUR};
use tourbillon_wire::{KindStats, SeriesPoint, SeriesQuery, Timestamp};

use super::chart;
use super::context::Context;
use super::page::{Live, millis, number, page, table};
use crate::api;
use crate::failure::Result;
use crate::state::App;

/// Kinds in each table.
const ROWS: usize = 15;

/// The page.
pub(crate) async fn show(State(app): State<App>, cx: Context) -> Result<Response> {
    let t = cx.t;
    let spans = [("1", HOUR), ("24", DAY), ("168", 7 * DAY)];
    let asked = cx.param("hours").unwrap_or_else(|| "1".to_owned());
    let (hours, span) = spans.into_iter().find(|(h, _)| *h == asked).unwrap_or(spans[0]);
    let stats = api::stats::stats(&app, &cx.namespace, span).await?;
    let now = stats.now.as_micros();
    let query = SeriesQuery {
        namespace: Some(cx.namespace.clone()),
        from: Some(Timestamp::from_micros(now - span)),
        to: Some(stats.now),
        ..SeriesQuery::default()
    };
    let points = api::stats::series(&app, query).await?.points;
    let late = |p: &SeriesPoint| (p.lateness_ms.count > 0).then_some(p.lateness_ms.p99);
    let long = |p: &SeriesPoint| (p.duration_ms.count > 0).then_some(p.duration_ms.p95);
    let mut slowest = stats.kinds.clone();
    slowest.sort_by(|a, b| b.duration_ms.p95.total_cmp(&a.duration_ms.p95));
    let mut failing: Vec<KindStats> =
        stats.kinds.iter().filter(|k| k.failed > 0).cloned().collect();
    failing.sort_by_key(|k| std::cmp::Reverse(k.failed));
    let main = html! {
        div.head {
            h1 { (t.analysis) }
            div.actions {
                @for (value, name) in [("1", "1 "), ("24", "24 "), ("168", "7 ")] {
                    a.badge href=(cx.link("/analysis", &[("hours", value)])) aria-current=[(value == hours).then_some("true")] {
                        (name) (if value == "168" { t.days } else { t.hours })
                    }
                }
            }
        }
        div.pair {
            section.panel { h2 { (t.throughput) } (chart::bars(&points, t.throughput)) p.figures { span { (t.started) " " (number(stats.started)) } } }
            section.panel { h2 { (t.lateness) " p99" } (chart::curve(&points, late, t.lateness)) p.figures { span { "p50 " (millis(stats.lateness_ms.p50)) " · p95 " (millis(stats.lateness_ms.p95)) " · p99 " (millis(stats.lateness_ms.p99)) } } }
            section.panel { h2 { (t.duration) " p95" } (chart::curve(&points, long, t.duration)) p.figures { span { "p50 " (millis(stats.duration_ms.p50)) " · p95 " (millis(stats.duration_ms.p95)) " · p99 " (millis(stats.duration_ms.p99)) } } }
        }
        @if stats.kinds.is_empty() { p.muted { (t.nothing_ran) } }
        @for (title, kinds) in [(t.busiest, &stats.kinds), (t.slowest, &slowest), (t.most_failing, &failing)] {
            @if !kinds.is_empty() { h2 { (title) } (kind_table(&cx, kinds)) }
        }
    };
    Ok(page(&cx, t.analysis, Live::No, main))
}

fn kind_table(cx: &Context, kinds: &[KindStats]) -> Markup {
    let t = cx.t;
    let head = [t.kind, t.queue, t.started, t.success_rate, t.failed, t.lateness, t.duration];
    table(
        &head,
        html! {
            @for k in kinds.iter().take(ROWS) {
                tr {
                    td.wide { a href=(cx.link("/tasks", &[("kind", &k.kind), ("queue", &k.queue)])) { (k.kind) } }
                    td { (k.queue) }
                    td { (number(k.started)) }
                    td { (rate(k)) }
                    td { (number(k.failed)) }
                    td { "p50 " (millis(k.lateness_ms.p50)) " · p99 " (millis(k.lateness_ms.p99)) }
                    td { "p50 " (millis(k.duration_ms.p50)) " · p99 " (millis(k.duration_ms.p99)) }
                }
            }
        },
    )
}

fn rate(k: &KindStats) -> String {
    match k.succeeded + k.failed {
        0 => "–".to_owned(),
        n => format!("{:.1} %", k.succeeded as f64 * 100.0 / n as f64),
    }
}
