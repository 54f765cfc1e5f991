//! Writing what came of a part of a batch: the difference between what was read and what is now.
//!
//! In an order in which no unique index is in the way: first what goes (from history, to history,
//! away), then what comes, then what changed. Every statement names the version that was read, and the
//! rows it changed are counted: a row that somebody else changed meanwhile fails the whole, which is
//! done again.
//!
//! What was taken to be new is compared with history after it was inserted: from then on no other
//! connection can insert the same, so what is not in history now never will be.

mod beside;
mod coming;
mod definition;
mod going;
mod past;
mod staying;

use crate::encoding::json;
use crate::error::StoreError;
use crate::task::AttemptRecord;

use super::connection::{Call, Connection, Param, call};
use super::error::Failure;
use super::text::encode;
use super::work::{Base, Entry, Place, Work};

pub(super) use beside::COUNT;
use beside::{Advance, Beside};
use coming::{COPY, Coming};
use definition::Edit;
use going::Going;
use past::Past;
use staying::Staying;

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
