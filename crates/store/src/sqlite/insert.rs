//! Creating tasks: what is looked at first, and the row.

use crate::id::{NamespaceId, Partition, QueueId, Seq, Shard, TaskId};
use crate::state::State;
use crate::task::{NewTask, ScheduleLink, Stub, TaskSpec};
use crate::time::Time;
use crate::write::{Done, Refusal};

use super::row::{LARGE, rest_json, u128_of};
use super::writer::{Stop, Tx};

/// See [`Tx::insert_row`] for what the numbers are.
const INSERT: &str =
    "INSERT INTO tasks (seq, id, namespace, queue, part, shard, state, overdue, version,
     npri, flags, attempt, lost, released, cancel_requested, large, kind, bucket, fine, due,
     first_due, created_at, expires, weight, fingerprint, concurrency_hash, task_key,
     concurrency_key, schedule_uid, origin, logical, schedule_name, progress,
     attempts, spec, payload)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, ?7, ?8, ?9, ?10, ?11, ?12, 0, ?13, ?14, ?15,
     ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31,
     ?32, ?33)";

/// A row to insert.
pub(super) struct NewRow<'a> {
    pub(super) seq: Seq,
    pub(super) id: TaskId,
    pub(super) namespace: NamespaceId,
    pub(super) partition: Partition,
    pub(super) shard: Shard,
    pub(super) version: u32,
    pub(super) due: Time,
    pub(super) first_due: Time,
    pub(super) created_at: Time,
    pub(super) attempt: u32,
    pub(super) lost: u32,
    pub(super) released: u32,
    pub(super) fingerprint: Option<u64>,
    pub(super) spec: &'a TaskSpec,
    pub(super) schedule: Option<&'a ScheduleLink>,
    pub(super) progress: Option<&'a str>,
    pub(super) attempts: &'a str,
    /// Its large payload is in its table already.
    pub(super) payload_kept: bool,
}

/// An id as it is stored.
pub(super) fn id_blob(id: &TaskId) -> [u8; 16] {
    id.0.to_be_bytes()
}

/// Whether an id is a UUID of version 7, as servers make them.
fn is_version_7(id: TaskId) -> bool {
    (id.0 >> 76) & 0xf == 7 && (id.0 >> 62) & 0b11 == 0b10
}

impl Tx<'_> {
    pub(super) fn insert(&mut self, new: &NewTask) -> Result<Done, Stop> {
        let queue = self.known.catalog.queues.get(&new.partition.queue);
        if queue.is_none_or(|queue| queue.namespace != new.namespace) {
            return Err(Refusal::Conflict.into());
        }
        let existing = self.fingerprint(new.namespace, new.id)?;
        if let (Some(Some(fingerprint)), Some(asked)) = (existing, new.fingerprint)
            && fingerprint == asked
        {
            return Ok(Done::Same(new.id));
        }
        if let Some(link) = &new.schedule
            && self.occurrence_exists(link)?
        {
            return Err(Refusal::Exists.into());
        }
        if existing.is_some() {
            return Err(Refusal::IdReused.into());
        }
        if let Some(key) = &new.spec.key
            && let Some(holder) = self.key_holder(new.partition.queue, key)?
        {
            return if new.keep_existing {
                Ok(Done::Kept(holder))
            } else {
                Err(Refusal::KeyTaken(holder).into())
            };
        }
        let seq = Seq(self.known.next_seq);
        self.insert_row(&NewRow {
            seq,
            id: new.id,
            namespace: new.namespace,
            partition: new.partition,
            shard: new.shard,
            version: 0,
            due: new.due,
            first_due: new.due,
            created_at: new.created_at,
            attempt: 0,
            lost: 0,
            released: 0,
            fingerprint: new.fingerprint,
            spec: &new.spec,
            schedule: new.schedule.as_ref(),
            progress: None,
            attempts: "",
            payload_kept: false,
        })?;
        self.known.next_seq += 1;
        if new.inbox {
            self.conn
                .prepare_cached("INSERT INTO inbox (shard, seq) VALUES (?1, ?2)")?
                .execute((new.shard.0, seq.0))?;
            self.changes.inbox += 1;
        }
        Ok(Done::Inserted(seq))
    }

    /// Whether an id exists, live or in history, and its fingerprint.
    fn fingerprint(&self, namespace: NamespaceId, id: TaskId) -> Result<Option<Option<u64>>, Stop> {
        if is_version_7(id) && id.0 > self.known.max_id {
            return Ok(None);
        }
        for sql in [
            "SELECT fingerprint FROM tasks WHERE namespace = ?1 AND id = ?2",
            "SELECT fingerprint FROM history_succeeded WHERE namespace = ?1 AND id = ?2",
            "SELECT fingerprint FROM history_other WHERE namespace = ?1 AND id = ?2",
        ] {
            let mut select = self.conn.prepare_cached(sql)?;
            let mut rows = select.query((namespace.0, id_blob(&id)))?;
            if let Some(row) = rows.next()? {
                return Ok(Some(row.get::<_, Option<i64>>(0)?.map(|f| f as u64)));
            }
        }
        Ok(None)
    }

    fn occurrence_exists(&self, link: &ScheduleLink) -> Result<bool, Stop> {
        for sql in [
            "SELECT 1 FROM tasks WHERE schedule_uid = ?1 AND origin = ?2 AND logical = ?3",
            "SELECT 1 FROM history_succeeded
             WHERE schedule_uid = ?1 AND origin = ?2 AND logical = ?3",
            "SELECT 1 FROM history_other
             WHERE schedule_uid = ?1 AND origin = ?2 AND logical = ?3",
        ] {
            let mut select = self.conn.prepare_cached(sql)?;
            if select.exists((link.uid.to_be_bytes(), &link.origin, link.logical.0))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn key_holder(&self, queue: QueueId, key: &str) -> Result<Option<TaskId>, Stop> {
        let mut select =
            self.conn.prepare_cached("SELECT id FROM tasks WHERE task_key = ?1 AND queue = ?2")?;
        let mut rows = select.query((key, queue.0))?;
        match rows.next()? {
            Some(row) => Ok(Some(TaskId(u128_of(row.get_ref(0)?)?))),
            None => Ok(None),
        }
    }

    pub(super) fn insert_row(&mut self, new: &NewRow<'_>) -> Result<(), Stop> {
        let kind = self.kind(&new.spec.kind)?;
        let stub = Stub::new(
            new.seq,
            new.version,
            new.due,
            new.partition,
            new.spec,
            new.schedule,
            new.attempt,
            0,
        );
        let payload = new.spec.payload.as_deref();
        let large = payload.filter(|payload| payload.len() > LARGE);
        let uid = new.schedule.map(|link| link.uid.to_be_bytes());
        let rest = rest_json(new.spec)?;
        let slot = self.known.density.place(new.due);
        let id = id_blob(&new.id);
        let fingerprint = new.fingerprint.map(|f| f as i64);
        let logical = new.schedule.map(|link| link.logical.0);
        let params: [&dyn rusqlite::ToSql; 33] = [
            &new.seq.0,
            &id,
            &new.namespace.0,
            &new.partition.queue.0,
            &new.partition.index,
            &new.shard.0,
            &new.version,
            &new.spec.priority.saturating_neg(),
            &stub.flags.0,
            &new.attempt,
            &new.lost,
            &new.released,
            &large.is_some(),
            &kind,
            &slot.bucket,
            &slot.fine,
            &new.due.0,
            &new.first_due.0,
            &new.created_at.0,
            &new.spec.expires_at.map(|at| at.0),
            &stub.bytes,
            &fingerprint,
            &(stub.concurrency_hash as i64),
            &new.spec.key,
            &new.spec.concurrency_key,
            &uid,
            &new.schedule.map(|link| &link.origin),
            &logical,
            &new.schedule.map(|link| &link.name),
            &new.progress,
            &new.attempts,
            &rest,
            &payload.filter(|_| large.is_none()),
        ];
        let insert = match &mut self.insert {
            Some(insert) => insert,
            none => none.insert(self.conn.prepare_cached(INSERT)?),
        };
        insert.execute(&params[..])?;
        if is_version_7(new.id) {
            self.known.max_id = self.known.max_id.max(new.id.0);
        }
        if let Some(large) = large.filter(|_| !new.payload_kept) {
            self.put_payload(new.seq, large)?;
        }
        self.count(new.partition.queue, State::Scheduled, 1);
        Ok(())
    }

    pub(super) fn kind(&mut self, name: &str) -> Result<u32, Stop> {
        let (id, created) = self.known.catalog.kind(self.conn, name)?;
        self.changes.catalog |= created;
        Ok(id)
    }

    pub(super) fn put_payload(&self, seq: Seq, payload: &str) -> Result<(), Stop> {
        self.conn
            .prepare_cached("INSERT OR REPLACE INTO payloads (seq, payload) VALUES (?1, ?2)")?
            .execute((seq.0, payload))?;
        Ok(())
    }
}
