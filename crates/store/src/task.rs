//! What a task is: its definition, its record, its attempts, and the stub the wheel holds.
//!
//! These are domain types. The documents of the HTTP API are elsewhere; the serde derives here
//! are the encoding inside a store, where fields may be added with a default and never change
//! their meaning.

use serde::{Deserialize, Serialize};

use crate::hash::stable_hash_nonzero;
use crate::id::{AttemptToken, Epoch, Fence, NamespaceId, Partition, QueueId, Seq, Shard, TaskId};
use crate::state::{AttemptOutcome, State};
use crate::time::Time;

/// How an attempt is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// An HTTP request; the body is the payload.
    Http(HttpTarget),
    /// A process on the node.
    Command(CommandTarget),
    /// Pulled by a client.
    Worker,
}

/// The request of an `http` target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpTarget {
    /// Request method, upper case.
    pub method: String,
    /// Absolute `http` or `https` URL.
    pub url: String,
    /// Further headers, in order; a value `secret:NAME` is resolved when the attempt starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
}

/// The process of a `command` target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandTarget {
    /// Program and arguments; no shell is involved.
    pub argv: Vec<String>,
    /// Variables added to the environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
    /// Working directory; the node's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Text for standard input; empty when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
}

/// How long to wait before the next attempt. Durations are microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backoff {
    /// How the wait grows.
    pub shape: BackoffShape,
    /// The wait before the second attempt.
    pub initial: i64,
    /// Growth per attempt, for the exponential shape; at least 1.
    pub factor: f64,
    /// The longest wait.
    pub max: i64,
    /// Whether the wait is drawn evenly from zero to the computed one.
    pub full_jitter: bool,
}

/// How a backoff grows with the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackoffShape {
    /// Always `initial`.
    Fixed,
    /// `initial` times the number of failed attempts.
    Linear,
    /// `initial` times `factor` to the number of failed attempts less one.
    Exponential,
}

impl Backoff {
    /// The wait in microseconds after `failed` attempts (1 or more), before jitter.
    pub fn wait(&self, failed: u32) -> i64 {
        let n = f64::from(failed.max(1));
        let initial = self.initial as f64;
        let wait = match self.shape {
            BackoffShape::Fixed => initial,
            BackoffShape::Linear => initial * n,
            BackoffShape::Exponential => initial * self.factor.powf(n - 1.0),
        };
        (wait.clamp(0.0, 9e18) as i64).min(self.max).max(0)
    }
}

/// When a failed task is tried again; what is absent comes from the queue, then the defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Attempts in all, lost and released ones not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Attempts that may be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lost: Option<u32>,
    /// Microseconds after the first due time when no further attempt is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_after: Option<i64>,
    /// The wait between attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
}

/// What to run and how: the part of a task that its creator writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// What sort of work it is.
    pub kind: String,
    /// At most one live task per (queue, key).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How an attempt is made.
    pub target: Target,
    /// JSON text handed to the target, as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// −8 to 7; higher starts first.
    #[serde(default)]
    pub priority: i8,
    /// Longest attempt, in microseconds; the queue's or the target's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
    /// Not started for the first time at or after this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// Start durable first, a lost attempt is final.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_most_once: bool,
    /// Retry policy, as far as given.
    #[serde(default)]
    pub retry: Retry,
    /// Tasks with the same one share the queue's per-key concurrency, and a partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<String>,
    /// Free labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<(String, String)>,
}

/// Which occurrence of which schedule a task is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScheduleLink {
    /// The schedule's never-reused uid.
    pub uid: u128,
    /// Its name when the task was created.
    pub name: String,
    /// `plan`, `backfill:<id>` or `trigger:<id>`.
    pub origin: String,
    /// The planned time.
    pub logical: Time,
}

/// A run of occurrences that were not run: one record stands for all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRun {
    /// Logical time of the first.
    pub from: Time,
    /// Logical time of the last.
    pub to: Time,
    /// How many.
    pub count: u64,
    /// `misfire` or `overlap`.
    pub reason: String,
}

/// A task about to be created.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTask {
    /// Its id.
    pub id: TaskId,
    /// Set when the client chose the id: a hash of what was asked, which tells "the same again"
    /// from "another under this id". Without it the id is known to be fresh.
    pub fingerprint: Option<u64>,
    /// Its namespace.
    pub namespace: NamespaceId,
    /// Its queue and partition.
    pub partition: Partition,
    /// The shard of that partition.
    pub shard: Shard,
    /// When it may start: a whole millisecond.
    pub due: Time,
    /// When it was accepted.
    pub created_at: Time,
    /// What to run.
    pub spec: TaskSpec,
    /// Its occurrence, when a schedule creates it.
    pub schedule: Option<ScheduleLink>,
    /// When its key is taken: `true` yields the existing task, `false` refuses.
    pub keep_existing: bool,
    /// Write an inbox row beside it, because its inserter does not own the shard.
    pub inbox: bool,
}

impl NewTask {
    /// The stub of this task once it has its sequence.
    pub fn stub(&self, seq: Seq) -> Stub {
        Stub::new(seq, 0, self.due, self.partition, &self.spec, self.schedule.as_ref(), 0, 0)
    }
}

/// What memory holds of a task in the window. Everything else is read just before its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stub {
    /// Its row.
    pub seq: Seq,
    /// When it may start.
    pub due: Time,
    /// When it expires unless started before; [`Time::MAX`] for never.
    pub expires: Time,
    /// Where it waits.
    pub partition: Partition,
    /// Its version, for compare-and-set.
    pub version: u32,
    /// Bytes of its payload and definition, roughly.
    pub bytes: u32,
    /// Hash of its concurrency key; 0 for none.
    pub concurrency_hash: u64,
    /// Hash of its kind, for workers' filters.
    pub kind_hash: u64,
    /// Attempts so far.
    pub attempt: u32,
    /// −8 to 7.
    pub priority: i8,
    /// See the constants of [`StubFlags`].
    pub flags: StubFlags,
}

/// Facts about a task that decide how it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StubFlags(pub u8);

impl StubFlags {
    /// Its target is `worker`: it waits for a claim.
    pub const WORKER: StubFlags = StubFlags(1);
    /// Its start is made durable before it begins: `at_most_once`, or it lost an attempt.
    pub const DURABLE_START: StubFlags = StubFlags(2);
    /// A schedule created it.
    pub const OCCURRENCE: StubFlags = StubFlags(4);

    /// Whether all of `other` is set.
    pub fn has(self, other: StubFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`.
    #[must_use]
    pub fn with(self, other: StubFlags) -> StubFlags {
        StubFlags(self.0 | other.0)
    }
}

/// The order in which a partition's ready tasks start: higher priority, then due, then sequence.
/// Smaller is sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// Negated priority.
    pub neg_priority: i8,
    /// Due time.
    pub due: Time,
    /// Creation sequence.
    pub seq: Seq,
}

impl Stub {
    /// Builds a stub from the parts of a record. Stores use it for their rows, so that the facts
    /// that decide a start are derived in one place.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        seq: Seq,
        version: u32,
        due: Time,
        partition: Partition,
        spec: &TaskSpec,
        schedule: Option<&ScheduleLink>,
        attempt: u32,
        lost: u32,
    ) -> Stub {
        let mut flags = StubFlags::default();
        if spec.target == Target::Worker {
            flags = flags.with(StubFlags::WORKER);
        }
        if spec.at_most_once || lost > 0 {
            flags = flags.with(StubFlags::DURABLE_START);
        }
        if schedule.is_some() {
            flags = flags.with(StubFlags::OCCURRENCE);
        }
        Stub {
            seq,
            due,
            expires: if attempt == 0 { spec.expires_at.unwrap_or(Time::MAX) } else { Time::MAX },
            partition,
            version,
            bytes: spec.weight(),
            concurrency_hash: spec.concurrency_hash(),
            kind_hash: kind_hash(&spec.kind),
            attempt,
            priority: spec.priority,
            flags,
        }
    }

    /// Its place among the ready tasks of its partition.
    pub fn rank(&self) -> Rank {
        Rank { neg_priority: -self.priority, due: self.due, seq: self.seq }
    }
}

impl TaskSpec {
    /// Hash of the concurrency key, 0 when there is none: how limits per key are counted.
    pub fn concurrency_hash(&self) -> u64 {
        self.concurrency_key.as_ref().map_or(0, |k| stable_hash_nonzero(&[k.as_bytes()]))
    }

    /// Bytes it takes in memory, roughly: payload and the long parts of the target.
    pub fn weight(&self) -> u32 {
        let target = match &self.target {
            Target::Http(h) => {
                h.url.len() + h.headers.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>()
            }
            Target::Command(c) => {
                c.argv.iter().map(String::len).sum::<usize>()
                    + c.env.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>()
                    + c.stdin.as_ref().map_or(0, String::len)
            }
            Target::Worker => 0,
        };
        let payload = self.payload.as_ref().map_or(0, String::len);
        u32::try_from(256 + target + payload).unwrap_or(u32::MAX)
    }
}

/// Hash by which kinds are told apart in filters.
pub fn kind_hash(kind: &str) -> u64 {
    stable_hash_nonzero(&[kind.as_bytes()])
}

/// The attempt that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenAttempt {
    /// Its number, from 1.
    pub n: u32,
    /// The random part of its token.
    pub nonce: u64,
    /// The epoch it was started under.
    pub epoch: Epoch,
    /// The node that started it.
    pub node: String,
    /// The worker that claimed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The due time it was started for.
    pub due: Time,
    /// When it became ready.
    pub ready_at: Time,
    /// When it started.
    pub started_at: Time,
    /// When the claim runs out, for workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_until: Option<Time>,
}

impl OpenAttempt {
    /// The number that its target is told.
    pub fn fence(&self) -> Fence {
        Fence::new(self.epoch, self.n)
    }

    /// The token of this attempt of the task `seq` in `shard`.
    pub fn token(&self, shard: Shard, seq: Seq) -> AttemptToken {
        AttemptToken { shard, seq, attempt: self.n, nonce: self.nonce }
    }
}

/// An attempt that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// Its number, from 1.
    pub n: u32,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// The number that its target was told.
    pub fence: Fence,
    /// The node that started it.
    pub node: String,
    /// The worker that claimed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The due time it was started for.
    pub due: Time,
    /// When it became ready.
    pub ready_at: Time,
    /// When it started.
    pub started_at: Time,
    /// When it ended.
    pub ended_at: Time,
    /// What went wrong, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Status of the HTTP response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Exit code of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What a worker answered, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Bytes printed or answered in all; what was kept is an [`Output`].
    #[serde(default)]
    pub output_bytes: u64,
    /// Whether some of them were not kept.
    #[serde(default)]
    pub output_truncated: bool,
}

/// What is kept of what an attempt printed or answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes; empty when everything fits the head.
    pub tail: Vec<u8>,
    /// Bytes in all, kept or not.
    pub total: u64,
}

impl Output {
    /// Whether bytes between head and tail were dropped.
    pub fn is_truncated(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }
}

/// Everything a store knows of a task, live or in history.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its row.
    pub seq: Seq,
    /// Its id.
    pub id: TaskId,
    /// Its namespace.
    pub namespace: NamespaceId,
    /// Its queue and partition.
    pub partition: Partition,
    /// The shard of that partition.
    pub shard: Shard,
    /// Where it is in its life.
    pub state: State,
    /// Its version; grows with every write to it, and is kept when it moves.
    pub version: u32,
    /// What to run.
    pub spec: TaskSpec,
    /// When it may start, or was to.
    pub due: Time,
    /// The due time of its first attempt, from which `give_up_after` counts.
    pub first_due: Time,
    /// When it was accepted.
    pub created_at: Time,
    /// When it reached a final state.
    pub finished_at: Option<Time>,
    /// Attempts so far, of every outcome.
    pub attempt: u32,
    /// How many of them were lost.
    pub lost: u32,
    /// How many of them were released.
    pub released: u32,
    /// Its occurrence.
    pub schedule: Option<ScheduleLink>,
    /// The attempt under way.
    pub open: Option<OpenAttempt>,
    /// Whether that attempt was asked to stop for good.
    pub cancel_requested: bool,
    /// The attempts that ended, oldest first.
    pub attempts: Vec<AttemptRecord>,
    /// What a worker last said of its progress, as JSON text.
    pub progress: Option<String>,
    /// Why it ended as it did, when the outcome alone does not say.
    pub outcome_reason: Option<String>,
    /// The occurrences it stands for, when it was skipped.
    pub skipped: Option<SkippedRun>,
    /// See [`NewTask::fingerprint`].
    pub fingerprint: Option<u64>,
}

impl Task {
    /// The stub of this record.
    pub fn stub(&self) -> Stub {
        Stub::new(
            self.seq,
            self.version,
            self.due,
            self.partition,
            &self.spec,
            self.schedule.as_ref(),
            self.attempt,
            self.lost,
        )
    }

    /// Its queue.
    pub fn queue(&self) -> QueueId {
        self.partition.queue
    }

    /// Attempts that count against `max_attempts`.
    pub fn counted_attempts(&self) -> u32 {
        self.attempt.saturating_sub(self.lost).saturating_sub(self.released)
    }
}
