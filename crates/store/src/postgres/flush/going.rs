//! What leaves a table: ends, which go to history; what is discarded; what comes back from history.

use crate::encoding::{LARGE, json};
use crate::error::StoreError;
use crate::state::State;

use super::super::connection::Param;
use super::super::work::{Base, Entry, Place};
use super::definition::DROP_PAYLOADS;
use super::{Must, Plan, base_of, joined, owned};

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

const DISCARD: &str =
    "DELETE FROM tasks t USING unnest($1::bigint[], $2::integer[]) AS u(seq, base)
     WHERE t.seq = u.seq AND t.version = u.base";

const FORGET: [&str; 2] = [
    "DELETE FROM history_succeeded WHERE fin = ANY($1)",
    "DELETE FROM history_other WHERE fin = ANY($1)",
];

/// Rows of `tasks` that end, one history table at a time.
#[derive(Default)]
pub(super) struct Finish {
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
pub(super) struct Going {
    finish: [Finish; 2],
    discarded: Vec<i64>,
    discarded_bases: Vec<i32>,
    payloads: Vec<i64>,
    forget: [Vec<i64>; 2],
}

impl Going {
    pub(super) fn of(entries: &[&Entry]) -> Result<Going, StoreError> {
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

    pub(super) fn plan<'a>(&'a self, plan: &mut Plan<'a>) {
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

    pub(super) fn plan_finish<'a>(&'a self, plan: &mut Plan<'a>) {
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
