//! Units that are done by themselves: each in a savepoint, one write after the other.
//!
//! They change names and rules (queues, schedules, calendars) or delete by range (retention), which is
//! rare, so plain statements in order are good enough. What they judge by they lock: nodes that do the
//! same at once come one after the other.

use uuid::Uuid;

use crate::calendar::CalendarDoc;
use crate::encoding::{json, parse};
use crate::error::StoreError;
use crate::id::{NamespaceId, QueueId, Shard};
use crate::queue::{QueueConfig, QueueRecord};
use crate::schedule::ScheduleRecord;
use crate::stats::{StatsRow, merge_rows};
use crate::time::Time;
use crate::write::{Done, Refusal, Refused, Unit, UnitResult, Write};

use super::error::{Failure, corrupt};
use super::flush::COUNT;
use super::records::{self, CALENDAR_BY_NAME, QUEUE_BY_ID};
use super::row::{get, get_state, get_u32};
use super::text::Text;
use super::work::Work;
use super::writer::{Tx, is_alone};

/// Why a write did not happen.
enum Stop {
    /// The unit is refused; the batch goes on.
    Refused(Refusal),
    /// The batch fails.
    Failed(Failure),
}

impl From<Refusal> for Stop {
    fn from(why: Refusal) -> Stop {
        Stop::Refused(why)
    }
}

impl<E: Into<Failure>> From<E> for Stop {
    fn from(error: E) -> Stop {
        Stop::Failed(error.into())
    }
}

type Answer = Result<Done, Stop>;

impl Tx<'_> {
    /// A unit, whole or not at all.
    pub(super) fn alone(&mut self, unit: &Unit) -> Result<UnitResult, Failure> {
        if !unit.fences.iter().all(|fence| self.held.contains(fence)) {
            return Ok(Err(Refused { index: 0, why: Refusal::Fenced }));
        }
        self.conn.run("SAVEPOINT unit", &[])?;
        let mut done = Vec::with_capacity(unit.writes.len());
        for (index, write) in unit.writes.iter().enumerate() {
            let answer = if is_alone(write) { self.rule(write) } else { self.one(write) };
            match answer {
                Ok(answer) => done.push(answer),
                Err(Stop::Failed(failure)) => return Err(failure),
                Err(Stop::Refused(why)) => {
                    self.queues.clear();
                    self.conn.batch("ROLLBACK TO SAVEPOINT unit; RELEASE SAVEPOINT unit")?;
                    return Ok(Err(Refused { index, why }));
                }
            }
        }
        self.conn.run("RELEASE SAVEPOINT unit", &[])?;
        Ok(Ok(done))
    }

    /// One write to tasks.
    fn one(&mut self, write: &Write) -> Answer {
        let unit = Unit { fences: Vec::new(), writes: vec![write.clone()] };
        let mut work: Work<'_> = self.begin(std::slice::from_ref(&unit), None)?;
        let result = work.unit(&unit);
        self.end(work)?;
        match result {
            Some(Ok(mut done)) if done.len() == 1 => Ok(done.remove(0)),
            Some(Err(refused)) => Err(refused.why.into()),
            _ => Err(Failure::from(corrupt("a write that depends on itself")).into()),
        }
    }

    fn rule(&mut self, write: &Write) -> Answer {
        match write {
            Write::EnsureQueue { namespace, name } => self.ensure_queue(namespace, name),
            Write::PutQueue { record } => self.put_queue(record),
            Write::PutSchedule(record) => self.put_schedule(record),
            Write::DeleteSchedule { uid, version } => self.delete_schedule(*uid, *version),
            Write::PutCalendar { namespace, name, version, at, doc } => {
                self.put_calendar(namespace, name, *version, *at, doc)
            }
            Write::DeleteCalendar { namespace, name, version } => {
                self.delete_calendar(*namespace, name, *version)
            }
            Write::FoldStats { shard, before_minute } => self.fold_stats(*shard, *before_minute),
            Write::PruneStats { before_minute, limit } => self.prune_stats(*before_minute, *limit),
            Write::Prune { succeeded, before, limit } => self.prune(*succeeded, *before, *limit),
            _ => Err(Refusal::Illegal.into()),
        }
    }

    /// Whoever creates names comes after everybody who did so before.
    fn lock_catalogue(&mut self) -> Result<(), Failure> {
        self.conn.run("SELECT value FROM meta WHERE name = 'catalogue' FOR UPDATE", &[])?;
        Ok(())
    }

    fn namespace(&mut self, name: &str) -> Result<Option<NamespaceId>, Failure> {
        let rows = self.conn.rows(records::NAMESPACE, &[&Text(name)])?;
        Ok(rows.first().map(|row| get_u32(row, 0)).transpose()?.map(NamespaceId))
    }

    /// The namespace; created, under the lock of the catalogue, when it does not exist.
    fn ensure_namespace(&mut self, name: &str) -> Result<NamespaceId, Stop> {
        if let Some(id) = self.namespace(name)? {
            return Ok(id);
        }
        self.lock_catalogue()?;
        if let Some(id) = self.namespace(name)? {
            return Ok(id);
        }
        let insert = "INSERT INTO namespaces (id, name)
             SELECT coalesce(max(id), 0) + 1, $1::text FROM namespaces RETURNING id";
        let rows = self.conn.rows(insert, &[&Text(name)])?;
        Ok(NamespaceId(get_u32(&rows[0], 0)?))
    }

    fn ensure_queue(&mut self, namespace: &str, name: &str) -> Answer {
        let find =
            |tx: &mut Self| tx.conn.rows(records::QUEUE_BY_NAME, &[&Text(namespace), &Text(name)]);
        let mut rows = find(self)?;
        if rows.is_empty() {
            let id = self.ensure_namespace(namespace)?;
            self.lock_catalogue()?;
            let config = QueueConfig::default();
            let insert =
                "INSERT INTO queues (id, namespace, name, version, partitions_ever, config)
                 SELECT coalesce(max(id), 0) + 1, $1::integer, $2::text, 1, $3::integer, $4::text
                 FROM queues ON CONFLICT (namespace, name) DO NOTHING";
            let partitions = i32::from(config.partitions);
            let config = json(&config)?;
            self.conn.run(insert, &[&id.0.cast_signed(), &Text(name), &partitions, &config])?;
            rows = find(self)?;
        }
        let row = rows.first().ok_or(Refusal::Conflict)?;
        Ok(Done::Queue(Box::new(records::queue(row)?)))
    }

    fn put_queue(&mut self, record: &QueueRecord) -> Answer {
        let update = "UPDATE queues SET version = $3,
                 partitions_ever = greatest(partitions_ever, $4), config = $5
             WHERE id = $1 AND version = $2";
        let id = record.id.0.cast_signed();
        let version = record.version.cast_signed();
        let next = record.version.wrapping_add(1).cast_signed();
        let partitions = i32::from(record.config.partitions);
        let config = json(&record.config)?;
        let done = self.conn.run(update, &[&id, &version, &next, &partitions, &config])?;
        if done.affected == 0 {
            return Err(Refusal::Conflict.into());
        }
        let rows = self.conn.rows(QUEUE_BY_ID, &[&id])?;
        let row = rows.first().ok_or(Refusal::Conflict)?;
        Ok(Done::Queue(Box::new(records::queue(row)?)))
    }

    fn put_schedule(&mut self, record: &ScheduleRecord) -> Answer {
        let uid = Uuid::from_u128(record.uid);
        let namespace = record.namespace.0.cast_signed();
        let select = "SELECT version FROM schedules WHERE uid = $1 FOR UPDATE";
        let rows = self.conn.rows(select, &[&uid])?;
        let known = rows.first().map(|row| get_u32(row, 0)).transpose()?;
        if known.unwrap_or(0) != record.version {
            return Err(Refusal::Conflict.into());
        }
        let taken = "SELECT 1 FROM schedules WHERE namespace = $1 AND name = $2 AND uid <> $3";
        if !self.conn.rows(taken, &[&namespace, &Text(&record.name), &uid])?.is_empty() {
            return Err(Refusal::Exists.into());
        }
        // Held until the end, so that nobody removes a calendar that is being named.
        let mut named: Vec<&str> = record.doc.exclude.iter().map(String::as_str).collect();
        named.sort_unstable();
        named.dedup();
        let named: Vec<Text<'_>> = named.into_iter().map(Text).collect();
        let share = "SELECT name FROM calendars WHERE namespace = $1 AND name = ANY($2)
             ORDER BY name FOR SHARE";
        if self.conn.rows(share, &[&namespace, &named])?.len() != named.len() {
            return Err(Refusal::NoCalendar.into());
        }
        self.unlink(uid)?;
        let link = "INSERT INTO schedule_calendars (namespace, calendar, schedule, uid)
             SELECT $1::integer, calendar, $3::text, $4::uuid FROM unnest($2::text[]) AS u(calendar)";
        self.conn.run(link, &[&namespace, &named, &Text(&record.name), &uid])?;
        let upsert =
            "INSERT INTO schedules (uid, namespace, name, queue, part, shard, version, paused,
                 created_at, updated_at, cursor, doc)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
             ON CONFLICT (uid) DO UPDATE SET namespace = excluded.namespace, name = excluded.name,
                 queue = excluded.queue, part = excluded.part, shard = excluded.shard,
                 version = excluded.version, paused = excluded.paused,
                 created_at = excluded.created_at, updated_at = excluded.updated_at,
                 cursor = excluded.cursor, doc = excluded.doc";
        let (cursor, doc) = (json(&record.cursor)?, json(&record.doc)?);
        self.conn.run(
            upsert,
            &[
                &uid,
                &namespace,
                &Text(&record.name),
                &record.partition.queue.0.cast_signed(),
                &i32::from(record.partition.index),
                &i16::from(record.shard.0),
                &record.version.wrapping_add(1).cast_signed(),
                &record.paused,
                &record.created_at.0,
                &record.updated_at.0,
                &cursor,
                &doc,
            ],
        )?;
        Ok(Done::Ok)
    }

    fn unlink(&mut self, uid: Uuid) -> Result<(), Failure> {
        self.conn.run("DELETE FROM schedule_calendars WHERE uid = $1", &[&uid])?;
        Ok(())
    }

    fn delete_schedule(&mut self, uid: u128, version: u32) -> Answer {
        let uid = Uuid::from_u128(uid);
        let delete = "DELETE FROM schedules WHERE uid = $1 AND version = $2";
        if self.conn.run(delete, &[&uid, &version.cast_signed()])?.affected == 0 {
            return Err(Refusal::Conflict.into());
        }
        self.unlink(uid)?;
        Ok(Done::Ok)
    }

    /// A calendar's version, locked; 0 when there is none.
    fn calendar_version(&mut self, namespace: NamespaceId, name: &str) -> Result<u64, Failure> {
        let select = "SELECT version FROM calendars WHERE namespace = $1 AND name = $2 FOR UPDATE";
        let rows = self.conn.rows(select, &[&namespace.0.cast_signed(), &Text(name)])?;
        let version = rows.first().map(|row| get::<i64>(row, 0)).transpose()?;
        Ok(version.unwrap_or(0).cast_unsigned())
    }

    fn put_calendar(
        &mut self,
        namespace: &str,
        name: &str,
        version: u64,
        at: Time,
        doc: &CalendarDoc,
    ) -> Answer {
        let id = self.ensure_namespace(namespace)?;
        // Also locks out whoever creates the same one.
        let next =
            "UPDATE meta SET value = value + 1 WHERE name = 'calendar_version' RETURNING value";
        let next: i64 = get(&self.conn.rows(next, &[])?[0], 0)?;
        if self.calendar_version(id, name)? != version {
            return Err(Refusal::Conflict.into());
        }
        let upsert = "INSERT INTO calendars (namespace, name, version, created_at, updated_at, doc)
             VALUES ($1, $2, $3, $4, $4, $5)
             ON CONFLICT (namespace, name) DO UPDATE SET version = excluded.version,
                 updated_at = excluded.updated_at, doc = excluded.doc";
        let namespace = id.0.cast_signed();
        self.conn.run(upsert, &[&namespace, &Text(name), &next, &at.0, &json(doc)?])?;
        let rows = self.conn.rows(CALENDAR_BY_NAME, &[&namespace, &Text(name)])?;
        let row = rows.first().ok_or(Refusal::Conflict)?;
        Ok(Done::Calendar(Box::new(records::calendar(row)?)))
    }

    fn delete_calendar(&mut self, namespace: NamespaceId, name: &str, version: u64) -> Answer {
        if version == 0 || self.calendar_version(namespace, name)? != version {
            return Err(Refusal::Conflict.into());
        }
        let namespace = namespace.0.cast_signed();
        if !self.conn.rows(records::CALENDAR_USERS, &[&namespace, &Text(name), &1i64])?.is_empty() {
            return Err(Refusal::InUse.into());
        }
        let delete = "DELETE FROM calendars WHERE namespace = $1 AND name = $2";
        self.conn.run(delete, &[&namespace, &Text(name)])?;
        Ok(Done::Ok)
    }

    fn fold_stats(&mut self, shard: Shard, before_minute: i64) -> Answer {
        let shard = i16::from(shard.0);
        let select = "SELECT DISTINCT minute FROM stats
             WHERE shard = $1 AND minute < $2 AND n > 0 ORDER BY minute";
        let minutes = self.conn.rows(select, &[&shard, &before_minute])?;
        for row in minutes {
            let minute: i64 = get(&row, 0)?;
            let taken = "DELETE FROM stats WHERE minute = $1 AND shard = $2 RETURNING rows";
            let mut sum: Vec<StatsRow> = Vec::new();
            for row in self.conn.rows(taken, &[&minute, &shard])? {
                merge_rows(&mut sum, &parse::<Vec<StatsRow>>(get(&row, 0)?)?);
            }
            let insert = "INSERT INTO stats (minute, shard, n, rows) VALUES ($1, $2, 0, $3)";
            self.conn.run(insert, &[&minute, &shard, &json(&sum)?])?;
        }
        Ok(Done::Ok)
    }

    fn prune_stats(&mut self, before_minute: i64, limit: u32) -> Answer {
        let delete = "WITH old AS (
                 SELECT DISTINCT minute, shard FROM stats WHERE minute < $1
                 ORDER BY minute, shard LIMIT $2
             ), gone AS (
                 DELETE FROM stats s USING old
                 WHERE s.minute = old.minute AND s.shard = old.shard
             )
             SELECT count(*) FROM old";
        let rows = self.conn.rows(delete, &[&before_minute, &i64::from(limit)])?;
        let gone: i64 = get(&rows[0], 0)?;
        Ok(Done::Pruned(u32::try_from(gone).unwrap_or(u32::MAX)))
    }

    fn prune(&mut self, succeeded: bool, before: Time, limit: u32) -> Answer {
        let [select, delete] = PRUNE[usize::from(!succeeded)];
        let mut fins: Vec<i64> = Vec::new();
        for row in self.conn.rows(select, &[&i64::from(limit)])? {
            if get::<i64>(&row, 1)? >= before.0 {
                break;
            }
            fins.push(get(&row, 0)?);
        }
        if fins.is_empty() {
            return Ok(Done::Pruned(0));
        }
        let gone = self.conn.rows(delete, &[&fins])?;
        let seqs = gone.iter().map(|row| get(row, 0)).collect::<Result<Vec<i64>, StoreError>>()?;
        self.conn.run("DELETE FROM outputs WHERE seq = ANY($1)", &[&seqs])?;
        self.conn.run("DELETE FROM payloads WHERE seq = ANY($1)", &[&seqs])?;
        let mut counts = std::collections::BTreeMap::new();
        for row in &gone {
            *counts.entry((QueueId(get_u32(row, 1)?), get_state(row, 2)?)).or_insert(0i64) -= 1;
        }
        let queues: Vec<i32> = counts.keys().map(|at| at.0.0.cast_signed()).collect();
        let states: Vec<i16> = counts.keys().map(|at| at.1 as i16).collect();
        let by: Vec<i64> = counts.values().copied().collect();
        self.conn.run(COUNT, &[&queues, &states, &self.own.slot, &by])?;
        Ok(Done::Pruned(u32::try_from(gone.len()).unwrap_or(u32::MAX)))
    }
}

/// For each history table: its oldest, and their end.
const PRUNE: [[&str; 2]; 2] = [
    [
        "SELECT fin, finished_at FROM history_succeeded ORDER BY fin LIMIT $1",
        "DELETE FROM history_succeeded WHERE fin = ANY($1) RETURNING seq, queue, state",
    ],
    [
        "SELECT fin, finished_at FROM history_other ORDER BY fin LIMIT $1",
        "DELETE FROM history_other WHERE fin = ANY($1) RETURNING seq, queue, state",
    ],
];
