//! `GET /v1/events`: what happens, as it happens.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event as Sse, KeepAlive};
use axum::response::{IntoResponse, Response, Sse as SseResponse};
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tourbillon_engine::api::Notice;
use tourbillon_store::TaskId;
use tourbillon_wire::{Event, EventsQuery, Problem};

use crate::body::Params;
use crate::events::{Happening, Numbered};
use crate::failure::Result;
use crate::show;
use crate::state::App;

/// How often a line is sent when nothing happens, so that a broken connection is noticed.
const QUIET: Duration = Duration::from_secs(15);

/// Watch what happens on this node, as server-sent events.
///
/// An event's number is its `id`; a jump means that events were missed. There is no replay.
#[utoipa::path(
    get, path = "/v1/events", tag = "events",
    params(EventsQuery),
    responses(
        (status = 200, description = "Events until the client leaves.", body = Event, content_type = "text/event-stream"),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn watch(
    State(app): State<App>,
    Params(query): Params<EventsQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace.clone())?;
    let permit = app.stream_permit()?;
    let from = app.events.watch(&app.node);
    let node = app.node.status().node;
    let watch = Watch { app, namespace, query, node, from, _permit: permit };
    let events = stream::unfold(watch, next);
    let keep = KeepAlive::new().interval(QUIET).text("quiet");
    let mut response = SseResponse::new(events).keep_alive(keep).into_response();
    // Proxies that gather replies before passing them on would hold events back.
    let no = http::HeaderValue::from_static("no");
    response.headers_mut().insert("x-accel-buffering", no);
    Ok(response)
}

struct Watch {
    app: App,
    namespace: String,
    query: EventsQuery,
    node: String,
    from: Receiver<Numbered>,
    _permit: OwnedSemaphorePermit,
}

async fn next(mut watch: Watch) -> Option<(Result<Sse, Infallible>, Watch)> {
    let mut closing = watch.app.closing.subscribe();
    loop {
        let received = tokio::select! {
            received = watch.from.recv() => received,
            _ = closing.wait_for(|closing| *closing) => return None,
        };
        match received {
            Ok((seq, happening)) => {
                let event = match happening {
                    Happening::Notice(notice) => noticed(&watch, seq, &notice).await,
                    Happening::Asked(event) => asked(&watch, seq, &event).await,
                };
                if let Some(event) = event.as_ref().and_then(sse) {
                    return Some((Ok(event), watch));
                }
            }
            // The next number shows the gap.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

/// What the engine tells, when the watcher asked for it.
async fn noticed(watch: &Watch, seq: u64, notice: &Notice) -> Option<Event> {
    let query = &watch.query;
    if query.task.is_some_and(|task| task.as_u128() != notice.id.0) {
        return None;
    }
    let queue = watch.app.queue_name(notice.queue);
    if queue.namespace != watch.namespace || query.queue.as_ref().is_some_and(|q| *q != queue.name)
    {
        return None;
    }
    let mut event = show::event::event(notice, seq, &queue, &watch.node);
    if let Some(schedule) = &query.schedule {
        let task = super::task::record(&watch.app, &watch.namespace, notice.id).await.ok()?;
        if task.schedule.is_none_or(|link| link.name != *schedule) {
            return None;
        }
        event.schedule = Some(schedule.clone());
    }
    Some(event)
}

/// What a caller asked for, when the watcher asked for it. A request about a task names the task
/// alone; its queue and schedule are looked up only for a watcher that wants to know them.
async fn asked(watch: &Watch, seq: u64, event: &Event) -> Option<Event> {
    let query = &watch.query;
    if event.namespace != watch.namespace
        || query.task.is_some_and(|task| event.task_id != Some(task))
    {
        return None;
    }
    let mut event = Event { seq, ..event.clone() };
    let unknown = (query.queue.is_some() && event.queue.is_none())
        || (query.schedule.is_some() && event.schedule.is_none());
    if let Some(id) = event.task_id.filter(|_| unknown) {
        let id = TaskId(id.as_u128());
        let task = super::task::record(&watch.app, &watch.namespace, id).await.ok()?;
        event.queue = Some(watch.app.queue_name(task.queue()).name);
        event.schedule = task.schedule.map(|link| link.name);
    }
    let fits =
        |wanted: &Option<String>, given: &Option<String>| wanted.is_none() || wanted == given;
    (fits(&query.queue, &event.queue) && fits(&query.schedule, &event.schedule)).then_some(event)
}

fn sse(event: &Event) -> Option<Sse> {
    let data = serde_json::to_string(event).ok()?;
    Some(Sse::default().id(event.seq.to_string()).event(event.kind.as_str()).data(data))
}
