//! Tasks as rows: the columns, and how records and stubs are read from them.
//!
//! Both lists name the same columns in the same order, with `NULL` or 0 for what a table lacks, so
//! that one function reads a task from either.

use rusqlite::Row;
use rusqlite::types::ValueRef;

pub(super) use crate::encoding::{LARGE, Rest, json, parse, parse_joined, rest_json};
use crate::error::StoreError;
use crate::id::{NamespaceId, Partition, QueueId, Seq, Shard, TaskId};
use crate::state::State;
use crate::task::{AttemptRecord, ScheduleLink, Stub, StubFlags, Task, TaskSpec};
use crate::time::Time;

use super::bucket::Columns;
use super::error::corrupt;

/// Columns of a task in `tasks`, without its payload.
pub(super) const LIVE: &str = "seq, id, namespace, queue, part, shard, state, version, npri, \
    attempt, lost, released, kind, due, first_due, created_at, expires, fingerprint, task_key, \
    concurrency_key, schedule_uid, origin, logical, schedule_name, attempts, spec, progress, \
    large, open, cancel_requested, NULL, NULL, NULL";

/// Columns of a task in a history table, without its payload.
pub(super) const HISTORY: &str = "seq, id, namespace, queue, part, shard, state, version, npri, \
    attempt, lost, released, kind, due, first_due, created_at, expires, fingerprint, task_key, \
    concurrency_key, schedule_uid, origin, logical, schedule_name, attempts, spec, progress, \
    large, NULL, 0, finished_at, reason, skipped";

/// Where the payload column is when it is selected after those.
const PAYLOAD: usize = 33;

/// Columns of a stub in `tasks`.
pub(super) const STUB: &str = "seq, due, expires, queue, part, version, weight, \
    concurrency_hash, kind, attempt, npri, flags, lost";

/// Those and the shard, in a walk over a bucket.
pub(super) const SHARD_STUB: Columns = Columns {
    names: "seq, due, expires, queue, part, version, weight, \
        concurrency_hash, kind, attempt, npri, flags, lost, shard",
    count: 14,
};

/// Columns of a task, without its payload, in a walk over a bucket.
pub(super) const LIVE_IN_BUCKET: Columns = Columns { names: LIVE, count: PAYLOAD };

/// 16 bytes as a number.
pub(super) fn u128_of(value: ValueRef<'_>) -> Result<u128, StoreError> {
    let bytes = value.as_blob().ok().and_then(|bytes| bytes.try_into().ok());
    bytes.map(u128::from_be_bytes).ok_or_else(|| corrupt("an id that is not 16 bytes"))
}

/// A text column, without copying it.
pub(super) fn text<'a>(row: &'a Row<'_>, index: usize) -> Result<&'a str, StoreError> {
    row.get_ref(index)?.as_str().map_err(|_| corrupt("no text where text was written"))
}

/// The state with this code.
pub(super) fn state_of(code: u8) -> Result<State, StoreError> {
    State::from_code(code).ok_or_else(|| corrupt(format_args!("a state {code}")))
}

/// Reads a task from columns [`LIVE`] or [`HISTORY`], and its payload from the column after them
/// when `payload` is set. A large payload is elsewhere: the answer's second part says so.
pub(super) fn task(
    row: &Row<'_>,
    payload: bool,
    kind: &mut dyn FnMut(u32) -> Result<String, StoreError>,
) -> Result<(Task, bool), StoreError> {
    let optional_json = |index: usize| -> Result<Option<&str>, StoreError> {
        match row.get_ref(index)? {
            ValueRef::Null => Ok(None),
            value => value.as_str().map(Some).map_err(|_| corrupt("no text")),
        }
    };
    let rest: Rest = parse(text(row, 25)?)?;
    let attempts: Vec<AttemptRecord> = parse_joined(text(row, 24)?)?;
    let schedule = match row.get_ref(20)? {
        ValueRef::Null => None,
        uid => Some(ScheduleLink {
            uid: u128_of(uid)?,
            name: row.get(23)?,
            origin: row.get(21)?,
            logical: Time(row.get(22)?),
        }),
    };
    let large: bool = row.get(27)?;
    let npri: i8 = row.get(8)?;
    let task = Task {
        seq: Seq(row.get(0)?),
        id: TaskId(u128_of(row.get_ref(1)?)?),
        namespace: NamespaceId(row.get(2)?),
        partition: Partition { queue: QueueId(row.get(3)?), index: row.get(4)? },
        shard: Shard(row.get(5)?),
        state: state_of(row.get(6)?)?,
        version: row.get(7)?,
        spec: TaskSpec {
            kind: kind(row.get(12)?)?,
            key: row.get(18)?,
            target: rest.target,
            payload: if payload { row.get(PAYLOAD)? } else { None },
            priority: npri.saturating_neg(),
            timeout: rest.timeout,
            expires_at: row.get::<_, Option<i64>>(16)?.map(Time),
            at_most_once: rest.at_most_once,
            retry: rest.retry,
            concurrency_key: row.get(19)?,
            tags: rest.tags,
        },
        due: Time(row.get(13)?),
        first_due: Time(row.get(14)?),
        created_at: Time(row.get(15)?),
        finished_at: row.get::<_, Option<i64>>(30)?.map(Time),
        attempt: row.get(9)?,
        lost: row.get(10)?,
        released: row.get(11)?,
        schedule,
        open: optional_json(28)?.map(parse).transpose()?,
        cancel_requested: row.get(29)?,
        attempts,
        progress: row.get(26)?,
        outcome_reason: row.get(31)?,
        skipped: optional_json(32)?.map(parse).transpose()?,
        fingerprint: row.get::<_, Option<i64>>(17)?.map(|f| f as u64),
    };
    Ok((task, large))
}

/// Reads a stub from columns [`STUB`]; parses nothing.
pub(super) fn stub(
    row: &Row<'_>,
    kind_hash: &mut dyn FnMut(u32) -> Result<u64, StoreError>,
) -> Result<Stub, StoreError> {
    let attempt: u32 = row.get(9)?;
    let npri: i8 = row.get(10)?;
    let mut flags = StubFlags(row.get(11)?);
    if row.get::<_, u32>(12)? > 0 {
        flags = flags.with(StubFlags::DURABLE_START);
    }
    let expires = match row.get::<_, Option<i64>>(2)? {
        Some(expires) if attempt == 0 => Time(expires),
        _ => Time::MAX,
    };
    Ok(Stub {
        seq: Seq(row.get(0)?),
        due: Time(row.get(1)?),
        expires,
        partition: Partition { queue: QueueId(row.get(3)?), index: row.get(4)? },
        version: row.get(5)?,
        bytes: row.get(6)?,
        concurrency_hash: row.get::<_, i64>(7)? as u64,
        kind_hash: kind_hash(row.get(8)?)?,
        attempt,
        priority: npri.saturating_neg(),
        flags,
    })
}
