//! Schedules as shown.

use tourbillon_schedule::MIN_INSTANT;
use tourbillon_store as store;
use tourbillon_store::schedule::{Backfill, CalendarRule, Misfire, Overlap, Rule};
use tourbillon_store::{ScheduleRecord, TaskSpec, Time};
use tourbillon_wire as wire;
use tourbillon_wire::{LastOccurrence, MisfirePolicy};
use uuid::Uuid;

use super::{at, json, task};
use crate::convert::{retry, target, time};
use crate::plan;

/// A schedule; `last` is its latest finished task.
pub(crate) fn schedule(
    r: &ScheduleRecord,
    namespace: &str,
    queue: &str,
    last: Option<&store::Task>,
    now: Time,
) -> wire::Schedule {
    let doc = &r.doc;
    let timing = plan::timing(doc, &r.name).ok();
    // What is stored is what will run; why it is there is worked out again.
    let next = r.cursor.next.filter(|_| !r.paused);
    let found = next.and_then(|next| {
        let timing = timing.as_ref()?;
        let before = next.logical.0.saturating_sub(1).max(MIN_INSTANT);
        let why = timing.next_after(before).filter(|o| o.logical == next.logical.0);
        Some((timing.local(next.due.0), why.map(|o| o.why.to_string())))
    });
    let (next_local, why) = found.unzip();
    let (cron, dialect) = match &doc.rule {
        Rule::Cron { expr, dialect } => (Some(expr.clone()), Some(dialect_of(dialect))),
        _ => (None, None),
    };
    let overdue = doc.expect_within.is_some_and(|within| {
        let since = last
            .filter(|t| t.state == store::State::Succeeded)
            .and_then(|t| t.finished_at)
            .unwrap_or(r.created_at);
        !r.paused && now.since(since) > within
    });
    wire::Schedule {
        name: r.name.clone(),
        namespace: namespace.to_owned(),
        uid: Uuid::from_u128(r.uid),
        cron,
        dialect,
        every: match doc.rule {
            Rule::Every(micros) => Some(time::shown(micros)),
            _ => None,
        },
        after: match doc.rule {
            Rule::After(micros) => Some(time::shown(micros)),
            _ => None,
        },
        calendar: match &doc.rule {
            Rule::Calendar(rule) => Some(calendar(rule)),
            _ => None,
        },
        tz: doc.tz.clone(),
        gap: if doc.gap == "skip" { wire::Gap::Skip } else { wire::Gap::Shift },
        fold: match doc.fold.as_str() {
            "last" => wire::Fold::Last,
            "both" => wire::Fold::Both,
            _ => wire::Fold::First,
        },
        start: doc.start.map(at),
        end: doc.end.map(at),
        max_runs: doc.max_runs,
        jitter: time::shown(doc.jitter),
        exclude: doc.exclude.clone(),
        misfire: wire::Misfire {
            policy: match doc.misfire {
                Misfire::Skip => MisfirePolicy::Skip,
                Misfire::Once => MisfirePolicy::Once,
                Misfire::All => MisfirePolicy::All,
            },
            grace: doc.misfire_grace.map(time::shown),
            limit: Some(doc.misfire_limit),
        },
        overlap: match doc.overlap {
            Overlap::Allow => wire::Overlap::Allow,
            Overlap::Skip => wire::Overlap::Skip,
            Overlap::Wait => wire::Overlap::Wait,
            Overlap::CancelRunning => wire::Overlap::CancelRunning,
        },
        paused: r.paused,
        expect_within: doc.expect_within.map(time::shown),
        task: template(&doc.task, queue),
        next_at: next.map(|n| at(n.due)),
        next_local,
        why: why.flatten(),
        last: last.and_then(|t| {
            Some(LastOccurrence {
                logical_time: at(t.schedule.as_ref()?.logical),
                task_id: Uuid::from_u128(t.id.0),
                state: task::state(t.state, t.due, now),
                finished_at: t.finished_at.map(at),
            })
        }),
        runs: r.cursor.created,
        backfills: r.cursor.backfills.iter().map(backfill).collect(),
        overdue,
        created_at: at(r.created_at),
        updated_at: at(r.updated_at),
        version: r.version.into(),
    }
}

fn backfill(b: &Backfill) -> wire::BackfillProgress {
    wire::BackfillProgress {
        id: b.id.clone(),
        from: at(b.from),
        to: at(b.until),
        occurrences: b.occurrences,
        created: b.created,
        in_flight: b.in_flight,
    }
}

fn calendar(rule: &CalendarRule) -> wire::CalendarRule {
    wire::CalendarRule {
        every: rule.every.clone(),
        on: rule.on.as_ref().map(|on| match on.parse() {
            Ok(day) => wire::On::Day(day),
            Err(_) => wire::On::Name(on.clone()),
        }),
        at: Some(rule.at.clone()),
        month_end: Some(match rule.month_end.as_str() {
            "skip" => wire::MonthEnd::Skip,
            _ => wire::MonthEnd::Clamp,
        }),
    }
}

fn dialect_of(name: &str) -> wire::Dialect {
    match name {
        "quartz" => wire::Dialect::Quartz,
        "spring" => wire::Dialect::Spring,
        _ => wire::Dialect::Vixie,
    }
}

fn template(spec: &TaskSpec, queue: &str) -> wire::TaskTemplate {
    wire::TaskTemplate {
        queue: Some(queue.to_owned()),
        kind: Some(spec.kind.clone()),
        target: target::show(&spec.target),
        payload: spec.payload.as_deref().and_then(json),
        priority: spec.priority.into(),
        timeout: spec.timeout.map(time::shown),
        at_most_once: spec.at_most_once,
        retry: retry::show(&spec.retry),
        concurrency_key: spec.concurrency_key.clone(),
        tags: target::pairs(&spec.tags),
    }
}
