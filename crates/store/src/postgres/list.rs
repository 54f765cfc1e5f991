//! Lists: keyset pages over live tasks and history, by creation or by due time.
//!
//! As in the SQLite store: every index that can serve the filter is a stream in order, the streams are
//! merged a piece at a time, and rows are read whole only when the filter shows them. Here the streams
//! of a table are one statement, which also judges the filter.

use std::cmp::Reverse;
use std::collections::HashMap;

use tokio_postgres::Row;
use uuid::Uuid;

use crate::error::StoreError;
use crate::id::Seq;
use crate::queries::{Cursor, Page, SCAN_MAX, TaskFilter};
use crate::state::State;
use crate::store::Edge;
use crate::task::Task;
use crate::time::Time;

use super::connection::{Call, Connection, Param, call};
use super::error::Failure;
use super::load::READ;
use super::row::{self, get, get_time};
use super::text::{Text, maybe};

/// Rows looked at together when rows may be passed over.
const PIECE: usize = 1_000;

/// Whether the filter shows a row `c`; `$1` and `$2` bound the stream.
macro_rules! matches {
    () => {
        "coalesce(c.namespace = $3 AND ($4::integer IS NULL OR c.queue = $4)
             AND (cardinality($5::smallint[]) = 0 OR c.state = ANY($5))
             AND ($6::text IS NULL OR c.kind = $6) AND ($7::text IS NULL OR c.task_key = $7)
             AND ($8::uuid IS NULL OR c.schedule_uid = $8), false)"
    };
}

/// A stream of a table under a condition.
macro_rules! stream {
    ($table:literal, $place:literal, $condition:literal) => {
        concat!(
            "SELECT c.seq, c.",
            $place,
            ", ",
            matches!(),
            "
             FROM (SELECT * FROM ",
            $table,
            " t WHERE ",
            $condition,
            " AND t.seq < $1
                   ORDER BY t.seq DESC LIMIT $2) c ORDER BY c.seq DESC"
        )
    };
}

/// The streams of a table, one for each of some queues.
macro_rules! streams {
    ($table:literal, $place:literal, $more:literal, $condition:literal) => {
        concat!(
            "SELECT c.seq, c.",
            $place,
            ", ",
            matches!(),
            "
             FROM unnest($9::integer[]) AS q(queue) ",
            $more,
            "
             CROSS JOIN LATERAL (SELECT * FROM ",
            $table,
            " t
                 WHERE t.queue = q.queue AND ",
            $condition,
            " AND t.seq < $1
                 ORDER BY t.seq DESC LIMIT $2) c
             ORDER BY c.seq DESC LIMIT $2"
        )
    };
}

const BY_KEY: [&str; 3] = [
    stream!("tasks", "seq", "t.task_key = $7"),
    stream!("history_succeeded", "fin", "t.task_key = $7"),
    stream!("history_other", "fin", "t.task_key = $7"),
];

const BY_SCHEDULE: [&str; 3] = [
    stream!("tasks", "seq", "t.schedule_uid = $8"),
    stream!("history_succeeded", "fin", "t.schedule_uid = $8"),
    stream!("history_other", "fin", "t.schedule_uid = $8"),
];

const RUNNING: &str = stream!("tasks", "seq", "t.state = 1");

const BY_QUEUE: [&str; 3] = [
    streams!("tasks", "seq", "", "true"),
    streams!("history_succeeded", "fin", "", "true"),
    streams!(
        "history_other",
        "fin",
        "CROSS JOIN unnest($10::smallint[]) AS s(state)",
        "t.state = s.state"
    ),
];

/// In order of due time: what waits and what is marked overdue are apart in the index.
const BY_DUE: &str = concat!(
    "SELECT c.seq, c.due, ",
    matches!(),
    " FROM (
         (SELECT * FROM tasks t WHERE t.state = 0 AND NOT t.overdue
             AND (t.due, t.seq) > ($1, $9) AND t.due < $10 ORDER BY t.due, t.seq LIMIT $2)
         UNION ALL
         (SELECT * FROM tasks t WHERE t.state = 0 AND t.overdue
             AND (t.due, t.seq) > ($1, $9) AND t.due < $10 ORDER BY t.due, t.seq LIMIT $2)
     ) c ORDER BY c.due, c.seq LIMIT $2"
);

const QUEUES: &str = "SELECT id FROM queues WHERE namespace = $1";

const HISTORY: [&str; 2] = [
    concat!(
        "SELECT ",
        row::history_columns!("NULL::text"),
        " FROM history_succeeded t WHERE t.fin = ANY($1)"
    ),
    concat!(
        "SELECT ",
        row::history_columns!("NULL::text"),
        " FROM history_other t WHERE t.fin = ANY($1)"
    ),
];

/// The final states that share a table.
const OTHERS: [State; 4] = [State::Failed, State::Cancelled, State::Expired, State::Skipped];

/// A row that was looked at: its sequence, its table (0 to 2), its place there, whether it is shown.
type Candidate = (i64, usize, i64, bool);

/// The filter as parameters.
struct Asked<'a> {
    namespace: i32,
    queue: Option<i32>,
    states: Vec<i16>,
    kind: Option<Text<'a>>,
    key: Option<Text<'a>>,
    schedule: Option<Uuid>,
}

impl<'a> Asked<'a> {
    fn of(filter: &'a TaskFilter) -> Asked<'a> {
        Asked {
            namespace: filter.namespace.0.cast_signed(),
            queue: filter.queue.map(|queue| queue.0.cast_signed()),
            states: filter.states.iter().map(|state| *state as i16).collect(),
            kind: maybe(&filter.kind),
            key: maybe(&filter.key),
            schedule: filter.schedule.map(Uuid::from_u128),
        }
    }

    fn params<'p>(&'p self, bound: Param<'p>, limit: Param<'p>) -> Vec<Param<'p>> {
        let own: [Param<'p>; 6] =
            [&self.namespace, &self.queue, &self.states, &self.kind, &self.key, &self.schedule];
        [bound, limit].into_iter().chain(own).collect()
    }
}

/// See [`crate::Queries::list`]; looks at `scan_max` rows or little more. To be asked in one snapshot.
pub(super) fn list(
    conn: &mut Connection,
    filter: &TaskFilter,
    cursor: Option<Cursor>,
    limit: usize,
    scan_max: usize,
) -> Result<Page, Failure> {
    let limit = limit.clamp(1, SCAN_MAX);
    if filter.by_due() {
        return by_due(conn, filter, cursor, limit, scan_max);
    }
    let judged = filter.kind.is_some() || filter.key.is_some() || filter.schedule.is_some();
    let piece = if judged { PIECE.max(limit + 1) } else { limit + 1 };
    let queues = match filter.queue {
        Some(queue) => vec![queue.0.cast_signed()],
        None => {
            let rows = conn.rows(QUEUES, &[&filter.namespace.0.cast_signed()])?;
            rows.iter().map(|row| get(row, 0)).collect::<Result<Vec<i32>, StoreError>>()?
        }
    };
    let mut below = match cursor {
        Some(Cursor::Seq(seq)) => seq.0,
        _ => i64::MAX,
    };
    let mut shown: Vec<Candidate> = Vec::new();
    let mut looked = 0;
    let (next, cut) = loop {
        let candidates = merge(conn, filter, &queues, below, piece)?;
        let last_piece = candidates.len() < piece;
        looked += candidates.len();
        below = candidates.last().map_or(below, |candidate| candidate.0);
        shown.extend(candidates.into_iter().filter(|candidate| candidate.3));
        if shown.len() > limit {
            shown.truncate(limit);
            break (shown.last().map(|last| Cursor::Seq(Seq(last.0))), false);
        }
        if last_piece {
            break (None, false);
        }
        if looked >= scan_max {
            break (Some(Cursor::Seq(Seq(below))), true);
        }
    };
    Ok(Page { tasks: read(conn, &shown)?, next, cut })
}

/// The newest tasks of a schedule in one of these states, payloads left out. To be asked in one
/// snapshot.
pub(super) fn runs(
    conn: &mut Connection,
    uid: u128,
    states: Vec<State>,
    limit: usize,
) -> Result<Vec<Task>, Failure> {
    let filter = TaskFilter { schedule: Some(uid), states, ..TaskFilter::default() };
    let found = merge(conn, &filter, &[], i64::MAX, limit.clamp(1, SCAN_MAX))?;
    let limit = if limit == 0 { 0 } else { found.len() };
    read(conn, &found[..limit])
}

/// The next `piece` candidates of all streams below a sequence, newest first.
fn merge(
    conn: &mut Connection,
    filter: &TaskFilter,
    queues: &[i32],
    below: i64,
    piece: usize,
) -> Result<Vec<Candidate>, Failure> {
    let asked = Asked::of(filter);
    let limit = i64::try_from(piece).unwrap_or(i64::MAX);
    let wanted = |state: State| filter.states.is_empty() || filter.states.contains(&state);
    let others: Vec<i16> =
        OTHERS.into_iter().filter(|s| wanted(*s)).map(|state| state as i16).collect();
    let tables = [
        wanted(State::Scheduled) || wanted(State::Running),
        wanted(State::Succeeded),
        !others.is_empty(),
    ];
    let by_index = if filter.key.is_some() {
        Some(&BY_KEY)
    } else if filter.schedule.is_some() {
        Some(&BY_SCHEDULE)
    } else {
        None
    };
    let mut calls: Vec<(usize, Call<'_>)> = Vec::new();
    for table in (0..3).filter(|table| tables[*table]) {
        let mut params = asked.params(&below, &limit);
        let sql = match by_index {
            Some(statements) => statements[table],
            None if table == 0 && !wanted(State::Scheduled) => RUNNING,
            None => {
                params.push(&queues);
                if table == 2 {
                    params.push(&others);
                }
                BY_QUEUE[table]
            }
        };
        calls.push((table, call(sql, &params)));
    }
    let (tables, calls): (Vec<usize>, Vec<Call<'_>>) = calls.into_iter().unzip();
    let mut found: Vec<Candidate> = Vec::new();
    for (table, answer) in tables.into_iter().zip(conn.all(&calls)?) {
        for row in &answer.rows {
            found.push((get(row, 0)?, table, get(row, 1)?, get(row, 2)?));
        }
    }
    found.sort_unstable_by_key(|candidate| Reverse(candidate.0));
    found.truncate(piece);
    Ok(found)
}

/// The candidates' tasks, in their order.
fn read(conn: &mut Connection, shown: &[Candidate]) -> Result<Vec<Task>, Failure> {
    let mut by_seq: HashMap<i64, Task> = HashMap::new();
    for (table, sql) in [READ, HISTORY[0], HISTORY[1]].into_iter().enumerate() {
        let places: Vec<i64> =
            shown.iter().filter(|candidate| candidate.1 == table).map(|c| c.2).collect();
        if !places.is_empty() {
            for row in conn.rows(sql, &[&places])? {
                let task = row::task(&row)?;
                by_seq.insert(task.seq.0, task);
            }
        }
    }
    Ok(shown.iter().filter_map(|candidate| by_seq.remove(&candidate.0)).collect())
}

fn by_due(
    conn: &mut Connection,
    filter: &TaskFilter,
    cursor: Option<Cursor>,
    limit: usize,
    scan_max: usize,
) -> Result<Page, Failure> {
    let asked = Asked::of(filter);
    let mut after = Edge::before(filter.due_after.unwrap_or(Time::MIN));
    if let Some(Cursor::Due(due, seq)) = cursor {
        after = after.max(Edge { due, seq });
    }
    let until = filter.due_before.unwrap_or(Time::MAX);
    let piece = PIECE.max(limit + 1);
    let room = i64::try_from(piece).unwrap_or(i64::MAX);
    let mut shown: Vec<Candidate> = Vec::new();
    let mut places: Vec<Edge> = Vec::new();
    let mut looked = 0;
    let (next, cut) = loop {
        let rows = {
            let mut params = asked.params(&after.due.0, &room);
            params.extend([&after.seq.0 as Param<'_>, &until.0]);
            conn.rows(BY_DUE, &params)?
        };
        looked += rows.len();
        for row in &rows {
            after = place(row)?;
            if get(row, 2)? {
                shown.push((after.seq.0, 0, after.seq.0, true));
                places.push(after);
            }
        }
        if shown.len() > limit {
            shown.truncate(limit);
            let last = places[limit - 1];
            break (Some(Cursor::Due(last.due, last.seq)), false);
        }
        if rows.len() < piece {
            break (None, false);
        }
        if looked >= scan_max {
            break (Some(Cursor::Due(after.due, after.seq)), true);
        }
    };
    Ok(Page { tasks: read(conn, &shown)?, next, cut })
}

fn place(row: &Row) -> Result<Edge, StoreError> {
    Ok(Edge { due: get_time(row, 1)?, seq: Seq(get(row, 0)?) })
}
