//! Tasks that are new, or live again: by `COPY`. Then history is asked whether they were new indeed.

use bytes::Bytes;
use uuid::Uuid;

use crate::encoding::json;
use crate::error::StoreError;

use super::super::connection::Param;
use super::super::copy::Rows;
use super::super::text::Text;
use super::super::work::{Base, Entry, Place};
use super::definition::{Definition, PAYLOADS};
use super::{Must, Plan, joined};

pub(super) const COPY: &str = "COPY tasks (seq, due, first_due, created_at, expires, fingerprint,
     concurrency_hash, kind_hash, logical, id, schedule_uid, namespace, queue, part, version, attempt,
     lost, released, weight, shard, state, npri, flags, overdue, cancel_requested, large, inbox, kind,
     task_key, concurrency_key, origin, schedule_name, open, progress, attempts, spec, payload)
     FROM STDIN BINARY";

const COPY_COLUMNS: i16 = 37;

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

/// Rows that are new in `tasks`.
pub(super) struct Coming<'a> {
    pub(super) rows: Bytes,
    pub(super) count: u64,
    large_seqs: Vec<i64>,
    large: Vec<Text<'a>>,
    namespaces: Vec<i32>,
    ids: Vec<Uuid>,
    uids: Vec<Uuid>,
    origins: Vec<Text<'a>>,
    logicals: Vec<i64>,
}

impl<'a> Coming<'a> {
    pub(super) fn of(entries: &[&'a Entry]) -> Result<Coming<'a>, StoreError> {
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

    pub(super) fn plan<'p>(&'p self, plan: &mut Plan<'p>) {
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
