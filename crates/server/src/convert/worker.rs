//! What workers ask and say.

use tourbillon_engine::api::WorkerOutcome;
use tourbillon_node::api::{BeatAsk, ClaimAsk, CompleteAsk};
use tourbillon_store::AttemptToken;
use tourbillon_wire as wire;
use tourbillon_wire::{CompleteOutcome, code};

use super::name::name;
use super::number::within;
use super::{Judge, time};
use crate::failure::{Failure, Result};

impl Judge<'_> {
    /// A claim; `caller` names a worker that gives no name.
    pub(crate) fn claim(
        &self,
        queue: &str,
        given: wire::ClaimRequest,
        caller: impl FnOnce() -> String,
    ) -> Result<ClaimAsk> {
        let limits = self.limits;
        name(queue, "queue", limits)?;
        let worker = given.worker.unwrap_or_else(caller);
        name(&worker, "worker", limits)?;
        if given.kinds.len() > limits.claim_kinds {
            return Err(Failure::invalid(
                "kinds",
                format!("{} kinds", given.kinds.len()),
                format!("at most {}", limits.claim_kinds),
            ));
        }
        for (index, kind) in given.kinds.iter().enumerate() {
            name(kind, &format!("kinds[{index}]"), limits)?;
        }
        let wait = given.wait.map(|w| time::span(w, "wait", 0, limits.claim_wait_max));
        Ok(ClaimAsk {
            namespace: self.namespace.to_owned(),
            queue: queue.to_owned(),
            max: within(given.max as usize, "max", 1, limits.claim_max)?,
            wait: wait.transpose()?.unwrap_or(0),
            worker,
            kinds: given.kinds,
        })
    }

    /// How attempts ended, in the order given.
    pub(crate) fn completions(&self, given: Vec<wire::CompleteItem>) -> Result<Vec<CompleteAsk>> {
        self.tokens(given.len())?;
        given
            .into_iter()
            .enumerate()
            .map(|(index, item)| self.completion(item).map_err(|f| f.at(index)))
            .collect()
    }

    fn completion(&self, given: wire::CompleteItem) -> Result<CompleteAsk> {
        let retry_in = given.retry_in.map(|d| time::span(d, "retry_in", 0, self.limits.horizon));
        let retry_in = retry_in.transpose()?;
        if retry_in.is_some() && given.outcome != CompleteOutcome::Retry {
            return Err(Failure::invalid(
                "retry_in",
                "it belongs to the outcome `retry`",
                "`retry_in` with `retry` only",
            ));
        }
        let outcome = match given.outcome {
            CompleteOutcome::Succeeded => WorkerOutcome::Succeeded,
            CompleteOutcome::Failed => WorkerOutcome::Failed,
            CompleteOutcome::Retry => WorkerOutcome::Retry(retry_in),
            CompleteOutcome::Reject => WorkerOutcome::Reject,
            CompleteOutcome::Release => WorkerOutcome::Release,
        };
        Ok(CompleteAsk {
            token: token(&given.token)?,
            outcome,
            result: self.payload(given.result, "result")?,
            error: given.error.map(|e| self.error(e)),
        })
    }

    /// Signs of life, in the order given.
    pub(crate) fn beats(&self, given: Vec<wire::HeartbeatItem>) -> Result<Vec<BeatAsk>> {
        self.tokens(given.len())?;
        given
            .into_iter()
            .enumerate()
            .map(|(index, item)| self.beat(item).map_err(|f| f.at(index)))
            .collect()
    }

    fn beat(&self, given: wire::HeartbeatItem) -> Result<BeatAsk> {
        if let Some(log) = &given.log
            && log.len() > self.limits.log_bytes
        {
            return Err(Failure::new(413, code::TOO_LARGE)
                .field("log")
                .detail(format!("it has {} bytes", log.len()))
                .expected(format!("at most {} bytes", self.limits.log_bytes)));
        }
        Ok(BeatAsk {
            token: token(&given.token)?,
            progress: self.payload(given.progress, "progress")?,
            log: given.log,
        })
    }

    fn tokens(&self, n: usize) -> Result<()> {
        if n > self.limits.tokens {
            return Err(Failure::new(413, code::TOO_LARGE)
                .detail(format!("{n} attempts"))
                .expected(format!("at most {}", self.limits.tokens)));
        }
        Ok(())
    }

    /// An error report as one line of bounded length. Long reports are cut, not refused: a worker
    /// that fails should always be able to say so.
    fn error(&self, text: String) -> String {
        text.chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(self.limits.error_chars)
            .collect()
    }
}

fn token(text: &str) -> Result<AttemptToken> {
    text.parse().map_err(|error: tourbillon_store::id::BadToken| {
        Failure::invalid("token", error.to_string(), "the `token` that the claim answered")
    })
}
