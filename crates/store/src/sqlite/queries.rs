//! Single records, counts, runs, statistics.

use std::collections::BTreeMap;

use rusqlite::OptionalExtension;

use crate::calendar::CalendarRecord;
use crate::error::StoreError;
use crate::id::{NamespaceId, Partition, QueueId, Seq, Shard, TaskId};
use crate::queries::{Count, Cursor, Located, Page, Queries, SCAN_MAX, TaskFilter};
use crate::schedule::ScheduleRecord;
use crate::state::State;
use crate::stats::{StatsRow, merge_rows};
use crate::task::{Output, Task};
use crate::time::Time;

use super::SqliteStore;
use super::calendars;
use super::readers::Reader;
use super::records::{SCHEDULE, schedule};
use super::row::{HISTORY, LIVE, parse, state_of, text, u128_of};

const TABLES: [&str; 3] = ["tasks", "history_succeeded", "history_other"];

impl Reader {
    fn located(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<Option<Located>, StoreError> {
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query(params)?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(Located {
            seq: Seq(row.get(0)?),
            id: TaskId(u128_of(row.get_ref(1)?)?),
            shard: Shard(row.get(2)?),
            partition: Partition { queue: QueueId(row.get(3)?), index: row.get(4)? },
            version: row.get(5)?,
            state: state_of(row.get(6)?)?,
            concurrency_key: row.get(7)?,
        }))
    }

    fn schedule_where(
        &self,
        condition: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<ScheduleRecord>, StoreError> {
        let sql = format!("SELECT {SCHEDULE} FROM schedules WHERE {condition}");
        let mut select = self.conn.prepare_cached(&sql)?;
        let mut rows = select.query(params)?;
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            records.push(schedule(row)?);
        }
        Ok(records)
    }
}

const LOCATED: &str = "seq, id, shard, queue, part, version, state, concurrency_key";

impl Queries for SqliteStore {
    fn namespace(&self, name: &str) -> Result<Option<NamespaceId>, StoreError> {
        let question = self.readers.question()?;
        let mut select =
            question.conn.prepare_cached("SELECT id FROM namespaces WHERE name = ?1")?;
        let id = select.query_row([name], |row| row.get(0)).optional()?;
        Ok(id.map(NamespaceId))
    }

    fn namespaces(&self) -> Result<Vec<(NamespaceId, String)>, StoreError> {
        let question = self.readers.question()?;
        let mut select =
            question.conn.prepare_cached("SELECT id, name FROM namespaces ORDER BY id")?;
        let rows = select.query_map([], |row| Ok((NamespaceId(row.get(0)?), row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn task(&self, namespace: NamespaceId, id: TaskId) -> Result<Option<Task>, StoreError> {
        let mut question = self.readers.question()?;
        for table in TABLES {
            let columns = if table == "tasks" { LIVE } else { HISTORY };
            let sql =
                format!("SELECT {columns}, payload FROM {table} WHERE namespace = ?1 AND id = ?2");
            let found = question.one(&sql, (namespace.0, id.0.to_be_bytes()), true)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn output(&self, seq: Seq, attempt: u32) -> Result<Option<Output>, StoreError> {
        let question = self.readers.question()?;
        let mut select = question.conn.prepare_cached(
            "SELECT head, tail, total FROM outputs WHERE seq = ?1 AND attempt = ?2",
        )?;
        let output = select.query_row((seq.0, attempt), |row| {
            Ok(Output {
                head: row.get(0)?,
                tail: row.get(1)?,
                total: row.get::<_, i64>(2)?.unsigned_abs(),
            })
        });
        Ok(output.optional()?)
    }

    fn locate(&self, namespace: NamespaceId, id: TaskId) -> Result<Option<Located>, StoreError> {
        let question = self.readers.question()?;
        for table in TABLES {
            let sql = format!("SELECT {LOCATED} FROM {table} WHERE namespace = ?1 AND id = ?2");
            let found = question.located(&sql, (namespace.0, id.0.to_be_bytes()))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn locate_key(&self, queue: QueueId, key: &str) -> Result<Option<Located>, StoreError> {
        let question = self.readers.question()?;
        let sql = format!("SELECT {LOCATED} FROM tasks WHERE task_key = ?1 AND queue = ?2");
        question.located(&sql, (key, queue.0))
    }

    fn list(
        &self,
        filter: &TaskFilter,
        cursor: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.readers.question()?.list(filter, cursor, limit, SCAN_MAX)
    }

    fn counts(&self) -> Result<Vec<Count>, StoreError> {
        let question = self.readers.question()?;
        let mut select = question
            .conn
            .prepare_cached("SELECT queue, state, n FROM counters ORDER BY queue, state")?;
        let mut rows = select.query([])?;
        let mut counts = Vec::new();
        while let Some(row) = rows.next()? {
            counts.push(Count {
                queue: QueueId(row.get(0)?),
                state: state_of(row.get(1)?)?,
                count: u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
            });
        }
        Ok(counts)
    }

    fn schedules(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ScheduleRecord>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let condition = "namespace = ?1 AND name > ?2 ORDER BY name LIMIT ?3";
        let after = after.unwrap_or_default();
        self.readers.question()?.schedule_where(condition, (namespace.0, after, limit))
    }

    fn schedule(
        &self,
        namespace: NamespaceId,
        name: &str,
    ) -> Result<Option<ScheduleRecord>, StoreError> {
        let condition = "namespace = ?1 AND name = ?2";
        let found = self.readers.question()?.schedule_where(condition, (namespace.0, name))?;
        Ok(found.into_iter().next())
    }

    fn calendars(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<CalendarRecord>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let condition = "c.namespace = ?1 AND c.name > ?2 ORDER BY c.name LIMIT ?3";
        let after = after.unwrap_or_default();
        calendars::read(&self.readers.question()?.conn, condition, (namespace.0, after, limit))
    }

    fn calendar(
        &self,
        namespace: NamespaceId,
        name: &str,
    ) -> Result<Option<CalendarRecord>, StoreError> {
        let condition = "c.namespace = ?1 AND c.name = ?2";
        let question = self.readers.question()?;
        let found = calendars::read(&question.conn, condition, (namespace.0, name))?;
        Ok(found.into_iter().next())
    }

    fn calendar_users(
        &self,
        namespace: NamespaceId,
        calendar: &str,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let question = self.readers.question()?;
        let mut select = question.conn.prepare_cached(calendars::USERS)?;
        let names = select.query_map((namespace.0, calendar, limit), |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }

    fn last_runs(&self, uid: u128, limit: usize) -> Result<Vec<Task>, StoreError> {
        let final_states = State::ALL.into_iter().filter(|state| state.is_final());
        self.readers.question()?.runs(uid, final_states.collect(), limit)
    }

    fn series(
        &self,
        from_minute: i64,
        to_minute: i64,
    ) -> Result<Vec<(i64, Vec<StatsRow>)>, StoreError> {
        let question = self.readers.question()?;
        let mut select = question.conn.prepare_cached(
            "SELECT minute, rows FROM stats WHERE minute >= ?1 AND minute < ?2 ORDER BY minute",
        )?;
        let mut rows = select.query((from_minute, to_minute))?;
        let mut minutes: BTreeMap<i64, Vec<StatsRow>> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let sum = minutes.entry(row.get(0)?).or_default();
            merge_rows(sum, &parse::<Vec<StatsRow>>(text(row, 1)?)?);
        }
        Ok(minutes.into_iter().collect())
    }

    fn prunable(&self, succeeded: bool, before: Time, limit: u64) -> Result<u64, StoreError> {
        let question = self.readers.question()?;
        let table = if succeeded { TABLES[1] } else { TABLES[2] };
        let sql = format!("SELECT finished_at FROM {table} ORDER BY fin LIMIT ?1");
        let mut select = question.conn.prepare_cached(&sql)?;
        let mut rows = select.query([i64::try_from(limit).unwrap_or(i64::MAX)])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            if row.get::<_, i64>(0)? >= before.0 {
                break;
            }
            count += 1;
        }
        Ok(count)
    }
}
