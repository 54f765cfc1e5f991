//! Writes to queues, schedules and statistics.

use rusqlite::{OptionalExtension, Row};

use crate::error::StoreError;
use crate::id::{NamespaceId, Partition, QueueId, Shard};
use crate::queue::QueueRecord;
use crate::schedule::{Cursor, ScheduleRecord};
use crate::stats::{StatsDelta, StatsRow, merge_rows};
use crate::time::Time;
use crate::write::{Done, Refusal};

use super::row::{json, parse, text, u128_of};
use super::writer::{Stop, Tx};

/// Columns of a schedule.
pub(super) const SCHEDULE: &str = "uid, namespace, name, queue, part, shard, version, paused, \
    created_at, updated_at, cursor, doc";

/// Reads a schedule from columns [`SCHEDULE`].
pub(super) fn schedule(row: &Row<'_>) -> Result<ScheduleRecord, StoreError> {
    Ok(ScheduleRecord {
        uid: u128_of(row.get_ref(0)?)?,
        namespace: NamespaceId(row.get(1)?),
        name: row.get(2)?,
        partition: Partition { queue: QueueId(row.get(3)?), index: row.get(4)? },
        shard: Shard(row.get(5)?),
        version: row.get(6)?,
        paused: row.get(7)?,
        created_at: Time(row.get(8)?),
        updated_at: Time(row.get(9)?),
        cursor: parse(text(row, 10)?)?,
        doc: parse(text(row, 11)?)?,
    })
}

impl Tx<'_> {
    pub(super) fn ensure_queue(&mut self, namespace: &str, name: &str) -> Result<Done, Stop> {
        if let Some(queue) = self.known.catalog.find(namespace, name) {
            return Ok(Done::Queue(Box::new(queue.clone())));
        }
        self.changes.catalog = true;
        let queue = self.known.catalog.create(self.conn, namespace, name)?;
        Ok(Done::Queue(Box::new(queue)))
    }

    pub(super) fn put_queue(&mut self, record: &QueueRecord) -> Result<Done, Stop> {
        let known = self.known.catalog.queues.get(&record.id).ok_or(Refusal::Conflict)?;
        if known.version != record.version {
            return Err(Refusal::Conflict.into());
        }
        let queue = QueueRecord {
            version: known.version + 1,
            partitions_ever: known.partitions_ever.max(record.config.partitions),
            config: record.config.clone(),
            ..known.clone()
        };
        self.changes.catalog = true;
        self.known.catalog.replace(self.conn, queue.clone())?;
        Ok(Done::Queue(Box::new(queue)))
    }

    pub(super) fn put_schedule(&mut self, record: &ScheduleRecord) -> Result<Done, Stop> {
        let uid = record.uid.to_be_bytes();
        let known: Option<u32> = self
            .conn
            .prepare_cached("SELECT version FROM schedules WHERE uid = ?1")?
            .query_row([uid], |row| row.get(0))
            .optional()?;
        if known.unwrap_or(0) != record.version {
            return Err(Refusal::Conflict.into());
        }
        let taken = self
            .conn
            .prepare_cached(
                "SELECT 1 FROM schedules WHERE namespace = ?1 AND name = ?2 AND uid <> ?3",
            )?
            .exists((record.namespace.0, &record.name, uid))?;
        if taken {
            return Err(Refusal::Exists.into());
        }
        if !self.has_calendars(record)? {
            return Err(Refusal::NoCalendar.into());
        }
        self.link_calendars(record)?;
        let (cursor, doc) = (json(&record.cursor)?, json(&record.doc)?);
        let sql = format!(
            "INSERT OR REPLACE INTO schedules ({SCHEDULE})
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
        );
        self.conn.prepare_cached(&sql)?.execute((
            uid,
            record.namespace.0,
            &record.name,
            record.partition.queue.0,
            record.partition.index,
            record.shard.0,
            record.version + 1,
            record.paused,
            record.created_at.0,
            record.updated_at.0,
            cursor,
            doc,
        ))?;
        Ok(Done::Ok)
    }

    pub(super) fn advance(
        &mut self,
        uid: u128,
        version: u32,
        cursor: &Cursor,
    ) -> Result<Done, Stop> {
        let changed = self
            .conn
            .prepare_cached(
                "UPDATE schedules SET cursor = ?3, version = version + 1
                 WHERE uid = ?1 AND version = ?2",
            )?
            .execute((uid.to_be_bytes(), version, json(cursor)?))?;
        if changed == 0 { Err(Refusal::Conflict.into()) } else { Ok(Done::Ok) }
    }

    pub(super) fn delete_schedule(&mut self, uid: u128, version: u32) -> Result<Done, Stop> {
        let gone = self
            .conn
            .prepare_cached("DELETE FROM schedules WHERE uid = ?1 AND version = ?2")?
            .execute((uid.to_be_bytes(), version))?;
        if gone == 0 {
            return Err(Refusal::Conflict.into());
        }
        self.unlink_calendars(uid)?;
        Ok(Done::Ok)
    }

    pub(super) fn add_stats(&mut self, delta: &StatsDelta) -> Result<Done, Stop> {
        self.conn
            .prepare_cached(
                "INSERT INTO stats (minute, shard, n, rows)
                 SELECT ?1, ?2, coalesce(max(n), 0) + 1, ?3 FROM stats
                 WHERE minute = ?1 AND shard = ?2",
            )?
            .execute((delta.minute, delta.shard.0, json(&delta.rows)?))?;
        Ok(Done::Ok)
    }

    pub(super) fn fold_stats(&mut self, shard: Shard, before_minute: i64) -> Result<Done, Stop> {
        let minutes: Vec<i64> = {
            let mut select = self.conn.prepare_cached(
                "SELECT DISTINCT minute FROM stats WHERE shard = ?1 AND minute < ?2 AND n > 0",
            )?;
            let rows = select.query_map((shard.0, before_minute), |row| row.get(0))?;
            rows.collect::<Result<_, _>>()?
        };
        for minute in minutes {
            let mut sum: Vec<StatsRow> = Vec::new();
            {
                let mut select = self
                    .conn
                    .prepare_cached("SELECT rows FROM stats WHERE minute = ?1 AND shard = ?2")?;
                let mut rows = select.query((minute, shard.0))?;
                while let Some(row) = rows.next()? {
                    merge_rows(&mut sum, &parse::<Vec<StatsRow>>(text(row, 0)?)?);
                }
            }
            self.conn
                .prepare_cached("DELETE FROM stats WHERE minute = ?1 AND shard = ?2")?
                .execute((minute, shard.0))?;
            self.conn
                .prepare_cached(
                    "INSERT INTO stats (minute, shard, n, rows) VALUES (?1, ?2, 0, ?3)",
                )?
                .execute((minute, shard.0, json(&sum)?))?;
        }
        Ok(Done::Ok)
    }

    pub(super) fn prune_stats(&mut self, before_minute: i64, limit: u32) -> Result<Done, Stop> {
        let old: Vec<(i64, u8)> = {
            let mut select = self.conn.prepare_cached(
                "SELECT DISTINCT minute, shard FROM stats WHERE minute < ?1
                 ORDER BY minute, shard LIMIT ?2",
            )?;
            let rows =
                select.query_map((before_minute, limit), |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<Result<_, _>>()?
        };
        for &(minute, shard) in &old {
            self.conn
                .prepare_cached("DELETE FROM stats WHERE minute = ?1 AND shard = ?2")?
                .execute((minute, shard))?;
        }
        Ok(Done::Pruned(u32::try_from(old.len()).unwrap_or(u32::MAX)))
    }
}
