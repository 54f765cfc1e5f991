//! `/v1/schedules/{name}/backfill`: the occurrences of a past span.

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use tourbillon_node::api::{BackfillDraft, BackfillView};
use tourbillon_wire::{BackfillReply, BackfillRequest, NamespaceQuery, Problem};
use uuid::Uuid;

use super::reply;
use crate::body::{Doc, Params, PathName, PathPair};
use crate::convert::name::name;
use crate::convert::number::within;
use crate::convert::time;
use crate::doors::Caller;
use crate::failure::{Failure, Result};
use crate::limits::Limits;
use crate::show::at;
use crate::state::App;

/// Run the occurrences of a past span, a few at a time.
#[utoipa::path(
    post, path = "/v1/schedules/{name}/backfill", tag = "schedules",
    params(("name" = String, Path, description = "The schedule."), NamespaceQuery),
    request_body = BackfillRequest,
    responses(
        (status = 202, description = "It is under way; the schedule shows how far it is.", body = BackfillReply),
        (status = 200, description = "It was only counted, or there is nothing to do.", body = BackfillReply),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn begin(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathName(schedule): PathName,
    Params(query): Params<NamespaceQuery>,
    Doc(request): Doc<BackfillRequest>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let draft = judge(request, app.limits())?;
    let (id, dry_run) = (draft.id.clone(), draft.dry_run);
    let view = app.backfill(&namespace, &schedule, draft, &caller).await?;
    let begun = !dry_run && view.occurrences > 0;
    let status = if begun { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(reply::json(status, &shown(id, &view, dry_run)))
}

/// End a backfill before it is through. What it has created runs all the same.
#[utoipa::path(
    delete, path = "/v1/schedules/{name}/backfills/{id}", tag = "schedules",
    params(
        ("name" = String, Path, description = "The schedule."),
        ("id" = String, Path, description = "The backfill."),
        NamespaceQuery,
    ),
    responses(
        (status = 204, description = "It creates no further task."),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn end(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathPair(schedule, id): PathPair,
    Params(query): Params<NamespaceQuery>,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    app.end_backfill(&namespace, &schedule, &id, &caller).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A backfill within its bounds.
pub(crate) fn judge(request: BackfillRequest, limits: &Limits) -> Result<BackfillDraft> {
    let id = request.id.unwrap_or_else(|| Uuid::now_v7().to_string());
    name(&id, "id", limits)?;
    let from = time::instant(request.from, "from")?;
    let until = time::instant(request.to, "to")?;
    if until <= from {
        let detail = format!("`to` is {}, `from` is {}", request.to, request.from);
        return Err(Failure::invalid("to", detail, "an instant after `from`"));
    }
    let in_flight =
        within(request.in_flight.unwrap_or(1), "in_flight", 1, limits.backfill_in_flight)?;
    let occurrences_max = limits.backfill;
    Ok(BackfillDraft { id, from, until, in_flight, occurrences_max, dry_run: request.dry_run })
}

fn shown(id: String, view: &BackfillView, dry_run: bool) -> BackfillReply {
    BackfillReply {
        id,
        occurrences: view.occurrences,
        first: view.first.map(at),
        last: view.last.map(at),
        created: view.created,
        in_flight: view.in_flight,
        dry_run,
    }
}
