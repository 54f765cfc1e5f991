//! A schedule as stored: its document and where it stands.
//!
//! The rule is data here; what it means is another crate's knowledge.

use serde::{Deserialize, Serialize};

use crate::id::{NamespaceId, Partition, Seq, Shard, TaskId};
use crate::state::State;
use crate::task::TaskSpec;
use crate::time::Time;

/// When occurrences are planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A cron expression of a dialect (`vixie`, `quartz`, `spring`).
    Cron {
        /// The expression.
        expr: String,
        /// Its dialect.
        dialect: String,
    },
    /// Fixed rate, in microseconds.
    Every(i64),
    /// Fixed delay after the previous run's end, in microseconds.
    After(i64),
    /// Every n calendar units at a civil time.
    Calendar(CalendarRule),
}

/// A calendar rule, in the words of its document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalendarRule {
    /// The period: `1 month`, `2 weeks`.
    pub every: String,
    /// The day within it: a number, or a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// The civil time of day.
    pub at: String,
    /// `clamp` or `skip`.
    pub month_end: String,
}

/// What happens to occurrences whose time passed while nothing could run them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misfire {
    /// They are skipped.
    Skip,
    /// One run catches up, with the latest missed logical time.
    #[default]
    Once,
    /// Each runs, up to the limit; the oldest beyond it are dropped.
    All,
}

/// What happens when the previous run is not final at an occurrence's due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Both run.
    Allow,
    /// The new one is skipped.
    #[default]
    Skip,
    /// The new one waits; at most one waits.
    Wait,
    /// The previous one is cancelled.
    CancelRunning,
}

/// What a user writes of a schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleDoc {
    /// When.
    pub rule: Rule,
    /// IANA zone name.
    pub tz: String,
    /// `shift` or `skip`.
    pub gap: String,
    /// `first`, `last` or `both`.
    pub fold: String,
    /// No occurrence before this instant; anchors `every`.
    #[serde(default)]
    pub start: Option<Time>,
    /// No occurrence after this instant.
    #[serde(default)]
    pub end: Option<Time>,
    /// Occurrences in all.
    #[serde(default)]
    pub max_runs: Option<u64>,
    /// Largest stable delay added to an occurrence, in microseconds.
    #[serde(default)]
    pub jitter: i64,
    /// Names of exclusion calendars of its namespace, which a store sees to that they exist.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Misfire policy.
    #[serde(default)]
    pub misfire: Misfire,
    /// Lateness in microseconds from which an occurrence is a misfire; the policy's default
    /// (1 s for `skip`, unlimited for others) when absent.
    #[serde(default)]
    pub misfire_grace: Option<i64>,
    /// The most that `all` runs.
    #[serde(default = "default_misfire_limit")]
    pub misfire_limit: u32,
    /// Overlap policy.
    #[serde(default)]
    pub overlap: Overlap,
    /// A run is missed when none succeeded for so long, in microseconds.
    #[serde(default)]
    pub expect_within: Option<i64>,
    /// What each occurrence runs.
    pub task: TaskSpec,
}

fn default_misfire_limit() -> u32 {
    100
}

/// Where a schedule stands: the part that the engine writes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cursor {
    /// The stored next occurrence of origin `plan`, if there is one.
    #[serde(default)]
    pub next: Option<NextOccurrence>,
    /// Up to where the plan is over, because what was planned has started, ended or was skipped: nothing
    /// of logical time up to here is planned again, whatever becomes of the document, the calendars or
    /// the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Time>,
    /// Planned occurrences created so far, which `max_runs` bounds.
    #[serde(default)]
    pub created: u64,
    /// The sum of the versions of the exclusion calendars that `next` was planned by, which grows with
    /// every change of one of them. An owner that knows newer ones plans it anew.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calendars: u64,
    /// The backfills under way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backfills: Vec<Backfill>,
}

/// The occurrences of a past span, which are created a few at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfill {
    /// Its id; the tasks' origin is `backfill:<id>`.
    pub id: String,
    /// The first instant of the span.
    pub from: Time,
    /// The end of the span, itself not included.
    pub until: Time,
    /// What comes before this is created.
    pub next: Time,
    /// Occurrences that may be live at once.
    pub in_flight: u32,
    /// Occurrences created so far.
    pub created: u64,
    /// Occurrences of the span, as they were counted when it began.
    pub occurrences: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The occurrence that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextOccurrence {
    /// Its task.
    pub id: TaskId,
    /// Its planned time.
    pub logical: Time,
    /// Its due time: planned time and jitter.
    pub due: Time,
}

/// A schedule as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleRecord {
    /// Never reused.
    pub uid: u128,
    /// Its namespace.
    pub namespace: NamespaceId,
    /// Its name, unique in the namespace.
    pub name: String,
    /// Where its tasks wait.
    pub partition: Partition,
    /// The shard of that partition: the schedule's owner.
    pub shard: Shard,
    /// Grows with every write.
    pub version: u32,
    /// Whether it creates nothing.
    pub paused: bool,
    /// When it was first created.
    pub created_at: Time,
    /// When its document last changed.
    pub updated_at: Time,
    /// What the user wrote.
    pub doc: ScheduleDoc,
    /// Where it stands.
    pub cursor: Cursor,
}

/// A live task of a schedule, as a reload finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveOccurrence {
    /// Its row.
    pub seq: Seq,
    /// Its id.
    pub id: TaskId,
    /// Its version.
    pub version: u32,
    /// `Scheduled` or `Running`.
    pub state: State,
    /// Attempts so far: a scheduled task with attempts is a run that is not over.
    pub attempt: u32,
    /// Its origin.
    pub origin: String,
    /// Its planned time.
    pub logical: Time,
    /// Its due time.
    pub due: Time,
}
