//! The trait that every store implements, and nothing more than the engine and node need.
//!
//! All calls block; the caller gives them threads. `commit` is called by one thread at a time;
//! the reads may run beside it and see committed state only.

use crate::calendar::CalendarRecord;
use crate::error::StoreError;
use crate::id::{Epoch, Partition, Seq, Shard};
use crate::queue::QueueRecord;
use crate::schedule::{LiveOccurrence, ScheduleRecord};
use crate::task::{Rank, Stub, Task};
use crate::time::{MINUTE, Time};
use crate::write::{Unit, UnitResult};

/// Width of the outermost wheel's slots, in microseconds: a store may keep what is due within one
/// bucket in no order, so that a [`Store::load`] whose `until` is a multiple of it costs least.
pub const BUCKET: i64 = 5 * MINUTE;

/// A place in the order (due, sequence): everything up to and with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// Due time.
    pub due: Time,
    /// Sequence among equals.
    pub seq: Seq,
}

impl Edge {
    /// Before everything.
    pub const START: Edge = Edge { due: Time::MIN, seq: Seq(i64::MIN) };

    /// Everything due before `due`, nothing due at it.
    pub fn before(due: Time) -> Edge {
        Edge { due, seq: Seq(i64::MIN) }
    }

    /// Whether a task is within the edge.
    pub fn covers(self, due: Time, seq: Seq) -> bool {
        Edge { due, seq } <= self
    }
}

/// A part of the scheduled tasks of some shards, in order of (due, sequence).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The tasks after their shards' edges that were asked from, without those marked overdue.
    pub stubs: Vec<(Shard, Stub)>,
    /// Up to where the answer is complete, for each of the shards; one that was asked from later
    /// than this stays where it was.
    pub edge: Edge,
}

/// What a new owner, or one that lost its memory, needs to know of a shard.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reloaded {
    /// Tasks whose attempt is under way; their payloads are left out.
    pub running: Vec<Task>,
    /// For each row that was asked for, in that order: the task without its payload if it is
    /// live, else `None`.
    pub probed: Vec<Option<Task>>,
    /// The shard's schedules, each with its live tasks.
    pub schedules: Vec<(ScheduleRecord, Vec<LiveOccurrence>)>,
    /// For each partition with rows marked overdue: the first of them, in rank order.
    pub spilled: Vec<(Partition, Rank)>,
}

/// What a node asks of the leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseAsk {
    /// The asking node.
    pub node: String,
    /// Shards to take if they are free, ran out, or are held by nobody else. Each taken one
    /// gets a new epoch.
    pub acquire: Vec<Shard>,
    /// Shards to keep, at the same epoch, also when they ran out but were not taken.
    pub renew: Vec<(Shard, Epoch)>,
    /// Shards to give up.
    pub release: Vec<(Shard, Epoch)>,
    /// Store time now, used by stores that have no clock of their own.
    pub now: Time,
    /// How long a lease holds, in microseconds.
    pub period: i64,
}

/// A lease that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The shard.
    pub shard: Shard,
    /// Its epoch.
    pub epoch: Epoch,
    /// Until when it holds, in store time.
    pub until: Time,
}

/// How a lease stands, for everyone to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRow {
    /// The shard.
    pub shard: Shard,
    /// Its latest epoch.
    pub epoch: Epoch,
    /// Who holds it.
    pub owner: Option<String>,
    /// Until when.
    pub until: Time,
}

/// What a store is, for start-up checks and reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreInfo {
    /// `memory`, `sqlite` or `postgres`.
    pub name: &'static str,
    /// Whether only this process can use it, so that all shards can be taken at once, without
    /// waiting for leases of a dead process to run out.
    pub exclusive: bool,
    /// Whether what was committed survives a power failure, as far as the store can tell.
    pub durable: bool,
    /// One line for the log: versions, paths, settings that matter.
    pub detail: String,
}

/// Numbers a store tells of itself, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreGauges {
    /// Transactions committed since start.
    pub commits: u64,
    /// Bytes of data files.
    pub data_bytes: u64,
    /// Bytes of the write-ahead log.
    pub wal_bytes: u64,
    /// Checkpoints that finished since start.
    pub checkpoints: u64,
}

/// Rows of one shard's inbox that one answer holds at most, oldest first.
pub const INBOX_MAX: usize = 10_000;

/// Keeps tasks. See the module for the rules of calling.
pub trait Store: Send + Sync {
    /// What it is.
    fn info(&self) -> StoreInfo;

    /// Its numbers.
    fn gauges(&self) -> StoreGauges;

    /// The store's own clock, for stores that have one; `None` means the wall clock.
    fn time(&self) -> Result<Option<Time>, StoreError>;

    /// Commits the units, in order, durably: an answer per unit. An error means that no unit
    /// was committed, or that it is not known ([`StoreError::is_outcome_unknown`]).
    fn commit(&self, units: &[Unit]) -> Result<Vec<UnitResult>, StoreError>;

    /// Scheduled tasks of these shards (none twice), each shard's after its edge, due before
    /// `until` and not marked overdue: the first `limit` (1 or more) of them all in order of
    /// (due, sequence). The answer's edge is the last task's when the limit cut it, else
    /// `Edge::before(until)`.
    ///
    /// Many shards are one question, so that a store need not keep what is due apart by shard.
    fn load(&self, from: &[(Shard, Edge)], until: Time, limit: usize) -> Result<Span, StoreError>;

    /// Rows of the partition marked overdue and still scheduled, after `after`: the first
    /// `limit` in rank order.
    fn load_overdue(
        &self,
        partition: Partition,
        after: Option<Rank>,
        limit: usize,
    ) -> Result<Vec<Stub>, StoreError>;

    /// What a takeover or a reload needs besides the spans.
    fn reload(&self, shard: Shard, probe: &[Seq]) -> Result<Reloaded, StoreError>;

    /// The whole records of live tasks, payload included, in the order asked; `None` where the
    /// row is gone.
    fn fetch(&self, seqs: &[Seq]) -> Result<Vec<Option<Task>>, StoreError>;

    /// Tasks that others inserted into these shards and that have not been taken in: at most
    /// [`INBOX_MAX`] a shard, so ask again after taking them in. A task leaves the inbox by
    /// itself when an attempt of it starts or ends, and when it is closed or discarded.
    fn inbox(&self, shards: &[Shard]) -> Result<Vec<(Shard, Stub)>, StoreError>;

    /// Gives up, keeps, then takes leases; answers what is held now of what was to be kept or
    /// taken. A shard is not held by anybody after its holder gave it up, nor after an exclusive
    /// store was opened anew.
    fn leases(&self, ask: &LeaseAsk) -> Result<Vec<Lease>, StoreError>;

    /// All leases.
    fn lease_table(&self) -> Result<Vec<LeaseRow>, StoreError>;

    /// All queues of all namespaces.
    fn queues(&self) -> Result<Vec<QueueRecord>, StoreError>;

    /// All exclusion calendars of all namespaces, in order of (namespace, name). An owner reads them
    /// before it takes shards, since schedules are planned by them.
    fn all_calendars(&self) -> Result<Vec<CalendarRecord>, StoreError>;
}
