//! Errors as RFC 9457 problem documents.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::code;

/// What went wrong, where, and what would be right (`application/problem+json`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Names the sort of problem: `urn:tourbillon:problem:` and the code.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The sort of problem in a few words, the same for every problem with this code.
    #[serde(default)]
    pub title: String,
    /// The HTTP status.
    #[serde(default)]
    pub status: u16,
    /// What is wrong this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Stable name for programs, such as `id_reused`.
    #[serde(default)]
    pub code: String,
    /// The field that is wrong, such as `retry.backoff.fixed.delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What would be right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Which task of a batch it is about, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// The task that is there already, when a key is held or an id was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing: Option<Uuid>,
}

impl Problem {
    /// The media type of problem documents.
    pub const MEDIA_TYPE: &'static str = "application/problem+json";

    /// A problem with that status and code, one of [`crate::code`].
    pub fn new(status: u16, code: &str) -> Problem {
        Problem {
            kind: format!("urn:tourbillon:problem:{code}"),
            title: code::title(code).to_owned(),
            status,
            detail: None,
            code: code.to_owned(),
            field: None,
            expected: None,
            index: None,
            existing: None,
        }
    }

    /// 400: a body that is not the document it should be. `field` may be empty.
    pub fn malformed(error: &serde_json::Error, field: String) -> Problem {
        let mut problem = Problem::new(400, code::MALFORMED).with_detail(error.to_string());
        problem.field = (!field.is_empty()).then_some(field);
        problem
    }

    /// 422: understood but wrong.
    pub fn invalid(
        field: impl Into<String>,
        detail: impl Into<String>,
        expected: impl Into<String>,
    ) -> Problem {
        Problem::new(422, code::INVALID)
            .with_detail(detail)
            .with_field(field)
            .with_expected(expected)
    }

    /// With what is wrong this time.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Problem {
        self.detail = Some(detail.into());
        self
    }

    /// With the field that is wrong.
    #[must_use]
    pub fn with_field(mut self, field: impl Into<String>) -> Problem {
        self.field = Some(field.into());
        self
    }

    /// With what would be right.
    #[must_use]
    pub fn with_expected(mut self, expected: impl Into<String>) -> Problem {
        self.expected = Some(expected.into());
        self
    }

    /// With the task of a batch it is about, from 0.
    #[must_use]
    pub fn with_index(mut self, index: usize) -> Problem {
        self.index = Some(index);
        self
    }
}

impl fmt::Display for Problem {
    /// One line: code, task, field, what is wrong and what would be right.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code)?;
        if let Some(index) = self.index {
            write!(f, ": task {index}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ": {field}")?;
        }
        write!(f, ": {}", self.detail.as_deref().unwrap_or(&self.title))?;
        if let Some(expected) = &self.expected {
            write!(f, "; expected {expected}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}
