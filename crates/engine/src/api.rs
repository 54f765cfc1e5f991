//! What goes into the engine and what comes out: [`Event`] and [`Effect`].
//!
//! Everything here is plain data. A [`ReplyId`] is the caller's own number for whoever waits for
//! an answer; the engine gives each one back exactly once.

use tourbillon_store::queries::Located;
use tourbillon_store::schedule::{Backfill, Cursor};
use tourbillon_store::{
    AttemptOutcome, AttemptToken, Done, Edge, Epoch, NamespaceId, NewTask, OpenAttempt, Output,
    Partition, QueueId, QueueRecord, Rank, Refusal, Reloaded, ScheduleRecord, Seq, Shard, Span,
    State, StoreError, Stub, Task, TaskId, TaskSpec, Time, Unit, UnitResult,
};

use crate::calendars::Calendar;

/// The two clocks an event is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Microseconds of a monotonic clock.
    pub mono: u64,
    /// Store time. Never decreases between two [`Event::ClockStepped`].
    pub store: Time,
}

/// Names whoever waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplyId(pub u64);

/// Numbers a batch, a load or a fetch, so that a late answer is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// Something happened.
#[derive(Debug)]
pub enum Event {
    /// Nothing but time has passed.
    Tick,
    /// Store time jumped, back or forth.
    ClockStepped,
    /// These queues are as given: at start, after a creation, and never older than what the
    /// engine wrote itself.
    Queues(Vec<QueueRecord>),
    /// These exclusion calendars are as given: before a lease is gained all of them, then what
    /// changed. Schedules that name one are planned anew; an older one than is known is passed over.
    Calendars(Vec<Calendar>),
    /// An exclusion calendar was removed at this version. No schedule names it.
    CalendarRemoved {
        /// Its namespace.
        namespace: NamespaceId,
        /// Its name.
        name: String,
        /// The version it had.
        version: u64,
    },
    /// A shard is held from now on, under a new epoch, until `until`.
    LeaseGained {
        /// The shard.
        shard: Shard,
        /// The epoch.
        epoch: Epoch,
        /// Until when attempts may be started.
        until: Time,
    },
    /// A held shard's lease was renewed.
    LeaseRenewed {
        /// The shard.
        shard: Shard,
        /// Until when attempts may be started.
        until: Time,
    },
    /// A shard is not held any more.
    LeaseLost {
        /// The shard.
        shard: Shard,
    },
    /// Tasks to create, all or none.
    Accept {
        /// Who waits.
        reply: ReplyId,
        /// The tasks.
        tasks: Vec<NewTask>,
        /// The scheduled task that the only new one replaces.
        replaces: Option<Located>,
    },
    /// Tasks that others inserted into held shards.
    Inbox(Vec<(Shard, Stub)>),
    /// The answer to [`Effect::Commit`].
    Committed {
        /// The batch.
        call: CallId,
        /// Its units, handed back.
        units: Vec<Unit>,
        /// What became of them.
        result: Result<Vec<UnitResult>, StoreError>,
    },
    /// The answer to [`Effect::Load`].
    Loaded {
        /// The load.
        call: CallId,
        /// Its shards.
        shards: Vec<Shard>,
        /// What was found.
        result: Result<Span, StoreError>,
    },
    /// The answer to [`Effect::LoadOverdue`].
    LoadedOverdue {
        /// The load.
        call: CallId,
        /// Its partition.
        partition: Partition,
        /// What was found.
        result: Result<Vec<Stub>, StoreError>,
    },
    /// The answer to [`Effect::Reload`].
    Reloaded {
        /// The load.
        call: CallId,
        /// Its shard.
        shard: Shard,
        /// The rows that were probed.
        probe: Vec<Seq>,
        /// What was found.
        result: Result<Reloaded, StoreError>,
    },
    /// The answer to [`Effect::Fetch`].
    Fetched {
        /// The fetch.
        call: CallId,
        /// The rows asked for.
        seqs: Vec<Seq>,
        /// The tasks, in that order.
        result: Result<Vec<Option<Task>>, StoreError>,
    },
    /// An attempt made by this node has ended.
    Ended(Ended),
    /// A client asks for something about one task, queue or schedule.
    Request {
        /// Who waits.
        reply: ReplyId,
        /// What is asked.
        request: Request,
    },
    /// A worker asks for tasks.
    Claim {
        /// Who waits.
        reply: ReplyId,
        /// What it asks.
        claim: Claim,
    },
    /// A worker's claim is not waited for any more (its connection is gone).
    ClaimAbandoned {
        /// Who waited.
        reply: ReplyId,
    },
    /// A worker tells how attempts ended.
    Complete {
        /// Who waits.
        reply: ReplyId,
        /// The attempts.
        items: Vec<Completion>,
    },
    /// A worker tells that attempts are alive.
    Heartbeat {
        /// Who waits.
        reply: ReplyId,
        /// The attempts.
        items: Vec<Beat>,
    },
    /// Take nothing in and start nothing any more; let what runs end.
    Drain,
}

/// What a client asks of the owner.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Cancel a task.
    Cancel {
        /// The task as it was read.
        at: Located,
    },
    /// Change a scheduled task.
    Edit {
        /// The task as it was read; its version is what the change is made to.
        task: Box<Task>,
        /// Its due time from now on.
        due: Time,
        /// Its definition from now on.
        spec: Box<TaskSpec>,
        /// Whether a task that had an attempt is refused.
        unstarted: bool,
    },
    /// Try a task of history again.
    Redrive {
        /// The task as it was read.
        at: Located,
        /// Its namespace.
        namespace: NamespaceId,
        /// When.
        due: Time,
    },
    /// Replace a queue's configuration. After [`Answer::Unavailable`] it is not known which one
    /// holds: the caller reads the queues again and tells them with [`Event::Queues`].
    PutQueue(Box<QueueRecord>),
    /// Create a schedule or replace its document; `version` is the one read, 0 for a new one.
    PutSchedule(Box<ScheduleRecord>),
    /// Remove a schedule.
    DeleteSchedule {
        /// Its shard.
        shard: Shard,
        /// Its uid.
        uid: u128,
    },
    /// Pause or resume a schedule.
    PauseSchedule {
        /// Its shard.
        shard: Shard,
        /// Its uid.
        uid: u128,
        /// Whether it is to be paused.
        paused: bool,
    },
    /// Answer [`Answer::Done`] when every schedule held here has its next occurrence by the calendars
    /// told before, durably.
    AwaitCalendars,
    /// Begin or end a backfill of a schedule.
    Backfill {
        /// Its shard.
        shard: Shard,
        /// Its uid.
        uid: u128,
        /// What is asked.
        change: BackfillChange,
    },
    /// Run a schedule's task now, beside its plan.
    TriggerSchedule {
        /// Its shard.
        shard: Shard,
        /// Its uid.
        uid: u128,
        /// The new task's id.
        id: TaskId,
    },
}

/// What is asked of a schedule's backfills.
#[derive(Debug, Clone, PartialEq)]
pub enum BackfillChange {
    /// Begin one. One of the same id that is under way stays as it is.
    Begin(Box<Backfill>),
    /// End the one of this id before it is through. Answers [`Answer::NoBackfill`] when there is none.
    End(String),
}

/// What a worker asks.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The queue.
    pub queue: QueueId,
    /// At most so many tasks; at least 1.
    pub max: usize,
    /// Until when to wait for the first.
    pub wait_until: Time,
    /// The worker's name.
    pub worker: String,
    /// Hashes of the kinds it handles; empty for all.
    pub kinds: Vec<u64>,
}

/// How a worker's attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// Which attempt.
    pub token: AttemptToken,
    /// How.
    pub outcome: WorkerOutcome,
    /// JSON text.
    pub result: Option<String>,
    /// One line.
    pub error: Option<String>,
    /// What it said of its work with its signs of life.
    pub output: Option<Box<Output>>,
}

/// What a worker says of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerOutcome {
    /// It did what it was to do.
    Succeeded,
    /// It did not; the policy decides what follows.
    Failed,
    /// It did not, and is to be tried again after so many microseconds.
    Retry(Option<i64>),
    /// It did not, and is never to be tried again.
    Reject,
    /// It was not begun.
    Release,
}

/// A sign of life.
#[derive(Debug, Clone, PartialEq)]
pub struct Beat {
    /// Which attempt.
    pub token: AttemptToken,
    /// JSON text.
    pub progress: Option<String>,
}

/// How an attempt of this node ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// The task.
    pub seq: Seq,
    /// The random part of the attempt's token.
    pub nonce: u64,
    /// How.
    pub outcome: AttemptOutcome,
    /// Never try again.
    pub reject: bool,
    /// Try again after so many microseconds, as the target asked.
    pub retry_in: Option<i64>,
    /// One line.
    pub error: Option<String>,
    /// Status of the HTTP response.
    pub http_status: Option<u16>,
    /// Exit code of the command.
    pub exit_code: Option<i32>,
    /// JSON text that a worker answered.
    pub result: Option<String>,
    /// What it printed or answered.
    pub output: Option<Box<Output>>,
}

impl Ended {
    /// An attempt that ended with nothing to say.
    pub fn new(seq: Seq, nonce: u64, outcome: AttemptOutcome) -> Ended {
        Ended {
            seq,
            nonce,
            outcome,
            reject: false,
            retry_in: None,
            error: None,
            http_status: None,
            exit_code: None,
            result: None,
            output: None,
        }
    }
}

/// Something to do, in the order given.
#[derive(Debug)]
pub enum Effect {
    /// Commit these units; answer [`Event::Committed`]. At most one is under way.
    Commit {
        /// The batch.
        call: CallId,
        /// Its units.
        units: Vec<Unit>,
    },
    /// Read a span; answer [`Event::Loaded`]. At most one is under way.
    Load {
        /// The load.
        call: CallId,
        /// The shards, and of each what is after this.
        from: Vec<(Shard, Edge)>,
        /// Due before this.
        until: Time,
        /// At most so many.
        limit: usize,
    },
    /// Read overdue rows; answer [`Event::LoadedOverdue`].
    LoadOverdue {
        /// The load.
        call: CallId,
        /// The partition.
        partition: Partition,
        /// After this.
        after: Option<Rank>,
        /// At most so many.
        limit: usize,
    },
    /// Read what a new owner needs; answer [`Event::Reloaded`].
    Reload {
        /// The load.
        call: CallId,
        /// The shard.
        shard: Shard,
        /// Rows to look at besides.
        probe: Vec<Seq>,
    },
    /// Read whole tasks; answer [`Event::Fetched`].
    Fetch {
        /// The fetch.
        call: CallId,
        /// The rows.
        seqs: Vec<Seq>,
    },
    /// Make an attempt; answer [`Event::Ended`].
    Start(Box<StartOrder>),
    /// Stop an attempt; it still answers [`Event::Ended`].
    Stop {
        /// The task.
        seq: Seq,
        /// The random part of the attempt's token.
        nonce: u64,
    },
    /// Answer who waits.
    Reply {
        /// Who.
        reply: ReplyId,
        /// What.
        answer: Answer,
    },
    /// Tell whoever watches.
    Publish(Notice),
}

/// An attempt to make.
#[derive(Debug, Clone, PartialEq)]
pub struct StartOrder {
    /// The task, with its payload.
    pub task: Task,
    /// The attempt.
    pub open: OpenAttempt,
    /// Its longest duration, in microseconds.
    pub timeout: i64,
}

/// Something that watchers may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// When.
    pub at: Time,
    /// The task.
    pub id: TaskId,
    /// Its queue.
    pub queue: QueueId,
    /// Its kind.
    pub kind: String,
    /// Its state from now on.
    pub state: State,
    /// Its attempts so far.
    pub attempt: u32,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// What became of each task of an [`Event::Accept`].
    Accepted(Vec<Done>),
    /// A task of an [`Event::Accept`], or the change, was refused.
    Refused {
        /// Which task.
        index: usize,
        /// Why.
        why: Refusal,
    },
    /// It will not start.
    Cancelled,
    /// Its attempt is being stopped.
    Cancelling,
    /// The task is running, which the request does not allow.
    Running,
    /// The task has had an attempt, which the request does not allow.
    Started,
    /// What was read of the task is no longer true; read again.
    Changed,
    /// The task after the change.
    Edited {
        /// Its version.
        version: u32,
    },
    /// The task is live again.
    Redriven(Box<Task>),
    /// The queue after the change.
    Queue(Box<QueueRecord>),
    /// The schedule after the change.
    Schedule(Box<ScheduleRecord>),
    /// Done; there is nothing to show.
    Done,
    /// There is no such schedule.
    NoSchedule,
    /// The schedule has no such backfill under way.
    NoBackfill,
    /// The schedule's document makes no sense; what is wrong with it.
    BadSchedule(String),
    /// Tasks with their attempts.
    Claimed(Vec<StartOrder>),
    /// For each attempt, whether it is the worker's.
    Tokens(Vec<TokenState>),
    /// Not now.
    Unavailable(Unavailable),
}

/// Why not now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// The shard has no owner here, or is being loaded.
    NotOwner,
    /// The engine has too much to write already.
    Overloaded,
    /// The node is shutting down.
    Draining,
    /// The disk is full.
    Full,
    /// The store failed; nothing was committed, as far as is known.
    Store(String),
}

/// Whether an attempt is still the worker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenState {
    /// It is; a completion was taken.
    Yours,
    /// It is, and is asked to stop.
    Cancelled,
    /// It is not: it ran out, was completed, or never was.
    Gone,
}

/// A schedule's cursor and its waiting task, for snapshots and tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleView {
    /// The schedule.
    pub uid: u128,
    /// Where it stands.
    pub cursor: Cursor,
    /// Live tasks.
    pub live: usize,
    /// Whether its waiting occurrence waits for the previous run to end.
    pub parked: bool,
}
