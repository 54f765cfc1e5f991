//! Schedules that are behind their calendars, and how they catch up.
//!
//! A schedule is *behind* while its next occurrence is not known to be planned by the newest
//! calendars that it names. It falls behind when one of them changes, and is found behind when its
//! shard is read: the cursor says by which versions it was planned, so a node that died after a
//! calendar was written and before the schedules were, or that took the shard over meanwhile, makes
//! up for it. It is planned anew by the code of an edit, so nothing is lost or doubled; an occurrence
//! whose time has come stays as it is.
//!
//! What always holds: a bounded number is planned in a step, and none while a full batch waits to be
//! written, so a calendar of a hundred thousand schedules delays nobody.
//!
//! Assumed: whoever holds shards has been told the calendars as the store had them after it took the
//! shards, before [`Event::LeaseGained`](crate::api::Event::LeaseGained). On one node they are read once at
//! the start and told with each change. Nodes that share a store will have to read them again when
//! they take a shard, and now and then for changes made by others; by version, telling one that is
//! known costs nothing. A cursor of newer versions than are known here is left as it is.

use std::collections::{BTreeSet, VecDeque};

use tourbillon_store::schedule::NextOccurrence;
use tourbillon_store::{NamespaceId, ScheduleRecord, Shard};

use crate::api::{Answer, ReplyId};
use crate::calendars::{Calendar, Calendars};
use crate::engine::Engine;
use crate::occurrence::PLAN;
use crate::timing::occurrence_id;
use crate::window::ShardState;

/// Schedules planned anew in one step.
const STEP_MAX: usize = 1_000;

/// Calendars, and who is behind them.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    pub(crate) calendars: Calendars,
    uids: BTreeSet<u128>,
    /// Those that are to be looked at; one with writes under way comes back when they are settled.
    queue: VecDeque<u128>,
    /// Who waits until none is behind.
    waiters: Vec<ReplyId>,
    /// Shards with schedules that name a calendar that is not known: they are read again when one is.
    orphaned: BTreeSet<Shard>,
}

impl Behind {
    /// A schedule is not held any more.
    pub(crate) fn forget(&mut self, uid: u128) {
        self.uids.remove(&uid);
    }

    /// The schedule's writes are settled: it can be looked at again.
    pub(crate) fn settled(&mut self, uid: u128) {
        if self.uids.contains(&uid) {
            self.queue.push_back(uid);
        }
    }

    /// A schedule is left out of memory. When it names a calendar that is not known here (made anew, and
    /// not told yet), it comes back when that is told.
    pub(crate) fn left_out(&mut self, record: &ScheduleRecord) {
        if self.calendars.days(record.namespace, &record.doc.exclude).is_err() {
            self.orphaned.insert(record.shard);
        }
    }

    fn add(&mut self, uid: u128) {
        if self.uids.insert(uid) {
            self.queue.push_back(uid);
        }
    }
}

impl Engine {
    /// These calendars are as given; what is older than what is known is passed over.
    pub(crate) fn set_calendars(&mut self, calendars: Vec<Calendar>) {
        for calendar in calendars {
            let (namespace, name) = (calendar.namespace, calendar.name.clone());
            if self.behind.calendars.put(calendar) {
                self.calendar_changed(namespace, &name);
                for shard in std::mem::take(&mut self.behind.orphaned) {
                    self.reload(shard);
                }
            }
        }
    }

    fn calendar_changed(&mut self, namespace: NamespaceId, name: &str) {
        for uid in self.schedules.naming(namespace, name) {
            let Some(schedule) = self.schedules.get_mut(uid) else { continue };
            let exclude = &schedule.record.doc.exclude;
            // What is named is there, or the schedule could not have been taken in.
            if let Ok(days) = self.behind.calendars.days(namespace, exclude) {
                schedule.timing = schedule.timing.clone().with_exclusions(days);
                self.behind.add(uid);
            }
        }
    }

    /// Notes a schedule whose next occurrence was planned by older calendars than are known.
    pub(crate) fn look_if_behind(&mut self, uid: u128) {
        let Some(schedule) = self.schedules.get_mut(uid) else { return };
        let record = &schedule.record;
        let stamp = self.behind.calendars.stamp(record.namespace, &record.doc.exclude);
        if record.cursor.calendars < stamp {
            self.behind.add(uid);
        }
    }

    /// Answers when every schedule that is held is planned by the calendars told so far, durably.
    pub(crate) fn await_calendars(&mut self, reply: ReplyId) {
        self.behind.waiters.push(reply);
    }

    /// Whether a step would plan something anew.
    pub(crate) fn has_behind_to_plan(&self) -> bool {
        !self.behind.queue.is_empty() && self.batches.pending_writes() < self.cfg.batch_max
    }

    /// Plans schedules anew that are behind, and tells who waits for that.
    pub(crate) fn plan_behind(&mut self) {
        let mut budget = STEP_MAX;
        while budget > 0
            && self.has_behind_to_plan()
            && let Some(uid) = self.behind.queue.pop_front()
        {
            budget -= 1;
            if self.is_unsettled(uid) {
                continue;
            }
            if !self.behind.uids.contains(&uid) || !self.plan_by_calendars(uid) {
                self.behind.forget(uid);
            }
        }
        if !self.behind.waiters.is_empty() && self.is_none_behind() {
            for reply in std::mem::take(&mut self.behind.waiters) {
                self.answer(reply, Answer::Done);
            }
        }
    }

    /// A shard that is being read may hold some that are behind, and so may a schedule whose creation
    /// is being written.
    fn is_none_behind(&self) -> bool {
        self.behind.uids.is_empty()
            && !self.shards.iter().any(ShardState::is_reloading)
            && !self.batches.schedules().any(|uid| !self.schedules.knows(uid))
    }

    /// Plans a settled schedule's next occurrence by its calendars as they are now. Answers whether
    /// there was anything to write; then it is looked at once more when that is done.
    fn plan_by_calendars(&mut self, uid: u128) -> bool {
        let now = self.now.store;
        if self.is_waiting_run_begun(uid) {
            return false;
        }
        let Some(schedule) = self.schedules.get_mut(uid) else { return false };
        let waiting = schedule.record.cursor.next;
        let due = waiting.is_some_and(|w| w.logical <= now);
        if schedule.record.paused || schedule.deleted || due {
            return false;
        }
        // What is planned lies ahead, and the calendar may allow something before it. The one time of
        // a fixed delay is counted from the end of the run before.
        let after = match (waiting, schedule.timing.rule().delay()) {
            (Some(waiting), Some(delay)) => waiting.logical.0.saturating_sub(delay),
            _ => now.0,
        };
        let (next, _) = schedule.planned_anew(&schedule.record, &schedule.timing, after);
        let next = next.map(|(logical, due)| NextOccurrence {
            id: occurrence_id(uid, PLAN, logical),
            logical,
            due,
        });
        if next == waiting {
            return false;
        }
        let (record, timing) = (schedule.record.clone(), schedule.timing.clone());
        self.replan(None, record, timing, Some(after));
        true
    }
}
