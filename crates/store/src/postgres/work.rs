//! What a part of a batch does, worked out in memory.
//!
//! The rows that a run of units names were read together ([`super::gather`]). Here the units are
//! applied to them one after the other, by the definitions in `apply`, and what comes of it is
//! written together ([`super::flush`]). So a batch of thousands of writes is a handful of statements,
//! and a refused unit is taken back before anything was sent.
//!
//! A row read from `tasks` is light: it has what decides about it, but not its definition. `attempts`
//! of such a task holds only the attempts that were added here, and `progress` only what was said here.
//!
//! Absent: everything that changes names and rules (queues, schedules, calendars) or deletes by range;
//! that is done by itself, in order ([`super::singly`]).

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::apply;
use crate::id::{NamespaceId, QueueId, Seq, Shard, TaskId};
use crate::schedule::Cursor;
use crate::state::State;
use crate::stats::StatsDelta;
use crate::task::{NewTask, Output, ScheduleLink, Task, TaskSpec};
use crate::time::Time;
use crate::write::{Done, Refusal, Refused, Unit, UnitResult, Write};

/// Where a row was before.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Base {
    /// Nowhere.
    Fresh,
    /// In `tasks`, under this version.
    Stored(u32),
    /// In history: whether succeeded, and its place.
    History(bool, i64),
}

/// Where a row is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Live,
    /// In history, as the n-th that this part finished.
    Ended(usize),
    /// Nowhere.
    Gone,
}

/// A task in the working set.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) task: Task,
    pub(super) base: Base,
    pub(super) place: Place,
    pub(super) overdue: bool,
    /// The stored payload is in its own table.
    pub(super) large: bool,
    /// It has an inbox row, or had one.
    pub(super) inbox: bool,
    /// The definition changed.
    pub(super) edited: bool,
    /// Anything changed.
    pub(super) changed: bool,
}

/// (schedule uid, origin, logical time).
pub(super) type Occurrence = (u128, String, Time);

pub(super) fn occurrence(link: &ScheduleLink) -> Occurrence {
    (link.uid, link.origin.clone(), link.logical)
}

/// A schedule that moves on.
#[derive(Debug, Clone)]
pub(super) struct Moved {
    pub(super) stored: u32,
    pub(super) version: u32,
    pub(super) cursor: Option<Cursor>,
}

/// Effects that only add up: kept per unit, joined when it is done.
#[derive(Debug, Default)]
pub(super) struct Effects<'a> {
    pub(super) counts: Vec<(QueueId, State, i64)>,
    pub(super) outputs: Vec<(Seq, u32, &'a Output)>,
    pub(super) inbox_in: Vec<(Shard, Seq)>,
    pub(super) inbox_out: Vec<(Shard, Seq)>,
    pub(super) stats: Vec<&'a StatsDelta>,
}

enum Undo {
    Entry(Seq, Option<Box<Entry>>),
    Id((NamespaceId, TaskId), Option<Option<u64>>),
    Key((QueueId, String), Option<TaskId>),
    Occurrence(Occurrence, bool),
    Past((NamespaceId, TaskId), Box<Past>),
    Moved(u128, Moved),
}

/// A task of history that a write wants back.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) task: Task,
    pub(super) succeeded: bool,
    pub(super) fin: i64,
    pub(super) large: bool,
}

/// See the module.
#[derive(Default)]
pub(super) struct Work<'a> {
    /// The leases that are held, of the shards that the batch names.
    pub(super) held: HashSet<(Shard, crate::id::Epoch)>,
    /// Queues and their namespaces.
    pub(super) queues: HashMap<QueueId, NamespaceId>,
    pub(super) entries: HashMap<Seq, Entry>,
    /// Ids known to exist, with their fingerprints.
    pub(super) ids: HashMap<(NamespaceId, TaskId), Option<u64>>,
    pub(super) keys: HashMap<(QueueId, String), TaskId>,
    pub(super) occurrences: HashSet<Occurrence>,
    pub(super) past: HashMap<(NamespaceId, TaskId), Past>,
    pub(super) schedules: HashMap<u128, Moved>,
    /// Sequences to give, as ranges in falling order: the next is taken from the last.
    pub(super) seqs: Vec<std::ops::Range<i64>>,
    /// In the order in which they ended.
    pub(super) ended: usize,
    /// Ids that ended here: what becomes of them now is not known in memory.
    pub(super) ended_ids: HashSet<(NamespaceId, TaskId)>,
    pub(super) effects: Effects<'a>,
    unit: Effects<'a>,
    log: Vec<Undo>,
}

/// Why a write is not done here.
pub(super) enum Stop {
    Refused(Refusal),
    /// What went before must be written first.
    Unwritten,
}

impl From<Refusal> for Stop {
    fn from(why: Refusal) -> Stop {
        Stop::Refused(why)
    }
}

impl<'a> Work<'a> {
    /// Whether every fence of a unit is current.
    pub(super) fn holds(&self, unit: &Unit) -> bool {
        unit.fences.iter().all(|fence| self.held.contains(fence))
    }

    /// Applies a unit, whole or not at all. `None` when what went before must be written first.
    pub(super) fn unit(&mut self, unit: &'a Unit) -> Option<UnitResult> {
        if !self.holds(unit) {
            return Some(Err(Refused { index: 0, why: Refusal::Fenced }));
        }
        let ended = self.ended;
        let mut done = Vec::with_capacity(unit.writes.len());
        for (index, write) in unit.writes.iter().enumerate() {
            match self.write(write) {
                Ok(answer) => done.push(answer),
                Err(stop) => {
                    self.undo();
                    self.ended = ended;
                    return match stop {
                        Stop::Refused(why) => Some(Err(Refused { index, why })),
                        Stop::Unwritten => None,
                    };
                }
            }
        }
        self.log.clear();
        let Effects { counts, outputs, inbox_in, inbox_out, stats } = &mut self.unit;
        self.effects.counts.append(counts);
        self.effects.outputs.append(outputs);
        self.effects.inbox_in.append(inbox_in);
        self.effects.inbox_out.append(inbox_out);
        self.effects.stats.append(stats);
        Some(Ok(done))
    }

    fn undo(&mut self) {
        self.unit = Effects::default();
        while let Some(undo) = self.log.pop() {
            match undo {
                Undo::Entry(seq, Some(entry)) => {
                    let now = self.entries.insert(seq, *entry);
                    if let Some(Entry { place: Place::Ended(_), task, .. }) = now {
                        self.ended_ids.remove(&(task.namespace, task.id));
                    }
                }
                Undo::Entry(seq, None) => {
                    if let Some(entry) = self.entries.remove(&seq) {
                        self.ended_ids.remove(&(entry.task.namespace, entry.task.id));
                    }
                }
                Undo::Id(id, Some(known)) => drop(self.ids.insert(id, known)),
                Undo::Id(id, None) => drop(self.ids.remove(&id)),
                Undo::Key(key, Some(holder)) => drop(self.keys.insert(key, holder)),
                Undo::Key(key, None) => drop(self.keys.remove(&key)),
                Undo::Occurrence(occurrence, true) => drop(self.occurrences.insert(occurrence)),
                Undo::Occurrence(occurrence, false) => drop(self.occurrences.remove(&occurrence)),
                Undo::Past(id, past) => drop(self.past.insert(id, *past)),
                Undo::Moved(uid, moved) => drop(self.schedules.insert(uid, moved)),
            }
        }
    }

    fn write(&mut self, write: &'a Write) -> Result<Done, Stop> {
        match write {
            Write::Insert(new) => return self.insert(new),
            Write::Start { seq, version, open } => {
                self.change(*seq, *version, |task| apply::start(task, open))?;
            }
            Write::End { seq, version, attempt, output, then } => {
                self.change(*seq, *version, |task| apply::end(task, attempt, then))?;
                self.unit.outputs.extend(output.as_deref().map(|o| (*seq, attempt.n, o)));
            }
            Write::Close { seq, version, to, at, reason, skipped } => {
                self.change(*seq, *version, |task| apply::close(task, *to, *at, reason, skipped))?;
            }
            Write::RequestCancel { seq, version } => {
                self.change(*seq, *version, apply::request_cancel)?;
            }
            Write::Edit { seq, version, due, spec } => self.edit(*seq, *version, *due, spec)?,
            Write::Discard { seq, version } => self.discard(*seq, *version)?,
            Write::Spill { seqs } => self.spill(seqs),
            Write::Progress { seq, version, claim_until, progress } => {
                self.change(*seq, *version, |task| apply::progress(task, *claim_until, progress))?;
            }
            Write::Redrive { namespace, id, due } => {
                return self.redrive((*namespace, *id), *due);
            }
            Write::Advance { uid, version, cursor } => self.advance(*uid, *version, cursor)?,
            Write::Stats(delta) => self.unit.stats.push(delta),
            Write::TakeIn { shard, seqs } => {
                self.unit.inbox_out.extend(seqs.iter().map(|seq| (*shard, *seq)));
            }
            // Those are done by themselves; nothing of this kind comes here.
            Write::EnsureQueue { .. }
            | Write::PutQueue { .. }
            | Write::PutSchedule(_)
            | Write::DeleteSchedule { .. }
            | Write::PutCalendar { .. }
            | Write::DeleteCalendar { .. }
            | Write::FoldStats { .. }
            | Write::PruneStats { .. }
            | Write::Prune { .. } => return Err(Stop::Unwritten),
        }
        Ok(Done::Ok)
    }

    fn insert(&mut self, new: &NewTask) -> Result<Done, Stop> {
        let queue = self.queues.get(&new.partition.queue).ok_or(Refusal::Conflict)?;
        if *queue != new.namespace {
            return Err(Refusal::Conflict.into());
        }
        let id = (new.namespace, new.id);
        let existing = self.ids.get(&id).copied();
        if let (Some(Some(known)), Some(asked)) = (existing, new.fingerprint)
            && known == asked
        {
            return Ok(Done::Same(new.id));
        }
        let occurrence = new.schedule.as_ref().map(occurrence);
        if occurrence.as_ref().is_some_and(|at| self.occurrences.contains(at)) {
            return Err(Refusal::Exists.into());
        }
        if existing.is_some() {
            return Err(Refusal::IdReused.into());
        }
        let key = new.spec.key.as_ref().map(|key| (new.partition.queue, key.clone()));
        if let Some(holder) = key.as_ref().and_then(|key| self.keys.get(key)) {
            return if new.keep_existing {
                Ok(Done::Kept(*holder))
            } else {
                Err(Refusal::KeyTaken(*holder).into())
            };
        }
        let seq = self.next_seq()?;
        if let Some(at) = occurrence {
            self.occurrences.insert(at.clone());
            self.log.push(Undo::Occurrence(at, false));
        }
        self.ids.insert(id, new.fingerprint);
        self.log.push(Undo::Id(id, None));
        self.put(Entry {
            task: apply::created(new, seq),
            base: Base::Fresh,
            place: Place::Live,
            overdue: false,
            large: false,
            inbox: new.inbox,
            edited: false,
            changed: true,
        });
        if let Some(key) = key {
            self.set_key(key, Some(new.id));
        }
        if new.inbox {
            self.unit.inbox_in.push((new.shard, seq));
        }
        self.unit.counts.push((new.partition.queue, State::Scheduled, 1));
        Ok(Done::Inserted(seq))
    }

    fn next_seq(&mut self) -> Result<Seq, Stop> {
        loop {
            // As many were drawn as there are inserts.
            let range = self.seqs.last_mut().ok_or(Stop::Unwritten)?;
            match range.next() {
                Some(seq) => return Ok(Seq(seq)),
                None => drop(self.seqs.pop()),
            }
        }
    }

    fn put(&mut self, entry: Entry) {
        let seq = entry.task.seq;
        let old = self.entries.insert(seq, entry);
        self.log.push(Undo::Entry(seq, old.map(Box::new)));
    }

    fn set_key(&mut self, key: (QueueId, String), holder: Option<TaskId>) {
        let old = match holder {
            Some(holder) => self.keys.insert(key.clone(), holder),
            None => self.keys.remove(&key),
        };
        self.log.push(Undo::Key(key, old));
    }

    /// The live entry under a version.
    fn live(&self, seq: Seq, version: u32) -> Result<&Entry, Stop> {
        let entry = self.entries.get(&seq).filter(|entry| entry.place == Place::Live);
        let entry = entry.ok_or(Refusal::Conflict)?;
        apply::check(&entry.task, version)?;
        Ok(entry)
    }

    /// Compare-and-set on a live task; it goes to history when it became final.
    fn change(
        &mut self,
        seq: Seq,
        version: u32,
        by: impl FnOnce(&mut Task) -> Result<(), Refusal>,
    ) -> Result<(), Stop> {
        let mut entry = self.live(seq, version)?.clone();
        let before = (entry.task.state, entry.task.attempts.len());
        by(&mut entry.task)?;
        entry.overdue = false;
        entry.changed = true;
        let task = &entry.task;
        let (queue, shard) = (task.queue(), task.shard);
        if (task.state, task.attempts.len()) != before && entry.inbox {
            self.unit.inbox_out.push((shard, seq));
        }
        if task.state != before.0 {
            self.unit.counts.push((queue, before.0, -1));
            self.unit.counts.push((queue, task.state, 1));
        }
        if task.state.is_final() {
            self.ended_ids.insert((task.namespace, task.id));
            entry.place = Place::Ended(self.ended);
            self.ended += 1;
            if let Some(key) = &task.spec.key {
                self.set_key((queue, key.clone()), None);
            }
        }
        self.put(entry);
        Ok(())
    }

    fn edit(&mut self, seq: Seq, version: u32, due: Time, spec: &TaskSpec) -> Result<(), Stop> {
        self.change(seq, version, |task| apply::edit(task, due, spec))?;
        if let Some(entry) = self.entries.get_mut(&seq) {
            entry.edited = true;
        }
        Ok(())
    }

    fn discard(&mut self, seq: Seq, version: u32) -> Result<(), Stop> {
        let entry = self.live(seq, version)?;
        apply::discard(&entry.task)?;
        let entry = Entry { place: Place::Gone, changed: true, ..entry.clone() };
        let task = &entry.task;
        let (id, queue) = ((task.namespace, task.id), task.queue());
        if entry.inbox {
            self.unit.inbox_out.push((task.shard, seq));
        }
        self.unit.counts.push((queue, task.state, -1));
        if let Some(known) = self.ids.remove(&id) {
            self.log.push(Undo::Id(id, Some(known)));
        }
        if let Some(at) = task.schedule.as_ref().map(occurrence)
            && self.occurrences.remove(&at)
        {
            self.log.push(Undo::Occurrence(at, true));
        }
        if let Some(key) = task.spec.key.clone() {
            self.set_key((queue, key), None);
        }
        self.put(entry);
        Ok(())
    }

    fn spill(&mut self, seqs: &[Seq]) {
        for seq in seqs {
            let Some(entry) = self.entries.get(seq) else { continue };
            let waits = entry.place == Place::Live && entry.task.state == State::Scheduled;
            if waits && !entry.overdue {
                self.put(Entry { overdue: true, changed: true, ..entry.clone() });
            }
        }
    }

    fn redrive(&mut self, id: (NamespaceId, TaskId), due: Time) -> Result<Done, Stop> {
        if self.ended_ids.contains(&id) {
            return Err(Stop::Unwritten);
        }
        let past = self.past.get(&id).ok_or(Refusal::Conflict)?;
        let mut task = past.task.clone();
        let key = task.spec.key.as_ref().map(|key| (task.queue(), key.clone()));
        if let Some(holder) = key.as_ref().and_then(|key| self.keys.get(key)) {
            return Err(Refusal::KeyTaken(*holder).into());
        }
        let was = task.state;
        apply::redrive(&mut task, due)?;
        let Some(past) = self.past.remove(&id) else { return Err(Refusal::Conflict.into()) };
        self.put(Entry {
            task: task.clone(),
            base: Base::History(past.succeeded, past.fin),
            place: Place::Live,
            overdue: false,
            large: past.large,
            inbox: false,
            edited: false,
            changed: true,
        });
        self.log.push(Undo::Past(id, Box::new(past)));
        if let Some(key) = key {
            self.set_key(key, Some(task.id));
        }
        self.unit.counts.push((task.queue(), was, -1));
        self.unit.counts.push((task.queue(), State::Scheduled, 1));
        Ok(Done::Redriven(Box::new(task)))
    }

    fn advance(&mut self, uid: u128, version: u32, cursor: &Cursor) -> Result<(), Stop> {
        let known = self.schedules.get_mut(&uid).ok_or(Refusal::Conflict)?;
        if known.version != version {
            return Err(Refusal::Conflict.into());
        }
        self.log.push(Undo::Moved(uid, known.clone()));
        known.version = version.wrapping_add(1);
        known.cursor = Some(cursor.clone());
        Ok(())
    }

    /// The sums of what was counted, in order, without zeros.
    pub(super) fn counts(&self) -> BTreeMap<(QueueId, State), i64> {
        let mut sums = BTreeMap::new();
        for (queue, state, by) in &self.effects.counts {
            *sums.entry((*queue, *state)).or_default() += by;
        }
        sums.retain(|_, n| *n != 0);
        sums
    }
}
