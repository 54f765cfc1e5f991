//! Live tasks that change and stay live.

use crate::encoding::json;
use crate::error::StoreError;

use super::super::connection::Param;
use super::super::work::{Entry, Place};
use super::{Must, Plan, base_of, joined, owned};

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

/// Rows of `tasks` that change.
#[derive(Default)]
pub(super) struct Staying {
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
    pub(super) fn of(entries: &[&Entry]) -> Result<Staying, StoreError> {
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

    pub(super) fn plan<'a>(&'a self, plan: &mut Plan<'a>) {
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
