//! Reading many tasks from one body, as a JSON array or as NDJSON, and the reply.
//!
//! Reads into the list directly, without a tree between; stops at the first fault and says which
//! task it is in; stops reading when there are more tasks than allowed.

use std::fmt;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{NewTask, Problem, code, locate};

/// What a batch answers: the ids in the order of the tasks given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchReply {
    /// One id per task; with `on_conflict: keep`, that of the task that holds the key.
    pub ids: Vec<Uuid>,
}

/// Why a body is not a batch of tasks.
#[derive(Debug)]
#[non_exhaustive]
pub enum BatchError {
    /// A task, or the array around it, is malformed.
    Malformed {
        /// Which task, from 0; absent when the fault is outside of any.
        index: Option<usize>,
        /// Where in the task, such as `retry.backoff`; empty when the fault is the task as a whole.
        field: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// There are more tasks than allowed.
    TooMany {
        /// How many are allowed.
        max: usize,
    },
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BatchError::Malformed { index, field, source } => {
                if let Some(index) = index {
                    write!(f, "task {index}: ")?;
                }
                if !field.is_empty() {
                    write!(f, "{field}: ")?;
                }
                source.fmt(f)
            }
            BatchError::TooMany { max } => write!(f, "a batch holds at most {max} tasks"),
        }
    }
}

impl std::error::Error for BatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BatchError::Malformed { source, .. } => Some(source),
            BatchError::TooMany { .. } => None,
        }
    }
}

impl From<BatchError> for Problem {
    fn from(error: BatchError) -> Problem {
        match error {
            BatchError::Malformed { index, field, source } => {
                let mut problem = Problem::malformed(&source, field);
                problem.index = index;
                problem
            }
            BatchError::TooMany { max } => Problem::new(413, code::TOO_LARGE)
                .with_detail("the batch has more tasks than allowed")
                .with_expected(format!("at most {max} tasks")),
        }
    }
}

/// Reads a JSON array of at most `max` tasks. Linear in the length of `body`.
pub fn from_array(body: &[u8], max: usize) -> Result<Vec<NewTask>, BatchError> {
    struct Tasks {
        max: usize,
        too_many: bool,
    }

    impl<'de> Visitor<'de> for &mut Tasks {
        type Value = Vec<NewTask>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of tasks")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<NewTask>, A::Error> {
            let mut tasks = Vec::new();
            while let Some(task) = seq.next_element()? {
                if tasks.len() == self.max {
                    self.too_many = true;
                    return Err(serde::de::Error::custom("too many tasks"));
                }
                tasks.push(task);
            }
            Ok(tasks)
        }
    }

    let mut state = Tasks { max, too_many: false };
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    deserializer
        .deserialize_seq(&mut state)
        .and_then(|tasks| deserializer.end().map(|()| tasks))
        .map_err(|source| {
            if state.too_many {
                return BatchError::TooMany { max };
            }
            let path = locate::path_at(body, source.line(), source.column());
            let (index, field) = locate::split_index(&path);
            BatchError::Malformed { index, field, source }
        })
}

/// Reads at most `max` tasks, one JSON object a line; empty lines are passed over. Linear in the
/// length of `body`. The index of a fault counts tasks, not lines.
pub fn from_ndjson(body: &[u8], max: usize) -> Result<Vec<NewTask>, BatchError> {
    let mut tasks = Vec::new();
    for line in body.split(|b| *b == b'\n') {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if tasks.len() == max {
            return Err(BatchError::TooMany { max });
        }
        let task = serde_json::from_slice(line).map_err(|source| BatchError::Malformed {
            index: Some(tasks.len()),
            field: locate::path_at(line, source.line(), source.column()),
            source,
        })?;
        tasks.push(task);
    }
    Ok(tasks)
}
