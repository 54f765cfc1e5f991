//! What Tourbillon keeps and how it is kept: domain types, the one transition table, the small
//! [`Store`] trait with its read-only companion [`Queries`], and the stores themselves.
//!
//! The types carry no wire format, and nothing here knows HTTP, clocks or runtimes. Time is an
//! argument. The store is the outermost timing wheel: its slots are buckets of due time
//! ([`store::BUCKET`]), and [`Store::load`] cascades them into memory.
//!
//! - [`mod@write`]: every mutation as a value, committed in atomic units under shard epochs.
//! - [`state`]: the transition table that engine and stores share.
//! - [`store`] and [`queries`]: what a store must do; the `conformance` suite (a feature) checks it.
//! - [`memory`]: the store for tests and simulation.
//! - [`sqlite`]: the store of one node.
//! - `postgres` (a feature): the store that several nodes share.

mod apply;
pub mod calendar;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod encoding;
pub mod error;
pub mod hash;
pub mod id;
mod lease;
pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod queries;
pub mod queue;
pub mod schedule;
pub mod sqlite;
pub mod state;
pub mod stats;
pub mod store;
pub mod task;
pub mod time;
pub mod write;

pub use calendar::{CalendarDoc, CalendarRecord};
pub use error::{StoreError, StoreErrorKind};
pub use id::{
    AttemptToken, Epoch, Fence, NamespaceId, Partition, QueueId, SHARDS, Seq, Shard, TaskId,
};
pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
pub use queries::Queries;
pub use queue::{QueueConfig, QueueRecord};
pub use schedule::{ScheduleDoc, ScheduleRecord};
pub use sqlite::{SqliteOptions, SqliteStore};
pub use state::{AttemptOutcome, Move, State, next_state};
pub use store::{
    BUCKET, Edge, Lease, LeaseAsk, LeaseRow, Reloaded, Span, Store, StoreGauges, StoreInfo,
};
pub use task::{
    AttemptRecord, NewTask, OpenAttempt, Output, Rank, Stub, StubFlags, Task, TaskSpec,
};
pub use time::Time;
pub use write::{Done, Refusal, Refused, Then, Unit, UnitResult, Write};
