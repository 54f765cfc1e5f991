//! What a handler is given and what it gives back.

use std::fmt::Display;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tourbillon_wire::{ClaimedTask, CompleteItem, CompleteOutcome, Duration, Json};

use super::holds::Holds;

/// A task in the hands of its handler.
#[derive(Clone)]
pub struct Context {
    task: Arc<ClaimedTask>,
    stop: watch::Receiver<Option<StopReason>>,
    holds: Arc<Holds>,
}

/// Why a handler should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The task was cancelled.
    Cancelled,
    /// The claim ran out: another worker may have the task, and no result from here counts.
    Gone,
    /// The worker is stopping and its grace is over.
    Shutdown,
}

impl Context {
    pub(super) fn new(
        task: ClaimedTask,
        stop: watch::Receiver<Option<StopReason>>,
        holds: Arc<Holds>,
    ) -> Context {
        Context { task: Arc::new(task), stop, holds }
    }

    /// The task and its attempt.
    pub fn task(&self) -> &ClaimedTask {
        &self.task
    }

    /// The payload as a `T`; a task without one has the payload `null`.
    ///
    /// # Errors
    /// When the payload is not a `T`.
    pub fn payload<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.task.payload.as_ref().map_or("null", Json::get))
    }

    /// Whether the handler should stop, and why.
    pub fn stop_reason(&self) -> Option<StopReason> {
        *self.stop.borrow()
    }

    /// Waits until the handler should stop; never ends otherwise. For `select!`.
    pub async fn stopped(&self) -> StopReason {
        let mut stop = self.stop.clone();
        let reason = stop.wait_for(Option::is_some).await.ok().and_then(|reason| *reason);
        match reason {
            Some(reason) => reason,
            // The claim has ended together with this attempt; nothing is left to stop.
            None => std::future::pending().await,
        }
    }

    /// Shows `progress` with the task, within about a second.
    ///
    /// # Errors
    /// When `progress` cannot be written as JSON.
    pub fn progress<T: Serialize + ?Sized>(&self, progress: &T) -> Result<(), serde_json::Error> {
        let progress = Json::from_value(progress)?;
        self.holds.report(&self.task.token, |report| report.progress = Some(progress));
        Ok(())
    }

    /// Adds text to the attempt's output, within about a second. At most 64 KiB wait to be sent;
    /// what comes faster is dropped, and the output says how much.
    pub fn log(&self, text: &str) {
        self.holds.report(&self.task.token, |report| report.add_log(text));
    }
}

/// How a handler ended. `Ok(())`, `Ok(Json)` and `Err(text)` convert into it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// It did what it was to do, with a result to keep.
    Succeeded(Option<Json>),
    /// It did not; what follows is decided by the task's retry policy.
    Failed(String),
    /// It did not; try again after that long, or by the task's backoff.
    Retry {
        /// Why.
        error: String,
        /// How long to wait.
        after: Option<Duration>,
    },
    /// Never again: the task becomes `failed`.
    Reject(String),
    /// Given back without having been begun; the attempt does not count.
    Release,
}

impl<E: Display> From<Result<(), E>> for Outcome {
    fn from(result: Result<(), E>) -> Outcome {
        result.map_or_else(|e| Outcome::Failed(e.to_string()), |()| Outcome::Succeeded(None))
    }
}

impl<E: Display> From<Result<Json, E>> for Outcome {
    fn from(result: Result<Json, E>) -> Outcome {
        result
            .map_or_else(|e| Outcome::Failed(e.to_string()), |json| Outcome::Succeeded(Some(json)))
    }
}

impl<E: Display> From<Result<Outcome, E>> for Outcome {
    fn from(result: Result<Outcome, E>) -> Outcome {
        result.unwrap_or_else(|e| Outcome::Failed(e.to_string()))
    }
}

impl Outcome {
    pub(super) fn into_item(self, token: String) -> CompleteItem {
        let mut item = CompleteItem {
            token,
            outcome: CompleteOutcome::Succeeded,
            result: None,
            error: None,
            retry_in: None,
        };
        match self {
            Outcome::Succeeded(result) => item.result = result,
            Outcome::Failed(error) => {
                item.outcome = CompleteOutcome::Failed;
                item.error = Some(error);
            }
            Outcome::Retry { error, after } => {
                item.outcome = CompleteOutcome::Retry;
                item.error = Some(error);
                item.retry_in = after;
            }
            Outcome::Reject(error) => {
                item.outcome = CompleteOutcome::Reject;
                item.error = Some(error);
            }
            Outcome::Release => item.outcome = CompleteOutcome::Release,
        }
        item
    }
}
