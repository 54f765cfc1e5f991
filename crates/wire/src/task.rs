//! A task as a client gives it.
//!
//! Unknown fields are errors. What is absent stays `None` where the server must tell "not given"
//! from a value (a queue's defaults, `at_most_once`); the documented default applies otherwise.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::json::present;
use crate::{Duration, Json, Pairs, Timestamp};

/// A task to create.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTask {
    /// Makes the request idempotent: the same id and body again answers 200 with the task, the
    /// same id with another body 409. Default: the server makes a version 7 UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// The separate world of names it lives in. Default: that of the request, else `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The queue it waits in. Default: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// What sort of work it is; selects the worker's handler. Default: the target's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// At most one task that is not final per namespace, queue and key. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How its attempts are made.
    pub target: Target,
    /// Any JSON; the body of an `http` target. Default: none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// Due this long after it was accepted. Not together with `due_at`; with neither it is due now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// Due at this instant, rounded up to a millisecond; the past means now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// From -8 to 7, higher starts first among the ready. Default: 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(minimum = -8, maximum = 7, default = 0)]
    pub priority: i32,
    /// How long one attempt may take. Default: the queue's, else 30 s for `http`, 1 h for
    /// `command`, 60 s for a worker's claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// When it has not started by then it becomes `expired`. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Never attempted twice, even after a crash. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_most_once: bool,
    /// What happens after an attempt that failed. Default: the queue's, else 5 attempts with
    /// exponential backoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// What happens when the key is taken. Default: `reject`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_conflict: OnConflict,
    /// Tasks with the same one count against the queue's `per_key_concurrency`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<String>,
    /// Free names and values to find it by. Default: none.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub tags: Pairs,
}

impl NewTask {
    /// A task for `target`, due now, everything else by default.
    pub fn new(target: Target) -> NewTask {
        NewTask {
            id: None,
            namespace: None,
            queue: None,
            kind: None,
            key: None,
            target,
            payload: None,
            delay: None,
            due_at: None,
            priority: 0,
            timeout: None,
            expires_at: None,
            at_most_once: false,
            retry: None,
            on_conflict: OnConflict::Reject,
            concurrency_key: None,
            tags: Pairs::new(),
        }
    }
}

/// How attempts are made: exactly one of `http`, `command`, `worker`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The server calls a URL; 2xx succeeds.
    Http(HttpTarget),
    /// The server runs a program; exit status 0 succeeds.
    Command(CommandTarget),
    /// A client pulls it from its queue.
    Worker(WorkerTarget),
}

impl Target {
    /// `http`, `command` or `worker`; also the kind of a task that names none.
    pub fn name(&self) -> &'static str {
        match self {
            Target::Http(_) => "http",
            Target::Command(_) => "command",
            Target::Worker(_) => "worker",
        }
    }

    /// The target that workers pull.
    pub fn worker() -> Target {
        Target::Worker(WorkerTarget {})
    }
}

/// A URL to call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpTarget {
    /// The request method. Default: `POST`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The absolute `http` or `https` URL.
    pub url: String,
    /// Request headers; a value `secret:NAME` is looked up by the server and never shown.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub headers: Pairs,
}

/// A program to run in a process group of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandTarget {
    /// The program and its arguments; no shell is involved.
    pub argv: Vec<String>,
    /// Environment variables set besides the server's. Default: none.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub env: Pairs,
    /// Its working folder. Default: the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What it reads on standard input. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
}

/// Pulled by a worker; nothing to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerTarget {}

/// What happens after an attempt that failed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How many attempts there may be in all. Default: 5; 1 with `at_most_once`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_attempts: Option<u32>,
    /// How many attempts may be lost to the death of their node or worker. Default: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lost: Option<u32>,
    /// No further attempt later than this after the first due time. Default: no such bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_after: Option<Duration>,
    /// How long to wait before the next attempt. Default: exponential, 1 s times 2 up to 1 h,
    /// full jitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
}

/// How long to wait before the next attempt: exactly one of `fixed`, `linear`, `exponential`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Always the same wait.
    Fixed(Fixed),
    /// The wait grows by the same step each time.
    Linear(Linear),
    /// The wait is multiplied each time.
    Exponential(Exponential),
}

/// Always the same wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    /// The wait.
    pub delay: Duration,
    /// Default: `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
}

/// After attempt n the wait is initial + (n - 1) × step, at most max.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Linear {
    /// The wait after the first attempt. Default: 1 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<Duration>,
    /// What each further wait adds. Default: the same as `initial`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Duration>,
    /// The longest wait. Default: 1 h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
    /// Default: `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
}

/// After attempt n the wait is initial × factor^(n - 1), at most max.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Exponential {
    /// The wait after the first attempt. Default: 1 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<Duration>,
    /// What each further wait is multiplied by, at least 1. Default: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// The longest wait. Default: 1 h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
    /// Default: `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
}

/// Whether waits are spread at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// The wait as computed.
    None,
    /// Anywhere between nothing and the wait as computed.
    Full,
}

/// What happens when a task's key is held by another one that is not final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Answer 409 and create nothing.
    #[default]
    Reject,
    /// Answer 200 with the task that holds the key.
    Keep,
    /// Cancel the one that holds the key and create this one; 409 while that one runs.
    Replace,
}

pub(crate) fn is_zero(n: &i32) -> bool {
    *n == 0
}

pub(crate) fn is_false(b: &bool) -> bool {
    !b
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
