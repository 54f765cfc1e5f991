//! `/healthz` and `/readyz`: for load balancers and supervisors; open to everyone.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use tourbillon_wire::{Problem, code};

use crate::failure::Failure;
use crate::state::App;

/// Whether the process answers.
#[utoipa::path(
    get, path = "/healthz", tag = "health",
    responses((status = 200, description = "It does.", body = String, content_type = "text/plain")),
)]
pub(crate) async fn healthz() -> Response {
    (StatusCode::OK, "ok\n").into_response()
}

/// Whether the node takes work.
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    responses(
        (status = 200, description = "It does.", body = String, content_type = "text/plain"),
        (status = 503, description = "It does not, and why.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn readyz(State(app): State<App>) -> Response {
    if *app.closing.borrow() {
        return Failure::busy(code::SHUTTING_DOWN, "the server is shutting down", 5)
            .into_response();
    }
    match app.node.status().ready {
        Ok(()) => (StatusCode::OK, "ready\n").into_response(),
        Err(why) => Failure::busy(code::BUSY, why, 1).into_response(),
    }
}
