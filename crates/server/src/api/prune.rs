//! `POST /v1/prune`: delete history that was kept long enough.

use axum::extract::State;
use axum::response::Response;
use tourbillon_wire::{NamespaceQuery, Problem, PruneReply, PruneRequest};

use super::reply;
use crate::body::{DocOrDefault, Params};
use crate::failure::Result;
use crate::state::App;

/// Delete history older than it is kept, or count it.
#[utoipa::path(
    post, path = "/v1/prune", tag = "history",
    params(NamespaceQuery),
    request_body = PruneRequest,
    responses(
        (status = 200, description = "How many tasks were deleted, or would be.", body = PruneReply),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn prune(
    State(app): State<App>,
    Params(query): Params<NamespaceQuery>,
    DocOrDefault(request): DocOrDefault<PruneRequest>,
) -> Result<Response> {
    app.namespace(query.namespace)?;
    let report = app.node.prune(request.dry_run).await?;
    Ok(reply::ok(&PruneReply {
        succeeded: report.succeeded,
        other: report.others,
        more: false,
        dry_run: request.dry_run,
    }))
}
