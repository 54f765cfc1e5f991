//! The durable scheduler as a pure state machine.
//!
//! [`Engine::step`] takes the time and an [`api::Event`] and answers [`api::Effect`]s, to be
//! performed in order. There is no I/O here, no clock, no thread, and randomness comes from a
//! seed: the same events give the same effects, so the engine that a simulation runs is the
//! engine that ships.
//!
//! # Invariants
//!
//! - Memory holds the near future. For each held shard there is an *edge*, a pair (due,
//!   sequence): every scheduled task up to it is in memory (or marked overdue in the store);
//!   what lies beyond is only in the store.
//! - At most one batch is in flight. Versions in memory are those after all writes that were
//!   handed out; any surprise in an answer drops the shard's memory and reloads it, exactly as
//!   a takeover does. There is no third recovery path.
//! - No attempt starts before its due time in store time, without a held lease, or while a
//!   change to its task is being written.
//! - A task is in exactly one of: the wheel, its partition's ready tasks, held for a change,
//!   being fetched (all *resident*), or running.
//!
//! # Map
//!
//! `api` is what goes in and out; `engine` holds the state and the order of a step; `window`
//! cascades the store into the wheel; `ready` picks what starts; `attempt` is an attempt's life;
//! `batch` gathers writes and takes their outcomes; `request` serves clients; `occurrence`
//! keeps schedules, `plan` says what comes next, `behind` plans them anew when `calendars` change; `worker` serves claims; `tally` counts for the statistics; `part` is one
//! partition and its limits.

pub mod api;
mod attempt;
mod backfill;
mod batch;
mod behind;
pub mod calendars;
pub mod config;
mod engine;
mod occurrence;
mod part;
mod plan;
mod ready;
mod request;
mod rng;
mod tally;
pub mod timing;
mod window;
mod worker;

pub use config::EngineConfig;
pub use engine::{Engine, EngineNumbers, EngineView};
