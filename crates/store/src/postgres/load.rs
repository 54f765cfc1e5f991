//! What memory is filled from: spans, overdue rows, what a takeover needs.
//!
//! The index of due time is in order, so a span is one walk over it, and nothing but a fetch reads a
//! payload. Tasks of shards that were not asked for are passed over.

use std::collections::HashMap;

use tokio_postgres::Row;
use uuid::Uuid;

use crate::error::StoreError;
use crate::id::{Partition, SHARDS, Seq, Shard};
use crate::schedule::LiveOccurrence;
use crate::store::{Edge, INBOX_MAX, Reloaded, Span};
use crate::task::{Rank, Stub, Task};
use crate::time::Time;

use super::connection::Connection;
use super::error::Failure;
use super::records::{SCHEDULES_OF_SHARD, schedule};
use super::row::{self, get, get_id, get_partition, get_state, get_time, get_u32};
use super::text::get_text;

/// `$5` and `$6` hold the edge of each shard.
const LOAD: &str = concat!(
    "SELECT ",
    row::stub_columns!(),
    " FROM tasks t
     WHERE t.state = 0 AND NOT t.overdue AND (t.due, t.seq) > ($1, $2) AND t.due < $3
         AND (t.due, t.seq) > (($5::bigint[])[t.shard + 1], ($6::bigint[])[t.shard + 1])
     ORDER BY t.due, t.seq LIMIT $4"
);

const OVERDUE: &str = concat!(
    "SELECT ",
    row::stub_columns!(),
    " FROM tasks t WHERE t.overdue AND t.queue = $1 AND t.part = $2
         AND (t.npri, t.due, t.seq) > ($3, $4, $5)
     ORDER BY t.npri, t.due, t.seq LIMIT $6"
);

const INBOX: &str = concat!(
    "SELECT ",
    row::stub_columns!(),
    " FROM unnest($1::smallint[]) AS s(shard)
     CROSS JOIN LATERAL
         (SELECT i.seq FROM inbox i WHERE i.shard = s.shard ORDER BY i.seq LIMIT $2) i
     JOIN tasks t ON t.seq = i.seq"
);

const FETCH: &str = concat!(
    "SELECT ",
    row::live_columns!("coalesce(t.payload, p.payload)"),
    " FROM tasks t LEFT JOIN payloads p ON p.seq = t.seq AND t.large WHERE t.seq = ANY($1)"
);

/// Live tasks without their payloads.
pub(super) const READ: &str =
    concat!("SELECT ", row::live_columns!("NULL::text"), " FROM tasks t WHERE t.seq = ANY($1)");

const RUNNING: &str = concat!(
    "SELECT ",
    row::live_columns!("NULL::text"),
    " FROM tasks t WHERE t.state = 1 AND t.shard = $1 ORDER BY t.seq"
);

const OCCURRENCES: &str =
    "SELECT t.schedule_uid, t.seq, t.id, t.version, t.state, t.attempt, t.origin,
         t.logical, t.due
     FROM schedules s JOIN tasks t ON t.schedule_uid = s.uid
     WHERE s.shard = $1 ORDER BY t.seq";

/// The first overdue row of each partition: one seek per partition that has any.
const SPILLED: &str = "WITH RECURSIVE first AS (
         (SELECT queue, part, npri, due, seq, shard FROM tasks WHERE overdue
          ORDER BY queue, part, npri, due, seq LIMIT 1)
         UNION ALL
         SELECT n.queue, n.part, n.npri, n.due, n.seq, n.shard
         FROM first f CROSS JOIN LATERAL
             (SELECT t.queue, t.part, t.npri, t.due, t.seq, t.shard FROM tasks t
              WHERE t.overdue AND (t.queue, t.part) > (f.queue, f.part)
              ORDER BY t.queue, t.part, t.npri, t.due, t.seq LIMIT 1) n
     )
     SELECT queue, part, npri, due, seq FROM first WHERE shard = $1";

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// See [`crate::Store::load`].
pub(super) fn load(
    conn: &mut Connection,
    from: &[(Shard, Edge)],
    until: Time,
    limit: usize,
) -> Result<Span, Failure> {
    let end = Edge::before(until);
    let limit = limit.clamp(1, usize::MAX / 4);
    let never = Edge { due: Time::MAX, seq: Seq(i64::MAX) };
    let mut edges = [never; SHARDS];
    for &(shard, edge) in from {
        edges[shard.index()] = edge;
    }
    let first = edges.iter().min().copied().unwrap_or(never);
    if first >= end {
        return Ok(Span { stubs: Vec::new(), edge: end });
    }
    let (dues, seqs): (Vec<i64>, Vec<i64>) = edges.iter().map(|e| (e.due.0, e.seq.0)).unzip();
    // One more than asked, to know whether the limit cuts.
    let room = limit_of(limit + 1);
    let rows = conn.rows(LOAD, &[&first.due.0, &first.seq.0, &until.0, &room, &dues, &seqs])?;
    let cut = rows.len() > limit;
    let stubs = rows.iter().take(limit).map(row::stub).collect::<Result<Vec<_>, StoreError>>()?;
    let edge = match stubs.last().filter(|_| cut) {
        Some((_, last)) => Edge { due: last.due, seq: last.seq },
        None => end,
    };
    Ok(Span { stubs, edge })
}

/// See [`crate::Store::load_overdue`].
pub(super) fn load_overdue(
    conn: &mut Connection,
    partition: Partition,
    after: Option<Rank>,
    limit: usize,
) -> Result<Vec<Stub>, Failure> {
    let queue = partition.queue.0.cast_signed();
    let part = i32::from(partition.index);
    let (npri, due, seq) = match after {
        Some(rank) => (i16::from(rank.neg_priority), rank.due.0, rank.seq.0),
        None => (i16::MIN, i64::MIN, i64::MIN),
    };
    let rows = conn.rows(OVERDUE, &[&queue, &part, &npri, &due, &seq, &limit_of(limit)])?;
    let stubs = rows.iter().map(|row| Ok(row::stub(row)?.1));
    Ok(stubs.collect::<Result<_, StoreError>>()?)
}

/// See [`crate::Store::inbox`].
pub(super) fn inbox(
    conn: &mut Connection,
    shards: &[Shard],
) -> Result<Vec<(Shard, Stub)>, Failure> {
    let asked: Vec<i16> = shards.iter().map(|shard| i16::from(shard.0)).collect();
    let rows = conn.rows(INBOX, &[&asked, &limit_of(INBOX_MAX)])?;
    let mut found = rows.iter().map(row::stub).collect::<Result<Vec<_>, StoreError>>()?;
    let place = |shard: Shard| shards.iter().position(|asked| *asked == shard);
    found.sort_by_key(|(shard, stub)| (place(*shard), stub.seq));
    Ok(found)
}

fn tasks(rows: &[Row]) -> Result<Vec<Task>, StoreError> {
    rows.iter().map(row::task).collect()
}

fn in_order(seqs: &[Seq], tasks: Vec<Task>) -> Vec<Option<Task>> {
    let by_seq: HashMap<Seq, Task> = tasks.into_iter().map(|task| (task.seq, task)).collect();
    seqs.iter().map(|seq| by_seq.get(seq).cloned()).collect()
}

/// See [`crate::Store::fetch`].
pub(super) fn fetch(conn: &mut Connection, seqs: &[Seq]) -> Result<Vec<Option<Task>>, Failure> {
    let asked: Vec<i64> = seqs.iter().map(|seq| seq.0).collect();
    Ok(in_order(seqs, tasks(&conn.rows(FETCH, &[&asked])?)?))
}

/// See [`crate::Store::reload`]. To be asked in one snapshot.
pub(super) fn reload(
    conn: &mut Connection,
    shard: Shard,
    probe: &[Seq],
) -> Result<Reloaded, Failure> {
    let of = i16::from(shard.0);
    let probed: Vec<i64> = probe.iter().map(|seq| seq.0).collect();
    let running = tasks(&conn.rows(RUNNING, &[&of])?)?;
    let probed = in_order(probe, tasks(&conn.rows(READ, &[&probed])?)?);
    let mut live: HashMap<u128, Vec<LiveOccurrence>> = HashMap::new();
    for row in conn.rows(OCCURRENCES, &[&of])? {
        let uid = get::<Uuid>(&row, 0)?.as_u128();
        live.entry(uid).or_default().push(occurrence(&row)?);
    }
    let mut schedules = Vec::new();
    for row in conn.rows(SCHEDULES_OF_SHARD, &[&of])? {
        let record = schedule(&row)?;
        let live = live.remove(&record.uid).unwrap_or_default();
        schedules.push((record, live));
    }
    let mut spilled = Vec::new();
    for row in conn.rows(SPILLED, &[&of])? {
        let neg_priority = i8::try_from(get::<i16>(&row, 2)?).unwrap_or(i8::MAX);
        let rank = Rank { neg_priority, due: get_time(&row, 3)?, seq: Seq(get(&row, 4)?) };
        spilled.push((get_partition(&row, 0)?, rank));
    }
    spilled.sort_by_key(|found| found.0);
    Ok(Reloaded { running, probed, schedules, spilled })
}

fn occurrence(row: &Row) -> Result<LiveOccurrence, StoreError> {
    Ok(LiveOccurrence {
        seq: Seq(get(row, 1)?),
        id: get_id(row, 2)?,
        version: get_u32(row, 3)?,
        state: get_state(row, 4)?,
        attempt: get_u32(row, 5)?,
        origin: get_text(row, 6)?,
        logical: get_time(row, 7)?,
        due: get_time(row, 8)?,
    })
}
