//! Nodes, workers and shards; and the wheel.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use tourbillon_store::{LeaseRow, SHARDS};
use tourbillon_wire::{Node, Timestamp, Worker};

use super::chart;
use super::context::Context;
use super::page::{Live, exact, number, page, span, table, when};
use crate::api::cluster as api;
use crate::failure::Result;
use crate::show::at;
use crate::state::App;

/// The nodes and workers.
pub(crate) async fn nodes(State(app): State<App>, cx: Context) -> Result<Response> {
    let t = cx.t;
    let nodes = api::list(&app).await?;
    let leases = app.node.leases().await?;
    let now = app.node.now();
    let workers = app.workers.list(&cx.namespace, now);
    let held: Vec<&LeaseRow> = leases.iter().filter(|l| l.until > now).collect();
    let main = html! {
        h1 { (t.nodes) }
        (node_table(&cx, &nodes, at(now)))
        h2 { (t.workers) }
        @if workers.is_empty() { p.muted { (t.no_workers) } }
        @else { (worker_table(&cx, &workers, at(now))) }
        h2 { (t.who_holds) }
        (shard_map(&cx, &nodes, &held))
    };
    Ok(page(&cx, t.nodes, Live::Yes, main))
}

fn node_table(cx: &Context, nodes: &[Node], now: Timestamp) -> Markup {
    let t = cx.t;
    let head =
        [t.node, t.address, t.version, t.shards, t.epoch, t.running, t.up_since, t.last_seen];
    table(
        &head,
        html! {
            @for n in nodes {
                tr {
                    td.wide { (n.id) @if n.this { " " span.badge { (t.this_node) } } }
                    td { (n.address.as_deref().unwrap_or("")) }
                    td { (n.version) }
                    td { (n.shards) " / " (n.shards_total) }
                    td { (n.epoch) }
                    td { @if n.this { (number(n.running)) } }
                    td { (when(t, n.started_at, now)) }
                    td { (when(t, n.last_seen_at, now)) }
                }
            }
        },
    )
}

fn worker_table(cx: &Context, workers: &[Worker], now: Timestamp) -> Markup {
    let t = cx.t;
    let head = [t.worker, t.queues, t.kinds, t.running, t.completed, t.last_seen];
    table(
        &head,
        html! {
            @for w in workers {
                tr {
                    td.wide { (w.worker) }
                    td.wide { (w.queues.join(", ")) }
                    td.wide { (w.kinds.join(", ")) }
                    td { (number(w.running)) }
                    td { (number(w.completed)) }
                    td { (when(t, w.last_seen_at, now)) }
                }
            }
        },
    )
}

fn shard_map(cx: &Context, nodes: &[Node], held: &[&LeaseRow]) -> Markup {
    let t = cx.t;
    let names: Vec<String> = nodes.iter().map(|n| n.id.clone()).collect();
    let mut owners = vec![None; SHARDS];
    for lease in held {
        let owner = lease.owner.as_ref().and_then(|o| names.iter().position(|n| n == o));
        owners[lease.shard.index()] = owner;
    }
    html! {
        (chart::shards(&owners, &names, t.nobody, t.who_holds))
        div.key {
            @for (index, name) in names.iter().enumerate() {
                span { svg.shards viewBox="0 0 9 9" aria-hidden="true" { rect class=(chart::shard_class(Some(index))) width="9" height="9" rx="1.5" {} } (name) }
            }
        }
    }
}

/// The wheel.
pub(crate) async fn wheel(State(app): State<App>, cx: Context) -> Result<Response> {
    let t = cx.t;
    let wheels = api::wheels(&app).await?;
    let head = [t.level, t.slots, t.slot_span, t.holds];
    let main = html! {
        h1 { (t.wheel) }
        p.muted { (t.wheel_how) " " (t.in_store) }
        @for w in &wheels.wheels {
            div.pair {
                section.panel {
                    @if w.len == 0 { p.muted { (t.wheel_empty) } }
                    (chart::wheel(w, t))
                }
                section {
                    div.panel {
                        dl.facts {
                            dt { (t.holds) } dd { (number(w.len)) @if w.resident_max > 0 { " / " (number(w.resident_max)) } }
                            dt { (t.cascades) } dd { (number(w.cascades)) }
                            @if let Some(until) = w.window_until { dt { (t.window_until) } dd { (exact(until)) } }
                            dt { "tick" } dd { (span(w.tick.as_micros())) " · " (number(w.current_tick)) }
                        }
                    }
                    (table(&head, html! {
                        @for l in &w.levels {
                            tr { td { (l.level) } td { (l.occupied.len()) " / " (l.slots) } td { (span(l.slot_span.as_micros())) } td { (number(l.len)) } }
                        }
                    }))
                }
            }
        }
        @if wheels.wheels.is_empty() { p.muted { (t.wheel_empty) } }
    };
    Ok(page(&cx, t.wheel, Live::Yes, main))
}
