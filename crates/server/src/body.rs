//! Reading requests: bodies, queries and paths, each with its own kind of refusal.
//!
//! What always holds: a body is read once, within its bound of bytes and time; malformed JSON is
//! 400 with its line and column; JSON that is not the document it should be is 422 with the
//! field. Deliberately absent: judging values, which is `convert`.

use std::future::Future;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;
use tourbillon_store::TaskId;
use tourbillon_wire::{BatchError, NewTask, batch, code, path_at};

use crate::convert::name::short;
use crate::failure::{Failure, Result};
use crate::state::App;

/// A JSON document: an object.
pub(crate) struct Doc<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Doc<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Doc<T>> {
        json_type(request.headers())?;
        let body = read(request.into_body(), app).await?;
        begins(&body, b'{', "a JSON object")?;
        parse(&body).map(Doc)
    }
}

/// A JSON document: an array.
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T: DeserializeOwned> FromRequest<App> for List<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<List<T>> {
        json_type(request.headers())?;
        let body = read(request.into_body(), app).await?;
        begins(&body, b'[', "a JSON array")?;
        parse(&body).map(List)
    }
}

/// A JSON document that may be left out altogether: an empty body is the default.
pub(crate) struct DocOrDefault<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<App> for DocOrDefault<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<DocOrDefault<T>> {
        let typed = json_type(request.headers());
        let body = read(request.into_body(), app).await?;
        if body.is_empty() {
            return Ok(DocOrDefault(T::default()));
        }
        typed?;
        begins(&body, b'{', "a JSON object")?;
        parse(&body).map(DocOrDefault)
    }
}

/// A batch of tasks: an array, or one task a line.
pub(crate) struct Batch(pub(crate) Vec<NewTask>);

impl FromRequest<App> for Batch {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Batch> {
        let lines = media_type(request.headers()) == Some("application/x-ndjson");
        if !lines {
            json_type(request.headers()).map_err(|f| {
                f.expected("`Content-Type: application/json` or `application/x-ndjson`")
            })?;
        }
        let body = read(request.into_body(), app).await?;
        let most = app.options.limits.batch_tasks;
        let tasks =
            if lines { batch::from_ndjson(&body, most) } else { batch::from_array(&body, most) };
        tasks.map(Batch).map_err(|error| match error {
            BatchError::Malformed { index, field, source } => {
                let failure = unreadable(&source, field, if lines { b"" } else { &body });
                match index {
                    Some(index) => failure.at(index),
                    None => failure,
                }
            }
            other => tourbillon_wire::Problem::from(other).into(),
        })
    }
}

/// The query of a request. Unknown parameters are errors.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequestParts<App> for Params<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Params<T>> {
        if parts.uri.query().is_none_or(str::is_empty) {
            return Ok(Params(T::default()));
        }
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(query)) => Ok(Params(query)),
            Err(error) => {
                let text = std::error::Error::source(&error)
                    .map_or_else(|| error.to_string(), ToString::to_string);
                let text = text.replace("unknown field", "unknown parameter");
                let code = if text.contains("unknown parameter") {
                    code::UNKNOWN_FIELD
                } else {
                    code::INVALID
                };
                let status = if code == code::UNKNOWN_FIELD { 422 } else { 400 };
                let failure = Failure::new(status, code).detail(text.clone());
                Err(match quoted(&text) {
                    Some(name) if code == code::UNKNOWN_FIELD => failure.field(name),
                    _ => failure,
                })
            }
        }
    }
}

/// The task named in the path.
pub(crate) struct PathTask(pub(crate) TaskId);

impl FromRequestParts<App> for PathTask {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<PathTask> {
        let PathName(text) = PathName::from_request_parts(parts, app).await?;
        task_id(&text).map(PathTask)
    }
}

/// A task id in a path; what is no UUID names no task.
pub(crate) fn task_id(text: &str) -> Result<TaskId> {
    text.parse().map_err(|_| {
        Failure::not_found("task")
            .field("id")
            .detail(format!("`{}` is not a task's id", short(text)))
            .expected("a UUID such as the creation answered")
    })
}

/// The only name in the path.
pub(crate) struct PathName(pub(crate) String);

impl FromRequestParts<App> for PathName {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<PathName> {
        path(parts, app).await.map(PathName)
    }
}

/// The two names in the path.
pub(crate) struct PathPair(pub(crate) String, pub(crate) String);

impl FromRequestParts<App> for PathPair {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<PathPair> {
        path(parts, app).await.map(|(first, second)| PathPair(first, second))
    }
}

/// The task and the attempt in the path.
pub(crate) struct PathAttempt(pub(crate) TaskId, pub(crate) u32);

impl FromRequestParts<App> for PathAttempt {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<PathAttempt> {
        let (id, n): (String, String) = path(parts, app).await?;
        let n = n.parse().map_err(|_| Failure::not_found("attempt"))?;
        task_id(&id).map(|id| PathAttempt(id, n))
    }
}

async fn path<T: DeserializeOwned + Send>(parts: &mut Parts, app: &App) -> Result<T> {
    Path::<T>::from_request_parts(parts, app).await.map(|Path(value)| value).map_err(|rejection| {
        Failure::new(400, code::MALFORMED)
            .detail(rejection.body_text())
            .expected("a path of percent-encoded UTF-8")
    })
}

/// Reads a body within its bounds.
pub(crate) async fn read(body: Body, app: &App) -> Result<Bytes> {
    let most = app.options.limits.body_bytes;
    let too_large = || {
        Failure::new(413, code::TOO_LARGE)
            .detail("the body is too large")
            .expected(format!("at most {most} bytes"))
    };
    if http_body::Body::size_hint(&body).lower() > (most + DRAIN_MAX) as u64 {
        return Err(too_large());
    }
    match timed(app, collect(body, most)).await? {
        Ok(Some(body)) => Ok(body),
        Ok(None) => Err(too_large()),
        Err(_) => Err(Failure::new(400, code::MALFORMED).detail("the body broke off")),
    }
}

/// Bytes of a body beyond its bound that are read and dropped. A client that is still sending
/// when the connection closes sees it break off and never reads why.
const DRAIN_MAX: usize = 16 << 20;

/// The body, or `None` when it has more than `most` bytes.
async fn collect(mut body: Body, most: usize) -> std::result::Result<Option<Bytes>, axum::Error> {
    let hint = http_body::Body::size_hint(&body).lower().min(most as u64);
    let mut kept = BytesMut::with_capacity(hint as usize);
    let mut total = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        total += data.len();
        if total <= most {
            kept.extend_from_slice(&data);
        } else if total > most + DRAIN_MAX {
            break;
        } else {
            kept = BytesMut::new();
        }
    }
    Ok((total <= most).then(|| kept.freeze()))
}

async fn timed<F: Future>(app: &App, reading: F) -> Result<F::Output> {
    tokio::time::timeout(app.options.body_timeout, reading)
        .await
        .map_err(|_| Failure::new(408, code::MALFORMED).detail("the body took too long to come"))
}

/// Reads a document.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| unreadable(&error, path_at(body, error.line(), error.column()), body))
}

/// Whether a body begins as it should. A struct could be read from an array too, field by field,
/// and the errors would make no sense. A text that is no JSON is left for the parser to tell.
fn begins(body: &[u8], first: u8, what: &str) -> Result<()> {
    match body.iter().find(|b| !b.is_ascii_whitespace()) {
        Some(&byte) if byte != first && is_json(body) => {
            Err(Failure::invalid("", "the document is another JSON value", what))
        }
        _ => Ok(()),
    }
}

fn is_json(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// What is wrong with a text that could not be read: 400 for what is not JSON, 422 for JSON that
/// is not the document it should be. `text` is the JSON text that `error` speaks of.
fn unreadable(error: &serde_json::Error, field: String, text: &[u8]) -> Failure {
    let message = error.to_string();
    // The parser takes an unknown form of a value for broken JSON.
    if error.classify() != Category::Data && !is_json(text) {
        let failure = Failure::new(400, code::MALFORMED)
            .detail(message)
            .expected("a JSON document, complete and in UTF-8");
        return if field.is_empty() { failure } else { failure.field(field) };
    }
    let (message, place) = match message.rfind(" at line ") {
        Some(at) => message.split_at(at),
        None => (message.as_str(), ""),
    };
    if let Some(name) = message.strip_prefix("missing field").and_then(quoted) {
        let failure = Failure::invalid(name, "it is missing", "it must be given");
        return if field.is_empty() { failure } else { failure.under(&field) };
    }
    let parts = message.split_once("; expected ").or(message.split_once(", expected "));
    let (detail, expected) = parts.unwrap_or((message, "the form that /openapi.json describes"));
    let failure = Failure::invalid(field, format!("{detail}{place}"), expected);
    if message.starts_with("unknown field") { failure.code(code::UNKNOWN_FIELD) } else { failure }
}

/// The first text between backquotes.
fn quoted(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('`')?;
    rest.split_once('`').map(|(name, _)| name.to_owned())
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(text.split_once(';').map_or(text, |(media, _)| media).trim_end())
}

fn json_type(headers: &HeaderMap) -> Result<()> {
    match media_type(headers) {
        Some(media) if media.eq_ignore_ascii_case("application/json") => Ok(()),
        other => Err(Failure::new(415, code::WRONG_TYPE)
            .detail(match other {
                Some(media) => format!("the content type is `{}`", short(media)),
                None => "there is no content type".to_owned(),
            })
            .expected("`Content-Type: application/json`")),
    }
}
