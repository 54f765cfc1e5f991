//! Writing what came of a part of a batch: the difference between what was read and what is now.
//!
//! In an order in which no unique index is in the way: first what goes (from history, to history,
//! away), then what comes, then what changed. Every statement names the version that was read, and the
//! rows it changed are counted: a row that somebody else changed meanwhile fails the whole, which is
//! done again.
//!
//! What was taken to be new is compared with history after it was inserted: from then on no other
//! connection can insert the same, so what is not in history now never will be.

use std::collections::HashSet;

use bytes::Bytes;
use uuid::Uuid;

use crate::encoding::{LARGE, json, rest_json};
use crate::error::StoreError;
use crate::state::State;
use crate::task::{AttemptRecord, Stub, StubFlags, Task};

use super::connection::{Call, Connection, Param, call};
use super::copy::Rows;
use super::error::Failure;
use super::text::{Text, encode, maybe};
use super::work::{Base, Entry, Place, Work};

/// Moves rows to a history table, as they are after their end.
macro_rules! finish {
    ($table:literal) => {
        concat!(
            "WITH gone AS (
                 DELETE FROM tasks t
                 USING unnest($1::bigint[], $2::integer[], $3::integer[], $4::smallint[],
                     $5::integer[], $6::integer[], $7::integer[], $8::bigint[], $9::text[],
                     $10::text[], $11::text[], $12::text[], $13::integer[], $14::bigint[],
                     $15::bigint[])
                     AS u(seq, base, version, state, attempt, lost, released, finished_at, reason,
                         skipped, added, said, place, due, first_due)
                 WHERE t.seq = u.seq AND t.version = u.base
                 RETURNING u.place, u.version AS new_version, u.state AS new_state,
                     u.attempt AS new_attempt, u.lost AS new_lost, u.released AS new_released,
                     u.finished_at, u.reason, u.skipped, u.added, u.said, u.due AS new_due,
                     u.first_due AS new_first_due, t.*
             )
             INSERT INTO ",
            $table,
            " (seq, due, first_due, created_at, finished_at, expires, fingerprint, logical, id,
                 schedule_uid, namespace, queue, part, version, attempt, lost, released, shard,
                 state, npri, large, kind, task_key, concurrency_key, origin, schedule_name, reason,
                 skipped, progress, attempts, spec, payload)
             SELECT seq, new_due, new_first_due, created_at, finished_at, expires, fingerprint,
                 logical, id, schedule_uid, namespace, queue, part, new_version, new_attempt,
                 new_lost, new_released, shard, new_state, npri, large, kind, task_key,
                 concurrency_key, origin, schedule_name, reason, skipped, coalesce(said, progress),
                 CASE WHEN added = '' THEN attempts WHEN attempts = '' THEN added
                      ELSE attempts || ',' || added END,
                 spec, payload
             FROM gone ORDER BY place"
        )
    };
}

const FINISH: [&str; 2] = [finish!("history_succeeded"), finish!("history_other")];

const UPDATE: &str = "UPDATE tasks t SET version = u.version, state = u.state, overdue = u.overdue,
         attempt = u.attempt, lost = u.lost, released = u.released,
         cancel_requested = u.cancel_requested, due = u.due, first_due = u.first_due,
         open = u.open, progress = coalesce(u.said, t.progress),
         attempts = CASE WHEN u.added = '' THEN t.attempts WHEN t.attempts = '' THEN u.added
                         ELSE t.attempts || ',' || u.added END
     FROM unnest($1::bigint[], $2::integer[], $3::integer[], $4::smallint[], $5::boolean[],
             $6::integer[], $7::integer[], $8::integer[], $9::boolean[], $10::bigint[],
             $11::bigint[], $12::text[], $13::text[], $14::text[])
         AS u(seq, base, version, state, overdue, attempt, lost, released, cancel_requested, due,
             first_due, open, added, said)
     WHERE t.seq = u.seq AND t.version = u.base";

/// The definition only: what else changed is in [`UPDATE`] or [`FINISH`], which compare the version.
const EDIT: &str =
    "UPDATE tasks SET kind = $2, kind_hash = $3, npri = $4, flags = $5, expires = $6,
         weight = $7, large = $8, spec = $9, payload = $10 WHERE seq = $1";

const DISCARD: &str =
    "DELETE FROM tasks t USING unnest($1::bigint[], $2::integer[]) AS u(seq, base)
     WHERE t.seq = u.seq AND t.version = u.base";

const FORGET: [&str; 2] = [
    "DELETE FROM history_succeeded WHERE fin = ANY($1)",
    "DELETE FROM history_other WHERE fin = ANY($1)",
];

const ADVANCE: &str = "UPDATE schedules s SET cursor = u.cursor, version = u.version
     FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::text[])
         AS u(uid, base, version, cursor)
     WHERE s.uid = u.uid AND s.version = u.base";

const COPY: &str = "COPY tasks (seq, due, first_due, created_at, expires, fingerprint,
     concurrency_hash, kind_hash, logical, id, schedule_uid, namespace, queue, part, version, attempt,
     lost, released, weight, shard, state, npri, flags, overdue, cancel_requested, large, inbox, kind,
     task_key, concurrency_key, origin, schedule_name, open, progress, attempts, spec, payload)
     FROM STDIN BINARY";

const COPY_COLUMNS: i16 = 37;

macro_rules! past {
    ($table:literal) => {
        concat!(
            "INSERT INTO ",
            $table,
            " (seq, due, first_due, created_at, finished_at, expires, fingerprint, logical, id,
                 schedule_uid, namespace, queue, part, version, attempt, lost, released, shard,
                 state, npri, large, kind, task_key, concurrency_key, origin, schedule_name, reason,
                 skipped, progress, attempts, spec, payload)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                 $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32)"
        )
    };
}

/// For tasks that come and end in the same part, which is rare.
const PAST: [&str; 2] = [past!("history_succeeded"), past!("history_other")];

const PAYLOADS: &str = "INSERT INTO payloads (seq, payload)
     SELECT * FROM unnest($1::bigint[], $2::text[])
     ON CONFLICT (seq) DO UPDATE SET payload = excluded.payload";

const DROP_PAYLOADS: &str = "DELETE FROM payloads WHERE seq = ANY($1)";

const OUTPUTS: &str = "INSERT INTO outputs (seq, attempt, total, head, tail)
     SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bytea[], $5::bytea[])
     ON CONFLICT (seq, attempt) DO UPDATE SET total = excluded.total, head = excluded.head,
         tail = excluded.tail";

const INBOX_OUT: &str = "DELETE FROM inbox i
     USING unnest($1::smallint[], $2::bigint[]) AS u(shard, seq)
     WHERE i.shard = u.shard AND i.seq = u.seq";

const INBOX_IN: &str =
    "INSERT INTO inbox (shard, seq) SELECT * FROM unnest($1::smallint[], $2::bigint[])";

const STATS: &str = "INSERT INTO stats (minute, shard, rows)
     SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::text[])";

/// Counters of one store; in order, so that two of one place do not wait for each other crosswise.
pub(super) const COUNT: &str = "INSERT INTO counters (queue, state, slot, n)
     SELECT u.queue, u.state, $3::smallint, u.n
     FROM unnest($1::integer[], $2::smallint[], $4::bigint[]) AS u(queue, state, n)
     ON CONFLICT (queue, state, slot) DO UPDATE SET n = counters.n + excluded.n";

const NOTIFY: &str = "SELECT pg_notify($1, $2)";

// Joins, because the planner may answer an EXISTS by reading all of a table that was small once.
const NEW_IDS: &str = "SELECT 1 FROM unnest($1::integer[], $2::uuid[]) AS u(namespace, id)
     JOIN history_succeeded t ON t.id = u.id AND t.namespace = u.namespace
     UNION ALL SELECT 1 FROM unnest($1::integer[], $2::uuid[]) AS u(namespace, id)
     JOIN history_other t ON t.id = u.id AND t.namespace = u.namespace
     LIMIT 1";

const NEW_OCCURRENCES: &str = "SELECT 1
     FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS u(uid, origin, logical)
     JOIN history_succeeded t
         ON t.schedule_uid = u.uid AND t.origin = u.origin AND t.logical = u.logical
     UNION ALL SELECT 1
     FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS u(uid, origin, logical)
     JOIN history_other t
         ON t.schedule_uid = u.uid AND t.origin = u.origin AND t.logical = u.logical
     LIMIT 1";

/// What belongs to a store and not to a batch.
pub(super) struct Own<'a> {
    /// Its place among the counters.
    pub(super) slot: i16,
    /// Where nudges are sent to.
    pub(super) channel: &'a str,
}

/// What must be true of a statement's answer.
enum Must {
    Change(usize),
    FindNone,
    Nothing,
}

/// Statements to send together, each with what must be true of its answer.
#[derive(Default)]
struct Plan<'a> {
    calls: Vec<Call<'a>>,
    musts: Vec<Must>,
}

impl<'a> Plan<'a> {
    fn add(&mut self, must: Must, sql: &'static str, params: &[Param<'a>]) {
        self.calls.push(call(sql, params));
        self.musts.push(must);
    }

    fn send(self, conn: &mut Connection) -> Result<(), Failure> {
        if self.calls.is_empty() {
            return Ok(());
        }
        for (must, answer) in self.musts.into_iter().zip(conn.all(&self.calls)?) {
            let met = match must {
                Must::Change(rows) => answer.affected == rows as u64,
                Must::FindNone => answer.rows.is_empty(),
                Must::Nothing => true,
            };
            if !met {
                return Err(Failure::Stale);
            }
        }
        Ok(())
    }
}

/// Writes everything that `work` holds. `Stale` when somebody else was in the way.
pub(super) fn flush(conn: &mut Connection, work: &Work<'_>, own: &Own<'_>) -> Result<(), Failure> {
    let mut entries: Vec<&Entry> = work.entries.values().filter(|entry| entry.changed).collect();
    entries.sort_unstable_by_key(|entry| entry.task.seq);
    let going = Going::of(&entries)?;
    let edited = |e: &&&Entry| e.edited && e.place != Place::Gone && base_of(e).is_some();
    let edits = entries.iter().filter(edited);
    let edits =
        edits.map(|entry| Edit::of(entry)).collect::<Result<Vec<Edit<'_>>, StoreError>>()?;
    let past = Past::of(&entries)?;
    let advance = Advance::of(work)?;
    let mut plan = Plan::default();
    going.plan(&mut plan);
    edits.iter().for_each(|edit| edit.plan(&mut plan));
    going.plan_finish(&mut plan);
    advance.plan(&mut plan);
    past.iter().for_each(|row| row.plan(&mut plan));
    plan.send(conn)?;

    let coming = Coming::of(&entries)?;
    if coming.count > 0 && conn.copy(COPY, coming.rows.clone())? != coming.count {
        return Err(Failure::Stale);
    }

    let staying = Staying::of(&entries)?;
    let beside = Beside::of(work, own)?;
    let mut plan = Plan::default();
    coming.plan(&mut plan);
    staying.plan(&mut plan);
    beside.plan(&mut plan);
    plan.send(conn)
}

fn joined(attempts: &[AttemptRecord]) -> Result<String, StoreError> {
    let texts = attempts.iter().map(json).collect::<Result<Vec<String>, StoreError>>()?;
    Ok(texts.join(","))
}

/// Texts of rows that are gathered by column.
fn owned(text: &Option<String>) -> Option<String> {
    text.as_deref().map(|text| encode(text).into_owned())
}

fn base_of(entry: &Entry) -> Option<i32> {
    match entry.base {
        Base::Stored(version) => Some(version.cast_signed()),
        _ => None,
    }
}

/// Rows of `tasks` that end, one history table at a time.
#[derive(Default)]
struct Finish {
    seqs: Vec<i64>,
    bases: Vec<i32>,
    versions: Vec<i32>,
    states: Vec<i16>,
    attempts: Vec<i32>,
    lost: Vec<i32>,
    released: Vec<i32>,
    finished: Vec<i64>,
    reasons: Vec<Option<String>>,
    skipped: Vec<Option<String>>,
    added: Vec<String>,
    said: Vec<Option<String>>,
    places: Vec<i32>,
    dues: Vec<i64>,
    first_dues: Vec<i64>,
}

/// What leaves a table.
#[derive(Default)]
struct Going {
    finish: [Finish; 2],
    discarded: Vec<i64>,
    discarded_bases: Vec<i32>,
    payloads: Vec<i64>,
    forget: [Vec<i64>; 2],
}

impl Going {
    fn of(entries: &[&Entry]) -> Result<Going, StoreError> {
        let mut going = Going::default();
        for entry in entries {
            let task = &entry.task;
            if let Base::History(succeeded, fin) = entry.base {
                going.forget[usize::from(!succeeded)].push(fin);
            }
            let small = task.spec.payload.as_ref().is_none_or(|text| text.len() <= LARGE);
            let shrunk = small && matches!(entry.base, Base::History(..));
            if entry.large && (entry.place == Place::Gone || shrunk) {
                going.payloads.push(task.seq.0);
            }
            let Some(base) = base_of(entry) else { continue };
            match entry.place {
                Place::Live => {}
                Place::Gone => {
                    going.discarded.push(task.seq.0);
                    going.discarded_bases.push(base);
                }
                Place::Ended(place) => {
                    let to = &mut going.finish[usize::from(task.state != State::Succeeded)];
                    to.seqs.push(task.seq.0);
                    to.bases.push(base);
                    to.versions.push(task.version.cast_signed());
                    to.states.push(task.state as i16);
                    to.attempts.push(task.attempt.cast_signed());
                    to.lost.push(task.lost.cast_signed());
                    to.released.push(task.released.cast_signed());
                    to.finished.push(task.finished_at.map_or(0, |at| at.0));
                    to.reasons.push(owned(&task.outcome_reason));
                    to.skipped.push(task.skipped.as_ref().map(json).transpose()?);
                    to.added.push(joined(&task.attempts)?);
                    to.said.push(owned(&task.progress));
                    to.places.push(i32::try_from(place).unwrap_or(i32::MAX));
                    to.dues.push(task.due.0);
                    to.first_dues.push(task.first_due.0);
                }
            }
        }
        Ok(going)
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) {
        for (fins, sql) in self.forget.iter().zip(FORGET) {
            if !fins.is_empty() {
                plan.add(Must::Change(fins.len()), sql, &[fins]);
            }
        }
        if !self.discarded.is_empty() {
            let must = Must::Change(self.discarded.len());
            plan.add(must, DISCARD, &[&self.discarded, &self.discarded_bases]);
        }
        if !self.payloads.is_empty() {
            plan.add(Must::Nothing, DROP_PAYLOADS, &[&self.payloads]);
        }
    }

    fn plan_finish<'a>(&'a self, plan: &mut Plan<'a>) {
        for (rows, sql) in self.finish.iter().zip(FINISH) {
            if !rows.seqs.is_empty() {
                let params: [Param<'a>; 15] = [
                    &rows.seqs,
                    &rows.bases,
                    &rows.versions,
                    &rows.states,
                    &rows.attempts,
                    &rows.lost,
                    &rows.released,
                    &rows.finished,
                    &rows.reasons,
                    &rows.skipped,
                    &rows.added,
                    &rows.said,
                    &rows.places,
                    &rows.dues,
                    &rows.first_dues,
                ];
                plan.add(Must::Change(rows.seqs.len()), sql, &params);
            }
        }
    }
}

/// The columns of a definition.
struct Definition<'a> {
    task: &'a Task,
    stub: Stub,
    flags: i16,
    npri: i16,
    kind: Text<'a>,
    rest: String,
    small: Option<Text<'a>>,
    large: Option<&'a str>,
}

impl<'a> Definition<'a> {
    fn of(task: &'a Task) -> Result<Definition<'a>, StoreError> {
        // Whether it lost attempts is a column of its own.
        let stub = Stub::new(
            task.seq,
            task.version,
            task.due,
            task.partition,
            &task.spec,
            task.schedule.as_ref(),
            task.attempt,
            0,
        );
        let StubFlags(flags) = stub.flags;
        let payload = task.spec.payload.as_deref();
        let large = payload.filter(|payload| payload.len() > LARGE);
        Ok(Definition {
            task,
            stub,
            flags: i16::from(flags),
            npri: i16::from(task.spec.priority).saturating_neg(),
            kind: Text(&task.spec.kind),
            rest: rest_json(&task.spec)?,
            small: payload.filter(|_| large.is_none()).map(Text),
            large,
        })
    }
}

/// A task whose definition changed.
struct Edit<'a> {
    seq: i64,
    seqs: Vec<i64>,
    kind_hash: i64,
    expires: Option<i64>,
    weight: i32,
    is_large: bool,
    was_large: bool,
    large: Option<Vec<Text<'a>>>,
    definition: Definition<'a>,
}

impl<'a> Edit<'a> {
    fn of(entry: &'a Entry) -> Result<Edit<'a>, StoreError> {
        let definition = Definition::of(&entry.task)?;
        let seq = entry.task.seq.0;
        Ok(Edit {
            seq,
            seqs: vec![seq],
            kind_hash: definition.stub.kind_hash.cast_signed(),
            expires: entry.task.spec.expires_at.map(|at| at.0),
            weight: definition.stub.bytes.cast_signed(),
            is_large: definition.large.is_some(),
            was_large: entry.large,
            large: definition.large.map(|text| vec![Text(text)]),
            definition,
        })
    }

    fn plan<'p>(&'p self, plan: &mut Plan<'p>) {
        let definition = &self.definition;
        let params: [Param<'p>; 10] = [
            &self.seq,
            &definition.kind,
            &self.kind_hash,
            &definition.npri,
            &definition.flags,
            &self.expires,
            &self.weight,
            &self.is_large,
            &definition.rest,
            &definition.small,
        ];
        plan.add(Must::Change(1), EDIT, &params);
        match &self.large {
            Some(large) => plan.add(Must::Nothing, PAYLOADS, &[&self.seqs, large]),
            None if self.was_large => plan.add(Must::Nothing, DROP_PAYLOADS, &[&self.seqs]),
            None => {}
        }
    }
}

/// Schedules that move on.
#[derive(Default)]
struct Advance {
    uids: Vec<Uuid>,
    bases: Vec<i32>,
    versions: Vec<i32>,
    cursors: Vec<String>,
}

impl Advance {
    fn of(work: &Work<'_>) -> Result<Advance, StoreError> {
        let mut advance = Advance::default();
        for (uid, moved) in &work.schedules {
            let Some(cursor) = &moved.cursor else { continue };
            advance.uids.push(Uuid::from_u128(*uid));
            advance.bases.push(moved.stored.cast_signed());
            advance.versions.push(moved.version.cast_signed());
            advance.cursors.push(json(cursor)?);
        }
        Ok(advance)
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) {
        if !self.uids.is_empty() {
            let params: [Param<'a>; 4] = [&self.uids, &self.bases, &self.versions, &self.cursors];
            plan.add(Must::Change(self.uids.len()), ADVANCE, &params);
        }
    }
}

/// A task that is new in `tasks`, or was in history, and is over already.
struct Past<'a> {
    table: usize,
    seqs: Vec<i64>,
    numbers: [i64; 6],
    maybe: [Option<i64>; 2],
    id: Uuid,
    uid: Option<Uuid>,
    small: [i32; 7],
    smaller: [i16; 3],
    is_large: bool,
    texts: [Option<String>; 3],
    names: [Option<Text<'a>>; 4],
    attempts: String,
    large: Option<Vec<Text<'a>>>,
    definition: Definition<'a>,
}

impl<'a> Past<'a> {
    fn of(entries: &[&'a Entry]) -> Result<Vec<Past<'a>>, StoreError> {
        let ended = entries.iter().filter(|e| !matches!(e.base, Base::Stored(_)));
        let mut ended: Vec<(usize, &'a Entry)> = ended
            .filter_map(|entry| match entry.place {
                Place::Ended(place) => Some((place, *entry)),
                _ => None,
            })
            .collect();
        ended.sort_by_key(|entry| entry.0);
        ended.into_iter().map(|(_, entry)| Past::row(&entry.task)).collect()
    }

    fn row(task: &'a Task) -> Result<Past<'a>, StoreError> {
        let definition = Definition::of(task)?;
        let link = task.schedule.as_ref();
        Ok(Past {
            table: usize::from(task.state != State::Succeeded),
            seqs: vec![task.seq.0],
            numbers: [
                task.seq.0,
                task.due.0,
                task.first_due.0,
                task.created_at.0,
                task.finished_at.map_or(0, |at| at.0),
                link.map_or(0, |link| link.logical.0),
            ],
            maybe: [task.spec.expires_at.map(|at| at.0), task.fingerprint.map(u64::cast_signed)],
            id: Uuid::from_u128(task.id.0),
            uid: link.map(|link| Uuid::from_u128(link.uid)),
            small: [
                task.namespace.0.cast_signed(),
                task.queue().0.cast_signed(),
                i32::from(task.partition.index),
                task.version.cast_signed(),
                task.attempt.cast_signed(),
                task.lost.cast_signed(),
                task.released.cast_signed(),
            ],
            smaller: [i16::from(task.shard.0), task.state as i16, definition.npri],
            is_large: definition.large.is_some(),
            texts: [
                owned(&task.outcome_reason),
                task.skipped.as_ref().map(json).transpose()?,
                owned(&task.progress),
            ],
            names: [
                maybe(&task.spec.key),
                maybe(&task.spec.concurrency_key),
                link.map(|link| Text(&link.origin)),
                link.map(|link| Text(&link.name)),
            ],
            attempts: joined(&task.attempts)?,
            large: definition.large.map(|text| vec![Text(text)]),
            definition,
        })
    }

    fn plan<'p>(&'p self, plan: &mut Plan<'p>) {
        let link = self.definition.task.schedule.as_ref();
        let nothing: Param<'p> = &None::<i64>;
        let params: [Param<'p>; 32] = [
            &self.numbers[0],
            &self.numbers[1],
            &self.numbers[2],
            &self.numbers[3],
            &self.numbers[4],
            &self.maybe[0],
            &self.maybe[1],
            if link.is_some() { &self.numbers[5] } else { nothing },
            &self.id,
            &self.uid,
            &self.small[0],
            &self.small[1],
            &self.small[2],
            &self.small[3],
            &self.small[4],
            &self.small[5],
            &self.small[6],
            &self.smaller[0],
            &self.smaller[1],
            &self.smaller[2],
            &self.is_large,
            &self.definition.kind,
            &self.names[0],
            &self.names[1],
            &self.names[2],
            &self.names[3],
            &self.texts[0],
            &self.texts[1],
            &self.texts[2],
            &self.attempts,
            &self.definition.rest,
            &self.definition.small,
        ];
        plan.add(Must::Change(1), PAST[self.table], &params);
        if let Some(large) = &self.large {
            plan.add(Must::Nothing, PAYLOADS, &[&self.seqs, large]);
        }
    }
}

/// Rows that are new in `tasks`.
struct Coming<'a> {
    rows: Bytes,
    count: u64,
    large_seqs: Vec<i64>,
    large: Vec<Text<'a>>,
    namespaces: Vec<i32>,
    ids: Vec<Uuid>,
    uids: Vec<Uuid>,
    origins: Vec<Text<'a>>,
    logicals: Vec<i64>,
}

impl<'a> Coming<'a> {
    fn of(entries: &[&'a Entry]) -> Result<Coming<'a>, StoreError> {
        let mut coming = Coming {
            rows: Bytes::new(),
            count: 0,
            large_seqs: Vec::new(),
            large: Vec::new(),
            namespaces: Vec::new(),
            ids: Vec::new(),
            uids: Vec::new(),
            origins: Vec::new(),
            logicals: Vec::new(),
        };
        let mut rows = Rows::new(COPY_COLUMNS);
        for entry in entries.iter().filter(|e| !matches!(e.base, Base::Stored(_))) {
            let task = &entry.task;
            if entry.base == Base::Fresh && entry.place != Place::Gone {
                coming.namespaces.push(task.namespace.0.cast_signed());
                coming.ids.push(Uuid::from_u128(task.id.0));
                if let Some(link) = &task.schedule {
                    coming.uids.push(Uuid::from_u128(link.uid));
                    coming.origins.push(Text(&link.origin));
                    coming.logicals.push(link.logical.0);
                }
            }
            if entry.place == Place::Live {
                let definition = Definition::of(task)?;
                if let Some(large) = definition.large {
                    coming.large_seqs.push(task.seq.0);
                    coming.large.push(Text(large));
                }
                copy_row(&mut rows, entry, &definition)?;
            }
        }
        coming.count = rows.count;
        coming.rows = rows.finish();
        Ok(coming)
    }

    fn plan<'p>(&'p self, plan: &mut Plan<'p>) {
        if !self.large.is_empty() {
            plan.add(Must::Nothing, PAYLOADS, &[&self.large_seqs, &self.large]);
        }
        if !self.ids.is_empty() {
            plan.add(Must::FindNone, NEW_IDS, &[&self.namespaces, &self.ids]);
        }
        if !self.uids.is_empty() {
            let params: [Param<'p>; 3] = [&self.uids, &self.origins, &self.logicals];
            plan.add(Must::FindNone, NEW_OCCURRENCES, &params);
        }
    }
}

fn copy_row(rows: &mut Rows, entry: &Entry, of: &Definition<'_>) -> Result<(), StoreError> {
    let task = &entry.task;
    let link = task.schedule.as_ref();
    rows.row()
        .i64(task.seq.0)
        .i64(task.due.0)
        .i64(task.first_due.0)
        .i64(task.created_at.0)
        .maybe_i64(task.spec.expires_at.map(|at| at.0))
        .maybe_i64(task.fingerprint.map(u64::cast_signed))
        .i64(of.stub.concurrency_hash.cast_signed())
        .i64(of.stub.kind_hash.cast_signed())
        .maybe_i64(link.map(|link| link.logical.0))
        .uuid(task.id.0)
        .maybe_uuid(link.map(|link| link.uid))
        .u32(task.namespace.0)
        .u32(task.queue().0)
        .u32(u32::from(task.partition.index))
        .u32(task.version)
        .u32(task.attempt)
        .u32(task.lost)
        .u32(task.released)
        .u32(of.stub.bytes)
        .i16(i16::from(task.shard.0))
        .i16(task.state as i16)
        .i16(of.npri)
        .i16(of.flags)
        .bool(entry.overdue)
        .bool(task.cancel_requested)
        .bool(of.large.is_some())
        .bool(entry.inbox)
        .text(&task.spec.kind)
        .maybe_text(task.spec.key.as_deref())
        .maybe_text(task.spec.concurrency_key.as_deref())
        .maybe_text(link.map(|link| link.origin.as_str()))
        .maybe_text(link.map(|link| link.name.as_str()))
        .maybe_text(task.open.as_ref().map(json).transpose()?.as_deref())
        .maybe_text(task.progress.as_deref())
        .text(&joined(&task.attempts)?)
        .text(&of.rest)
        .maybe_text(of.small.map(|text| text.0));
    Ok(())
}

/// Rows of `tasks` that change.
#[derive(Default)]
struct Staying {
    seqs: Vec<i64>,
    bases: Vec<i32>,
    versions: Vec<i32>,
    states: Vec<i16>,
    overdue: Vec<bool>,
    attempts: Vec<i32>,
    lost: Vec<i32>,
    released: Vec<i32>,
    cancel: Vec<bool>,
    dues: Vec<i64>,
    first_dues: Vec<i64>,
    open: Vec<Option<String>>,
    added: Vec<String>,
    said: Vec<Option<String>>,
}

impl Staying {
    fn of(entries: &[&Entry]) -> Result<Staying, StoreError> {
        let mut to = Staying::default();
        for entry in entries.iter().filter(|entry| entry.place == Place::Live) {
            let Some(base) = base_of(entry) else { continue };
            let task = &entry.task;
            to.seqs.push(task.seq.0);
            to.bases.push(base);
            to.versions.push(task.version.cast_signed());
            to.states.push(task.state as i16);
            to.overdue.push(entry.overdue);
            to.attempts.push(task.attempt.cast_signed());
            to.lost.push(task.lost.cast_signed());
            to.released.push(task.released.cast_signed());
            to.cancel.push(task.cancel_requested);
            to.dues.push(task.due.0);
            to.first_dues.push(task.first_due.0);
            to.open.push(task.open.as_ref().map(json).transpose()?);
            to.added.push(joined(&task.attempts)?);
            to.said.push(owned(&task.progress));
        }
        Ok(to)
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) {
        if !self.seqs.is_empty() {
            let params: [Param<'a>; 14] = [
                &self.seqs,
                &self.bases,
                &self.versions,
                &self.states,
                &self.overdue,
                &self.attempts,
                &self.lost,
                &self.released,
                &self.cancel,
                &self.dues,
                &self.first_dues,
                &self.open,
                &self.added,
                &self.said,
            ];
            plan.add(Must::Change(self.seqs.len()), UPDATE, &params);
        }
    }
}

/// What is not a task.
#[derive(Default)]
struct Beside<'a> {
    output_seqs: Vec<i64>,
    output_attempts: Vec<i32>,
    totals: Vec<i64>,
    heads: Vec<&'a [u8]>,
    tails: Vec<&'a [u8]>,
    out_shards: Vec<i16>,
    out_seqs: Vec<i64>,
    in_shards: Vec<i16>,
    in_seqs: Vec<i64>,
    minutes: Vec<i64>,
    stat_shards: Vec<i16>,
    stats: Vec<String>,
    queues: Vec<i32>,
    states: Vec<i16>,
    counts: Vec<i64>,
    slot: i16,
    channel: &'a str,
    nudge: String,
}

impl<'a> Beside<'a> {
    fn of(work: &Work<'a>, own: &Own<'a>) -> Result<Beside<'a>, StoreError> {
        let mut beside = Beside { slot: own.slot, channel: own.channel, ..Beside::default() };
        // The last of an attempt counts; one statement may not write it twice.
        let outputs = work.effects.outputs.iter().map(|(seq, n, output)| ((seq.0, *n), *output));
        for ((seq, n), output) in outputs.collect::<std::collections::BTreeMap<_, _>>() {
            beside.output_seqs.push(seq);
            beside.output_attempts.push(n.cast_signed());
            beside.totals.push(i64::try_from(output.total).unwrap_or(i64::MAX));
            beside.heads.push(&output.head);
            beside.tails.push(&output.tail);
        }
        for (shard, seq) in &work.effects.inbox_out {
            beside.out_shards.push(i16::from(shard.0));
            beside.out_seqs.push(seq.0);
        }
        let gone: HashSet<_> = work.effects.inbox_out.iter().collect();
        let mut nudged = std::collections::BTreeSet::new();
        for (shard, seq) in &work.effects.inbox_in {
            if !gone.contains(&(*shard, *seq))
                && work.entries.get(seq).is_some_and(|e| e.place == Place::Live)
            {
                beside.in_shards.push(i16::from(shard.0));
                beside.in_seqs.push(seq.0);
                nudged.insert(shard.0.to_string());
            }
        }
        beside.nudge = nudged.into_iter().collect::<Vec<_>>().join(",");
        for delta in &work.effects.stats {
            beside.minutes.push(delta.minute);
            beside.stat_shards.push(i16::from(delta.shard.0));
            beside.stats.push(json(&delta.rows)?);
        }
        for ((queue, state), n) in work.counts() {
            beside.queues.push(queue.0.cast_signed());
            beside.states.push(state as i16);
            beside.counts.push(n);
        }
        Ok(beside)
    }

    fn plan<'p>(&'p self, plan: &mut Plan<'p>) {
        if !self.output_seqs.is_empty() {
            let params: [Param<'p>; 5] =
                [&self.output_seqs, &self.output_attempts, &self.totals, &self.heads, &self.tails];
            plan.add(Must::Nothing, OUTPUTS, &params);
        }
        if !self.out_seqs.is_empty() {
            plan.add(Must::Nothing, INBOX_OUT, &[&self.out_shards, &self.out_seqs]);
        }
        if !self.in_seqs.is_empty() {
            plan.add(Must::Nothing, INBOX_IN, &[&self.in_shards, &self.in_seqs]);
            plan.add(Must::Nothing, NOTIFY, &[&self.channel, &self.nudge]);
        }
        if !self.stats.is_empty() {
            plan.add(Must::Nothing, STATS, &[&self.minutes, &self.stat_shards, &self.stats]);
        }
        if !self.queues.is_empty() {
            let params: [Param<'p>; 4] = [&self.queues, &self.states, &self.slot, &self.counts];
            plan.add(Must::Nothing, COUNT, &params);
        }
    }
}
