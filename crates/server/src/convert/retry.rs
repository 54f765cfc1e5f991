//! Retry policies, both ways.

use tourbillon_store::task::{Backoff, BackoffShape, Retry};
use tourbillon_wire as wire;
use wire::{Exponential, Fixed, Jitter, Linear};

use super::number::within;
use super::time::{shown, span};
use crate::Limits;
use crate::failure::{Failure, Result};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;

/// A policy as far as it is given.
pub(crate) fn retry(given: Option<wire::Retry>, limits: &Limits) -> Result<Retry> {
    let Some(given) = given else { return Ok(Retry::default()) };
    let most = limits.attempts_max;
    Ok(Retry {
        max_attempts: given.max_attempts.map(|n| within(n, "max_attempts", 1, most)).transpose()?,
        max_lost: given.max_lost.map(|n| within(n, "max_lost", 0, most)).transpose()?,
        give_up_after: given
            .give_up_after
            .map(|d| span(d, "give_up_after", 1, limits.horizon))
            .transpose()?,
        backoff: given
            .backoff
            .map(|b| backoff(b, limits).map_err(|f| f.under("backoff")))
            .transpose()?,
    })
}

/// With `at_most_once` there is one attempt, whatever the queue says; another number is an error.
pub(crate) fn once(retry: &mut Retry) -> Result<()> {
    if let Some(n) = retry.max_attempts
        && n != 1
    {
        return Err(Failure::invalid(
            "retry.max_attempts",
            format!("{n} attempts of a task that is attempted at most once"),
            "1, or nothing, with `at_most_once`",
        ));
    }
    retry.max_attempts = Some(1);
    Ok(())
}

fn backoff(given: wire::Backoff, limits: &Limits) -> Result<Backoff> {
    let most = limits.backoff_max;
    let wait = |d: Option<wire::Duration>, field: &str, default: i64| {
        d.map_or(Ok(default), |d| span(d, field, 0, most))
    };
    match given {
        wire::Backoff::Fixed(Fixed { delay, jitter }) => {
            let delay = span(delay, "fixed.delay", 0, most)?;
            Ok(Backoff {
                shape: BackoffShape::Fixed,
                initial: delay,
                factor: 1.0,
                max: delay,
                full_jitter: jitter == Some(Jitter::Full),
            })
        }
        wire::Backoff::Linear(Linear { initial, step, max, jitter }) => {
            let first = wait(initial.or(step), "linear.initial", SECOND)?;
            if let Some(step) = step
                && i64::try_from(step.as_micros()) != Ok(first)
            {
                return Err(Failure::invalid(
                    "linear.step",
                    format!("{step} is not `initial`, {}", shown(first)),
                    "the same as `initial`, or one of the two",
                ));
            }
            Ok(Backoff {
                shape: BackoffShape::Linear,
                initial: first,
                factor: 1.0,
                max: wait(max, "linear.max", HOUR.max(first))?,
                full_jitter: jitter == Some(Jitter::Full),
            })
        }
        wire::Backoff::Exponential(Exponential { initial, factor, max, jitter }) => {
            let first = wait(initial, "exponential.initial", SECOND)?;
            let factor = factor.unwrap_or(2.0);
            if !(1.0..=limits.factor_max).contains(&factor) {
                return Err(Failure::invalid(
                    "exponential.factor",
                    format!("{factor} is out of range"),
                    format!("from 1 to {}", limits.factor_max),
                ));
            }
            Ok(Backoff {
                shape: BackoffShape::Exponential,
                initial: first,
                factor,
                max: wait(max, "exponential.max", HOUR.max(first))?,
                full_jitter: jitter != Some(Jitter::None),
            })
        }
    }
}

/// A policy as shown; `None` when nothing of it was given.
pub(crate) fn show(retry: &Retry) -> Option<wire::Retry> {
    if *retry == Retry::default() {
        return None;
    }
    Some(wire::Retry {
        max_attempts: retry.max_attempts,
        max_lost: retry.max_lost,
        give_up_after: retry.give_up_after.map(shown),
        backoff: retry.backoff.as_ref().map(show_backoff),
    })
}

fn show_backoff(b: &Backoff) -> wire::Backoff {
    let jitter = Some(if b.full_jitter { Jitter::Full } else { Jitter::None });
    let (initial, max) = (Some(shown(b.initial)), Some(shown(b.max)));
    match b.shape {
        BackoffShape::Fixed => wire::Backoff::Fixed(Fixed { delay: shown(b.initial), jitter }),
        BackoffShape::Linear => {
            wire::Backoff::Linear(Linear { initial, step: initial, max, jitter })
        }
        BackoffShape::Exponential => {
            wire::Backoff::Exponential(Exponential { initial, factor: Some(b.factor), max, jitter })
        }
    }
}
