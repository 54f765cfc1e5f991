//! Tasks that come and end in the same part of a batch: straight into history, one by one. Rare.

use uuid::Uuid;

use crate::encoding::json;
use crate::error::StoreError;
use crate::state::State;
use crate::task::Task;

use super::super::connection::Param;
use super::super::text::{Text, maybe};
use super::super::work::{Base, Entry, Place};
use super::definition::{Definition, PAYLOADS};
use super::{Must, Plan, joined, owned};

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

const PAST: [&str; 2] = [past!("history_succeeded"), past!("history_other")];

/// A task that is new in `tasks`, or was in history, and is over already.
pub(super) struct Past<'a> {
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
    pub(super) fn of(entries: &[&'a Entry]) -> Result<Vec<Past<'a>>, StoreError> {
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

    pub(super) fn plan<'p>(&'p self, plan: &mut Plan<'p>) {
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
