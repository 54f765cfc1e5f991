//! Queues, schedules and calendars as rows.

use tokio_postgres::Row;
use uuid::Uuid;

use crate::calendar::CalendarRecord;
use crate::encoding::parse;
use crate::error::StoreError;
use crate::id::{NamespaceId, QueueId};
use crate::queue::QueueRecord;
use crate::schedule::ScheduleRecord;

use super::error::corrupt;
use super::row::{get, get_partition, get_shard, get_time, get_u32};
use super::text::get_text;

pub(super) const NAMESPACE: &str = "SELECT id FROM namespaces WHERE name = $1";

macro_rules! queues {
    ($rest:literal) => {
        concat!(
            "SELECT q.id, q.namespace, n.name, q.name, q.version, q.partitions_ever, q.config
             FROM queues q JOIN namespaces n ON n.id = q.namespace ",
            $rest
        )
    };
}

pub(super) const QUEUES: &str = queues!("ORDER BY q.id");
pub(super) const QUEUE_BY_ID: &str = queues!("WHERE q.id = $1");
pub(super) const QUEUE_BY_NAME: &str = queues!("WHERE n.name = $1 AND q.name = $2");

/// Reads a queue.
pub(super) fn queue(row: &Row) -> Result<QueueRecord, StoreError> {
    let ever: i32 = get(row, 5)?;
    Ok(QueueRecord {
        id: QueueId(get_u32(row, 0)?),
        namespace: NamespaceId(get_u32(row, 1)?),
        namespace_name: get_text(row, 2)?,
        name: get_text(row, 3)?,
        version: get_u32(row, 4)?,
        partitions_ever: u16::try_from(ever).map_err(|_| corrupt(format!("{ever} partitions")))?,
        config: parse(get(row, 6)?)?,
    })
}

macro_rules! calendars {
    ($rest:literal) => {
        concat!(
            "SELECT c.namespace, n.name, c.name, c.version, c.created_at, c.updated_at, c.doc
             FROM calendars c JOIN namespaces n ON n.id = c.namespace ",
            $rest
        )
    };
}

pub(super) const CALENDARS: &str = calendars!("ORDER BY c.namespace, c.name");
pub(super) const CALENDARS_AFTER: &str =
    calendars!("WHERE c.namespace = $1 AND c.name > $2 ORDER BY c.name LIMIT $3");
pub(super) const CALENDAR_BY_NAME: &str = calendars!("WHERE c.namespace = $1 AND c.name = $2");

/// The names of a calendar's users.
pub(super) const CALENDAR_USERS: &str = "SELECT schedule FROM schedule_calendars
     WHERE namespace = $1 AND calendar = $2 ORDER BY schedule LIMIT $3";

/// Reads a calendar.
pub(super) fn calendar(row: &Row) -> Result<CalendarRecord, StoreError> {
    Ok(CalendarRecord {
        namespace: NamespaceId(get_u32(row, 0)?),
        namespace_name: get_text(row, 1)?,
        name: get_text(row, 2)?,
        version: get::<i64>(row, 3)?.cast_unsigned(),
        created_at: get_time(row, 4)?,
        updated_at: get_time(row, 5)?,
        doc: parse(get(row, 6)?)?,
    })
}

macro_rules! schedules {
    ($rest:literal) => {
        concat!(
            "SELECT uid, namespace, name, queue, part, shard, version, paused, created_at, updated_at,
                 cursor, doc FROM schedules ",
            $rest
        )
    };
}

pub(super) const SCHEDULES_OF_SHARD: &str = schedules!("WHERE shard = $1 ORDER BY uid");
pub(super) const SCHEDULES_AFTER: &str =
    schedules!("WHERE namespace = $1 AND name > $2 ORDER BY name LIMIT $3");
pub(super) const SCHEDULE_BY_NAME: &str = schedules!("WHERE namespace = $1 AND name = $2");

/// Reads a schedule.
pub(super) fn schedule(row: &Row) -> Result<ScheduleRecord, StoreError> {
    Ok(ScheduleRecord {
        uid: get::<Uuid>(row, 0)?.as_u128(),
        namespace: NamespaceId(get_u32(row, 1)?),
        name: get_text(row, 2)?,
        partition: get_partition(row, 3)?,
        shard: get_shard(row, 5)?,
        version: get_u32(row, 6)?,
        paused: get(row, 7)?,
        created_at: get_time(row, 8)?,
        updated_at: get_time(row, 9)?,
        cursor: parse(get(row, 10)?)?,
        doc: parse(get(row, 11)?)?,
    })
}
