//! The calls of the HTTP API, one resource a file.
//!
//! Each handler reads its documents, has them judged by `convert`, asks the node, and shows the
//! answer with `show`. Each carries its own OpenAPI description; `routes` joins them.

pub(crate) mod attempts;
pub(crate) mod backfills;
pub(crate) mod batch;
pub(crate) mod calendars;
pub(crate) mod cluster;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod list;
pub(crate) mod many;
pub(crate) mod metrics;
pub(crate) mod output;
pub(crate) mod prune;
pub(crate) mod queues;
pub(crate) mod reply;
pub(crate) mod schedules;
pub(crate) mod stats;
pub(crate) mod task;
pub(crate) mod tasks;
