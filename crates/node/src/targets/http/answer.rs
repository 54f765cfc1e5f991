//! Reading an answer: `Retry-After`, and the cause of an error in one line.
//!
//! What always holds: a cause has neither the URL (its query may hold credentials) nor header
//! values in it.

use std::error::Error;
use std::time::{Duration, UNIX_EPOCH};

use reqwest::header::{HeaderMap, RETRY_AFTER};
use tourbillon_clock::Clock;

use super::HttpLimits;

/// The time that the answer asks to wait, at most [`HttpLimits::retry_after_max`]. A date that has
/// passed is no time at all; anything that is neither a number of seconds nor a date is ignored.
pub(super) fn retry_after(
    headers: &HeaderMap,
    clock: &dyn Clock,
    limits: &HttpLimits,
) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit are a long time still.
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        let at = httpdate::parse_http_date(text).ok()?;
        let now_us = clock.wall().try_into().unwrap_or(0);
        at.duration_since(UNIX_EPOCH).ok()?.saturating_sub(Duration::from_micros(now_us))
    };
    Some(wait.min(limits.retry_after_max))
}

/// What went wrong with a request, from the error's outermost kind and its innermost message.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let what = if error.is_timeout() && error.is_connect() {
        return "cannot connect: timed out".to_owned();
    } else if error.is_connect() {
        "cannot connect"
    } else if error.is_body() || error.is_decode() {
        "cannot read the answer"
    } else if error.is_builder() {
        "cannot build the request"
    } else {
        "the request failed"
    };
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    // The outermost message has the URL in it.
    if innermost.source().is_none() && error.source().is_none() {
        return what.to_owned();
    }
    format!("{what}: {innermost}")
}
