//! The columns that hold a task's definition, and tasks whose definition changed.

use crate::encoding::{LARGE, rest_json};
use crate::error::StoreError;
use crate::task::{Stub, StubFlags, Task};

use super::super::connection::Param;
use super::super::text::Text;
use super::super::work::Entry;
use super::{Must, Plan};

/// The definition only: what else changed is written by statements that compare the version.
const EDIT: &str =
    "UPDATE tasks SET kind = $2, kind_hash = $3, npri = $4, flags = $5, expires = $6,
         weight = $7, large = $8, spec = $9, payload = $10 WHERE seq = $1";

pub(super) const PAYLOADS: &str = "INSERT INTO payloads (seq, payload)
     SELECT * FROM unnest($1::bigint[], $2::text[])
     ON CONFLICT (seq) DO UPDATE SET payload = excluded.payload";

pub(super) const DROP_PAYLOADS: &str = "DELETE FROM payloads WHERE seq = ANY($1)";

/// The columns of a definition.
pub(super) struct Definition<'a> {
    pub(super) task: &'a Task,
    pub(super) stub: Stub,
    pub(super) flags: i16,
    pub(super) npri: i16,
    pub(super) kind: Text<'a>,
    pub(super) rest: String,
    pub(super) small: Option<Text<'a>>,
    pub(super) large: Option<&'a str>,
}

impl<'a> Definition<'a> {
    pub(super) fn of(task: &'a Task) -> Result<Definition<'a>, StoreError> {
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
pub(super) struct Edit<'a> {
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
    pub(super) fn of(entry: &'a Entry) -> Result<Edit<'a>, StoreError> {
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

    pub(super) fn plan<'p>(&'p self, plan: &mut Plan<'p>) {
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
