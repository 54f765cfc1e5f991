//! Documents of the HTTP API, shared by server and client.
//!
//! Every request and reply body under `/v1` is a type here, with its serde form and its OpenAPI
//! schema. The types say what can be *written*; whether a document makes sense (bounds, names,
//! exactly one rule in a schedule) is the server's to judge, except where a method here says so.
//!
//! What always holds: documents as given refuse unknown fields; documents as shown ignore them, so
//! that an older client reads a newer server. Durations and instants are strings in JSON and exact
//! microseconds in Rust. Payloads keep their text: they are neither reparsed nor reordered.
//!
//! Deliberately absent: HTTP itself, clocks, validation against configured bounds, domain types.

pub mod batch;
mod calendar;
mod cluster;
pub mod code;
mod duration;
mod event;
mod json;
mod locate;
mod many;
mod page;
mod pairs;
mod patch;
mod problem;
mod prune;
mod query;
mod queue;
mod schedule;
mod shown;
mod stats;
mod task;
mod timestamp;
mod wheel;
mod worker;

pub use batch::{BatchError, BatchReply};
pub use calendar::{Calendar, DateRange, NewCalendar};
pub use cluster::{Node, Worker};
pub use duration::{Duration, DurationError};
pub use event::{Event, EventKind};
pub use json::Json;
pub use locate::{from_slice, path_at};
pub use many::{CancelReply, CancelState, ManyReply, ManyRequest, TaskFilter};
pub use page::Page;
pub use pairs::Pairs;
pub use patch::TaskPatch;
pub use problem::Problem;
pub use prune::{PruneReply, PruneRequest};
pub use query::{
    EventsQuery, NamespaceQuery, OutputQuery, PreviewQuery, ScheduleListQuery, SeriesQuery,
    StatsQuery, TaskListQuery,
};
pub use queue::{NewQueue, PurgeReply, Queue, QueueDefaults, Rate};
pub use schedule::{
    BackfillProgress, BackfillReply, BackfillRequest, CalendarRule, Dialect, Fold, Gap,
    LastOccurrence, LeftOut, Misfire, MisfirePolicy, MonthEnd, NewSchedule, Occurrence, On,
    Overlap, Preview, PreviewRequest, Schedule, TaskTemplate, TriggerReply,
};
pub use shown::{Attempt, AttemptOutcome, OutputInfo, Skipped, Task, TaskState};
pub use stats::{KindStats, Percentiles, QueueStats, Series, SeriesPoint, StateCounts, Stats};
pub use task::{
    Backoff, CommandTarget, Exponential, Fixed, HttpTarget, Jitter, Linear, NewTask, OnConflict,
    Retry, Target, WorkerTarget,
};
pub use timestamp::{Timestamp, TimestampError};
pub use wheel::{SlotCount, WheelLevel, WheelSnapshot, Wheels};
pub use worker::{
    ClaimReply, ClaimRequest, ClaimedTask, CompleteItem, CompleteOutcome, HeartbeatItem, HoldReply,
    HoldStatus,
};
