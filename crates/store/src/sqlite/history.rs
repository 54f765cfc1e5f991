//! Moving tasks to history and back, and retention.

use std::sync::LazyLock;

use rusqlite::OptionalExtension;

use crate::apply;
use crate::id::{NamespaceId, QueueId, Seq, TaskId};
use crate::state::State;
use crate::time::Time;
use crate::write::{Done, Refusal};

use super::insert::{NewRow, id_blob};
use super::live::Head;
use super::row::{self, HISTORY, state_of};
use super::writer::{Stop, Tx};

/// The tables of history: the succeeded, all others.
pub(super) const HISTORIES: [&str; 2] = ["history_succeeded", "history_other"];

/// Copies a live row to each of them, as it is after its end.
static FINISH: LazyLock<[String; 2]> = LazyLock::new(|| {
    HISTORIES.map(|table| {
        format!(
            "INSERT OR ROLLBACK INTO {table} (seq, id, namespace, queue, part, shard, state,
                 version, npri, attempt, lost, released, large, kind, due, first_due, created_at,
                 finished_at, expires, fingerprint, task_key, concurrency_key, schedule_uid,
                 origin, logical, schedule_name, reason, skipped, progress, attempts, spec,
                 payload)
             SELECT seq, id, namespace, queue, part, shard, ?2, version + 1,
                 npri, ?3, lost + ?4, released + ?5, large, kind, due, first_due, created_at,
                 ?6, expires, fingerprint, task_key, concurrency_key, schedule_uid,
                 origin, logical, schedule_name, ?7, ?8, progress,
                 CASE WHEN ?9 IS NULL THEN attempts WHEN attempts = '' THEN ?9
                      ELSE attempts || ',' || ?9 END,
                 spec, payload
             FROM tasks WHERE seq = ?1"
        )
    })
});

/// How a task ends.
pub(super) struct Finish<'a> {
    pub(super) to: State,
    pub(super) at: Time,
    pub(super) attempt: u32,
    pub(super) lost: u32,
    pub(super) released: u32,
    pub(super) record: Option<&'a str>,
    pub(super) reason: Option<&'a str>,
    pub(super) skipped: Option<&'a str>,
}

impl Tx<'_> {
    /// Moves a row to history.
    pub(super) fn finish(
        &mut self,
        seq: Seq,
        head: &Head,
        finish: &Finish<'_>,
    ) -> Result<(), Stop> {
        // A violation of a unique index there would mean a broken invariant; taking the whole
        // transaction back for it spares every such statement a journal of its own.
        let sql = &FINISH[usize::from(finish.to != State::Succeeded)];
        self.conn.prepare_cached(sql)?.execute((
            seq.0,
            finish.to as u8,
            finish.attempt,
            finish.lost,
            finish.released,
            finish.at.0,
            finish.reason,
            finish.skipped,
            finish.record,
        ))?;
        self.remove(seq, head)?;
        self.count(head.queue, finish.to, 1);
        Ok(())
    }

    pub(super) fn redrive(
        &mut self,
        namespace: NamespaceId,
        id: TaskId,
        due: Time,
    ) -> Result<Done, Stop> {
        for table in HISTORIES {
            let sql = format!(
                "SELECT {HISTORY}, payload, fin FROM {table} WHERE namespace = ?1 AND id = ?2"
            );
            let mut select = self.conn.prepare_cached(&sql)?;
            let mut rows = select.query((namespace.0, id_blob(&id)))?;
            let Some(found) = rows.next()? else { continue };
            let catalog = &mut self.known.catalog;
            let mut kind = |id| catalog.kind_name(self.conn, id);
            let (mut task, large) = row::task(found, true, &mut kind)?;
            let fin: i64 = found.get("fin")?;
            let attempts = row::text(found, 24)?.to_owned();
            drop(rows);
            if large {
                let mut select =
                    self.conn.prepare_cached("SELECT payload FROM payloads WHERE seq = ?1")?;
                task.spec.payload = select.query_row([task.seq.0], |row| row.get(0)).optional()?;
            }
            if let Some(key) = &task.spec.key
                && let Some(holder) = self.key_holder(task.queue(), key)?
            {
                return Err(Refusal::KeyTaken(holder).into());
            }
            let was = task.state;
            apply::redrive(&mut task, due)?;
            let sql = format!("DELETE FROM {table} WHERE fin = ?1");
            self.conn.prepare_cached(&sql)?.execute([fin])?;
            self.insert_row(&NewRow {
                seq: task.seq,
                id: task.id,
                namespace: task.namespace,
                partition: task.partition,
                shard: task.shard,
                version: task.version,
                due: task.due,
                first_due: task.first_due,
                created_at: task.created_at,
                attempt: task.attempt,
                lost: task.lost,
                released: task.released,
                fingerprint: task.fingerprint,
                spec: &task.spec,
                schedule: task.schedule.as_ref(),
                progress: task.progress.as_deref(),
                attempts: &attempts,
                payload_kept: large,
            })?;
            self.count(task.queue(), was, -1);
            return Ok(Done::Redriven(Box::new(task)));
        }
        Err(Refusal::Conflict.into())
    }

    pub(super) fn prune(
        &mut self,
        succeeded: bool,
        before: Time,
        limit: u32,
    ) -> Result<Done, Stop> {
        let table = if succeeded { HISTORIES[0] } else { HISTORIES[1] };
        let sql = format!(
            "SELECT fin, finished_at, seq, queue, state, large FROM {table} ORDER BY fin LIMIT ?1"
        );
        let mut last = None;
        let mut gone = 0;
        {
            let mut select = self.conn.prepare_cached(&sql)?;
            let mut outputs = self.conn.prepare_cached("DELETE FROM outputs WHERE seq = ?1")?;
            let mut rows = select.query([limit])?;
            while let Some(row) = rows.next()? {
                if row.get::<_, i64>(1)? >= before.0 {
                    break;
                }
                last = Some(row.get::<_, i64>(0)?);
                let seq = Seq(row.get(2)?);
                outputs.execute([seq.0])?;
                if row.get(5)? {
                    self.drop_payload(seq)?;
                }
                self.changes.counts.push((QueueId(row.get(3)?), state_of(row.get(4)?)?, -1));
                gone += 1;
            }
        }
        if let Some(last) = last {
            let sql = format!("DELETE FROM {table} WHERE fin <= ?1");
            self.conn.prepare_cached(&sql)?.execute([last])?;
        }
        Ok(Done::Pruned(gone))
    }
}
