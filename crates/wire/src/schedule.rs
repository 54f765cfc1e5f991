//! Schedules: as given, as shown, previewed, triggered, backfilled.
//!
//! The rule is one of four fields, so that a document reads as people write it. That exactly one
//! is given is for the server to judge, with every other rule about schedules.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::json::present;
use crate::task::{is_default, is_false, is_zero};
use crate::{Duration, Json, NewCalendar, Pairs, Retry, Target, TaskState, Timestamp};

/// A schedule to create or replace: exactly one of `cron`, `every`, `after`, `calendar`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSchedule {
    /// Its name; in a request it may be left to the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A cron expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// How the cron expression is read. Default: `vixie`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// Fixed rate: occurrence n is `start` (else the Unix epoch) plus n times this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Fixed delay: this long after the previous run became final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Duration>,
    /// Every so many days, weeks, months, quarters or years at a civil time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<CalendarRule>,
    /// The IANA name of its time zone. Default: `UTC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// What happens to a civil time that a change of clocks leaves out. Default: `shift`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// Which one of a civil time that comes twice. Default: `first`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fold: Option<Fold>,
    /// No occurrence before this instant. Default: no such bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// No occurrence after this instant. Default: no such bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// No more planned occurrences than this. Default: no such bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u64>,
    /// Each occurrence is moved later by up to this much, always the same for the same occurrence.
    /// Default: 0 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Duration>,
    /// Names of calendars whose days are left out. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// What happens to occurrences whose time passed while nothing could run them. Default: `once`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfire: Option<Misfire>,
    /// What happens when an occurrence is due and the previous run is not final. Default: `skip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// Whether it plans nothing. Default: stays as it is; false for a new schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Warn when no run succeeded within this time. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_within: Option<Duration>,
    /// The task that each occurrence creates.
    pub task: TaskTemplate,
}

impl NewSchedule {
    /// A schedule of `task` without a rule yet.
    pub fn new(task: TaskTemplate) -> NewSchedule {
        NewSchedule {
            name: None,
            cron: None,
            dialect: None,
            every: None,
            after: None,
            calendar: None,
            tz: None,
            gap: None,
            fold: None,
            start: None,
            end: None,
            max_runs: None,
            jitter: None,
            exclude: Vec::new(),
            misfire: None,
            overlap: None,
            paused: None,
            expect_within: None,
            task,
        }
    }
}

/// A task without times, id and key: what each occurrence creates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskTemplate {
    /// The queue it waits in. Default: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// What sort of work it is. Default: the target's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How its attempts are made.
    pub target: Target,
    /// Any JSON; the body of an `http` target. Default: none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// From -8 to 7, higher starts first among the ready. Default: 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(minimum = -8, maximum = 7, default = 0)]
    pub priority: i32,
    /// How long one attempt may take. Default: the queue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Never attempted twice, even after a crash. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_most_once: bool,
    /// What happens after an attempt that failed. Default: the queue's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Tasks with the same one count against the queue's `per_key_concurrency`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<String>,
    /// Free names and values to find it by. Default: none.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub tags: Pairs,
}

impl TaskTemplate {
    /// A template for `target`, everything else by default.
    pub fn new(target: Target) -> TaskTemplate {
        TaskTemplate {
            queue: None,
            kind: None,
            target,
            payload: None,
            priority: 0,
            timeout: None,
            at_most_once: false,
            retry: None,
            concurrency_key: None,
            tags: Pairs::new(),
        }
    }
}

/// How a cron expression is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Five fields, as in crontab files.
    #[default]
    Vixie,
    /// Six or seven fields, Sunday is 1.
    Quartz,
    /// Six fields, Sunday is 0 and 7.
    Spring,
}

/// What happens to a civil time that a change of clocks leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// It runs at the first instant after the gap.
    #[default]
    Shift,
    /// It is left out.
    Skip,
}

/// Which one of a civil time that comes twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fold {
    /// The first.
    #[default]
    First,
    /// The last.
    Last,
    /// Both.
    Both,
}

/// Every so many days, weeks, months, quarters or years at a civil time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CalendarRule {
    /// How often, such as `1 month`, `2 weeks`, `3 days`, `1 quarter`, `1 year`; counted from the period
    /// that holds `start`.
    #[schema(example = "1 month")]
    pub every: String,
    /// On which day: of the month (1 to 31; of a quarter's or year's month, which is that of `start`), of
    /// the week (1, Monday, to 7), or `last_business_day` of the month, quarter or year. Default: that
    /// of `start`; without one the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<On>,
    /// At which civil time, such as `02:00` or `02:00:30`. Default: midnight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "02:00")]
    pub at: Option<String>,
    /// What happens in a month without that day. Default: `clamp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub month_end: Option<MonthEnd>,
}

/// A day: a number, or a word such as `last_business_day`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum On {
    /// The day of the month.
    Day(i64),
    /// A day by name.
    Name(String),
}

/// What happens in a month without the day asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MonthEnd {
    /// The month's last day instead.
    #[default]
    Clamp,
    /// No occurrence in that month.
    Skip,
}

/// What happens to occurrences whose time passed while nothing could run them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Misfire {
    /// Default: `once`.
    #[serde(default)]
    pub policy: MisfirePolicy,
    /// No later than this it is no misfire. Default: 1 s for `skip`, unlimited otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Duration>,
    /// With `all`: no more catch-up runs than this, the oldest are dropped. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Which missed occurrences are made up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MisfirePolicy {
    /// None.
    Skip,
    /// One catch-up run for all, with the latest missed logical time.
    #[default]
    Once,
    /// All, up to the limit.
    All,
}

/// What happens when an occurrence is due and the previous run is not final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Both run.
    Allow,
    /// The new one is skipped.
    #[default]
    Skip,
    /// The new one waits; at most one does.
    Wait,
    /// The running one is cancelled.
    CancelRunning,
}

/// A schedule as shown: what was given with defaults filled in, and where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// The separate world of names it lives in.
    pub namespace: String,
    /// Its identity: never reused, not even for another schedule of the same name.
    pub uid: Uuid,
    /// A cron expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// How the cron expression is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// Fixed rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Fixed delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Duration>,
    /// Every so many days, weeks, months, quarters or years at a civil time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<CalendarRule>,
    /// The IANA name of its time zone.
    pub tz: String,
    /// What happens to a civil time that a change of clocks leaves out.
    #[serde(default)]
    pub gap: Gap,
    /// Which one of a civil time that comes twice.
    #[serde(default)]
    pub fold: Fold,
    /// No occurrence before this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// No occurrence after this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// No more planned occurrences than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u64>,
    /// Each occurrence is moved later by up to this much.
    #[serde(default, skip_serializing_if = "is_default")]
    pub jitter: Duration,
    /// Names of calendars whose days are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// What happens to occurrences whose time passed while nothing could run them.
    #[serde(default)]
    pub misfire: Misfire,
    /// What happens when an occurrence is due and the previous run is not final.
    #[serde(default)]
    pub overlap: Overlap,
    /// Whether it plans nothing.
    pub paused: bool,
    /// Warn when no run succeeded within this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_within: Option<Duration>,
    /// The task that each occurrence creates.
    pub task: TaskTemplate,
    /// The next occurrence; absent when there is none, or it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// The next occurrence in its zone, with offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_local: Option<String>,
    /// Why the next occurrence is when it is, as in [`Occurrence`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The last occurrence and what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastOccurrence>,
    /// How many planned occurrences there were.
    #[serde(default)]
    pub runs: u64,
    /// The backfills under way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backfills: Vec<BackfillProgress>,
    /// Whether `expect_within` has passed without a run that succeeded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub overdue: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Grows with every change.
    pub version: u64,
}

impl From<Schedule> for NewSchedule {
    /// The document that would create the same schedule again.
    fn from(s: Schedule) -> NewSchedule {
        NewSchedule {
            name: Some(s.name),
            cron: s.cron,
            dialect: s.dialect,
            every: s.every,
            after: s.after,
            calendar: s.calendar,
            tz: Some(s.tz),
            gap: Some(s.gap),
            fold: Some(s.fold),
            start: s.start,
            end: s.end,
            max_runs: s.max_runs,
            jitter: Some(s.jitter),
            exclude: s.exclude,
            misfire: Some(s.misfire),
            overlap: Some(s.overlap),
            paused: Some(s.paused),
            expect_within: s.expect_within,
            task: s.task,
        }
    }
}

/// The last occurrence of a schedule and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastOccurrence {
    /// Its planned time.
    pub logical_time: Timestamp,
    /// The task it created.
    pub task_id: Uuid,
    /// Where that task is in its life; its outcome when that is final.
    pub state: TaskState,
    /// When that task became final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// Preview a schedule without storing it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {
    /// The schedule; its name stands in where `~` or jitter needs one.
    pub schedule: NewSchedule,
    /// Only occurrences strictly after this instant. Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Timestamp>,
    /// How many. Default: 10; at most 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub n: Option<u32>,
    /// Calendars to use besides the stored ones, or in their place; the schedule names them in
    /// `exclude`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calendars: Vec<NewCalendar>,
}

/// The next occurrences of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Preview {
    /// The occurrences, earliest first; empty when the rule never fires again.
    pub items: Vec<Occurrence>,
    /// What calendars leave out after the last of them, when no other follows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// One planned time and why it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Occurrence {
    /// The instant it is due at.
    pub at: Timestamp,
    /// Where the rule has it, when jitter moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_time: Option<Timestamp>,
    /// The same in the schedule's zone, with offset.
    pub local: String,
    /// `normal`, or why it differs from the rule as written: shifted by a gap, first or last of a
    /// fold, clamped to a month's end, jittered; several are joined by commas.
    pub why: String,
    /// What calendars leave out between the occurrence before and this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// Occurrences in a row that a calendar leaves out for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftOut {
    /// Where the rule has the first of them.
    pub from: Timestamp,
    /// Where the rule has the last of them.
    pub to: Timestamp,
    /// The first in the schedule's zone, with offset.
    pub local: String,
    /// How many; counted up to 1,000, and up to 100,000 in one preview.
    pub count: u64,
    /// The calendar, the first in `exclude` that has the days.
    pub calendar: String,
    /// Which days of the calendar they are: `2026-10-01`, `2026-10-01 to 2026-10-07` or `every sun`.
    pub why: String,
}

/// What `trigger` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TriggerReply {
    /// The task that was created, due now.
    pub task_id: Uuid,
    /// Its origin, `trigger:<id>`.
    pub origin: String,
}

/// Run the occurrences of a past span again, or for the first time: a few at a time, below everything else
/// in priority, beside the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillRequest {
    /// Makes the request idempotent: the same id creates the same tasks once. Default: a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The first instant of the span.
    pub from: Timestamp,
    /// The end of the span, itself not included; not after now.
    pub to: Timestamp,
    /// How many of its tasks may be live at once. Default: 1; at most 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub in_flight: Option<u32>,
    /// Only count the occurrences. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

/// What `backfill` answers. Its progress is shown with the schedule until it is through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillReply {
    /// The backfill's id; the tasks' origin is `backfill:<id>`.
    pub id: String,
    /// How many occurrences the span has.
    pub occurrences: u64,
    /// The planned time of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Timestamp>,
    /// The planned time of the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// How many are created so far.
    pub created: u64,
    /// How many of its tasks may be live at once.
    pub in_flight: u32,
    /// Whether nothing was begun because that was asked for.
    #[serde(default)]
    pub dry_run: bool,
}

/// A backfill under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillProgress {
    /// Its id; the tasks' origin is `backfill:<id>`.
    pub id: String,
    /// The first instant of the span.
    pub from: Timestamp,
    /// The end of the span, itself not included.
    pub to: Timestamp,
    /// How many occurrences the span had when it began.
    pub occurrences: u64,
    /// How many are created so far.
    pub created: u64,
    /// How many of its tasks may be live at once.
    pub in_flight: u32,
}
