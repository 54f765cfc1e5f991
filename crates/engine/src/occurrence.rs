//! Schedules: the next occurrence is a stored task, and moving on is part of its own writes.
//!
//! A schedule's cursor names its waiting occurrence. The batch in which that one starts (for a
//! fixed delay: becomes final) or ends without starting also advances the cursor and inserts
//! the next, in one unit, so a crash can neither lose nor double an occurrence. Misfire and
//! overlap are judged when it is about to start; a run of occurrences that are not run is one
//! skipped task.

mod requests;

use rustc_hash::FxHashMap;
use tourbillon_schedule::{RuleKind, Timing};
use tourbillon_store::schedule::{Cursor, LiveOccurrence, Misfire, NextOccurrence, Overlap};
use tourbillon_store::task::{ScheduleLink, SkippedRun};
use tourbillon_store::time::SECOND;
use tourbillon_store::{
    NamespaceId, NewTask, Partition, ScheduleRecord, Seq, Shard, State, Stub, Task, TaskId, Time,
    Unit, Write,
};

use crate::api::{ReplyId, Request, Unavailable};
use crate::attempt::Stage;
use crate::backfill::backfill_of;
use crate::batch::{Planned, Ticket};
use crate::engine::{Engine, Line, Place};
use crate::plan::{Bounds, Taken, next_of};
use crate::timing::{compile_in, occurrence_id};

/// The origin of planned occurrences.
pub(crate) const PLAN: &str = "plan";
/// Occurrences of a cron rule counted one by one for a record of skipped ones.
const COUNT_MAX: u64 = 100_000;

/// Every schedule of the held shards.
#[derive(Debug, Default)]
pub(crate) struct Schedules {
    by_uid: FxHashMap<u128, Schedule>,
    by_task: FxHashMap<Seq, u128>,
    /// Kept beside the schedules, which are read again when planning runs into a time.
    taken: FxHashMap<u128, Taken>,
}

#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) record: ScheduleRecord,
    pub(crate) timing: Timing,
    live: Vec<Live>,
    /// The waiting occurrence waits for the previous run to end.
    parked: bool,
    /// It was parked under the policy that skips.
    overlapped: bool,
    /// Units about it that are not committed yet.
    unsettled: u32,
    deferred: Line<(ReplyId, Request)>,
    pub(crate) deleted: bool,
    taken: Taken,
}

/// A live task of a schedule.
#[derive(Debug, Clone)]
struct Live {
    seq: Seq,
    id: TaskId,
    version: u32,
    started: bool,
    attempt: u32,
    /// The backfill that created it: a run beside the plan.
    backfill: Option<Box<str>>,
}

/// Whether the waiting occurrence runs.
pub(crate) enum Judgement {
    /// It does.
    Run,
    /// It left the line: it waits, or others take its place.
    Gone,
}

impl Schedules {
    /// The schedule of a live task.
    pub(crate) fn of(&self, seq: Seq) -> Option<u128> {
        self.by_task.get(&seq).copied()
    }

    /// Whether a schedule is held here.
    pub(crate) fn knows(&self, uid: u128) -> bool {
        self.by_uid.contains_key(&uid)
    }

    /// A schedule that is held here.
    pub(crate) fn get_mut(&mut self, uid: u128) -> Option<&mut Schedule> {
        self.by_uid.get_mut(&uid)
    }

    /// The schedules that name an exclusion calendar, in order.
    pub(crate) fn naming(&self, namespace: NamespaceId, calendar: &str) -> Vec<u128> {
        let names = |s: &Schedule| {
            s.record.namespace == namespace && s.record.doc.exclude.iter().any(|n| n == calendar)
        };
        let named = self.by_uid.iter().filter(|(_, s)| names(s));
        let mut uids: Vec<u128> = named.map(|(uid, _)| *uid).collect();
        uids.sort_unstable();
        uids
    }
}

impl Schedule {
    pub(crate) fn is_delay(&self) -> bool {
        self.timing.rule().kind() == RuleKind::After
    }

    fn waiting(&self) -> Option<&Live> {
        let next = self.record.cursor.next?;
        self.live.iter().find(|l| l.id == next.id)
    }

    /// How many occurrences of a backfill are live.
    pub(crate) fn live_of(&self, backfill: &str) -> usize {
        self.live.iter().filter(|l| l.backfill.as_deref() == Some(backfill)).count()
    }

    /// A unit about it is on its way.
    pub(crate) fn begin_writing(&mut self) {
        self.unsettled += 1;
    }

    fn is_waiting(&self, seq: Seq) -> bool {
        self.waiting().is_some_and(|l| l.seq == seq)
    }

    /// The next occurrence after `after`, unless it is paused or has run often enough.
    fn next(&self, after: i64) -> Option<(Time, Time)> {
        let Cursor { next: waiting, created, .. } = self.record.cursor;
        let leaves = waiting.map(|waiting| waiting.logical);
        let bounds = Bounds { until: i64::MIN, leaves, stays: None };
        next_of(&self.record, &self.timing, created, &self.taken, bounds, after)
    }

    /// What takes the place of the waiting occurrence under another document, pause or timing: the next
    /// after `after`, and the planned occurrences so far without the one that waits.
    pub(crate) fn planned_anew(
        &self,
        record: &ScheduleRecord,
        timing: &Timing,
        after: i64,
    ) -> (Option<(Time, Time)>, u64) {
        let Cursor { next: waiting, last, .. } = self.record.cursor;
        // It is planned anew and counts once.
        let created = record.cursor.created.saturating_sub(u64::from(waiting.is_some()));
        let stays = waiting.filter(|_| self.waiting().is_some()).map(|w| w.logical);
        let until = last.map_or(i64::MIN, |last| last.0);
        let next_from = |until| {
            let bounds = Bounds { until, leaves: None, stays };
            next_of(record, timing, created, &self.taken, bounds, after)
        };
        // The one that stays may be of a time before the last one's, when the clock went back.
        let early = stays.filter(|stays| stays.0 <= until).and_then(|w| next_from(w.0 - 1));
        match early.filter(|(logical, _)| Some(*logical) == stays) {
            Some(stays) => (Some(stays), created),
            None => (next_from(until), created),
        }
    }

    /// Of what is missed at `now`, the occurrence that is to run next (it may lie ahead).
    fn after_misfire(&self, waiting: NextOccurrence, now: Time) -> Option<(Time, Time)> {
        let doc = &self.record.doc;
        let own = (waiting.logical, waiting.due);
        let late = now.since(waiting.due);
        let within = |logical: i64, grace: i64| now.0.saturating_sub(logical) <= grace;
        if self.is_delay() {
            let grace = doc.misfire_grace.unwrap_or(match doc.misfire {
                Misfire::Skip => SECOND,
                _ => i64::MAX,
            });
            return if late <= grace { Some(own) } else { self.next(now.0) };
        }
        let seen = now.0.saturating_sub(doc.jitter);
        match doc.misfire {
            Misfire::Skip => {
                let grace = doc.misfire_grace.unwrap_or(SECOND);
                if late <= grace { Some(own) } else { self.next(seen.saturating_sub(grace) - 1) }
            }
            Misfire::Once => {
                let grace = doc.misfire_grace.unwrap_or(i64::MAX);
                let more =
                    self.timing.next_after(waiting.logical.0).is_some_and(|o| o.logical <= seen);
                if !more {
                    return if late <= grace { Some(own) } else { self.next(seen) };
                }
                match self.timing.latest(seen) {
                    Some(last) if within(last.logical, grace) => {
                        Some((Time(last.logical), Time(last.due).ceil_milli()))
                    }
                    _ => self.next(seen),
                }
            }
            Misfire::All => {
                let grace = doc.misfire_grace.unwrap_or(i64::MAX);
                let from = if late <= grace {
                    waiting.logical.0
                } else {
                    match self.timing.next_after(seen.saturating_sub(grace) - 1) {
                        Some(o) if o.logical <= seen => o.logical,
                        _ => return self.next(seen),
                    }
                };
                let limit = doc.misfire_limit.max(1) as usize;
                let tally = self.timing.tally(from, seen, limit as u64 + 1);
                let first = if tally.count > limit as u64 {
                    self.timing.last_between(from, seen, limit).first().copied()
                } else {
                    tally.first
                };
                match first {
                    Some(o) if o.logical > waiting.logical.0 => {
                        Some((Time(o.logical), Time(o.due).ceil_milli()))
                    }
                    _ => Some(own),
                }
            }
        }
    }
}

impl Engine {
    // ---- a shard comes and goes ---------------------------------------------------------

    pub(crate) fn adopt_schedules(&mut self, found: Vec<(ScheduleRecord, Vec<LiveOccurrence>)>) {
        for (record, live) in found {
            // A document that this version cannot read keeps its waiting task, and moves on
            // no further; the console shows it.
            let Ok(timing) = self.timing_of(&record) else {
                self.behind.left_out(&record);
                continue;
            };
            let uid = record.uid;
            let live: Vec<Live> = live
                .into_iter()
                .map(|l| Live {
                    seq: l.seq,
                    id: l.id,
                    version: l.version,
                    started: l.state == State::Running,
                    attempt: l.attempt,
                    backfill: backfill_of(&l.origin).map(Box::from),
                })
                .collect();
            for l in &live {
                self.schedules.by_task.insert(l.seq, uid);
            }
            let taken = self.schedules.taken.get(&uid).cloned();
            let mut schedule = Schedule::new(record, timing, live);
            schedule.taken = taken.unwrap_or_default();
            self.schedules.by_uid.insert(uid, schedule);
            self.look_if_behind(uid);
            self.look_at_backfills(uid);
        }
    }

    fn timing_of(&self, record: &ScheduleRecord) -> Result<Timing, String> {
        compile_in(&record.doc, &record.name, record.namespace, &self.behind.calendars)
    }

    /// An occurrence was planned that exists already.
    pub(crate) fn occurrence_taken(&mut self, uid: u128, link: Option<&ScheduleLink>) {
        let Some(link) = link.filter(|l| l.origin == PLAN) else { return };
        self.schedules.taken.entry(uid).or_default().add(link.logical);
    }

    pub(crate) fn forget_schedules(&mut self, shard: Shard) {
        let uids: Vec<u128> = self
            .schedules
            .by_uid
            .iter()
            .filter(|(_, s)| s.record.shard == shard)
            .map(|(uid, _)| *uid)
            .collect();
        for uid in uids {
            self.behind.forget(uid);
            let Some(schedule) = self.schedules.by_uid.remove(&uid) else { continue };
            for (reply, _) in schedule.deferred {
                self.refuse(reply, Unavailable::NotOwner);
            }
        }
        let by_uid = &self.schedules.by_uid;
        self.schedules.by_task.retain(|_, uid| by_uid.contains_key(uid));
    }

    // ---- judging ------------------------------------------------------------------------

    /// Whether an occurrence that could start now is to run.
    pub(crate) fn judge(&mut self, seq: Seq) -> Judgement {
        let now = self.now.store;
        let Some(uid) = self.schedules.of(seq) else { return Judgement::Run };
        let Some(schedule) = self.schedules.by_uid.get_mut(&uid) else { return Judgement::Run };
        let Some(waiting) = schedule.record.cursor.next else { return Judgement::Run };
        let Some(live) = schedule.waiting().cloned() else { return Judgement::Run };
        if live.seq != seq || live.attempt > 0 {
            return Judgement::Run;
        }
        let previous: Vec<Seq> = schedule
            .live
            .iter()
            .filter(|l| l.seq != seq && l.backfill.is_none() && (l.started || l.attempt > 0))
            .map(|l| l.seq)
            .collect();
        let overlap = schedule.record.doc.overlap;
        if !previous.is_empty() && overlap != Overlap::Allow {
            schedule.parked = true;
            schedule.overlapped = overlap == Overlap::Skip;
            self.park(seq);
            if overlap == Overlap::CancelRunning {
                for previous in previous {
                    self.cancel_run(previous);
                }
            }
            return Judgement::Gone;
        }
        schedule.parked = false;
        let overlapped = std::mem::take(&mut schedule.overlapped);
        let (target, reason) = if overlapped {
            (schedule.next(now.0), "overlap")
        } else {
            (schedule.after_misfire(waiting, now), "misfire")
        };
        if target.is_some_and(|(logical, _)| logical == waiting.logical) {
            return Judgement::Run;
        }
        self.skip(uid, &live, waiting, target, reason);
        Judgement::Gone
    }

    fn park(&mut self, seq: Seq) {
        let Some(resident) = self.resident.get_mut(&seq) else { return };
        resident.place = Place::Parked;
        let stub = resident.stub;
        if let Some(part) = self.parts.get_mut(&stub.partition) {
            part.remove(&stub);
        }
        self.unblock(&stub);
    }

    /// Stops the previous run for the next occurrence.
    fn cancel_run(&mut self, seq: Seq) {
        if self.running.contains_key(&seq) {
            return self.stop_running(seq);
        }
        // It waits for another attempt: it ends here.
        let Some(stub) = self.hold(seq) else { return };
        let Some(shard) = self.parts.get(&stub.partition).map(|p| p.shard) else { return };
        let Some(fence) = self.fence(shard) else { return };
        let close = Write::Close {
            seq,
            version: stub.version,
            to: State::Cancelled,
            at: self.now.store,
            reason: Some("the next occurrence took its place".to_owned()),
            skipped: None,
        };
        let unit = Unit { fences: vec![fence], writes: vec![close] };
        let to = State::Cancelled;
        self.write(unit, Ticket::Close { seq, stub, shard, to, reply: None, planned: None });
    }

    /// Ends the waiting occurrence and all up to `target` as one skipped task.
    fn skip(
        &mut self,
        uid: u128,
        live: &Live,
        waiting: NextOccurrence,
        target: Option<(Time, Time)>,
        reason: &str,
    ) {
        let now = self.now.store;
        let Some(stub) = self.hold(live.seq) else { return };
        let Some(schedule) = self.schedules.by_uid.get(&uid) else { return };
        let shard = schedule.record.shard;
        let last = target.map_or(now.0, |(logical, _)| (logical.0 - 1).min(now.0));
        let tally = schedule.timing.tally(waiting.logical.0, last, COUNT_MAX);
        let to = tally.last.map_or(waiting.logical, |o| Time(o.logical)).max(waiting.logical);
        let skipped = SkippedRun {
            from: waiting.logical,
            to,
            count: tally.count.max(1),
            reason: reason.to_owned(),
        };
        let Some(fence) = self.fence(shard) else { return };
        let close = Write::Close {
            seq: live.seq,
            version: stub.version,
            to: State::Skipped,
            at: now,
            reason: Some(reason.to_owned()),
            skipped: Some(skipped),
        };
        let mut unit = Unit { fences: vec![fence], writes: vec![close] };
        let planned = self.advance_to(uid, target, &mut unit);
        let to = State::Skipped;
        self.write(unit, Ticket::Close { seq: live.seq, stub, shard, to, reply: None, planned });
    }

    // ---- moving on ------------------------------------------------------------------------

    /// Adds to a unit that ends the waiting occurrence without an attempt what moves its
    /// schedule on.
    pub(crate) fn plan_after_close(&mut self, seq: Seq, unit: &mut Unit) -> Option<Planned> {
        let uid = self.schedules.of(seq)?;
        let schedule = self.schedules.by_uid.get(&uid)?;
        if schedule.deleted || !schedule.is_waiting(seq) {
            return None;
        }
        let after = if schedule.is_delay() {
            self.now.store.0
        } else {
            schedule.record.cursor.next?.logical.0
        };
        let target = schedule.next(after);
        self.advance_to(uid, target, unit)
    }

    /// Whether a task is of a schedule whose removal is being written.
    pub(crate) fn is_of_deleted(&self, seq: Seq) -> bool {
        let schedule = self.schedules.of(seq).and_then(|uid| self.schedules.by_uid.get(&uid));
        schedule.is_some_and(|s| s.deleted)
    }

    /// Adds to a unit that records a start or an end what moves the schedule on.
    pub(crate) fn plan_after_run(
        &mut self,
        seq: Seq,
        started: bool,
        finishing: bool,
        unit: &mut Unit,
    ) -> Option<Planned> {
        let uid = self.schedules.of(seq)?;
        let schedule = self.schedules.by_uid.get(&uid)?;
        if schedule.deleted || !schedule.is_waiting(seq) {
            return None;
        }
        let after = match (schedule.is_delay(), started, finishing) {
            (true, _, true) => self.now.store.0,
            // Without a start when the rule was a fixed delay while it ran.
            (false, true, _) | (false, _, true) => schedule.record.cursor.next?.logical.0,
            _ => return None,
        };
        let target = schedule.next(after);
        self.advance_to(uid, target, unit)
    }

    /// Advances the cursor to an occurrence and inserts it, in memory at once, in the store
    /// with the unit.
    fn advance_to(
        &mut self,
        uid: u128,
        target: Option<(Time, Time)>,
        unit: &mut Unit,
    ) -> Option<Planned> {
        let now = self.now.store;
        let schedule = self.schedules.by_uid.get_mut(&uid)?;
        let next = target.map(|(logical, due)| NextOccurrence {
            id: occurrence_id(uid, PLAN, logical),
            logical,
            due,
        });
        let record = &mut schedule.record;
        let created = record.cursor.created + u64::from(next.is_some());
        let calendars = self.behind.calendars.stamp(record.namespace, &record.doc.exclude);
        // What was cancelled or run ahead of its time does not close the time before it; what passed
        // while it waited is skipped with it.
        let left = record.cursor.next.filter(|waiting| waiting.logical <= now);
        let left = left.map(|_| next.map_or(now, |next| now.min(next.logical.plus(-1))));
        let last = left.max(record.cursor.last);
        let backfills = std::mem::take(&mut record.cursor.backfills);
        let cursor = Cursor { next, last, created, calendars, backfills };
        unit.writes.push(Write::Advance { uid, version: record.version, cursor: cursor.clone() });
        record.version += 1;
        record.cursor = cursor;
        schedule.unsettled += 1;
        (schedule.parked, schedule.overlapped) = (false, false);
        let insert = next.map(|next| {
            let task = planned_task(record, PLAN.to_owned(), next, now);
            unit.writes.push(Write::Insert(Box::new(task)));
            unit.writes.len() - 1
        });
        Some(Planned { uid, insert, seq: None })
    }

    /// A unit that moved a schedule on is committed.
    pub(crate) fn plan_done(&mut self, planned: Option<Planned>) {
        let Some(planned) = planned else { return };
        let uid = planned.uid;
        let Some(schedule) = self.schedules.by_uid.get_mut(&uid) else { return };
        schedule.unsettled = schedule.unsettled.saturating_sub(1);
        if let (Some(seq), Some(next)) = (planned.seq, schedule.record.cursor.next) {
            let (shard, partition) = (schedule.record.shard, schedule.record.partition);
            let spec = &schedule.record.doc.task;
            let link = link_of(&schedule.record, PLAN.to_owned(), next.logical);
            let stub = Stub::new(seq, 0, next.due, partition, spec, Some(&link), 0, 0);
            let kind = spec.kind.clone();
            schedule.add(Live {
                seq,
                id: next.id,
                version: 0,
                started: false,
                attempt: 0,
                backfill: None,
            });
            self.schedules.by_task.insert(seq, uid);
            self.tally.created(shard, self.now.store, partition.queue, &kind);
            self.settle(shard, stub);
        }
        self.resume_deferred(uid);
    }

    /// Whether writes about the schedule are under way, or a start that is being made durable:
    /// that comes before the answer to what is asked now.
    pub(crate) fn is_unsettled(&self, uid: u128) -> bool {
        let starting = |seq: &Seq| {
            self.running.get(seq).is_some_and(|r| matches!(r.stage, Stage::Starting(..)))
        };
        self.schedules
            .by_uid
            .get(&uid)
            .is_some_and(|s| s.unsettled > 0 || s.live.iter().any(|l| starting(&l.seq)))
    }

    fn resume_deferred(&mut self, uid: u128) {
        self.behind.settled(uid);
        self.look_at_backfills(uid);
        while !self.is_unsettled(uid)
            && let Some(schedule) = self.schedules.by_uid.get_mut(&uid)
            && let Some((reply, request)) = schedule.deferred.pop_front()
        {
            self.request(reply, request);
        }
    }

    // ---- what happens to live tasks ---------------------------------------------------------

    /// A task of a schedule is running.
    pub(crate) fn occurrence_started(&mut self, seq: Seq) {
        if let Some(live) = self.live_mut(seq) {
            live.started = true;
        }
    }

    /// The start of a schedule's task is written: what waited for that goes on.
    pub(crate) fn occurrence_recorded(&mut self, seq: Seq) {
        if let Some(uid) = self.schedules.of(seq) {
            self.resume_deferred(uid);
        }
    }

    /// A task of a schedule is scheduled again, or was changed.
    pub(crate) fn occurrence_again(&mut self, seq: Seq, version: u32, attempt: u32) {
        if let Some(live) = self.live_mut(seq) {
            live.started = false;
            live.version = version;
            live.attempt = attempt;
        }
    }

    /// A task of a schedule came back from history: a run that is not over.
    pub(crate) fn occurrence_redriven(&mut self, task: &Task) {
        let Some(link) = &task.schedule else { return };
        if let Some(schedule) = self.schedules.by_uid.get_mut(&link.uid) {
            schedule.add(Live {
                seq: task.seq,
                id: task.id,
                version: task.version,
                started: false,
                attempt: task.attempt,
                backfill: backfill_of(&link.origin).map(Box::from),
            });
            self.schedules.by_task.insert(task.seq, link.uid);
        }
    }

    /// A task of a schedule is over: what waited for that goes on.
    pub(crate) fn occurrence_over(&mut self, seq: Seq) {
        let Some(uid) = self.schedules.by_task.remove(&seq) else { return };
        let Some(schedule) = self.schedules.by_uid.get_mut(&uid) else { return };
        schedule.live.retain(|l| l.seq != seq);
        let parked = schedule.parked;
        self.look_at_backfills(uid);
        if !parked {
            return;
        }
        let Some(schedule) = self.schedules.by_uid.get(&uid) else { return };
        let waiting = schedule.waiting().map(|l| l.seq);
        if let Some(waiting) = waiting
            && self.resident.get(&waiting).is_some_and(|r| r.place == Place::Parked)
        {
            self.back_to_ready(waiting);
        }
    }

    fn live_mut(&mut self, seq: Seq) -> Option<&mut Live> {
        let uid = self.schedules.by_task.get(&seq)?;
        self.schedules.by_uid.get_mut(uid)?.live.iter_mut().find(|l| l.seq == seq)
    }
}

impl Schedule {
    fn new(record: ScheduleRecord, timing: Timing, live: Vec<Live>) -> Schedule {
        Schedule {
            record,
            timing,
            live,
            parked: false,
            overlapped: false,
            unsettled: 0,
            deferred: Line::new(),
            deleted: false,
            taken: Taken::default(),
        }
    }

    /// A live task of it, unless it is known.
    fn add(&mut self, live: Live) {
        if !self.live.iter().any(|l| l.seq == live.seq) {
            self.live.push(live);
        }
    }
}

fn link_of(record: &ScheduleRecord, origin: String, logical: Time) -> ScheduleLink {
    ScheduleLink { uid: record.uid, name: record.name.clone(), origin, logical }
}

pub(crate) fn planned_task(
    record: &ScheduleRecord,
    origin: String,
    next: NextOccurrence,
    now: Time,
) -> NewTask {
    let partition: Partition = record.partition;
    NewTask {
        id: next.id,
        fingerprint: None,
        namespace: record.namespace,
        partition,
        shard: record.shard,
        due: next.due,
        created_at: now,
        spec: record.doc.task.clone(),
        schedule: Some(link_of(record, origin, next.logical)),
        keep_existing: false,
        inbox: false,
    }
}
