//! Lists: keyset pages over live tasks and history, by creation or by due time.
//!
//! By creation, every index that can serve the filter is a stream of sequences, newest first: one
//! per queue and table (and state, for the outcomes that share a table), or one per table for a
//! key or a schedule. The streams are merged a piece at a time, rows are read only for what the
//! merge yields, and what no index knows is judged by columns before a row is read whole.
//!
//! By due time, the buckets are walked in order, slot by slot.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params_from_iter};

use crate::error::StoreError;
use crate::id::{NamespaceId, Seq};
use crate::queries::{Cursor, Page, SCAN_MAX, TaskFilter};
use crate::state::State;
use crate::store::{BUCKET, Edge};
use crate::task::Task;
use crate::time::Time;

use super::bucket::{First, Place, Slot, bucket_of, next_bucket};
use super::readers::Reader;
use super::row::{self, HISTORY, LIVE, LIVE_IN_BUCKET};

/// Sequences merged at once when rows may be passed over.
const PIECE: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Table {
    Tasks,
    Succeeded,
    Other,
}

impl Table {
    fn name(self) -> &'static str {
        match self {
            Table::Tasks => "tasks",
            Table::Succeeded => "history_succeeded",
            Table::Other => "history_other",
        }
    }

    fn rowid(self) -> &'static str {
        if self == Table::Tasks { "seq" } else { "fin" }
    }

    /// Selects one row without its payload.
    fn row_sql(self) -> &'static str {
        static SQL: LazyLock<[String; 3]> = LazyLock::new(|| {
            [
                format!("SELECT {LIVE} FROM tasks WHERE seq = ?1"),
                format!("SELECT {HISTORY} FROM history_succeeded WHERE fin = ?1"),
                format!("SELECT {HISTORY} FROM history_other WHERE fin = ?1"),
            ]
        });
        &SQL[self as usize]
    }
}

/// Sequences in falling order from one index.
struct Stream {
    table: Table,
    index: &'static str,
    /// Conditions on the index's leading columns, with parameters from `?4` on.
    conditions: &'static str,
    values: Vec<Value>,
}

impl Stream {
    /// The first `?3` sequences below `?1` and above `?2`.
    fn sql(&self) -> String {
        format!(
            "SELECT seq, {} FROM {} INDEXED BY {}
             WHERE {} AND seq < ?1 AND seq > ?2 ORDER BY seq DESC LIMIT ?3",
            self.table.rowid(),
            self.table.name(),
            self.index,
            self.conditions
        )
    }
}

/// A row that may be in the list.
type Candidate = (i64, Table, i64);

impl Reader {
    /// See [`crate::Queries::list`]; looks at `scan_max` rows or little more.
    pub(super) fn list(
        &mut self,
        filter: &TaskFilter,
        cursor: Option<Cursor>,
        limit: usize,
        scan_max: usize,
    ) -> Result<Page, StoreError> {
        let limit = limit.clamp(1, SCAN_MAX);
        let kind = match &filter.kind {
            None => None,
            Some(name) => match self.kind_id(name)? {
                Some(id) => Some(id),
                None => return Ok(Page { tasks: Vec::new(), next: None, cut: false }),
            },
        };
        if filter.by_due() {
            return self.list_by_due(filter, kind, cursor, limit, scan_max);
        }
        let streams = self.streams(filter)?;
        let judged = filter.kind.is_some() || filter.key.is_some() || filter.schedule.is_some();
        let piece = if judged { PIECE } else { limit + 1 };
        let mut below = match cursor {
            Some(Cursor::Seq(seq)) => seq.0,
            _ => i64::MAX,
        };
        let mut tasks = Vec::new();
        let mut looked = 0;
        loop {
            let candidates = self.merge(&streams, below, piece)?;
            let last_piece = candidates.len() < piece;
            for (seq, table, rowid) in candidates {
                below = seq;
                looked += 1;
                tasks.extend(self.judge(filter, kind, table, rowid)?);
                if tasks.len() > limit {
                    tasks.truncate(limit);
                    let next = tasks.last().map(|task: &Task| Cursor::Seq(task.seq));
                    return Ok(Page { tasks, next, cut: false });
                }
                if looked >= scan_max {
                    let next = Some(Cursor::Seq(Seq(below)));
                    return Ok(Page { tasks, next, cut: true });
                }
            }
            if last_piece {
                return Ok(Page { tasks, next: None, cut: false });
            }
        }
    }

    /// The statements that would serve a list by creation. For tests of their plans.
    #[cfg(test)]
    pub(super) fn statements(&self, filter: &TaskFilter) -> Result<Vec<String>, StoreError> {
        Ok(self.streams(filter)?.iter().map(Stream::sql).collect())
    }

    /// The newest tasks of a schedule in one of these states, payloads left out.
    pub(super) fn runs(
        &mut self,
        uid: u128,
        states: Vec<State>,
        limit: usize,
    ) -> Result<Vec<Task>, StoreError> {
        let filter = TaskFilter { schedule: Some(uid), states, ..TaskFilter::default() };
        let mut tasks = Vec::new();
        for (_, table, rowid) in self.merge(&self.streams(&filter)?, i64::MAX, limit)? {
            tasks.extend(self.read(table, rowid)?);
        }
        Ok(tasks)
    }

    fn kind_id(&self, name: &str) -> Result<Option<u32>, StoreError> {
        let mut find = self.conn.prepare_cached("SELECT id FROM kinds WHERE name = ?1")?;
        Ok(find.query_row([name], |row| row.get(0)).optional()?)
    }

    fn queues_of(&self, namespace: NamespaceId) -> Result<Vec<i64>, StoreError> {
        let mut select = self.conn.prepare_cached("SELECT id FROM queues WHERE namespace = ?1")?;
        let rows = select.query_map([namespace.0], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The streams that together hold everything the filter may show.
    fn streams(&self, filter: &TaskFilter) -> Result<Vec<Stream>, StoreError> {
        let wanted = |state: State| filter.states.is_empty() || filter.states.contains(&state);
        let live = wanted(State::Scheduled) || wanted(State::Running);
        let others = [State::Failed, State::Cancelled, State::Expired, State::Skipped];
        let tables = [
            (Table::Tasks, live),
            (Table::Succeeded, wanted(State::Succeeded)),
            (Table::Other, others.into_iter().any(wanted)),
        ];
        let tables = tables.into_iter().filter(|t| t.1).map(|t| t.0);
        if let Some(key) = &filter.key {
            let of_key = |table| Stream {
                table,
                index: match table {
                    Table::Tasks => "tasks_key",
                    Table::Succeeded => "history_succeeded_key",
                    Table::Other => "history_other_key",
                },
                conditions: "task_key = ?4",
                values: vec![Value::from(key.clone())],
            };
            return Ok(tables.map(of_key).collect());
        }
        if let Some(uid) = filter.schedule {
            let of_schedule = |table| Stream {
                table,
                index: match table {
                    Table::Tasks => "tasks_occurrence",
                    Table::Succeeded => "history_succeeded_schedule",
                    Table::Other => "history_other_schedule",
                },
                conditions: "schedule_uid = ?4",
                values: vec![Value::from(uid.to_be_bytes().to_vec())],
            };
            return Ok(tables.map(of_schedule).collect());
        }
        let queues = match filter.queue {
            Some(queue) => vec![i64::from(queue.0)],
            None => self.queues_of(filter.namespace)?,
        };
        let mut streams = Vec::new();
        if live && !wanted(State::Scheduled) {
            streams.push(Stream {
                table: Table::Tasks,
                index: "tasks_running",
                conditions: "state = 1",
                values: Vec::new(),
            });
        }
        for queue in queues {
            let mut add = |table, index, conditions, state: Option<State>| {
                let mut values = vec![Value::from(queue)];
                values.extend(state.map(|state| Value::from(state as i64)));
                streams.push(Stream { table, index, conditions, values });
            };
            if wanted(State::Scheduled) {
                add(Table::Tasks, "tasks_queue", "queue = ?4", None);
            }
            if wanted(State::Succeeded) {
                add(Table::Succeeded, "history_succeeded_queue", "queue = ?4", None);
            }
            for state in others.into_iter().filter(|state| wanted(*state)) {
                let conditions = "queue = ?4 AND state = ?5";
                add(Table::Other, "history_other_queue", conditions, Some(state));
            }
        }
        Ok(streams)
    }

    /// The next `piece` candidates of all streams below a sequence, newest first.
    fn merge(
        &self,
        streams: &[Stream],
        below: i64,
        piece: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        let mut found: Vec<Candidate> = Vec::new();
        let mut floor = i64::MIN;
        for stream in streams {
            let sql = stream.sql();
            let limit = i64::try_from(piece).unwrap_or(i64::MAX);
            let mut values = vec![Value::from(below), Value::from(floor), Value::from(limit)];
            values.extend(stream.values.iter().cloned());
            let mut select = self.conn.prepare_cached(&sql)?;
            let mut rows = select.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                found.push((row.get(0)?, stream.table, row.get(1)?));
            }
            if found.len() > piece {
                found.sort_unstable_by_key(|candidate| Reverse(candidate.0));
                found.truncate(piece);
                floor = found[piece - 1].0;
            }
        }
        found.sort_unstable_by_key(|candidate| Reverse(candidate.0));
        Ok(found)
    }

    /// The task of a candidate, if the filter shows it.
    fn judge(
        &mut self,
        filter: &TaskFilter,
        kind: Option<u32>,
        table: Table,
        rowid: i64,
    ) -> Result<Option<Task>, StoreError> {
        let Reader { conn, kinds, .. } = self;
        let mut select = conn.prepare_cached(table.row_sql())?;
        let mut rows = select.query([rowid])?;
        let Some(found) = rows.next()? else { return Ok(None) };
        if !may_match(filter, kind, found)? {
            return Ok(None);
        }
        let (task, _) = row::task(found, false, &mut |id| kinds.name(conn, id))?;
        Ok(Some(task).filter(|task| filter.matches(task)))
    }

    fn read(&mut self, table: Table, rowid: i64) -> Result<Option<Task>, StoreError> {
        self.one(table.row_sql(), [rowid], false)
    }

    fn list_by_due(
        &mut self,
        filter: &TaskFilter,
        kind: Option<u32>,
        cursor: Option<Cursor>,
        limit: usize,
        scan_max: usize,
    ) -> Result<Page, StoreError> {
        let from = filter.due_after.unwrap_or(Time::MIN);
        let after = match cursor {
            Some(Cursor::Due(due, seq)) => (due, seq),
            _ => (Time::MIN, Seq(i64::MIN)),
        };
        let until = filter.due_before.unwrap_or(Time::MAX);
        let begin = Edge { due: after.0, seq: after.1 }.max(Edge::before(from));
        let mut bucket = bucket_of(begin.due);
        let mut places: Vec<Place> = Vec::new();
        let mut looked = 0;
        let mut cut = None;
        while cut.is_none() && places.len() <= limit {
            let waiting = next_bucket(&self.conn, false, bucket)?;
            let overdue = next_bucket(&self.conn, true, bucket)?;
            let Some(next) = waiting.into_iter().chain(overdue).min() else { break };
            if next > bucket_of(until) {
                break;
            }
            if looked >= scan_max {
                cut = Some(Edge::before(Time(next.saturating_mul(BUCKET))));
                break;
            }
            let mut found = First::new(limit + 1 - places.len());
            // Those marked overdue are apart; of both, what is shown is complete up to the cut.
            for overdue in [false, true] {
                let mut wanted = |row: &Row<'_>, place: Place| {
                    looked += 1;
                    let wanted = place > after && place.0 >= from && place.0 < until;
                    Ok((wanted && may_match(filter, kind, row)?, looked >= scan_max))
                };
                let end = self.due_bucket((next, overdue), begin, &mut wanted, &mut found)?;
                cut = cut.into_iter().chain(end).min();
            }
            let shown = found.into_sorted().into_iter().map(|(place, ())| place);
            places.extend(shown.filter(|p| cut.is_none_or(|cut: Edge| cut.covers(p.0, p.1))));
            let Some(following) = next.checked_add(1) else { break };
            bucket = following;
            self.renew()?;
        }
        let more = places.len() > limit;
        places.truncate(limit);
        let next = match places.last() {
            Some(last) if more => Some(Cursor::Due(last.0, last.1)),
            _ => cut.map(|cut| Cursor::Due(cut.due, cut.seq)),
        };
        let mut tasks = Vec::with_capacity(places.len());
        for (_, seq) in places {
            tasks.extend(self.live(seq, false)?);
        }
        Ok(Page { tasks, next, cut: cut.is_some() && !more })
    }

    /// Finds the first places in a bucket of what is wanted. `wanted` also says when enough was
    /// looked at: then the walk ends at the next place where it may, which is answered.
    fn due_bucket(
        &mut self,
        bucket: (i64, bool),
        after: Edge,
        wanted: &mut impl FnMut(&Row<'_>, Place) -> Result<(bool, bool), StoreError>,
        found: &mut First<()>,
    ) -> Result<Option<Edge>, StoreError> {
        let mut last_slot = Slot { bucket: bucket.0, fine: 0 };
        let mut enough = false;
        let mut cut = None;
        self.walk_bucket(&LIVE_IN_BUCKET, bucket, after, &mut |row, slot| {
            if slot != last_slot {
                last_slot = slot;
                let here = Edge::before(slot.start());
                if enough && here > after {
                    cut = Some(here);
                    return Ok(ControlFlow::Break(()));
                }
                if !slot.is_instant() && found.is_full_before(slot.start()) {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let place = (Time(row.get(13)?), Seq(row.get(0)?));
            if slot.is_instant() && found.is_beyond(place) {
                return Ok(ControlFlow::Break(()));
            }
            let (wanted, stop) = wanted(row, place)?;
            enough = stop;
            if wanted {
                found.put(place, ());
            }
            if enough && slot.is_instant() {
                cut = Some(Edge { due: place.0, seq: place.1 });
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(cut)
    }
}

/// Judges a row by its columns alone, without reading it whole.
fn may_match(filter: &TaskFilter, kind: Option<u32>, row: &Row<'_>) -> Result<bool, StoreError> {
    if row.get::<_, u32>(2)? != filter.namespace.0
        || kind.is_some_and(|kind| row.get(12) != Ok(kind))
        || filter.queue.is_some_and(|queue| row.get(3) != Ok(queue.0))
    {
        return Ok(false);
    }
    let state = row::state_of(row.get(6)?)?;
    if !filter.states.is_empty() && !filter.states.contains(&state) {
        return Ok(false);
    }
    if let Some(key) = &filter.key
        && row.get_ref(18)?.as_str_or_null() != Ok(Some(key))
    {
        return Ok(false);
    }
    if let Some(uid) = filter.schedule
        && row.get_ref(20)?.as_blob_or_null() != Ok(Some(&uid.to_be_bytes()[..]))
    {
        return Ok(false);
    }
    Ok(true)
}
