//! What is asked of schedules: creation, edits, removal, pause, triggers, and what people see.
//!
//! One request about a schedule is dealt with at a time: while its writes are under way the others wait,
//! a bounded number of them, and are asked again when those are settled. An edit plans the waiting
//! occurrence anew in its own unit, so none is lost or doubled.

use tourbillon_schedule::{RuleKind, Timing};
use tourbillon_store::queries::Located;
use tourbillon_store::schedule::{Cursor, NextOccurrence};
use tourbillon_store::{
    NewTask, ScheduleRecord, Seq, Shard, Stub, TaskId, TaskSpec, Time, Unit, Write,
};

use super::{Live, PLAN, Schedule, link_of, planned_task};
use crate::api::{Answer, ReplyId, Request, ScheduleView, Unavailable};
use crate::backfill::backfill_of;
use crate::batch::{Planned, Ticket};
use crate::engine::Engine;
use crate::timing::occurrence_id;

/// Requests about one schedule that may wait for its writes.
const DEFERRED_MAX: usize = 64;

impl Engine {
    /// Puts a request aside while the schedule's writes are under way. Answers whether it did.
    pub(crate) fn defer(
        &mut self,
        uid: u128,
        reply: ReplyId,
        request: Request,
    ) -> Option<(ReplyId, Request)> {
        if !self.is_unsettled(uid) {
            return Some((reply, request));
        }
        let Some(schedule) = self.schedules.by_uid.get_mut(&uid) else {
            return Some((reply, request));
        };
        if schedule.deferred.len() >= DEFERRED_MAX {
            self.refuse(reply, Unavailable::Overloaded);
        } else {
            schedule.deferred.push_back((reply, request));
        }
        None
    }

    pub(crate) fn put_schedule(&mut self, reply: ReplyId, record: Box<ScheduleRecord>) {
        let uid = record.uid;
        if self.active_fence(record.shard).is_none() {
            return self.refuse(reply, Unavailable::NotOwner);
        }
        let timing = match self.timing_of(&record) {
            Ok(timing) => timing,
            Err(why) => return self.answer(reply, Answer::BadSchedule(why)),
        };
        let Some((reply, request)) = self.defer(uid, reply, Request::PutSchedule(record)) else {
            return;
        };
        let Request::PutSchedule(record) = request else { return };
        let known = self.schedules.by_uid.get(&uid).map(|s| s.record.version);
        match known {
            Some(version) if version == record.version => {
                self.replan(Some(reply), *record, timing, None);
            }
            None if record.version == 0 => {
                let schedule = Schedule::new(*record, timing, Vec::new());
                self.create_schedule(reply, schedule);
            }
            _ => self.answer(reply, Answer::Changed),
        }
    }

    fn create_schedule(&mut self, reply: ReplyId, mut schedule: Schedule) {
        let now = self.now.store;
        let Some(fence) = self.fence(schedule.record.shard) else {
            return self.refuse(reply, Unavailable::NotOwner);
        };
        let uid = schedule.record.uid;
        let next = schedule.next(now.0).map(|(logical, due)| NextOccurrence {
            id: occurrence_id(uid, PLAN, logical),
            logical,
            due,
        });
        let record = &schedule.record;
        let calendars = self.behind.calendars.stamp(record.namespace, &record.doc.exclude);
        schedule.record.cursor =
            Cursor { next, created: u64::from(next.is_some()), calendars, ..Cursor::default() };
        let mut writes = vec![Write::PutSchedule(Box::new(schedule.record.clone()))];
        let insert = next.map(|next| {
            let task = planned_task(&schedule.record, PLAN.to_owned(), next, now);
            writes.push(Write::Insert(Box::new(task)));
            1
        });
        let planned = Some(Planned { uid, insert, seq: None });
        let reply = Some(reply);
        self.write(Unit { fences: vec![fence], writes }, Ticket::Schedule { reply, uid, planned });
    }

    /// Whether the occurrence that waits has begun to run (its start not yet written, or a fixed
    /// delay's): then it is left to its end.
    pub(crate) fn is_waiting_run_begun(&self, uid: u128) -> bool {
        let waiting = self.schedules.by_uid.get(&uid).and_then(Schedule::waiting);
        waiting.is_some_and(|l| l.attempt > 0 || l.started || self.running.contains_key(&l.seq))
    }

    /// Gives a known schedule another document, pause or timing, and deals with its waiting occurrence
    /// in the same unit. What is planned then comes after `after`; when that is not given, after now, and
    /// not after the waiting one's time when that has passed.
    pub(crate) fn replan(
        &mut self,
        reply: Option<ReplyId>,
        mut record: ScheduleRecord,
        timing: Timing,
        after: Option<i64>,
    ) {
        let now = self.now.store;
        let uid = record.uid;
        let runs = self.is_waiting_run_begun(uid);
        let Some(old) = self.schedules.by_uid.get(&uid) else {
            if let Some(reply) = reply {
                self.answer(reply, Answer::NoSchedule);
            }
            return;
        };
        let (old_shard, old_partition) = (old.record.shard, old.record.partition);
        let mut fences = Vec::new();
        for shard in [old_shard, record.shard] {
            match self.active_fence(shard) {
                Some(fence) if !fences.contains(&fence) => fences.push(fence),
                Some(_) => {}
                None => {
                    if let Some(reply) = reply {
                        self.refuse(reply, Unavailable::NotOwner);
                    }
                    return;
                }
            }
        }
        record.cursor = old.record.cursor.clone();
        record.created_at = old.record.created_at;
        let waiting = record.cursor.next;
        let live = old.waiting().cloned();
        // An edit leaves these as they were, so the waiting occurrence is made anew.
        let moved = old.record.partition != record.partition
            || old.record.doc.task.concurrency_key != record.doc.task.concurrency_key;
        let mut writes = Vec::new();
        let mut insert = None;
        if !runs {
            let is_delay = timing.rule().kind() == RuleKind::After;
            let after = after.unwrap_or_else(|| match waiting {
                Some(w) if !is_delay => now.0.min(w.logical.0 - 1),
                _ => now.0,
            });
            let (next, created) = old.planned_anew(&record, &timing, after);
            let next = next.map(|(logical, due)| NextOccurrence {
                id: occurrence_id(uid, PLAN, logical),
                logical,
                due,
            });
            record.cursor = Cursor {
                next,
                last: record.cursor.last,
                created: created + u64::from(next.is_some()),
                calendars: self.behind.calendars.stamp(record.namespace, &record.doc.exclude),
                backfills: std::mem::take(&mut record.cursor.backfills),
            };
            if let Some(live) = &live {
                if self.hold(live.seq).is_none() {
                    self.hold_away(live.seq, live.version, old_partition, old_shard);
                }
                let version = live.version;
                match next {
                    Some(next) if next.id == live.id && !moved => writes.push(Write::Edit {
                        seq: live.seq,
                        version,
                        due: next.due,
                        spec: Box::new(record.doc.task.clone()),
                    }),
                    _ => writes.push(Write::Discard { seq: live.seq, version }),
                }
            }
            let edits = matches!(writes.first(), Some(Write::Edit { .. }));
            if let (Some(next), false) = (next, edits) {
                let task = planned_task(&record, PLAN.to_owned(), next, now);
                writes.push(Write::Insert(Box::new(task)));
                insert = Some(writes.len());
            }
        }
        writes.insert(0, Write::PutSchedule(Box::new(record.clone())));
        let Some(schedule) = self.schedules.by_uid.get_mut(&uid) else { return };
        record.version += 1;
        schedule.record = record;
        schedule.timing = timing;
        (schedule.parked, schedule.overlapped) = (false, false);
        schedule.unsettled += 1;
        let planned = Some(Planned { uid, insert, seq: None });
        self.write(Unit { fences, writes }, Ticket::Schedule { reply, uid, planned });
    }

    pub(crate) fn delete_schedule(&mut self, reply: ReplyId, shard: Shard, uid: u128) {
        let Some(fence) = self.active_fence(shard) else {
            return self.refuse(reply, Unavailable::NotOwner);
        };
        let request = Request::DeleteSchedule { shard, uid };
        let Some((reply, _)) = self.defer(uid, reply, request) else { return };
        let Some(schedule) = self.schedules.by_uid.get_mut(&uid).filter(|s| !s.deleted) else {
            return self.answer(reply, Answer::NoSchedule);
        };
        schedule.deleted = true;
        schedule.unsettled += 1;
        let version = schedule.record.version;
        let partition = schedule.record.partition;
        let waiting = schedule.waiting().cloned();
        let mut writes = vec![Write::DeleteSchedule { uid, version }];
        if let Some(live) = waiting
            && live.attempt == 0
            && !live.started
            && !self.running.contains_key(&live.seq)
        {
            if self.hold(live.seq).is_none() {
                self.hold_away(live.seq, live.version, partition, shard);
            }
            writes.push(Write::Discard { seq: live.seq, version: live.version });
        }
        let planned = Some(Planned { uid, insert: None, seq: None });
        let unit = Unit { fences: vec![fence], writes };
        self.write(unit, Ticket::Schedule { reply: Some(reply), uid, planned });
    }

    pub(crate) fn pause_schedule(&mut self, reply: ReplyId, shard: Shard, uid: u128, paused: bool) {
        if self.active_fence(shard).is_none() {
            return self.refuse(reply, Unavailable::NotOwner);
        }
        let request = Request::PauseSchedule { shard, uid, paused };
        let Some((reply, _)) = self.defer(uid, reply, request) else { return };
        let Some(schedule) = self.schedules.by_uid.get(&uid) else {
            return self.answer(reply, Answer::NoSchedule);
        };
        let mut record = schedule.record.clone();
        if record.paused == paused {
            return self.answer(reply, Answer::Schedule(Box::new(record)));
        }
        record.paused = paused;
        let timing = schedule.timing.clone();
        self.replan(Some(reply), record, timing, None);
    }

    pub(crate) fn trigger_schedule(&mut self, reply: ReplyId, shard: Shard, uid: u128, id: TaskId) {
        let now = self.now.store;
        let Some(fence) = self.active_fence(shard) else {
            return self.refuse(reply, Unavailable::NotOwner);
        };
        let Some(schedule) = self.schedules.by_uid.get(&uid) else {
            return self.answer(reply, Answer::NoSchedule);
        };
        let next = NextOccurrence { id, logical: now, due: now.ceil_milli() };
        let task = planned_task(&schedule.record, format!("trigger:{id}"), next, now);
        let unit = Unit { fences: vec![fence], writes: vec![Write::Insert(Box::new(task))] };
        self.write(unit, Ticket::Accept { reply, replaced: None });
    }

    /// A unit that a client asked for is committed.
    pub(crate) fn schedule_written(
        &mut self,
        reply: Option<ReplyId>,
        uid: u128,
        unit: &Unit,
        planned: Option<Planned>,
    ) {
        let mut answer = Answer::Done;
        for write in &unit.writes {
            match write {
                Write::PutSchedule(record) => {
                    let mut record = (**record).clone();
                    record.version += 1;
                    if !self.schedules.by_uid.contains_key(&uid) {
                        self.schedule_created(&record);
                    }
                    answer = Answer::Schedule(Box::new(record));
                }
                Write::Advance { .. } => {
                    if let Some(schedule) = self.schedules.by_uid.get(&uid) {
                        answer = Answer::Schedule(Box::new(schedule.record.clone()));
                    }
                }
                Write::Discard { seq, .. } => self.discarded(*seq),
                Write::Edit { seq, version, due, spec } => {
                    self.edited(uid, *seq, *version + 1, *due, spec);
                }
                Write::DeleteSchedule { .. } => {
                    self.behind.forget(uid);
                    if let Some(schedule) = self.schedules.by_uid.remove(&uid) {
                        for (reply, _) in schedule.deferred {
                            self.answer(reply, Answer::NoSchedule);
                        }
                        for live in schedule.live {
                            self.schedules.by_task.remove(&live.seq);
                        }
                    }
                }
                _ => {}
            }
        }
        self.plan_done(planned);
        if let Some(reply) = reply {
            self.answer(reply, answer);
        }
    }

    fn schedule_created(&mut self, record: &ScheduleRecord) {
        let Ok(timing) = self.timing_of(record) else { return self.behind.left_out(record) };
        let mut schedule = Schedule::new(record.clone(), timing, Vec::new());
        schedule.unsettled = 1;
        self.schedules.by_uid.insert(record.uid, schedule);
        // A calendar may have changed while it was being written.
        self.look_if_behind(record.uid);
    }

    fn discarded(&mut self, seq: Seq) {
        if let Some(stub) = self.forget(seq) {
            let shard = self.parts[&stub.partition].shard;
            self.tombstone(shard, stub.partition, seq);
        } else if let Some(uid) = self.schedules.of(seq)
            && let Some(schedule) = self.schedules.by_uid.get(&uid)
        {
            let (shard, partition) = (schedule.record.shard, schedule.record.partition);
            self.tombstone(shard, partition, seq);
        }
        if let Some(uid) = self.schedules.by_task.remove(&seq)
            && let Some(schedule) = self.schedules.by_uid.get_mut(&uid)
        {
            schedule.live.retain(|l| l.seq != seq);
        }
    }

    fn edited(&mut self, uid: u128, seq: Seq, version: u32, due: Time, spec: &TaskSpec) {
        self.forget(seq);
        self.occurrence_again(seq, version, 0);
        let Some(schedule) = self.schedules.by_uid.get(&uid) else { return };
        let (shard, partition) = (schedule.record.shard, schedule.record.partition);
        let logical = schedule.record.cursor.next.map_or(due, |n| n.logical);
        let link = link_of(&schedule.record, PLAN.to_owned(), logical);
        let stub = Stub::new(seq, version, due, partition, spec, Some(&link), 0, 0);
        self.tombstone(shard, partition, seq);
        self.settle(shard, stub);
    }

    /// A task created beside the plan of its schedule is live.
    pub(crate) fn occurrence_inserted(&mut self, task: &NewTask, seq: Seq) {
        let Some(link) = &task.schedule else { return };
        if let Some(schedule) = self.schedules.by_uid.get_mut(&link.uid) {
            schedule.add(Live {
                seq,
                id: task.id,
                version: 0,
                started: false,
                attempt: 0,
                backfill: backfill_of(&link.origin).map(Box::from),
            });
            self.schedules.by_task.insert(seq, link.uid);
        }
    }

    /// A schedule as the engine has it, for tests.
    #[doc(hidden)]
    pub fn schedule_view(&self, uid: u128) -> Option<ScheduleView> {
        let schedule = self.schedules.by_uid.get(&uid)?;
        Some(ScheduleView {
            uid,
            cursor: schedule.record.cursor.clone(),
            live: schedule.live.len(),
            parked: schedule.parked,
        })
    }

    /// Whether a task that was located is an occurrence that waits for its turn.
    pub fn is_waiting_occurrence(&self, at: &Located) -> bool {
        self.schedules
            .of(at.seq)
            .and_then(|uid| self.schedules.by_uid.get(&uid))
            .is_some_and(|s| s.is_waiting(at.seq))
    }
}
