//! Every mutation as a value.
//!
//! A [`Unit`] is atomic: if any of its writes is refused, none of it is committed. Units in one
//! `commit` call share a transaction and an fsync but not their fate. Each write is
//! compare-and-set on (row, version), under the epochs of the unit's shards.

use crate::calendar::{CalendarDoc, CalendarRecord};
use crate::id::{Epoch, NamespaceId, Seq, Shard, TaskId};
use crate::queue::QueueRecord;
use crate::schedule::{Cursor, ScheduleRecord};
use crate::state::State;
use crate::stats::StatsDelta;
use crate::task::{AttemptRecord, NewTask, OpenAttempt, Output, SkippedRun, TaskSpec};
use crate::time::Time;

/// Writes that commit together or not at all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Unit {
    /// The shards that must still be held, under these epochs. Empty for writes that need no
    /// owner: catalogue entries, inserts with an inbox row, retention.
    pub fences: Vec<(Shard, Epoch)>,
    /// The writes, applied in order.
    pub writes: Vec<Write>,
}

impl Unit {
    /// A unit of one write under one shard's epoch.
    pub fn one(shard: Shard, epoch: Epoch, write: Write) -> Unit {
        Unit { fences: vec![(shard, epoch)], writes: vec![write] }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Creates the queue (and namespace) unless it exists, with version 1 and the default
    /// configuration. Answers [`Done::Queue`].
    EnsureQueue {
        /// Namespace name.
        namespace: String,
        /// Queue name.
        name: String,
    },
    /// Replaces a queue's configuration. Answers [`Done::Queue`].
    PutQueue {
        /// The queue as it was read, with its new configuration; compare-and-set on `version`.
        record: Box<QueueRecord>,
    },
    /// Creates a task, with version 0. Answers [`Done::Inserted`], [`Done::Same`] or
    /// [`Done::Kept`]. Looked at in this order: its queue is unknown or of another namespace
    /// (`Conflict`); its id and fingerprint exist (`Same`); its occurrence exists, live or in
    /// history (`Exists`); its id exists (`IdReused`); its key is taken (`Kept` or `KeyTaken`).
    Insert(Box<NewTask>),
    /// An attempt starts.
    Start {
        /// The task.
        seq: Seq,
        /// The version it must have.
        version: u32,
        /// The attempt. Its number becomes the task's count of attempts.
        open: Box<OpenAttempt>,
    },
    /// An attempt ends. Legal on a running task, and on a scheduled one whose start was not
    /// written before.
    End {
        /// The task.
        seq: Seq,
        /// The version it must have.
        version: u32,
        /// The attempt's record, appended to the task's.
        attempt: Box<AttemptRecord>,
        /// What it printed or answered.
        output: Option<Box<Output>>,
        /// What becomes of the task.
        then: Then,
    },
    /// The task is over without another attempt.
    Close {
        /// The task.
        seq: Seq,
        /// The version it must have.
        version: u32,
        /// `Cancelled`, `Expired`, `Skipped`, or `Failed`.
        to: State,
        /// When.
        at: Time,
        /// Why.
        reason: Option<String>,
        /// The occurrences it stands for.
        skipped: Option<SkippedRun>,
    },
    /// The running attempt is asked to stop for good.
    RequestCancel {
        /// The task.
        seq: Seq,
        /// The version it must have.
        version: u32,
    },
    /// A scheduled task is changed. Namespace, queue, partition, key and concurrency key stay
    /// whatever the new definition says; its mark as overdue goes. Whether a task that had an
    /// attempt may be changed is the caller's rule.
    Edit {
        /// The task.
        seq: Seq,
        /// The version it must have.
        version: u32,
        /// Its due time from now on.
        due: Time,
        /// Its definition from now on.
        spec: Box<TaskSpec>,
    },
    /// A scheduled task that never started is deleted without a trace: the waiting occurrence of
    /// a schedule that is paused, edited or deleted. It never came to be, so the same logical
    /// time may be planned again.
    Discard {
        /// The task.
        seq: Seq,
        /// The version it must have.
        version: u32,
    },
    /// Due rows that memory has no room for: marked, and found again by
    /// [`crate::Store::load_overdue`]. Rows that are no longer scheduled are passed over; no
    /// version changes.
    Spill {
        /// The rows.
        seqs: Vec<Seq>,
    },
    /// A worker is alive. Refused as `Illegal` unless the task is running.
    Progress {
        /// The task.
        seq: Seq,
        /// The version it must have.
        version: u32,
        /// Until when its claim holds now; `None` leaves it.
        claim_until: Option<Time>,
        /// JSON text; `None` leaves what was said before.
        progress: Option<String>,
    },
    /// A task of history becomes live again, under its old sequence and with its attempts;
    /// `give_up_after` counts from `due`, and an `expires_at` not after `due` is dropped. Refused
    /// with `Conflict` when it is unknown or not final, with `KeyTaken` when a live task holds its
    /// key. Answers [`Done::Redriven`].
    Redrive {
        /// Its namespace.
        namespace: NamespaceId,
        /// Its id.
        id: TaskId,
        /// Its new due time.
        due: Time,
    },
    /// Creates (version 0) or replaces a schedule, compare-and-set on `version`. The stored
    /// version becomes one more. Refused as `NoCalendar` when it names a calendar that is not there.
    PutSchedule(Box<ScheduleRecord>),
    /// Moves a schedule on: only its cursor changes. The stored version becomes one more.
    Advance {
        /// Its uid.
        uid: u128,
        /// The version it must have.
        version: u32,
        /// Where it stands now.
        cursor: Cursor,
    },
    /// Removes a schedule.
    DeleteSchedule {
        /// Its uid.
        uid: u128,
        /// The version it must have.
        version: u32,
    },
    /// Creates (version 0) or replaces an exclusion calendar, compare-and-set on `version`; creates
    /// its namespace when that is new. The stored version is greater than any that a calendar of
    /// this store ever had. Answers [`Done::Calendar`].
    PutCalendar {
        /// Namespace name.
        namespace: String,
        /// Its name.
        name: String,
        /// The version it must have.
        version: u64,
        /// When.
        at: Time,
        /// Its days.
        doc: Box<CalendarDoc>,
    },
    /// Removes an exclusion calendar. Refused as `InUse` while a schedule names it: that is judged in
    /// the same transaction as the naming, so no schedule ever names one that is not there.
    DeleteCalendar {
        /// Its namespace.
        namespace: NamespaceId,
        /// Its name.
        name: String,
        /// The version it must have.
        version: u64,
    },
    /// Appends to the statistics of a minute.
    Stats(Box<StatsDelta>),
    /// Folds the statistics of the shard's minutes before `before` into one row each.
    FoldStats {
        /// The shard.
        shard: Shard,
        /// First minute (since the Unix epoch) that is left alone.
        before_minute: i64,
    },
    /// Deletes the oldest statistics. Answers [`Done::Pruned`].
    PruneStats {
        /// First minute (since the Unix epoch) that is kept.
        before_minute: i64,
        /// At most so many (shard, minute) pairs; a store may count every row of one.
        limit: u32,
    },
    /// Inbox rows have been taken in.
    TakeIn {
        /// The shard.
        shard: Shard,
        /// The tasks.
        seqs: Vec<Seq>,
    },
    /// Deletes the oldest rows of one part of history, in the order in which they were recorded
    /// as finished, with their outputs. It ends at the first row that did not finish before
    /// `before`, so a clock that once ran ahead delays retention and nothing more. Answers
    /// [`Done::Pruned`].
    Prune {
        /// `true` for the succeeded, `false` for all other outcomes.
        succeeded: bool,
        /// Only what finished before.
        before: Time,
        /// At most so many rows.
        limit: u32,
    },
}

/// What becomes of a task when an attempt has ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Then {
    /// It is over and moves to history.
    Finish {
        /// `Succeeded`, `Failed` or `Cancelled`.
        to: State,
        /// Why, when the outcome alone does not say.
        reason: Option<String>,
    },
    /// It is scheduled again.
    Again {
        /// Its new due time.
        due: Time,
    },
}

/// A write that was applied.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// Applied; a task written to has its old version plus one.
    Ok,
    /// The task was created.
    Inserted(Seq),
    /// The same id and the same body again: nothing was done.
    Same(TaskId),
    /// The key is taken and the task was to be kept: nothing was done.
    Kept(TaskId),
    /// The queue as it is now.
    Queue(Box<QueueRecord>),
    /// The calendar as it is now.
    Calendar(Box<CalendarRecord>),
    /// The task as it is now.
    Redriven(Box<crate::task::Task>),
    /// Rows deleted.
    Pruned(u32),
}

/// Why a unit was not committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Which of its writes.
    pub index: usize,
    /// Why.
    pub why: Refusal,
}

/// Why a write was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The row is gone or has another version.
    Conflict,
    /// A shard of the unit is not held under that epoch, or not held at all; told of write 0.
    Fenced,
    /// The move is not in the transition table.
    Illegal,
    /// The id exists with another body.
    IdReused,
    /// The key is held by this live task.
    KeyTaken(TaskId),
    /// Another schedule of that name, or an occurrence of that schedule, exists.
    Exists,
    /// The schedule names a calendar that does not exist.
    NoCalendar,
    /// A schedule names the calendar.
    InUse,
}

/// What became of one unit: an answer per write, or the refusal.
pub type UnitResult = Result<Vec<Done>, Refused>;
