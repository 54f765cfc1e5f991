//! How the parts of a record that have no columns of their own are written, in every SQL store.
//!
//! JSON text: fields may be added with a default and never change their meaning. Ended attempts are
//! JSON objects with commas between, so that one more is appended without reading the others.
//!
//! Absent: columns, which are each store's own.

use serde::{Deserialize, Serialize};

use crate::error::{StoreError, StoreErrorKind};
use crate::task::{Retry, Target, TaskSpec};

/// Payloads longer than this have a table of their own.
pub(crate) const LARGE: usize = 1024;

/// The part of a definition without columns of its own.
#[derive(Serialize)]
struct RestRef<'a> {
    target: &'a Target,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<i64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    at_most_once: bool,
    #[serde(skip_serializing_if = "is_default")]
    retry: &'a Retry,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [(String, String)],
}

fn is_default(retry: &&Retry) -> bool {
    **retry == Retry::default()
}

/// The same, read.
#[derive(Deserialize)]
pub(crate) struct Rest {
    pub(crate) target: Target,
    #[serde(default)]
    pub(crate) timeout: Option<i64>,
    #[serde(default)]
    pub(crate) at_most_once: bool,
    #[serde(default)]
    pub(crate) retry: Retry,
    #[serde(default)]
    pub(crate) tags: Vec<(String, String)>,
}

/// The `spec` column of a definition.
pub(crate) fn rest_json(spec: &TaskSpec) -> Result<String, StoreError> {
    json(&RestRef {
        target: &spec.target,
        timeout: spec.timeout,
        at_most_once: spec.at_most_once,
        retry: &spec.retry,
        tags: &spec.tags,
    })
}

/// A value as JSON text.
pub(crate) fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| corrupt("no JSON", &error))
}

/// A value from JSON text.
pub(crate) fn parse<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| corrupt("bad JSON", &error))
}

/// Values from JSON objects with commas between.
pub(crate) fn parse_joined<T: for<'de> Deserialize<'de>>(text: &str) -> Result<Vec<T>, StoreError> {
    if text.is_empty() { Ok(Vec::new()) } else { parse(&format!("[{text}]")) }
}

fn corrupt(what: &str, error: &serde_json::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, format!("the database holds {what}: {error}"))
}
