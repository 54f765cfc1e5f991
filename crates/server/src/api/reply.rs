//! Replies that succeed.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use crate::failure::Failure;

/// A JSON document with status 200.
pub(crate) fn ok<T: Serialize>(document: &T) -> Response {
    json(StatusCode::OK, document)
}

/// A JSON document with a status.
pub(crate) fn json<T: Serialize>(status: StatusCode, document: &T) -> Response {
    match serde_json::to_vec(document) {
        Ok(body) => bytes(status, body),
        Err(error) => {
            tracing::error!(%error, "a reply cannot be written");
            Failure::new(500, tourbillon_wire::code::INTERNAL).into_response()
        }
    }
}

/// JSON text with a status.
pub(crate) fn bytes(status: StatusCode, body: Vec<u8>) -> Response {
    let media = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, media)], body).into_response()
}
