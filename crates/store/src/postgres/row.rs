//! Tasks as rows: the columns, and how records and stubs are read from them.
//!
//! Both lists of columns name the same in the same order, with a constant for what a table lacks, so
//! that one function reads a task from either.

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use crate::encoding::{Rest, parse, parse_joined};
use crate::error::StoreError;
use crate::id::{NamespaceId, Partition, QueueId, Seq, Shard, TaskId};
use crate::queries::Located;
use crate::state::State;
use crate::task::{ScheduleLink, Stub, StubFlags, Task, TaskSpec};
use crate::time::Time;

use super::error::corrupt;
use super::text::{get_maybe_text, get_text};

/// Selects the columns of a live task (table `t`), its payload where `$payload` names it.
macro_rules! live_columns {
    ($payload:literal) => {
        concat!(
            "t.seq, t.id, t.namespace, t.queue, t.part, t.shard, t.state, t.version, t.npri, \
             t.attempt, t.lost, t.released, t.kind, t.due, t.first_due, t.created_at, t.expires, \
             t.fingerprint, t.task_key, t.concurrency_key, t.schedule_uid, t.origin, t.logical, \
             t.schedule_name, t.attempts, t.spec, t.progress, t.large, t.open, t.cancel_requested, \
             NULL::bigint, NULL::text, NULL::text, ",
            $payload
        )
    };
}

/// Selects the columns of a task in history (table `t`).
macro_rules! history_columns {
    ($payload:literal) => {
        concat!(
            "t.seq, t.id, t.namespace, t.queue, t.part, t.shard, t.state, t.version, t.npri, \
             t.attempt, t.lost, t.released, t.kind, t.due, t.first_due, t.created_at, t.expires, \
             t.fingerprint, t.task_key, t.concurrency_key, t.schedule_uid, t.origin, t.logical, \
             t.schedule_name, t.attempts, t.spec, t.progress, t.large, NULL::text, false, \
             t.finished_at, t.reason, t.skipped, ",
            $payload
        )
    };
}

/// Selects the columns of a stub of a live task (table `t`).
macro_rules! stub_columns {
    () => {
        "t.seq, t.due, t.expires, t.queue, t.part, t.version, t.weight, t.concurrency_hash, \
         t.kind_hash, t.attempt, t.npri, t.flags, t.lost, t.shard"
    };
}

/// Selects where a task is (table `t`).
macro_rules! located_columns {
    () => {
        "t.seq, t.id, t.shard, t.queue, t.part, t.version, t.state, t.concurrency_key"
    };
}

pub(super) use {history_columns, live_columns, located_columns, stub_columns};

/// A column. What does not fit its type was never written by this code.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, StoreError> {
    row.try_get(index).map_err(|error| corrupt(format_args!("column {index}: {error}")))
}

/// An unsigned number of 32 bits.
pub(super) fn get_u32(row: &Row, index: usize) -> Result<u32, StoreError> {
    Ok(get::<i32>(row, index)?.cast_unsigned())
}

/// An unsigned number of 64 bits.
pub(super) fn get_u64(row: &Row, index: usize) -> Result<u64, StoreError> {
    Ok(get::<i64>(row, index)?.cast_unsigned())
}

fn get_u128(row: &Row, index: usize) -> Result<u128, StoreError> {
    Ok(get::<Uuid>(row, index)?.as_u128())
}

pub(super) fn get_id(row: &Row, index: usize) -> Result<TaskId, StoreError> {
    Ok(TaskId(get_u128(row, index)?))
}

pub(super) fn get_shard(row: &Row, index: usize) -> Result<Shard, StoreError> {
    let shard = get::<i16>(row, index)?;
    Ok(Shard(u8::try_from(shard).map_err(|_| corrupt(format_args!("a shard {shard}")))?))
}

pub(super) fn get_state(row: &Row, index: usize) -> Result<State, StoreError> {
    let code = get::<i16>(row, index)?;
    let state = u8::try_from(code).ok().and_then(State::from_code);
    state.ok_or_else(|| corrupt(format_args!("a state {code}")))
}

/// Queue and partition, from two columns.
pub(super) fn get_partition(row: &Row, index: usize) -> Result<Partition, StoreError> {
    let part = get::<i32>(row, index + 1)?;
    let part = u16::try_from(part).map_err(|_| corrupt(format_args!("a partition {part}")))?;
    Ok(Partition { queue: QueueId(get_u32(row, index)?), index: part })
}

/// A priority, which is stored negated.
pub(super) fn get_priority(row: &Row, index: usize) -> Result<i8, StoreError> {
    let npri = get::<i16>(row, index)?;
    i8::try_from(npri.saturating_neg()).map_err(|_| corrupt(format_args!("a priority {npri}")))
}

pub(super) fn get_time(row: &Row, index: usize) -> Result<Time, StoreError> {
    Ok(Time(get(row, index)?))
}

/// An occurrence, from uid, origin, logical time and the schedule's name.
pub(super) fn link(
    row: &Row,
    [uid, origin, logical]: [usize; 3],
    name: Option<usize>,
) -> Result<Option<ScheduleLink>, StoreError> {
    let Some(uid) = get::<Option<Uuid>>(row, uid)? else { return Ok(None) };
    Ok(Some(ScheduleLink {
        uid: uid.as_u128(),
        name: name.map(|name| get_text(row, name)).transpose()?.unwrap_or_default(),
        origin: get_text(row, origin)?,
        logical: get_time(row, logical)?,
    }))
}

/// Reads a task from columns `live_columns!` or `history_columns!`.
pub(super) fn task(row: &Row) -> Result<Task, StoreError> {
    let rest: Rest = parse(get(row, 25)?)?;
    Ok(Task {
        seq: Seq(get(row, 0)?),
        id: get_id(row, 1)?,
        namespace: NamespaceId(get_u32(row, 2)?),
        partition: get_partition(row, 3)?,
        shard: get_shard(row, 5)?,
        state: get_state(row, 6)?,
        version: get_u32(row, 7)?,
        spec: TaskSpec {
            kind: get_text(row, 12)?,
            key: get_maybe_text(row, 18)?,
            target: rest.target,
            payload: get_maybe_text(row, 33)?,
            priority: get_priority(row, 8)?,
            timeout: rest.timeout,
            expires_at: get::<Option<i64>>(row, 16)?.map(Time),
            at_most_once: rest.at_most_once,
            retry: rest.retry,
            concurrency_key: get_maybe_text(row, 19)?,
            tags: rest.tags,
        },
        due: get_time(row, 13)?,
        first_due: get_time(row, 14)?,
        created_at: get_time(row, 15)?,
        finished_at: get::<Option<i64>>(row, 30)?.map(Time),
        attempt: get_u32(row, 9)?,
        lost: get_u32(row, 10)?,
        released: get_u32(row, 11)?,
        schedule: link(row, [20, 21, 22], Some(23))?,
        open: get::<Option<&str>>(row, 28)?.map(parse).transpose()?,
        cancel_requested: get(row, 29)?,
        attempts: parse_joined(get(row, 24)?)?,
        progress: get_maybe_text(row, 26)?,
        outcome_reason: get_maybe_text(row, 31)?,
        skipped: get::<Option<&str>>(row, 32)?.map(parse).transpose()?,
        fingerprint: get::<Option<i64>>(row, 17)?.map(i64::cast_unsigned),
    })
}

/// Reads a stub and its shard from columns `stub_columns!`; parses nothing.
pub(super) fn stub(row: &Row) -> Result<(Shard, Stub), StoreError> {
    let attempt = get_u32(row, 9)?;
    let flags = get::<i16>(row, 11)?;
    let mut flags =
        StubFlags(u8::try_from(flags).map_err(|_| corrupt(format_args!("flags {flags}")))?);
    if get_u32(row, 12)? > 0 {
        flags = flags.with(StubFlags::DURABLE_START);
    }
    let expires = match get::<Option<i64>>(row, 2)? {
        Some(expires) if attempt == 0 => Time(expires),
        _ => Time::MAX,
    };
    let stub = Stub {
        seq: Seq(get(row, 0)?),
        due: get_time(row, 1)?,
        expires,
        partition: get_partition(row, 3)?,
        version: get_u32(row, 5)?,
        bytes: get_u32(row, 6)?,
        concurrency_hash: get_u64(row, 7)?,
        kind_hash: get_u64(row, 8)?,
        attempt,
        priority: get_priority(row, 10)?,
        flags,
    };
    Ok((get_shard(row, 13)?, stub))
}

/// Reads columns `located_columns!`.
pub(super) fn located(row: &Row) -> Result<Located, StoreError> {
    Ok(Located {
        seq: Seq(get(row, 0)?),
        id: get_id(row, 1)?,
        shard: get_shard(row, 2)?,
        partition: get_partition(row, 3)?,
        version: get_u32(row, 5)?,
        state: get_state(row, 6)?,
        concurrency_key: get_maybe_text(row, 7)?,
    })
}
