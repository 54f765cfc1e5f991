//! From documents to what the node takes: every bound is checked here, once.
//!
//! What always holds: what comes out of here is within [`Limits`], and what is refused names its
//! field, what was given and what would be right. Deliberately absent: anything that needs the
//! store. The way back, from records to documents, is `show`.

use tourbillon_store::Time;

use crate::Limits;

pub(crate) mod calendar;
pub(crate) mod fingerprint;
pub(crate) mod name;
pub(crate) mod number;
pub(crate) mod patch;
pub(crate) mod payload;
pub(crate) mod queue;
pub(crate) mod retry;
pub(crate) mod schedule;
pub(crate) mod target;
pub(crate) mod task;
pub(crate) mod time;
pub(crate) mod worker;

/// What a document is judged by.
pub(crate) struct Judge<'a> {
    /// The bounds.
    pub(crate) limits: &'a Limits,
    /// Store time.
    pub(crate) now: Time,
    /// The namespace of the request.
    pub(crate) namespace: &'a str,
    /// Whether the caller may ask for commands: it has shown the token.
    pub(crate) commands: bool,
}
