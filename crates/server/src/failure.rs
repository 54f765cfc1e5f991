//! Why a request is refused: a problem document with what HTTP adds to it.
//!
//! Every refusal of the API is a [`Failure`]; nothing answers plain text. What the store or the
//! node says is turned into statuses and codes here and nowhere else.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use tourbillon_node::api::NodeError;
use tourbillon_store::StoreError;
use tourbillon_wire::{Problem, code};
use uuid::Uuid;

/// A refused request.
#[derive(Debug)]
pub(crate) struct Failure(Box<Parts>);

#[derive(Debug)]
struct Parts {
    problem: Problem,
    retry_after: Option<u64>,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A problem with that status and code.
    pub(crate) fn new(status: u16, code: &str) -> Failure {
        Problem::new(status, code).into()
    }

    /// 422: `field` is wrong; what is wrong with it, and what would be right.
    pub(crate) fn invalid(
        field: impl Into<String>,
        detail: impl Into<String>,
        expected: impl Into<String>,
    ) -> Failure {
        Problem::invalid(field, detail, expected).into()
    }

    /// 404: there is no such thing.
    pub(crate) fn not_found(what: &str) -> Failure {
        Failure::new(404, code::NOT_FOUND).detail(format!("there is no such {what}"))
    }

    /// 503: not now, but after so many seconds.
    pub(crate) fn busy(code: &str, detail: impl Into<String>, retry_after_secs: u64) -> Failure {
        let mut failure = Failure::new(503, code).detail(detail);
        failure.0.retry_after = Some(retry_after_secs);
        failure
    }

    /// The same failure under another code.
    pub(crate) fn code(mut self, code: &str) -> Failure {
        let Problem { status, detail, field, expected, index, existing, .. } = self.0.problem;
        self.0.problem =
            Problem { detail, field, expected, index, existing, ..Problem::new(status, code) };
        self
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Failure {
        self.0.problem.detail = Some(detail.into());
        self
    }

    pub(crate) fn field(mut self, field: impl Into<String>) -> Failure {
        self.0.problem.field = Some(field.into());
        self
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Failure {
        self.0.problem.expected = Some(expected.into());
        self
    }

    pub(crate) fn existing(mut self, id: Uuid) -> Failure {
        self.0.problem.existing = Some(id);
        self
    }

    /// The same failure inside of `parent`: its field becomes `parent.field`.
    pub(crate) fn under(mut self, parent: &str) -> Failure {
        let field = self.0.problem.field.take().unwrap_or_default();
        self.0.problem.field = Some(match field.as_str() {
            "" => parent.to_owned(),
            f if f.starts_with('[') => format!("{parent}{f}"),
            f => format!("{parent}.{f}"),
        });
        self
    }

    /// The same failure of one task of a batch, counted from 0.
    pub(crate) fn at(mut self, index: usize) -> Failure {
        self.0.problem.index = Some(index);
        self
    }

    pub(crate) fn problem(&self) -> &Problem {
        &self.0.problem
    }

    pub(crate) fn status(&self) -> u16 {
        self.0.problem.status
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure(Box::new(Parts { problem, retry_after: None }))
    }
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Failure {
        let text = error.to_string();
        match error {
            NodeError::NotFound(what) => Failure::not_found(what),
            NodeError::Final(_) => Failure::new(409, code::TASK_FINAL).detail(text),
            NodeError::NotFinal(_) => Failure::new(409, code::TASK_NOT_FINAL).detail(text),
            NodeError::Running => Failure::new(409, code::TASK_RUNNING).detail(text),
            NodeError::Started => Failure::new(409, code::TASK_STARTED)
                .detail(text)
                .expected("a task that has not started; cancel it and create another"),
            NodeError::IdReused { index } => Failure::new(409, code::ID_REUSED)
                .detail("a task with this id exists, and it was asked for differently")
                .field("id")
                .expected("the same body as before, or another id")
                .at(index),
            NodeError::KeyTaken { index, by } => Failure::new(409, code::KEY_TAKEN)
                .detail(format!("the key is held by the task {by}, which is not over"))
                .field("key")
                .expected("another key, or `on_conflict` as `keep` or `replace`")
                .existing(Uuid::from_u128(by.0))
                .at(index),
            NodeError::InUse { .. } => Failure::new(409, code::IN_USE)
                .detail(text)
                .expected("schedules that do not name it; change or remove them first"),
            NodeError::Changed => Failure::new(409, code::VERSION_CONFLICT).detail(text),
            NodeError::Invalid { field, message } => {
                Failure::new(422, code::INVALID).detail(message).field(field)
            }
            NodeError::Busy { retry_after_ms, why } => {
                let code =
                    if why.contains("shutting down") { code::SHUTTING_DOWN } else { code::BUSY };
                Failure::busy(code, why, retry_after_ms.div_ceil(1_000).max(1))
            }
            NodeError::Full => Failure::new(507, code::DISK_FULL).detail(text),
            NodeError::Store(why) => {
                tracing::warn!(error = %why, "the store failed");
                Failure::busy(code::BUSY, text, 1)
            }
            other => {
                tracing::error!(error = %other, "unexpected error of the node");
                Failure::new(500, code::INTERNAL)
            }
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        if error.is_full() { NodeError::Full } else { NodeError::Store(error.to_string()) }.into()
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Parts { problem, retry_after } = *self.0;
        let status =
            StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let media = HeaderValue::from_static(Problem::MEDIA_TYPE);
        let mut response = (status, [(header::CONTENT_TYPE, media)], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        }
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl Failure {
    /// The same failure of the only thing of a request: without an index.
    pub(crate) fn alone(mut self) -> Failure {
        self.0.problem.index = None;
        self
    }
}
