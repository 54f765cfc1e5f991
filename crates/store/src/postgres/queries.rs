//! Single records, counts, runs, statistics.

use std::collections::BTreeMap;

use crate::calendar::CalendarRecord;
use crate::encoding::parse;
use crate::error::StoreError;
use crate::id::{NamespaceId, QueueId, Seq, TaskId};
use crate::queries::{Count, Cursor, Located, Page, Queries, SCAN_MAX, TaskFilter};
use crate::schedule::ScheduleRecord;
use crate::state::State;
use crate::stats::{StatsRow, merge_rows};
use crate::task::{Output, Task};
use crate::time::Time;
use uuid::Uuid;

use super::connection::Param;
use super::records::{self, calendar, schedule};
use super::row::{self, get, get_state, get_u32};
use super::text::{Text, get_text};
use super::{PostgresStore, list};

/// One statement, so that a task that moves meanwhile is found once.
const TASK: &str = concat!(
    "SELECT ",
    row::live_columns!("coalesce(t.payload, p.payload)"),
    " FROM tasks t LEFT JOIN payloads p ON p.seq = t.seq AND t.large
     WHERE t.id = $2 AND t.namespace = $1 UNION ALL SELECT ",
    row::history_columns!("coalesce(t.payload, p.payload)"),
    " FROM history_succeeded t LEFT JOIN payloads p ON p.seq = t.seq AND t.large
     WHERE t.id = $2 AND t.namespace = $1 UNION ALL SELECT ",
    row::history_columns!("coalesce(t.payload, p.payload)"),
    " FROM history_other t LEFT JOIN payloads p ON p.seq = t.seq AND t.large
     WHERE t.id = $2 AND t.namespace = $1"
);

const LOCATE: &str = concat!(
    "SELECT ",
    row::located_columns!(),
    " FROM tasks t WHERE t.id = $2 AND t.namespace = $1 UNION ALL SELECT ",
    row::located_columns!(),
    " FROM history_succeeded t WHERE t.id = $2 AND t.namespace = $1 UNION ALL SELECT ",
    row::located_columns!(),
    " FROM history_other t WHERE t.id = $2 AND t.namespace = $1"
);

const LOCATE_KEY: &str = concat!(
    "SELECT ",
    row::located_columns!(),
    " FROM tasks t WHERE t.task_key = $2 AND t.queue = $1"
);

/// For each part of history: the times of the oldest.
const OLDEST: [&str; 2] = [
    "SELECT finished_at FROM history_succeeded WHERE fin > $1 ORDER BY fin LIMIT $2",
    "SELECT finished_at FROM history_other WHERE fin > $1 ORDER BY fin LIMIT $2",
];

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl PostgresStore {
    fn ask<T>(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
        read: impl Fn(&tokio_postgres::Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.question()?.conn().rows(sql, params)?.iter().map(read).collect()
    }

    fn ask_one<T>(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
        read: impl Fn(&tokio_postgres::Row) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.ask(sql, params, read)?.into_iter().next())
    }
}

impl Queries for PostgresStore {
    fn namespace(&self, name: &str) -> Result<Option<NamespaceId>, StoreError> {
        self.ask_one(records::NAMESPACE, &[&Text(name)], |row| Ok(NamespaceId(get_u32(row, 0)?)))
    }

    fn namespaces(&self) -> Result<Vec<(NamespaceId, String)>, StoreError> {
        let sql = "SELECT id, name FROM namespaces ORDER BY id";
        self.ask(sql, &[], |row| Ok((NamespaceId(get_u32(row, 0)?), get_text(row, 1)?)))
    }

    fn task(&self, namespace: NamespaceId, id: TaskId) -> Result<Option<Task>, StoreError> {
        let id = Uuid::from_u128(id.0);
        self.ask_one(TASK, &[&namespace.0.cast_signed(), &id], row::task)
    }

    fn output(&self, seq: Seq, attempt: u32) -> Result<Option<Output>, StoreError> {
        let sql = "SELECT head, tail, total FROM outputs WHERE seq = $1 AND attempt = $2";
        self.ask_one(sql, &[&seq.0, &attempt.cast_signed()], |row| {
            Ok(Output {
                head: get(row, 0)?,
                tail: get(row, 1)?,
                total: get::<i64>(row, 2)?.unsigned_abs(),
            })
        })
    }

    fn locate(&self, namespace: NamespaceId, id: TaskId) -> Result<Option<Located>, StoreError> {
        let id = Uuid::from_u128(id.0);
        self.ask_one(LOCATE, &[&namespace.0.cast_signed(), &id], row::located)
    }

    fn locate_key(&self, queue: QueueId, key: &str) -> Result<Option<Located>, StoreError> {
        self.ask_one(LOCATE_KEY, &[&queue.0.cast_signed(), &Text(key)], row::located)
    }

    fn list(
        &self,
        filter: &TaskFilter,
        cursor: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let ask = |conn: &mut _| list::list(conn, filter, cursor, limit, SCAN_MAX);
        Ok(self.question()?.snapshot(ask)?)
    }

    fn counts(&self) -> Result<Vec<Count>, StoreError> {
        let sql = "SELECT queue, state, sum(n)::bigint FROM counters GROUP BY queue, state";
        let mut counts = self.ask(sql, &[], |row| {
            let count = u64::try_from(get::<i64>(row, 2)?).unwrap_or(0);
            Ok(Count { queue: QueueId(get_u32(row, 0)?), state: get_state(row, 1)?, count })
        })?;
        counts.sort_by_key(|count| (count.queue, count.state));
        Ok(counts)
    }

    fn schedules(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ScheduleRecord>, StoreError> {
        let after = Text(after.unwrap_or_default());
        let params: [Param<'_>; 3] = [&namespace.0.cast_signed(), &after, &limit_of(limit)];
        self.ask(records::SCHEDULES_AFTER, &params, schedule)
    }

    fn schedule(
        &self,
        namespace: NamespaceId,
        name: &str,
    ) -> Result<Option<ScheduleRecord>, StoreError> {
        self.ask_one(
            records::SCHEDULE_BY_NAME,
            &[&namespace.0.cast_signed(), &Text(name)],
            schedule,
        )
    }

    fn calendars(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<CalendarRecord>, StoreError> {
        let after = Text(after.unwrap_or_default());
        let params: [Param<'_>; 3] = [&namespace.0.cast_signed(), &after, &limit_of(limit)];
        self.ask(records::CALENDARS_AFTER, &params, calendar)
    }

    fn calendar(
        &self,
        namespace: NamespaceId,
        name: &str,
    ) -> Result<Option<CalendarRecord>, StoreError> {
        self.ask_one(
            records::CALENDAR_BY_NAME,
            &[&namespace.0.cast_signed(), &Text(name)],
            calendar,
        )
    }

    fn calendar_users(
        &self,
        namespace: NamespaceId,
        name: &str,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let params: [Param<'_>; 3] = [&namespace.0.cast_signed(), &Text(name), &limit_of(limit)];
        self.ask(records::CALENDAR_USERS, &params, |row| get_text(row, 0))
    }

    fn last_runs(&self, uid: u128, limit: usize) -> Result<Vec<Task>, StoreError> {
        let states: Vec<State> = State::ALL.into_iter().filter(|state| state.is_final()).collect();
        Ok(self.question()?.snapshot(|conn| list::runs(conn, uid, states, limit))?)
    }

    fn series(
        &self,
        from_minute: i64,
        to_minute: i64,
    ) -> Result<Vec<(i64, Vec<StatsRow>)>, StoreError> {
        let sql = "SELECT minute, rows FROM stats WHERE minute >= $1 AND minute < $2";
        let mut minutes: BTreeMap<i64, Vec<StatsRow>> = BTreeMap::new();
        let read = |row: &tokio_postgres::Row| {
            Ok((get::<i64>(row, 0)?, parse::<Vec<StatsRow>>(get(row, 1)?)?))
        };
        for (minute, rows) in self.ask(sql, &[&from_minute, &to_minute], read)? {
            merge_rows(minutes.entry(minute).or_default(), &rows);
        }
        Ok(minutes.into_iter().collect())
    }

    fn prunable(&self, succeeded: bool, before: Time, limit: u64) -> Result<u64, StoreError> {
        let sql = OLDEST[usize::from(!succeeded)];
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let times = self.ask(sql, &[&i64::MIN, &limit], |row| get::<i64>(row, 0))?;
        Ok(times.into_iter().take_while(|at| *at < before.0).count() as u64)
    }
}
