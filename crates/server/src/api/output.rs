//! `GET /v1/tasks/{id}/attempts/{n}/output`: what an attempt printed or answered.
//!
//! Positions count all bytes that were printed, kept or not. Where the middle was dropped, one
//! line stands for it. What a live attempt prints is sent as it comes, at most a few times a second.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tourbillon_node::api::LiveOutput;
use tourbillon_store::{Output, Seq, TaskId};
use tourbillon_wire::{NamespaceQuery, OutputQuery, Problem};

use crate::body::{Params, PathAttempt};
use crate::failure::{Failure, Result};
use crate::state::App;

/// The shortest time between two pieces of a followed output.
const PIECE_PAUSE: Duration = Duration::from_millis(100);
/// How long the record of an attempt that ended is waited for, and how often it is looked for.
const RECORD_WAIT: Duration = Duration::from_secs(5);
const RECORD_POLL: Duration = Duration::from_millis(20);

/// Show what an attempt printed or answered.
///
/// Plain bytes. With `follow` the reply goes on until the attempt ends.
#[utoipa::path(
    get, path = "/v1/tasks/{id}/attempts/{n}/output", tag = "tasks",
    params(
        ("id" = Uuid, Path, description = "The task."),
        ("n" = u32, Path, description = "The attempt's number, from 1."),
        OutputQuery,
    ),
    responses(
        (status = 200, description = "The output.", body = String, content_type = "text/plain"),
        (status = "default", description = "It was refused.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn show(
    State(app): State<App>,
    PathAttempt(id, n): PathAttempt,
    Params(query): Params<OutputQuery>,
) -> Result<Response> {
    let NamespaceQuery { namespace } = NamespaceQuery { namespace: query.namespace };
    let namespace = app.namespace(namespace)?;
    let task = super::task::record(&app, &namespace, id).await?;
    let known =
        task.attempts.iter().any(|a| a.n == n) || task.open.as_ref().is_some_and(|o| o.n == n);
    if !known {
        return Err(Failure::not_found("attempt").field("n"));
    }
    let from = query.from.unwrap_or(0);
    if let Some(live) = app.node.live_output(task.seq, n) {
        let first = piece(&live, from);
        let headers = headers(first.from, live.total);
        if !query.follow.unwrap_or(false) {
            return Ok((headers, first.bytes).into_response());
        }
        let permit = app.stream_permit()?;
        let follow = Follow {
            namespace,
            id,
            seq: task.seq,
            n,
            first: Some(first),
            seen: live.total,
            finished: live.finished,
            app,
            _permit: permit,
        };
        return Ok((headers, Body::from_stream(stream::unfold(follow, next))).into_response());
    }
    let all = kept(&app, &namespace, id, n).await?;
    let first = piece(&all, from);
    Ok((headers(first.from, all.total), first.bytes).into_response())
}

/// What is kept of an attempt that has ended. Its record may be on its way still: it is waited
/// for a little.
async fn kept(app: &App, namespace: &str, id: TaskId, n: u32) -> Result<LiveOutput> {
    let end = Instant::now() + RECORD_WAIT;
    loop {
        let task = super::task::record(app, namespace, id).await?;
        let written = task.attempts.iter().any(|a| a.n == n);
        if written || Instant::now() >= end {
            let output = app.node.query(move |q| q.output(task.seq, n)).await?;
            let Output { head, tail, total } = output.unwrap_or_default();
            return Ok(LiveOutput { head, tail, total, finished: true });
        }
        tokio::time::sleep(RECORD_POLL).await;
    }
}

fn headers(from: u64, total: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, plain);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static(OutputQuery::FROM_HEADER), from.into());
    headers.insert(HeaderName::from_static(OutputQuery::BYTES_HEADER), total.into());
    headers
}

/// A followed output.
struct Follow {
    app: App,
    namespace: String,
    id: TaskId,
    seq: Seq,
    n: u32,
    first: Option<Piece>,
    seen: u64,
    finished: bool,
    _permit: OwnedSemaphorePermit,
}

/// The next piece of a followed output; waits for it.
async fn next(mut f: Follow) -> Option<(Result<Bytes, Infallible>, Follow)> {
    if let Some(first) = f.first.take()
        && !first.bytes.is_empty()
    {
        return Some((Ok(first.bytes.into()), f));
    }
    let mut closing = f.app.closing.subscribe();
    while !f.finished {
        let asked = Instant::now();
        tokio::select! {
            () = f.app.node.output_changed(f.seq, f.n, f.seen) => {}
            _ = closing.wait_for(|closing| *closing) => return None,
        }
        // An attempt that ended is forgotten some time later; what it printed last is then kept.
        let Some(live) = f.app.node.live_output(f.seq, f.n) else {
            f.finished = true;
            let all = kept(&f.app, &f.namespace, f.id, f.n).await.ok()?;
            let rest = piece(&all, f.seen);
            return (!rest.bytes.is_empty()).then(|| (Ok(rest.bytes.into()), f));
        };
        f.finished = live.finished;
        if live.total > f.seen {
            let new = piece(&live, f.seen);
            f.seen = live.total;
            if !f.finished {
                tokio::time::sleep_until(asked + PIECE_PAUSE).await;
            }
            return Some((Ok(new.bytes.into()), f));
        }
    }
    None
}

/// A part of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    /// The position of its first byte.
    from: u64,
    bytes: Vec<u8>,
}

/// What is kept of the bytes from `from` on; a line stands for what was dropped.
fn piece(o: &LiveOutput, from: u64) -> Piece {
    let head = o.head.len() as u64;
    let tail_at = o.total.saturating_sub(o.tail.len() as u64).max(head);
    let dropped = tail_at - head;
    let mut bytes = Vec::new();
    if from < head {
        bytes.extend_from_slice(&o.head[from as usize..]);
    }
    let mut first = from.min(o.total);
    if dropped > 0 && from < tail_at {
        let missing = tail_at - from.max(head);
        if from < head {
            bytes.extend_from_slice(format!("\n… {missing} bytes left out …\n").as_bytes());
        } else {
            first = tail_at;
        }
    }
    let skip = from.saturating_sub(tail_at).min(o.tail.len() as u64);
    bytes.extend_from_slice(&o.tail[skip as usize..]);
    Piece { from: first, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn output(head: &str, tail: &str, total: u64) -> LiveOutput {
        LiveOutput { head: head.into(), tail: tail.into(), total, finished: true }
    }

    #[test]
    fn pieces() {
        let whole = output("abc", "", 3);
        let joined = output("abc", "def", 6);
        let cut = output("abc", "xyz", 100);
        for (given, from, expected_from, expected) in [
            (&whole, 0, 0, "abc"),
            (&whole, 2, 2, "c"),
            (&whole, 3, 3, ""),
            (&whole, 9, 3, ""),
            (&joined, 0, 0, "abcdef"),
            (&joined, 4, 4, "ef"),
            (&cut, 0, 0, "abc\n… 94 bytes left out …\nxyz"),
            (&cut, 3, 97, "xyz"),
            (&cut, 50, 97, "xyz"),
            (&cut, 99, 99, "z"),
        ] {
            let piece = piece(given, from);
            assert_eq!(piece.from, expected_from, "{given:?} {from}");
            assert_eq!(String::from_utf8(piece.bytes).unwrap(), expected);
        }
    }

    proptest! {
        /// Read in pieces, an output that was kept whole comes out as it is.
        #[test]
        fn pieces_join(text in "[a-z]{0,40}", cut in 0usize..40, from in 0usize..40) {
            let cut = cut.min(text.len());
            let from = from.min(text.len());
            let given = output(&text[..cut], &text[cut..], text.len() as u64);
            prop_assert_eq!(piece(&given, from as u64).bytes, &text.as_bytes()[from..]);
        }
    }
}
