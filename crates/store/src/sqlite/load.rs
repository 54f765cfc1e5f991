//! What memory is filled from: buckets, overdue rows, what a takeover needs.
//!
//! A bucket is read slot by slot ([`super::bucket`]) and its first tasks by due time are kept:
//! order inside a slot is made here, not in an index, which is why inserting is fast. Nothing here
//! but a fetch reads a payload or parses JSON.

use std::ops::ControlFlow;

use rusqlite::Row;

use crate::error::StoreError;
use crate::id::{Partition, QueueId, SHARDS, Seq, Shard, TaskId};
use crate::schedule::LiveOccurrence;
use crate::store::{Edge, INBOX_MAX, Reloaded, Span};
use crate::task::{Rank, Stub, Task};
use crate::time::Time;

use super::bucket::{First, Slot, bucket_of, next_bucket};
use super::readers::Reader;
use super::records::{SCHEDULE, schedule};
use super::row::{self, LIVE, SHARD_STUB, STUB, state_of, u128_of};

impl Reader {
    /// See [`crate::Store::load`].
    pub(super) fn load(
        &mut self,
        from: &[(Shard, Edge)],
        until: Time,
        limit: usize,
    ) -> Result<Span, StoreError> {
        let end = Edge::before(until);
        let limit = limit.clamp(1, usize::MAX / 4);
        let mut edges = [None; SHARDS];
        let mut first = end;
        for &(shard, edge) in from {
            edges[shard.index()] = Some(edge);
            first = first.min(edge);
        }
        let mut stubs = Vec::new();
        let mut bucket = bucket_of(first.due);
        while first < end
            && stubs.len() <= limit
            && let Some(next) = next_bucket(&self.conn, false, bucket)?
            && next <= bucket_of(until)
        {
            // One more than asked, to know whether the limit cuts.
            let room = limit + 1 - stubs.len();
            stubs.extend(self.load_bucket(next, &edges, first, until, room)?);
            bucket = next.saturating_add(1);
            self.renew()?;
        }
        let cut = stubs.len() > limit;
        stubs.truncate(limit);
        let edge = match stubs.last().filter(|_| cut) {
            Some((_, last)) => Edge { due: last.due, seq: last.seq },
            None => end,
        };
        Ok(Span { stubs, edge })
    }

    /// The first `room` tasks of one bucket, of each shard those after its edge, in order.
    fn load_bucket(
        &mut self,
        bucket: i64,
        edges: &[Option<Edge>; SHARDS],
        first: Edge,
        until: Time,
        room: usize,
    ) -> Result<Vec<(Shard, Stub)>, StoreError> {
        let mut found: First<(Shard, Stub, u32)> = First::new(room);
        let mut last_slot = Slot { bucket, fine: 0 };
        self.walk_bucket(&SHARD_STUB, (bucket, false), first, &mut |row, slot| {
            if slot != last_slot {
                last_slot = slot;
                let start = slot.start();
                if start >= until || (!slot.is_instant() && found.is_full_before(start)) {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let place = (Time(row.get(1)?), Seq(row.get(0)?));
            if found.is_beyond(place) && slot.is_instant() {
                return Ok(ControlFlow::Break(()));
            }
            let shard = Shard(row.get(SHARD_STUB.count - 1)?);
            let wanted = edges[shard.index()].is_some_and(|edge| !edge.covers(place.0, place.1));
            if wanted && place.0 < until && !found.is_beyond(place) {
                let mut kind = 0;
                let stub = row::stub(row, &mut |id| {
                    kind = id;
                    Ok(0)
                })?;
                found.put(place, (shard, stub, kind));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let with_hash = |(_, (shard, stub, kind))| {
            Ok((shard, Stub { kind_hash: self.kind_hash(kind)?, ..stub }))
        };
        found.into_sorted().into_iter().map(with_hash).collect()
    }

    /// See [`crate::Store::load_overdue`].
    pub(super) fn load_overdue(
        &mut self,
        partition: Partition,
        after: Option<Rank>,
        limit: usize,
    ) -> Result<Vec<Stub>, StoreError> {
        let first = Rank { neg_priority: i8::MIN, due: Time::MIN, seq: Seq(i64::MIN) };
        let after = after.unwrap_or(first);
        let sql = format!(
            "SELECT {STUB} FROM tasks INDEXED BY tasks_overdue
             WHERE overdue = 1 AND queue = ?1 AND part = ?2 AND (npri, due, seq) > (?3, ?4, ?5)
             ORDER BY npri, due, seq LIMIT ?6"
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let key = (
            partition.queue.0,
            partition.index,
            after.neg_priority,
            after.due.0,
            after.seq.0,
            limit,
        );
        self.stubs(&sql, key)
    }

    fn stubs(&mut self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<Stub>, StoreError> {
        let mut found: Vec<(Stub, u32)> = Vec::new();
        {
            let mut select = self.conn.prepare_cached(sql)?;
            let mut rows = select.query(params)?;
            while let Some(row) = rows.next()? {
                let mut kind = 0;
                let stub = row::stub(row, &mut |id| {
                    kind = id;
                    Ok(0)
                })?;
                found.push((stub, kind));
            }
        }
        let with_hash = |(stub, kind)| Ok(Stub { kind_hash: self.kind_hash(kind)?, ..stub });
        found.into_iter().map(with_hash).collect()
    }

    /// See [`crate::Store::inbox`].
    pub(super) fn inbox(&mut self, shard: Shard) -> Result<Vec<Stub>, StoreError> {
        let sql = format!(
            "SELECT {} FROM inbox i JOIN tasks t ON t.seq = i.seq
             WHERE i.shard = ?1 ORDER BY i.seq LIMIT {INBOX_MAX}",
            STUB.replace("seq,", "t.seq,")
        );
        self.stubs(&sql, [shard.0])
    }

    /// See [`crate::Store::fetch`].
    pub(super) fn fetch(&mut self, seqs: &[Seq]) -> Result<Vec<Option<Task>>, StoreError> {
        let mut tasks = Vec::with_capacity(seqs.len());
        for &seq in seqs {
            tasks.push(self.live(seq, true)?);
        }
        Ok(tasks)
    }

    /// One live task.
    pub(super) fn live(&mut self, seq: Seq, payload: bool) -> Result<Option<Task>, StoreError> {
        self.one(&format!("SELECT {LIVE}, payload FROM tasks WHERE seq = ?1"), [seq.0], payload)
    }

    /// One task by a statement that selects its columns and payload.
    pub(super) fn one(
        &mut self,
        sql: &str,
        params: impl rusqlite::Params,
        payload: bool,
    ) -> Result<Option<Task>, StoreError> {
        let Reader { conn, kinds, .. } = self;
        let mut select = conn.prepare_cached(sql)?;
        let mut rows = select.query(params)?;
        let Some(found) = rows.next()? else { return Ok(None) };
        let (mut task, large) = row::task(found, payload, &mut |id| kinds.name(conn, id))?;
        if payload && large {
            let mut select = conn.prepare_cached("SELECT payload FROM payloads WHERE seq = ?1")?;
            task.spec.payload = Some(select.query_row([task.seq.0], |row| row.get(0))?);
        }
        Ok(Some(task))
    }

    /// See [`crate::Store::reload`].
    pub(super) fn reload(&mut self, shard: Shard, probe: &[Seq]) -> Result<Reloaded, StoreError> {
        let running: Vec<i64> = {
            let mut select = self.conn.prepare_cached(
                "SELECT seq FROM tasks INDEXED BY tasks_running
                 WHERE state = 1 AND shard = ?1 ORDER BY seq",
            )?;
            let rows = select.query_map([shard.0], |row| row.get(0))?;
            rows.collect::<Result<_, _>>()?
        };
        let mut reloaded = Reloaded::default();
        for seq in running {
            reloaded.running.extend(self.live(Seq(seq), false)?);
        }
        for &seq in probe {
            reloaded.probed.push(self.live(seq, false)?);
        }
        let records = {
            let sql = format!("SELECT {SCHEDULE} FROM schedules WHERE shard = ?1 ORDER BY uid");
            let mut select = self.conn.prepare_cached(&sql)?;
            let mut rows = select.query([shard.0])?;
            let mut records = Vec::new();
            while let Some(row) = rows.next()? {
                records.push(schedule(row)?);
            }
            records
        };
        for record in records {
            let live = self.live_occurrences(record.uid)?;
            reloaded.schedules.push((record, live));
        }
        reloaded.spilled = self.spilled(shard)?;
        Ok(reloaded)
    }

    fn live_occurrences(&mut self, uid: u128) -> Result<Vec<LiveOccurrence>, StoreError> {
        let mut select = self.conn.prepare_cached(
            "SELECT seq, id, version, state, attempt, origin, logical, due
             FROM tasks INDEXED BY tasks_occurrence WHERE schedule_uid = ?1 ORDER BY seq",
        )?;
        let mut rows = select.query([uid.to_be_bytes()])?;
        let mut live = Vec::new();
        while let Some(row) = rows.next()? {
            live.push(LiveOccurrence {
                seq: Seq(row.get(0)?),
                id: TaskId(u128_of(row.get_ref(1)?)?),
                version: row.get(2)?,
                state: state_of(row.get(3)?)?,
                attempt: row.get(4)?,
                origin: row.get(5)?,
                logical: Time(row.get(6)?),
                due: Time(row.get(7)?),
            });
        }
        Ok(live)
    }

    /// The first overdue row of each partition of the shard: one seek per partition that has any.
    fn spilled(&mut self, shard: Shard) -> Result<Vec<(Partition, Rank)>, StoreError> {
        let mut select = self.conn.prepare_cached(
            "SELECT queue, part, npri, due, seq, shard FROM tasks INDEXED BY tasks_overdue
             WHERE overdue = 1 AND (queue, part) > (?1, ?2)
             ORDER BY queue, part, npri, due, seq LIMIT 1",
        )?;
        let found = |row: &Row<'_>| {
            let partition = Partition { queue: QueueId(row.get(0)?), index: row.get(1)? };
            let rank =
                Rank { neg_priority: row.get(2)?, due: Time(row.get(3)?), seq: Seq(row.get(4)?) };
            Ok((partition, rank, Shard(row.get(5)?)))
        };
        let mut spilled = Vec::new();
        let mut after = (-1i64, -1i64);
        loop {
            let mut rows = select.query_map(after, found)?;
            let Some(row) = rows.next() else { return Ok(spilled) };
            let (partition, rank, of) = row?;
            after = (i64::from(partition.queue.0), i64::from(partition.index));
            if of == shard {
                spilled.push((partition, rank));
            }
        }
    }
}
