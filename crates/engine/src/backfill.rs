//! Backfills: the occurrences of a past span, created a few at a time beside the plan.
//!
//! A schedule's cursor says how far each backfill has come. An occurrence is inserted in the unit that
//! moves the cursor past it, and its id is a function of schedule, origin and logical time, so a crash can
//! neither lose nor double one, and the same backfill asked for again finds what it created.
//!
//! What always holds: no more are live at once than was asked for; their priority is the lowest there
//! is; the plan goes on beside them, and its overlap policy does not look at them. A paused schedule
//! creates none until it is resumed. Deliberately absent: misfire and overlap; each occurrence runs.

use std::collections::BTreeSet;

use tourbillon_store::schedule::{Backfill, Cursor, NextOccurrence};
use tourbillon_store::task::ScheduleLink;
use tourbillon_store::{Done, Shard, TaskId, Time, Unit, Write};

use crate::api::{Answer, BackfillChange, ReplyId, Request};
use crate::batch::{Planned, Ticket};
use crate::engine::Engine;
use crate::occurrence::{Schedule, planned_task};
use crate::timing::occurrence_id;

/// Before the id of a backfill in an origin.
const ORIGIN: &str = "backfill:";
/// Backfills of one schedule that may be under way.
const BACKFILLS_MAX: usize = 16;
/// Schedules whose backfills are moved on in one step.
const STEP_MAX: usize = 1_000;
/// The priority of their tasks: the lowest.
const PRIORITY: i8 = -8;

/// The backfill that an origin names.
pub(crate) fn backfill_of(origin: &str) -> Option<&str> {
    origin.strip_prefix(ORIGIN)
}

/// Schedules with a backfill that may have room for more.
#[derive(Debug, Default)]
pub(crate) struct Backfills(BTreeSet<u128>);

impl Engine {
    /// Begins a backfill, or ends one early. What it has created already runs all the same.
    pub(crate) fn change_backfill(
        &mut self,
        reply: ReplyId,
        shard: Shard,
        uid: u128,
        change: BackfillChange,
    ) {
        let Some(fence) = self.active_fence(shard) else {
            return self.refuse(reply, crate::api::Unavailable::NotOwner);
        };
        let request = Request::Backfill { shard, uid, change };
        let Some((reply, request)) = self.defer(uid, reply, request) else { return };
        let Request::Backfill { change, .. } = request else { return };
        let Some(schedule) = self.schedules.get_mut(uid).filter(|s| !s.deleted) else {
            return self.answer(reply, Answer::NoSchedule);
        };
        let record = &schedule.record;
        let mut backfills = record.cursor.backfills.clone();
        match change {
            BackfillChange::Begin(backfill) => {
                if backfills.iter().any(|b| b.id == backfill.id) {
                    let record = Box::new(record.clone());
                    return self.answer(reply, Answer::Schedule(record));
                }
                if schedule.is_delay() {
                    let why = "from: a fixed delay has no times of its own to go back to";
                    return self.answer(reply, Answer::BadSchedule(why.to_owned()));
                }
                if backfills.len() >= BACKFILLS_MAX {
                    let why = format!(
                        "id: {BACKFILLS_MAX} backfills of the schedule are under way; expected fewer"
                    );
                    return self.answer(reply, Answer::BadSchedule(why));
                }
                backfills.push(*backfill);
            }
            BackfillChange::End(id) => {
                let before = backfills.len();
                backfills.retain(|b| b.id != id);
                if backfills.len() == before {
                    return self.answer(reply, Answer::NoBackfill);
                }
            }
        }
        let mut unit = Unit { fences: vec![fence], writes: Vec::new() };
        schedule.set_backfills(backfills, &mut unit);
        let planned = Some(Planned { uid, insert: None, seq: None });
        self.write(unit, Ticket::Schedule { reply: Some(reply), uid, planned });
    }

    /// A schedule's backfills are looked at before the step ends.
    pub(crate) fn look_at_backfills(&mut self, uid: u128) {
        let backfills = |s: &mut Schedule| !s.record.cursor.backfills.is_empty();
        if self.schedules.get_mut(uid).is_some_and(backfills) {
            self.backfills.0.insert(uid);
        }
    }

    /// Whether a step would move a backfill on.
    pub(crate) fn has_backfill_to_move(&self) -> bool {
        !self.backfills.0.is_empty() && self.batches.pending_writes() < self.cfg.batch_max
    }

    /// Creates occurrences of backfills that have room, none while a full batch waits to be written.
    pub(crate) fn move_backfills(&mut self) {
        let mut budget = STEP_MAX;
        while budget > 0
            && !self.draining
            && self.has_backfill_to_move()
            && let Some(uid) = self.backfills.0.pop_first()
        {
            budget -= 1;
            // One that is being written is looked at again when that is done.
            if !self.is_unsettled(uid) {
                self.move_backfills_of(uid);
            }
        }
    }

    fn move_backfills_of(&mut self, uid: u128) {
        let now = self.now.store;
        let Some(shard) = self.schedules.get_mut(uid).map(|s| s.record.shard) else { return };
        let Some(fence) = self.active_fence(shard) else { return };
        let Some(schedule) = self.schedules.get_mut(uid) else { return };
        if schedule.deleted || schedule.record.paused {
            return;
        }
        let mut inserts = Vec::new();
        let mut backfills = Vec::new();
        for backfill in &schedule.record.cursor.backfills {
            let (moved, of) = schedule.moved(backfill, now);
            inserts.extend(of);
            backfills.extend(moved);
        }
        if backfills == schedule.record.cursor.backfills {
            return;
        }
        let mut unit = Unit { fences: vec![fence], writes: Vec::new() };
        schedule.set_backfills(backfills, &mut unit);
        unit.writes.extend(inserts);
        let planned = Some(Planned { uid, insert: None, seq: None });
        self.write(unit, Ticket::Schedule { reply: None, uid, planned });
    }

    /// A unit that moved backfills on is committed: its occurrences are live.
    pub(crate) fn backfilled(&mut self, unit: &Unit, done: &[Done]) {
        for (write, done) in unit.writes.iter().zip(done) {
            let (Write::Insert(task), Done::Inserted(seq)) = (write, done) else { continue };
            let of_backfill = |link: &ScheduleLink| backfill_of(&link.origin).is_some();
            if !task.schedule.as_ref().is_some_and(of_backfill) {
                continue;
            }
            let queue = task.partition.queue;
            self.tally.created(task.shard, task.created_at, queue, &task.spec.kind);
            self.occurrence_inserted(task, *seq);
            self.settle(task.shard, task.stub(*seq));
        }
    }
}

impl Schedule {
    /// How a backfill goes on, with the occurrences it creates now; `None` when it is over.
    fn moved(&self, backfill: &Backfill, now: Time) -> (Option<Backfill>, Vec<Write>) {
        let live = self.live_of(&backfill.id);
        let room = (backfill.in_flight.max(1) as usize).saturating_sub(live);
        let mut moved = backfill.clone();
        let mut inserts = Vec::new();
        let origin = format!("{ORIGIN}{}", backfill.id);
        let mut over = self.is_delay();
        while !over && inserts.len() < room {
            let found = self.timing.next_after(moved.next.0.saturating_sub(1));
            let Some(found) = found.filter(|o| o.logical < backfill.until.0) else {
                over = true;
                break;
            };
            let logical = Time(found.logical);
            let id: TaskId = occurrence_id(self.record.uid, &origin, logical);
            let next = NextOccurrence { id, logical, due: now.ceil_milli() };
            let mut task = planned_task(&self.record, origin.clone(), next, now);
            task.spec.priority = PRIORITY;
            // So that one that was created before, under the same id, is found and not refused.
            task.fingerprint = Some(id.0 as u64);
            inserts.push(Write::Insert(Box::new(task)));
            moved.next = logical.plus(1);
            moved.created += 1;
        }
        if over {
            moved.next = moved.next.max(backfill.until);
        }
        let over = over && live == 0 && inserts.is_empty();
        ((!over).then_some(moved), inserts)
    }

    /// Puts backfills into the cursor, in memory at once, in the store with the unit.
    fn set_backfills(&mut self, backfills: Vec<Backfill>, unit: &mut Unit) {
        let cursor = Cursor { backfills, ..self.record.cursor.clone() };
        let (uid, version) = (self.record.uid, self.record.version);
        unit.writes.push(Write::Advance { uid, version, cursor: cursor.clone() });
        self.record.version += 1;
        self.record.cursor = cursor;
        self.begin_writing();
    }
}
