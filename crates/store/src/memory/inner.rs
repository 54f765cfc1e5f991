//! The maps of the memory store and the few primitives that change them.
//!
//! Records are the truth; every index is derived from them inside [`Inner::set_live`] and
//! [`Inner::set_history`]. Each primitive returns what undoes it, so that a refused unit leaves
//! no trace.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::calendar::CalendarRecord;
use crate::id::{NamespaceId, Partition, QueueId, Seq, Shard, TaskId};
use crate::lease::Leases;
use crate::queue::QueueRecord;
use crate::schedule::{LiveOccurrence, ScheduleRecord};
use crate::state::State;
use crate::stats::StatsRow;
use crate::store::Edge;
use crate::task::{Output, Rank, ScheduleLink, Task};
use crate::time::Time;

/// A live task.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) task: Task,
    /// Marked by a spill; only ever set while scheduled.
    pub(super) overdue: bool,
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Live(Seq),
    /// Part of history (`true` for succeeded) and place in its finish order.
    History(bool, u64),
}

/// (schedule uid, origin, logical time).
pub(super) type Occurrence = (u128, String, Time);

/// What undoes one primitive.
#[derive(Debug)]
pub(super) enum Undo {
    Live(Seq, Option<Row>),
    History(bool, u64, Option<Task>),
    Output((Seq, u32), Option<Output>),
    Namespace,
    Queue(QueueId, Option<QueueRecord>),
    Schedule(u128, Option<ScheduleRecord>),
    Calendar((NamespaceId, String), Option<CalendarRecord>),
    Inbox(Shard, Seq, bool),
    Stats((i64, Shard), Option<Vec<StatsRow>>),
}

/// Everything that is kept.
#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) namespaces: Vec<String>,
    pub(super) queues: BTreeMap<QueueId, QueueRecord>,
    pub(super) queue_names: HashMap<(NamespaceId, String), QueueId>,
    pub(super) live: BTreeMap<Seq, Row>,
    pub(super) succeeded: BTreeMap<u64, Task>,
    pub(super) other: BTreeMap<u64, Task>,
    pub(super) outputs: BTreeMap<(Seq, u32), Output>,
    pub(super) schedules: BTreeMap<u128, ScheduleRecord>,
    pub(super) calendars: BTreeMap<(NamespaceId, String), CalendarRecord>,
    pub(super) inbox: BTreeSet<(Shard, Seq)>,
    pub(super) stats: BTreeMap<(i64, Shard), Vec<StatsRow>>,
    pub(super) leases: Leases,
    pub(super) last_seq: i64,
    pub(super) last_finish: u64,
    /// The latest version that a calendar was given.
    pub(super) last_calendar: u64,
    pub(super) commits: u64,
    // Derived.
    pub(super) places: HashMap<(NamespaceId, TaskId), Place>,
    pub(super) keys: HashMap<(QueueId, String), Seq>,
    pub(super) occurrences: HashSet<Occurrence>,
    pub(super) due: BTreeSet<(Shard, Edge)>,
    pub(super) overdue: BTreeSet<(Partition, Rank)>,
    pub(super) counts: BTreeMap<(QueueId, State), u64>,
}

fn occurrence(link: &ScheduleLink) -> Occurrence {
    (link.uid, link.origin.clone(), link.logical)
}

impl Inner {
    /// Puts, replaces or removes a live record.
    pub(super) fn set_live(&mut self, seq: Seq, row: Option<Row>) -> Undo {
        let old = self.live.remove(&seq);
        if let Some(old) = &old {
            self.index(&old.task, Place::Live(seq), false);
            self.index_wait(old, false);
        }
        if let Some(row) = row {
            self.index(&row.task, Place::Live(seq), true);
            self.index_wait(&row, true);
            self.live.insert(seq, row);
        }
        Undo::Live(seq, old)
    }

    /// Puts or removes a record of history.
    pub(super) fn set_history(&mut self, succeeded: bool, n: u64, task: Option<Task>) -> Undo {
        let old = self.history_mut(succeeded).remove(&n);
        if let Some(old) = &old {
            self.index(old, Place::History(succeeded, n), false);
        }
        if let Some(task) = task {
            self.index(&task, Place::History(succeeded, n), true);
            self.history_mut(succeeded).insert(n, task);
        }
        Undo::History(succeeded, n, old)
    }

    /// One part of history, in finish order.
    pub(super) fn history(&self, succeeded: bool) -> &BTreeMap<u64, Task> {
        if succeeded { &self.succeeded } else { &self.other }
    }

    fn history_mut(&mut self, succeeded: bool) -> &mut BTreeMap<u64, Task> {
        if succeeded { &mut self.succeeded } else { &mut self.other }
    }

    fn index(&mut self, task: &Task, place: Place, add: bool) {
        let id = (task.namespace, task.id);
        let count = self.counts.entry((task.queue(), task.state)).or_default();
        *count = if add { *count + 1 } else { *count - 1 };
        if add {
            self.places.insert(id, place);
        } else {
            self.places.remove(&id);
        }
        if let Some(link) = &task.schedule {
            if add {
                self.occurrences.insert(occurrence(link));
            } else {
                self.occurrences.remove(&occurrence(link));
            }
        }
        if let (Place::Live(seq), Some(key)) = (place, &task.spec.key) {
            let key = (task.queue(), key.clone());
            if add {
                self.keys.insert(key, seq);
            } else {
                self.keys.remove(&key);
            }
        }
    }

    fn index_wait(&mut self, row: &Row, add: bool) {
        let task = &row.task;
        if task.state != State::Scheduled {
            return;
        }
        if row.overdue {
            let entry = (task.partition, task.stub().rank());
            if add {
                self.overdue.insert(entry)
            } else {
                self.overdue.remove(&entry)
            };
        } else {
            let entry = (task.shard, Edge { due: task.due, seq: task.seq });
            if add {
                self.due.insert(entry)
            } else {
                self.due.remove(&entry)
            };
        }
    }

    /// Puts or removes an output.
    pub(super) fn set_output(&mut self, at: (Seq, u32), output: Option<Output>) -> Undo {
        let old = match output {
            Some(output) => self.outputs.insert(at, output),
            None => self.outputs.remove(&at),
        };
        Undo::Output(at, old)
    }

    /// Puts, replaces or removes a queue.
    pub(super) fn set_queue(&mut self, id: QueueId, queue: Option<QueueRecord>) -> Undo {
        let old = self.queues.remove(&id);
        if let Some(old) = &old {
            self.queue_names.remove(&(old.namespace, old.name.clone()));
        }
        if let Some(queue) = queue {
            self.queue_names.insert((queue.namespace, queue.name.clone()), id);
            self.queues.insert(id, queue);
        }
        Undo::Queue(id, old)
    }

    /// Puts, replaces or removes a schedule.
    pub(super) fn set_schedule(&mut self, uid: u128, record: Option<ScheduleRecord>) -> Undo {
        let old = match record {
            Some(record) => self.schedules.insert(uid, record),
            None => self.schedules.remove(&uid),
        };
        Undo::Schedule(uid, old)
    }

    /// Puts, replaces or removes a calendar.
    pub(super) fn set_calendar(
        &mut self,
        at: (NamespaceId, String),
        record: Option<CalendarRecord>,
    ) -> Undo {
        let old = match record {
            Some(record) => self.calendars.insert(at.clone(), record),
            None => self.calendars.remove(&at),
        };
        Undo::Calendar(at, old)
    }

    /// Puts or removes an inbox row.
    pub(super) fn set_inbox(&mut self, shard: Shard, seq: Seq, present: bool) -> Undo {
        let entry = (shard, seq);
        let changed = if present { self.inbox.insert(entry) } else { self.inbox.remove(&entry) };
        Undo::Inbox(shard, seq, present != changed)
    }

    /// Puts, replaces or removes a minute's statistics.
    pub(super) fn set_stats(&mut self, at: (i64, Shard), rows: Option<Vec<StatsRow>>) -> Undo {
        let old = match rows {
            Some(rows) => self.stats.insert(at, rows),
            None => self.stats.remove(&at),
        };
        Undo::Stats(at, old)
    }

    /// Takes a primitive back.
    pub(super) fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Live(seq, row) => {
                self.set_live(seq, row);
            }
            Undo::History(succeeded, n, task) => {
                self.set_history(succeeded, n, task);
            }
            Undo::Output(at, output) => {
                self.set_output(at, output);
            }
            Undo::Namespace => {
                self.namespaces.pop();
            }
            Undo::Queue(id, queue) => {
                self.set_queue(id, queue);
            }
            Undo::Schedule(uid, record) => {
                self.set_schedule(uid, record);
            }
            Undo::Calendar(at, record) => {
                self.set_calendar(at, record);
            }
            Undo::Inbox(shard, seq, present) => {
                self.set_inbox(shard, seq, present);
            }
            Undo::Stats(at, rows) => {
                self.set_stats(at, rows);
            }
        }
    }

    /// Ranks of the partition's overdue rows after `after`, in order.
    pub(super) fn overdue_after(
        &self,
        partition: Partition,
        after: Option<Rank>,
    ) -> impl Iterator<Item = Rank> + '_ {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let first = Rank { neg_priority: i8::MIN, due: Time::MIN, seq: Seq(i64::MIN) };
        let from = after.map_or(Included((partition, first)), |rank| Excluded((partition, rank)));
        self.overdue
            .range((from, Unbounded))
            .take_while(move |entry| entry.0 == partition)
            .map(|entry| entry.1)
    }

    /// The live tasks of a schedule, in order of sequence.
    pub(super) fn live_occurrences(&self, uid: u128) -> Vec<LiveOccurrence> {
        let of_schedule = |row: &Row| {
            let task = &row.task;
            let link = task.schedule.as_ref().filter(|link| link.uid == uid)?;
            Some(LiveOccurrence {
                seq: task.seq,
                id: task.id,
                version: task.version,
                state: task.state,
                attempt: task.attempt,
                origin: link.origin.clone(),
                logical: link.logical,
                due: task.due,
            })
        };
        self.live.values().filter_map(of_schedule).collect()
    }

    /// See [`super::MemoryStore::check_invariants`].
    pub(super) fn check_invariants(&self) {
        let mut fresh = Inner { queues: self.queues.clone(), ..Inner::default() };
        for (&seq, row) in &self.live {
            assert_eq!(seq, row.task.seq);
            assert!(!row.task.state.is_final(), "{seq:?} is final but live");
            assert!(!row.overdue || row.task.state == State::Scheduled, "{seq:?} overdue");
            fresh.set_live(seq, Some(row.clone()));
        }
        for succeeded in [true, false] {
            for (&n, task) in self.history(succeeded) {
                assert!(task.state.is_final(), "{:?} is live but in history", task.seq);
                assert_eq!(succeeded, task.state == State::Succeeded);
                fresh.set_history(succeeded, n, Some(task.clone()));
            }
        }
        assert_eq!(self.places, fresh.places);
        assert_eq!(self.keys, fresh.keys);
        assert_eq!(self.occurrences, fresh.occurrences);
        assert_eq!(self.due, fresh.due);
        assert_eq!(self.overdue, fresh.overdue);
        for (at, &count) in &self.counts {
            assert_eq!(count, fresh.counts.get(at).copied().unwrap_or(0), "{at:?}");
        }
        for schedule in self.schedules.values() {
            for name in &schedule.doc.exclude {
                let known = self.calendars.contains_key(&(schedule.namespace, name.clone()));
                assert!(known, "{} names {name}, which is not there", schedule.name);
            }
        }
        assert!(self.inbox.iter().all(|(_, seq)| self.live.contains_key(seq)));
    }
}
