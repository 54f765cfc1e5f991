//! Applying units to the maps, each whole or not at all.

use crate::apply;
use crate::calendar::{CalendarDoc, CalendarRecord};
use crate::id::{NamespaceId, QueueId, Seq, Shard};
use crate::queue::{QueueConfig, QueueRecord};
use crate::schedule::ScheduleRecord;
use crate::state::State;
use crate::stats::merge_rows;
use crate::task::{NewTask, Task};
use crate::time::Time;
use crate::write::{Done, Refusal, Refused, Unit, UnitResult, Write};

use super::inner::{Inner, Place, Row, Undo};

type Log = Vec<Undo>;

impl Inner {
    /// Applies the units in order.
    pub(super) fn commit(&mut self, units: &[Unit]) -> Vec<UnitResult> {
        self.commits += 1;
        units.iter().map(|unit| self.unit(unit)).collect()
    }

    fn unit(&mut self, unit: &Unit) -> UnitResult {
        if unit.fences.iter().any(|&(shard, epoch)| !self.leases.holds(shard, epoch)) {
            return Err(Refused { index: 0, why: Refusal::Fenced });
        }
        let last = (self.last_seq, self.last_finish, self.last_calendar);
        let mut log = Log::new();
        let mut done = Vec::with_capacity(unit.writes.len());
        for (index, write) in unit.writes.iter().enumerate() {
            match self.write(write, &mut log) {
                Ok(answer) => done.push(answer),
                Err(why) => {
                    log.into_iter().rev().for_each(|undo| self.undo(undo));
                    (self.last_seq, self.last_finish, self.last_calendar) = last;
                    return Err(Refused { index, why });
                }
            }
        }
        Ok(done)
    }

    fn write(&mut self, write: &Write, log: &mut Log) -> Result<Done, Refusal> {
        match write {
            Write::EnsureQueue { namespace, name } => {
                return Ok(Done::Queue(Box::new(self.ensure_queue(namespace, name, log))));
            }
            Write::PutQueue { record } => return self.put_queue(record, log),
            Write::Insert(new) => return self.insert(new, log),
            Write::Start { seq, version, open } => {
                self.change(*seq, *version, log, |task| apply::start(task, open))?;
            }
            Write::End { seq, version, attempt, output, then } => {
                self.change(*seq, *version, log, |task| apply::end(task, attempt, then))?;
                if let Some(output) = output {
                    let output = Some((**output).clone());
                    log.push(self.set_output((*seq, attempt.n), output));
                }
            }
            Write::Close { seq, version, to, at, reason, skipped } => {
                self.change(*seq, *version, log, |task| {
                    apply::close(task, *to, *at, reason, skipped)
                })?;
            }
            Write::RequestCancel { seq, version } => {
                self.change(*seq, *version, log, apply::request_cancel)?;
            }
            Write::Edit { seq, version, due, spec } => {
                self.change(*seq, *version, log, |task| apply::edit(task, *due, spec))?;
            }
            Write::Discard { seq, version } => self.discard(*seq, *version, log)?,
            Write::Spill { seqs } => self.spill(seqs, log),
            Write::Progress { seq, version, claim_until, progress } => {
                self.change(*seq, *version, log, |task| {
                    apply::progress(task, *claim_until, progress)
                })?;
            }
            Write::Redrive { namespace, id, due } => {
                let place = self.places.get(&(*namespace, *id)).copied();
                return self.redrive(place, *due, log);
            }
            Write::PutSchedule(record) => self.put_schedule(record, log)?,
            Write::Advance { uid, version, cursor } => {
                let mut record = self.schedule_at(*uid, *version)?;
                record.cursor = cursor.clone();
                record.version += 1;
                log.push(self.set_schedule(*uid, Some(record)));
            }
            Write::DeleteSchedule { uid, version } => {
                self.schedule_at(*uid, *version)?;
                log.push(self.set_schedule(*uid, None));
            }
            Write::PutCalendar { namespace, name, version, at, doc } => {
                return self.put_calendar(namespace, name, *version, *at, doc, log);
            }
            Write::DeleteCalendar { namespace, name, version } => {
                let at = (*namespace, name.clone());
                if self.calendars.get(&at).is_none_or(|known| known.version != *version) {
                    return Err(Refusal::Conflict);
                }
                if self.users(*namespace, name).next().is_some() {
                    return Err(Refusal::InUse);
                }
                log.push(self.set_calendar(at, None));
            }
            Write::Stats(delta) => {
                let at = (delta.minute, delta.shard);
                let mut rows = self.stats.get(&at).cloned().unwrap_or_default();
                merge_rows(&mut rows, &delta.rows);
                log.push(self.set_stats(at, Some(rows)));
            }
            // Rows are summed as they come; there is nothing left to fold.
            Write::FoldStats { .. } => {}
            Write::PruneStats { before_minute, limit } => {
                return Ok(Done::Pruned(self.prune_stats(*before_minute, *limit, log)));
            }
            Write::TakeIn { shard, seqs } => {
                for &seq in seqs {
                    log.push(self.set_inbox(*shard, seq, false));
                }
            }
            Write::Prune { succeeded, before, limit } => {
                return Ok(Done::Pruned(self.prune(*succeeded, *before, *limit, log)));
            }
        }
        Ok(Done::Ok)
    }

    fn ensure_namespace(&mut self, namespace: &str, log: &mut Log) -> NamespaceId {
        let known = self.namespaces.iter().position(|n| n == namespace);
        let index = known.unwrap_or_else(|| {
            self.namespaces.push(namespace.to_owned());
            log.push(Undo::Namespace);
            self.namespaces.len() - 1
        });
        namespace_id(index)
    }

    fn ensure_queue(&mut self, namespace: &str, name: &str, log: &mut Log) -> QueueRecord {
        let namespace_id = self.ensure_namespace(namespace, log);
        if let Some(id) = self.queue_names.get(&(namespace_id, name.to_owned())) {
            return self.queues[id].clone();
        }
        let config = QueueConfig::default();
        let record = QueueRecord {
            id: QueueId(self.queues.keys().last().map_or(1, |id| id.0 + 1)),
            namespace: namespace_id,
            namespace_name: namespace.to_owned(),
            name: name.to_owned(),
            version: 1,
            partitions_ever: config.partitions,
            config,
        };
        log.push(self.set_queue(record.id, Some(record.clone())));
        record
    }

    fn put_queue(&mut self, record: &QueueRecord, log: &mut Log) -> Result<Done, Refusal> {
        let mut queue = self.queues.get(&record.id).cloned().ok_or(Refusal::Conflict)?;
        if queue.version != record.version {
            return Err(Refusal::Conflict);
        }
        queue.version += 1;
        queue.config = record.config.clone();
        queue.partitions_ever = queue.partitions_ever.max(queue.config.partitions);
        log.push(self.set_queue(queue.id, Some(queue.clone())));
        Ok(Done::Queue(Box::new(queue)))
    }

    fn insert(&mut self, new: &NewTask, log: &mut Log) -> Result<Done, Refusal> {
        let queue = self.queues.get(&new.partition.queue).ok_or(Refusal::Conflict)?;
        if queue.namespace != new.namespace {
            return Err(Refusal::Conflict);
        }
        let place = self.places.get(&(new.namespace, new.id)).copied();
        let existing = place.and_then(|place| self.at(place));
        if let Some(task) = existing
            && new.fingerprint.is_some()
            && task.fingerprint == new.fingerprint
        {
            return Ok(Done::Same(new.id));
        }
        if let Some(link) = &new.schedule
            && self.occurrences.contains(&(link.uid, link.origin.clone(), link.logical))
        {
            return Err(Refusal::Exists);
        }
        if existing.is_some() {
            return Err(Refusal::IdReused);
        }
        if let Some(key) = &new.spec.key
            && let Some(seq) = self.keys.get(&(new.partition.queue, key.clone()))
        {
            let holder = self.live[seq].task.id;
            return if new.keep_existing {
                Ok(Done::Kept(holder))
            } else {
                Err(Refusal::KeyTaken(holder))
            };
        }
        self.last_seq += 1;
        let seq = Seq(self.last_seq);
        let row = Row { task: apply::created(new, seq), overdue: false };
        log.push(self.set_live(seq, Some(row)));
        if new.inbox {
            log.push(self.set_inbox(new.shard, seq, true));
        }
        Ok(Done::Inserted(seq))
    }

    /// The record at a place.
    pub(super) fn at(&self, place: Place) -> Option<&Task> {
        match place {
            Place::Live(seq) => self.live.get(&seq).map(|row| &row.task),
            Place::History(succeeded, n) => self.history(succeeded).get(&n),
        }
    }

    /// Compare-and-set on a live task; moves it to history when it became final.
    fn change(
        &mut self,
        seq: Seq,
        version: u32,
        log: &mut Log,
        by: impl FnOnce(&mut Task) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let row = self.live.get(&seq).ok_or(Refusal::Conflict)?;
        apply::check(&row.task, version)?;
        let mut row = row.clone();
        let before = (row.task.state, row.task.attempts.len());
        by(&mut row.task)?;
        row.overdue = false;
        let task = &row.task;
        if (task.state, task.attempts.len()) != before {
            let shard = task.shard;
            log.push(self.set_inbox(shard, seq, false));
        }
        if task.state.is_final() {
            log.push(self.set_live(seq, None));
            self.last_finish += 1;
            let succeeded = row.task.state == State::Succeeded;
            log.push(self.set_history(succeeded, self.last_finish, Some(row.task)));
        } else {
            log.push(self.set_live(seq, Some(row)));
        }
        Ok(())
    }

    fn discard(&mut self, seq: Seq, version: u32, log: &mut Log) -> Result<(), Refusal> {
        let task = &self.live.get(&seq).ok_or(Refusal::Conflict)?.task;
        apply::check(task, version)?;
        apply::discard(task)?;
        let shard = task.shard;
        log.push(self.set_inbox(shard, seq, false));
        log.push(self.set_live(seq, None));
        Ok(())
    }

    fn spill(&mut self, seqs: &[Seq], log: &mut Log) {
        for seq in seqs {
            let row = self.live.get(seq);
            let Some(row) = row.filter(|r| r.task.state == State::Scheduled) else { continue };
            let row = Row { overdue: true, ..row.clone() };
            log.push(self.set_live(*seq, Some(row)));
        }
    }

    fn redrive(&mut self, place: Option<Place>, due: Time, log: &mut Log) -> Result<Done, Refusal> {
        let Some(Place::History(succeeded, n)) = place else { return Err(Refusal::Conflict) };
        let mut task = self.history(succeeded).get(&n).cloned().ok_or(Refusal::Conflict)?;
        if let Some(key) = &task.spec.key
            && let Some(seq) = self.keys.get(&(task.queue(), key.clone()))
        {
            return Err(Refusal::KeyTaken(self.live[seq].task.id));
        }
        apply::redrive(&mut task, due)?;
        log.push(self.set_history(succeeded, n, None));
        log.push(self.set_live(task.seq, Some(Row { task: task.clone(), overdue: false })));
        Ok(Done::Redriven(Box::new(task)))
    }

    fn schedule_at(&self, uid: u128, version: u32) -> Result<ScheduleRecord, Refusal> {
        let record = self.schedules.get(&uid).ok_or(Refusal::Conflict)?;
        if record.version == version { Ok(record.clone()) } else { Err(Refusal::Conflict) }
    }

    fn put_schedule(&mut self, record: &ScheduleRecord, log: &mut Log) -> Result<(), Refusal> {
        let known = self.schedules.get(&record.uid).map_or(0, |known| known.version);
        if known != record.version {
            return Err(Refusal::Conflict);
        }
        let named = |s: &&ScheduleRecord| s.namespace == record.namespace && s.name == record.name;
        if self.schedules.values().find(named).is_some_and(|s| s.uid != record.uid) {
            return Err(Refusal::Exists);
        }
        let calendar = |name: &String| (record.namespace, name.clone());
        if !record.doc.exclude.iter().all(|name| self.calendars.contains_key(&calendar(name))) {
            return Err(Refusal::NoCalendar);
        }
        let record = ScheduleRecord { version: known + 1, ..record.clone() };
        log.push(self.set_schedule(record.uid, Some(record)));
        Ok(())
    }

    fn put_calendar(
        &mut self,
        namespace_name: &str,
        name: &str,
        version: u64,
        at: Time,
        doc: &CalendarDoc,
        log: &mut Log,
    ) -> Result<Done, Refusal> {
        let namespace = self.ensure_namespace(namespace_name, log);
        let place = (namespace, name.to_owned());
        let known = self.calendars.get(&place);
        if known.map_or(0, |known| known.version) != version {
            return Err(Refusal::Conflict);
        }
        let created_at = known.map_or(at, |known| known.created_at);
        self.last_calendar += 1;
        let record = CalendarRecord {
            namespace,
            namespace_name: namespace_name.to_owned(),
            name: name.to_owned(),
            version: self.last_calendar,
            created_at,
            updated_at: at,
            doc: doc.clone(),
        };
        log.push(self.set_calendar(place, Some(record.clone())));
        Ok(Done::Calendar(Box::new(record)))
    }

    /// The schedules that name a calendar.
    pub(super) fn users(
        &self,
        namespace: NamespaceId,
        calendar: &str,
    ) -> impl Iterator<Item = &ScheduleRecord> {
        let names = move |s: &&ScheduleRecord| {
            s.namespace == namespace && s.doc.exclude.iter().any(|name| name == calendar)
        };
        self.schedules.values().filter(names)
    }

    fn prune(&mut self, succeeded: bool, before: Time, limit: u32, log: &mut Log) -> u32 {
        let old: Vec<(u64, Seq)> = self
            .prunable(succeeded, before)
            .take(limit as usize)
            .map(|(n, task)| (n, task.seq))
            .collect();
        for &(n, seq) in &old {
            log.push(self.set_history(succeeded, n, None));
            let outputs: Vec<u32> =
                self.outputs.range((seq, 0)..=(seq, u32::MAX)).map(|(at, _)| at.1).collect();
            for attempt in outputs {
                log.push(self.set_output((seq, attempt), None));
            }
        }
        old.len() as u32
    }

    /// What retention may delete: the oldest, up to the first that finished too late.
    pub(super) fn prunable(
        &self,
        succeeded: bool,
        before: Time,
    ) -> impl Iterator<Item = (u64, &Task)> {
        let finished_before = move |task: &Task| task.finished_at.is_some_and(|at| at < before);
        let rows = self.history(succeeded).iter();
        rows.map(|(&n, task)| (n, task)).take_while(move |(_, task)| finished_before(task))
    }

    fn prune_stats(&mut self, before_minute: i64, limit: u32, log: &mut Log) -> u32 {
        let old: Vec<(i64, Shard)> = self
            .stats
            .keys()
            .take_while(|at| at.0 < before_minute)
            .take(limit as usize)
            .copied()
            .collect();
        for &at in &old {
            log.push(self.set_stats(at, None));
        }
        old.len() as u32
    }
}

/// Ids are given in order of creation, from 1.
pub(super) fn namespace_id(index: usize) -> NamespaceId {
    NamespaceId(u32::try_from(index + 1).unwrap_or(u32::MAX))
}
