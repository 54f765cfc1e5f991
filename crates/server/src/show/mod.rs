//! From records to documents: what the API shows.

pub(crate) mod calendar;
pub(crate) mod event;
pub(crate) mod node;
pub(crate) mod queue;
pub(crate) mod schedule;
pub(crate) mod stats;
pub(crate) mod task;
pub(crate) mod wheel;

use tourbillon_store::Time;
use tourbillon_wire::{Json, Timestamp};

/// An instant of a document.
pub(crate) fn at(time: Time) -> Timestamp {
    Timestamp::from_micros(time.0)
}

/// JSON text of a record as a value of a document; what is not JSON is left out.
pub(crate) fn json(text: &str) -> Option<Json> {
    Json::from_text(text.to_owned()).ok()
}
