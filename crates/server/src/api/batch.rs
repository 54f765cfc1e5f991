//! `POST /v1/tasks/batch`: many tasks, all or none.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use tourbillon_wire as wire;
use tourbillon_wire::{BatchReply, NamespaceQuery, Problem};

use super::reply;
use crate::body::{Batch, Params};
use crate::doors::Caller;
use crate::failure::{Failure, Result};
use crate::state::App;

/// Create many tasks, all or none.
///
/// The body is an array of tasks, or one task a line as `application/x-ndjson`. A fault in one
/// refuses the whole and is told with its index. `on_conflict` may be `reject` or `keep`.
#[utoipa::path(
    post, path = "/v1/tasks/batch", tag = "tasks",
    params(NamespaceQuery),
    request_body(content(
        (Vec<wire::NewTask> = "application/json"),
        (String = "application/x-ndjson"),
    )),
    responses(
        (status = 201, description = "All were created, or existed as asked.", body = BatchReply),
        (status = "default", description = "All were refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn create(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(query): Params<NamespaceQuery>,
    Batch(tasks): Batch,
) -> Result<Response> {
    let namespace = app.namespace(query.namespace)?;
    let judge = app.judge(&namespace, &caller);
    let mut drafts = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.into_iter().enumerate() {
        drafts.push(judge.task_of_batch(index, task)?);
    }
    if drafts.is_empty() {
        return Err(Failure::invalid("", "the batch is empty", "at least one task"));
    }
    let created = app.create(drafts, &caller).await?;
    Ok(reply::bytes(StatusCode::CREATED, ids(created.iter().map(|c| c.id.0))))
}

/// `{"ids":[…]}`, as [`BatchReply`] has it, written at once.
fn ids(ids: impl ExactSizeIterator<Item = u128>) -> Vec<u8> {
    let mut body = Vec::with_capacity(10 + ids.len() * 39);
    body.extend_from_slice(b"{\"ids\":[");
    let mut buffer = uuid::Uuid::encode_buffer();
    for (index, id) in ids.enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.push(b'"');
        let text = uuid::Uuid::from_u128(id).hyphenated().encode_lower(&mut buffer);
        body.extend_from_slice(text.as_bytes());
        body.push(b'"');
    }
    body.extend_from_slice(b"]}");
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reply_is_the_document() {
        for given in [vec![], vec![1], vec![u128::MAX, 7, 0]] {
            let reply: BatchReply = serde_json::from_slice(&ids(given.iter().copied())).unwrap();
            let read: Vec<u128> = reply.ids.iter().map(|id| id.as_u128()).collect();
            assert_eq!(read, given);
        }
    }
}
