//! Queues: counts, limits, pause and resume.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use tourbillon_node::api::{QueueDraft, QueueView};
use tourbillon_wire::{Duration, NewQueue, Queue, Rate};

use super::context::{Context, segment};
use super::form::Form;
use super::page::{Live, button, number, page, table};
use crate::failure::{Failure, Result};
use crate::show;
use crate::state::App;

/// The list.
pub(crate) async fn list(State(app): State<App>, cx: Context) -> Result<Response> {
    let t = cx.t;
    let mut views = app.node.queues(&cx.namespace).await?;
    views.sort_by(|a, b| a.record.name.cmp(&b.record.name));
    let queues: Vec<Queue> = views.iter().map(show::queue::queue).collect();
    let head = [
        t.queue,
        t.state,
        t.scheduled,
        t.ready,
        t.running,
        t.failed,
        t.concurrency,
        t.rate,
        t.per_key,
        t.partitions,
        "",
    ];
    let main = html! {
        h1 { (t.queues) }
        @if queues.is_empty() { p.muted { (t.no_queues) } }
        @else {
            (table(&head, html! {
                @for q in &queues {
                    tr {
                        td.wide { a href=(cx.link(&path(&q.name), &[])) { (q.name) } }
                        td { (state(&cx, q)) }
                        @for (word, n) in [("scheduled", q.counts.scheduled), ("ready", q.counts.ready), ("running", q.counts.running), ("failed", q.counts.failed)] {
                            td { a href=(cx.link("/tasks", &[("queue", &q.name), ("state", word)])) { (number(n)) } }
                        }
                        td { (q.concurrency) }
                        td { (rate(&cx, q)) }
                        td { (q.per_key_concurrency.map_or_else(|| t.no_limit.to_owned(), |n| n.to_string())) }
                        td { (q.partitions) }
                        td { (pause_button(&cx, q, "small")) }
                    }
                }
            }))
        }
    };
    Ok(page(&cx, t.queues, Live::Yes, main))
}

/// One queue with its limits to change.
pub(crate) async fn show(
    State(app): State<App>,
    cx: Context,
    Path(name): Path<String>,
) -> Result<Response> {
    let t = cx.t;
    let view = view(&app, &cx, &name).await?;
    let q = show::queue::queue(&view);
    let text = |n: Option<u32>| n.map(|n| n.to_string()).unwrap_or_default();
    let main = html! {
        div.head {
            h1 { (q.name) }
            (state(&cx, &q))
            div.actions { (pause_button(&cx, &q, "")) }
        }
        div.cards {
            @for (word, n) in [("scheduled", q.counts.scheduled), ("ready", q.counts.ready), ("running", q.counts.running), ("succeeded", q.counts.succeeded), ("failed", q.counts.failed), ("cancelled", q.counts.cancelled)] {
                a.card href=(cx.link("/tasks", &[("queue", &q.name), ("state", word)])) {
                    b { (number(n)) } span { (t.word(word)) }
                }
            }
        }
        h2 { (t.concurrency) " · " (t.rate) }
        form.panel method="post" action=(cx.link(&format!("{}/limits", path(&q.name)), &[])) {
            label.field { (t.concurrency) " " input.short name="concurrency" inputmode="numeric" value=(q.concurrency); }
            label.field { (t.per_key) " " input.short name="per_key" inputmode="numeric" placeholder=(t.no_limit) value=(text(q.per_key_concurrency)); }
            label.field {
                (t.rate) " "
                input.short name="count" inputmode="numeric" placeholder=(t.no_limit) value=(text(q.rate.map(|r| r.count)));
                " " (t.starts) " " (t.per) " "
                input.short name="per" aria-label=(t.per) value=(q.rate.map_or_else(|| "1s".to_owned(), |r| r.per.to_string()));
            }
            button.primary { (t.save) }
        }
    };
    Ok(page(&cx, &q.name, Live::Yes, main))
}

fn path(name: &str) -> String {
    format!("/queues/{}", segment(name))
}

fn state(cx: &Context, q: &Queue) -> Markup {
    html! {
        @if q.paused { span.badge.paused { (cx.t.paused) } }
        @else { span.badge.active { (cx.t.active) } }
    }
}

fn rate(cx: &Context, q: &Queue) -> String {
    match &q.rate {
        None => cx.t.no_limit.to_owned(),
        Some(r) => format!("{} {} {}", r.count, cx.t.per, r.per),
    }
}

fn pause_button(cx: &Context, q: &Queue, class: &str) -> Markup {
    let action = |name: &str| cx.link(&format!("{}/{name}", path(&q.name)), &[]);
    html! {
        @if q.paused { (button(&action("resume"), cx.t.resume, class)) }
        @else { (button(&action("pause"), cx.t.pause, class)) }
    }
}

async fn view(app: &App, cx: &Context, name: &str) -> Result<QueueView> {
    let view = app.node.queue(&cx.namespace, name).await?;
    view.ok_or_else(|| Failure::not_found("queue"))
}

/// Pauses or resumes a queue, or changes its limits, and shows it again.
pub(crate) async fn act(
    State(app): State<App>,
    cx: Context,
    Path((name, action)): Path<(String, String)>,
    form: Form,
) -> Result<Response> {
    match action.as_str() {
        "pause" => app.pause_queue(&cx.namespace, &name, true, &cx.caller).await?,
        "resume" => app.pause_queue(&cx.namespace, &name, false, &cx.caller).await?,
        "limits" => limits(&app, &cx, &name, &form).await?,
        _ => return Err(Failure::not_found("path")),
    }
    Ok(Redirect::to(&cx.link(&path(&name), &[("done", "yes")])).into_response())
}

/// Changes the limits that the form has and leaves the others.
async fn limits(app: &App, cx: &Context, name: &str, form: &Form) -> Result<()> {
    let mut config = view(app, cx, name).await?.record.config;
    let number = |field: &str| -> Result<Option<u32>> {
        form.get(field)
            .map(|text| {
                text.parse()
                    .map_err(|_| Failure::invalid(field, format!("`{text}`"), "a whole number"))
            })
            .transpose()
    };
    let per: Duration = form.get("per").unwrap_or_else(|| "1s".to_owned()).parse().map_err(
        |e: tourbillon_wire::DurationError| {
            Failure::invalid("per", e.to_string(), Duration::EXPECTED)
        },
    )?;
    let asked = NewQueue {
        concurrency: number("concurrency")?,
        per_key_concurrency: number("per_key")?,
        rate: number("count")?.map(|count| Rate { per, count, burst: None }),
        ..NewQueue::default()
    };
    let judge = app.judge(&cx.namespace, &cx.caller);
    let judged = judge.queue(name, asked, config.paused)?.config;
    config.concurrency = judged.concurrency;
    config.per_key_concurrency = judged.per_key_concurrency;
    config.rate = judged.rate;
    let draft = QueueDraft { namespace: cx.namespace.clone(), name: name.to_owned(), config };
    app.put_queue(draft, &cx.caller).await
}
