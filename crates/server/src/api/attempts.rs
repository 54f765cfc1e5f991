//! What workers call: claim, complete, heartbeat.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use tourbillon_engine::api::TokenState;
use tourbillon_node::api::Claimed;
use tourbillon_store::AttemptToken;
use tourbillon_wire as wire;
use tourbillon_wire::{
    ClaimReply, ClaimRequest, CompleteItem, HeartbeatItem, HoldReply, HoldStatus, NamespaceQuery,
    Problem,
};
use uuid::Uuid;

use super::reply;
use crate::body::{DocOrDefault, List, Params, PathName};
use crate::convert::{target, time};
use crate::doors::Caller;
use crate::failure::Result;
use crate::show::{at, json};
use crate::state::App;

/// Claim ready tasks with a `worker` target.
///
/// Waits for the first one as long as asked. Each task comes with a token that entitles to
/// heartbeat and complete it.
#[utoipa::path(
    post, path = "/v1/queues/{name}/claim", tag = "workers",
    params(("name" = String, Path, description = "The queue."), NamespaceQuery),
    request_body = ClaimRequest,
    responses(
        (status = 200, description = "The tasks, maybe none.", body = ClaimReply),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn claim(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathName(queue): PathName,
    Params(query): Params<NamespaceQuery>,
    DocOrDefault(ask): DocOrDefault<MaybeClaim>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let from = || caller.peer.map_or_else(|| "unnamed".to_owned(), |peer| peer.ip().to_string());
    let ask = app.judge(&namespace, &caller).claim(&queue, ask.0, from)?;
    let worker = (namespace, ask.worker.clone());
    app.workers.asks(&worker, &queue, &ask.kinds, app.node.now());
    let mut closing = app.closing.subscribe();
    let claimed = tokio::select! {
        claimed = app.node.claim(ask) => claimed?,
        // Who shuts down hands nothing out; the worker asks elsewhere, or again.
        _ = closing.wait_for(|closing| *closing) => Vec::new(),
    };
    app.workers.takes(&worker, &claimed, app.node.now());
    let tasks = claimed.into_iter().map(|c| claimed_task(c, &queue)).collect();
    Ok(reply::ok(&ClaimReply { tasks }))
}

/// A claim request, or none for one task without waiting.
#[derive(serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct MaybeClaim(ClaimRequest);

impl Default for MaybeClaim {
    fn default() -> MaybeClaim {
        MaybeClaim(ClaimRequest { max: 1, ..ClaimRequest::default() })
    }
}

fn claimed_task(c: Claimed, queue: &str) -> wire::ClaimedTask {
    let spec = c.task.spec;
    wire::ClaimedTask {
        id: Uuid::from_u128(c.task.id.0),
        token: c.token.to_string(),
        attempt: c.open.n,
        fence: c.open.fence().0.to_string(),
        queue: queue.to_owned(),
        kind: spec.kind,
        key: spec.key,
        payload: spec.payload.as_deref().and_then(json),
        tags: target::pairs(&spec.tags),
        due_at: at(c.task.due),
        schedule: c.task.schedule.as_ref().map(|s| s.name.clone()),
        logical_time: c.task.schedule.as_ref().map(|s| at(s.logical)),
        claim_period: time::shown(c.period),
    }
}

/// Tell how attempts ended.
///
/// Per attempt: `yours` when it counted, `gone` when the claim had run out.
#[utoipa::path(
    post, path = "/v1/attempts/complete", tag = "workers",
    params(NamespaceQuery),
    request_body = Vec<CompleteItem>,
    responses(
        (status = 200, description = "How each stands, in the order given.", body = Vec<HoldReply>),
        (status = "default", description = "All were refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn complete(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(query): Params<NamespaceQuery>,
    List(items): List<CompleteItem>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let asks = app.judge(&namespace, &caller).completions(items)?;
    let tokens: Vec<AttemptToken> = asks.iter().map(|a| a.token).collect();
    let states = if asks.is_empty() { Vec::new() } else { app.node.complete(asks).await? };
    let now = app.node.now();
    for (token, state) in tokens.iter().zip(&states) {
        app.workers.ends(*token, *state == TokenState::Yours, now);
    }
    Ok(reply::ok(&holds(&tokens, &states)))
}

/// Tell that attempts are alive, which extends their claims.
///
/// Per attempt: `yours`, `cancelled` when it is asked to stop, `gone` when the claim had run out.
#[utoipa::path(
    post, path = "/v1/attempts/heartbeat", tag = "workers",
    params(NamespaceQuery),
    request_body = Vec<HeartbeatItem>,
    responses(
        (status = 200, description = "How each stands, in the order given.", body = Vec<HoldReply>),
        (status = "default", description = "All were refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn heartbeat(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(query): Params<NamespaceQuery>,
    List(items): List<HeartbeatItem>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let asks = app.judge(&namespace, &caller).beats(items)?;
    let tokens: Vec<AttemptToken> = asks.iter().map(|a| a.token).collect();
    let states = if asks.is_empty() { Vec::new() } else { app.node.heartbeat(asks).await? };
    let now = app.node.now();
    for (token, state) in tokens.iter().zip(&states) {
        match state {
            TokenState::Gone => app.workers.ends(*token, false, now),
            _ => app.workers.beats(*token, now),
        }
    }
    Ok(reply::ok(&holds(&tokens, &states)))
}

fn holds(tokens: &[AttemptToken], states: &[TokenState]) -> Vec<HoldReply> {
    let pairs = tokens.iter().zip(states);
    pairs
        .map(|(token, state)| HoldReply {
            token: token.to_string(),
            status: match state {
                TokenState::Yours => HoldStatus::Yours,
                TokenState::Cancelled => HoldStatus::Cancelled,
                TokenState::Gone => HoldStatus::Gone,
            },
        })
        .collect()
}
