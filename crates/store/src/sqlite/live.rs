//! Writes to live tasks.
//!
//! Each reads the small columns that decide (state, version), then changes the row by its
//! sequence. What a write means is in `apply`; here is the same in columns.

use crate::apply;
use crate::id::{Partition, QueueId, Seq, Shard};
use crate::state::{AttemptOutcome, Move, State, next_state};
use crate::task::{AttemptRecord, OpenAttempt, Output, SkippedRun, Stub, StubFlags, TaskSpec};
use crate::time::Time;
use crate::write::{Done, Refusal, Then};

use super::history::Finish;
use super::row::{LARGE, json, parse, rest_json, state_of};
use super::writer::{Stop, Tx};

/// The columns of a live task that decide what may be done to it.
pub(super) struct Head {
    pub(super) state: State,
    pub(super) version: u32,
    pub(super) queue: QueueId,
    pub(super) shard: Shard,
    pub(super) attempt: u32,
    pub(super) flags: StubFlags,
    pub(super) large: bool,
}

impl Tx<'_> {
    fn head(&self, seq: Seq, version: u32) -> Result<Head, Stop> {
        let mut select = self.conn.prepare_cached(
            "SELECT state, version, queue, shard, attempt, flags, large FROM tasks WHERE seq = ?1",
        )?;
        let mut rows = select.query([seq.0])?;
        let Some(row) = rows.next()? else { return Err(Refusal::Conflict.into()) };
        let head = Head {
            state: state_of(row.get(0)?)?,
            version: row.get(1)?,
            queue: QueueId(row.get(2)?),
            shard: Shard(row.get(3)?),
            attempt: row.get(4)?,
            flags: StubFlags(row.get(5)?),
            large: row.get(6)?,
        };
        if head.version == version { Ok(head) } else { Err(Refusal::Conflict.into()) }
    }

    /// The head and the state after a move.
    fn moved(&self, seq: Seq, version: u32, by: Move) -> Result<(Head, State), Stop> {
        let head = self.head(seq, version)?;
        let to = next_state(head.state, by).ok_or(Refusal::Illegal)?;
        Ok((head, to))
    }

    pub(super) fn start(
        &mut self,
        seq: Seq,
        version: u32,
        open: &OpenAttempt,
    ) -> Result<Done, Stop> {
        let (head, _) = self.moved(seq, version, Move::Start)?;
        self.conn
            .prepare_cached(
                "UPDATE tasks SET state = 1, overdue = 0, version = version + 1, attempt = ?2,
                     cancel_requested = 0, open = ?3 WHERE seq = ?1",
            )?
            .execute((seq.0, open.n, json(open)?))?;
        self.leave_inbox(head.shard, seq)?;
        self.count(head.queue, State::Scheduled, -1);
        self.count(head.queue, State::Running, 1);
        Ok(Done::Ok)
    }

    pub(super) fn end(
        &mut self,
        seq: Seq,
        version: u32,
        attempt: &AttemptRecord,
        output: Option<&Output>,
        then: &Then,
    ) -> Result<Done, Stop> {
        let (head, to) = self.moved(seq, version, apply::end_move(then))?;
        let record = json(attempt)?;
        let lost = u32::from(attempt.outcome == AttemptOutcome::Lost);
        let released = u32::from(attempt.outcome == AttemptOutcome::Released);
        match then {
            Then::Finish { reason, .. } => {
                let finish = Finish {
                    to,
                    at: attempt.ended_at,
                    attempt: attempt.n,
                    lost,
                    released,
                    record: Some(&record),
                    reason: reason.as_deref(),
                    skipped: None,
                };
                self.finish(seq, &head, &finish)?;
            }
            Then::Again { due } => {
                let slot = self.known.density.place(*due);
                self.conn
                    .prepare_cached(
                        "UPDATE tasks SET state = 0, overdue = 0, version = version + 1,
                             attempt = ?2, lost = lost + ?3, released = released + ?4,
                             cancel_requested = 0, open = NULL, due = ?5, bucket = ?6, fine = ?7,
                             attempts = CASE attempts WHEN '' THEN ?8
                                        ELSE attempts || ',' || ?8 END
                         WHERE seq = ?1",
                    )?
                    .execute((
                        seq.0,
                        attempt.n,
                        lost,
                        released,
                        due.0,
                        slot.bucket,
                        slot.fine,
                        &record,
                    ))?;
                self.leave_inbox(head.shard, seq)?;
                self.count(head.queue, head.state, -1);
                self.count(head.queue, to, 1);
            }
        }
        if let Some(output) = output {
            let total = i64::try_from(output.total).unwrap_or(i64::MAX);
            self.conn
                .prepare_cached(
                    "INSERT OR REPLACE INTO outputs (seq, attempt, total, head, tail)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute((seq.0, attempt.n, total, &output.head, &output.tail))?;
        }
        Ok(Done::Ok)
    }

    pub(super) fn close(
        &mut self,
        seq: Seq,
        version: u32,
        to: State,
        at: Time,
        reason: Option<&str>,
        skipped: Option<&SkippedRun>,
    ) -> Result<Done, Stop> {
        let (head, to) = self.moved(seq, version, Move::Close(to))?;
        let skipped = skipped.map(json).transpose()?;
        let finish = Finish {
            to,
            at,
            attempt: head.attempt,
            lost: 0,
            released: 0,
            record: None,
            reason,
            skipped: skipped.as_deref(),
        };
        self.finish(seq, &head, &finish)?;
        Ok(Done::Ok)
    }

    /// Deletes a live row.
    pub(super) fn remove(&mut self, seq: Seq, head: &Head) -> Result<(), Stop> {
        self.conn.prepare_cached("DELETE FROM tasks WHERE seq = ?1")?.execute([seq.0])?;
        self.leave_inbox(head.shard, seq)?;
        self.count(head.queue, head.state, -1);
        Ok(())
    }

    fn leave_inbox(&mut self, shard: Shard, seq: Seq) -> Result<(), Stop> {
        if self.known.inbox + self.changes.inbox > 0 {
            let gone = self
                .conn
                .prepare_cached("DELETE FROM inbox WHERE shard = ?1 AND seq = ?2")?
                .execute((shard.0, seq.0))?;
            self.changes.inbox -= i64::try_from(gone).unwrap_or(0);
        }
        Ok(())
    }

    pub(super) fn take_in(&mut self, shard: Shard, seqs: &[Seq]) -> Result<Done, Stop> {
        for &seq in seqs {
            self.leave_inbox(shard, seq)?;
        }
        Ok(Done::Ok)
    }

    pub(super) fn request_cancel(&mut self, seq: Seq, version: u32) -> Result<Done, Stop> {
        self.moved(seq, version, Move::RequestCancel)?;
        self.conn
            .prepare_cached(
                "UPDATE tasks SET cancel_requested = 1, version = version + 1 WHERE seq = ?1",
            )?
            .execute([seq.0])?;
        Ok(Done::Ok)
    }

    pub(super) fn edit(
        &mut self,
        seq: Seq,
        version: u32,
        due: Time,
        spec: &TaskSpec,
    ) -> Result<Done, Stop> {
        let (head, _) = self.moved(seq, version, Move::Edit)?;
        let kind = self.kind(&spec.kind)?;
        let nowhere = Partition::default();
        let stub = Stub::new(seq, 0, due, nowhere, spec, None, head.attempt, 0);
        let mut flags = stub.flags;
        if head.flags.has(StubFlags::OCCURRENCE) {
            flags = flags.with(StubFlags::OCCURRENCE);
        }
        let payload = spec.payload.as_deref();
        let large = payload.filter(|payload| payload.len() > LARGE);
        let rest = rest_json(spec)?;
        let slot = self.known.density.place(due);
        let params: [&dyn rusqlite::ToSql; 12] = [
            &seq.0,
            &due.0,
            &slot.bucket,
            &kind,
            &spec.priority.saturating_neg(),
            &flags.0,
            &spec.expires_at.map(|at| at.0),
            &stub.bytes,
            &large.is_some(),
            &rest,
            &payload.filter(|_| large.is_none()),
            &slot.fine,
        ];
        self.conn
            .prepare_cached(
                "UPDATE tasks SET overdue = 0, version = version + 1, due = ?2, bucket = ?3,
                     first_due = CASE attempt WHEN 0 THEN ?2 ELSE first_due END, kind = ?4,
                     npri = ?5, flags = ?6, expires = ?7, weight = ?8, large = ?9, spec = ?10,
                     payload = ?11, fine = ?12
                 WHERE seq = ?1",
            )?
            .execute(&params[..])?;
        match large {
            Some(large) => self.put_payload(seq, large)?,
            None if head.large => self.drop_payload(seq)?,
            None => {}
        }
        Ok(Done::Ok)
    }

    pub(super) fn drop_payload(&self, seq: Seq) -> Result<(), Stop> {
        self.conn.prepare_cached("DELETE FROM payloads WHERE seq = ?1")?.execute([seq.0])?;
        Ok(())
    }

    pub(super) fn discard(&mut self, seq: Seq, version: u32) -> Result<Done, Stop> {
        let head = self.head(seq, version)?;
        if head.state != State::Scheduled || head.attempt > 0 {
            return Err(Refusal::Illegal.into());
        }
        self.remove(seq, &head)?;
        if head.large {
            self.drop_payload(seq)?;
        }
        Ok(Done::Ok)
    }

    pub(super) fn spill(&mut self, seqs: &[Seq]) -> Result<Done, Stop> {
        let mut mark = self.conn.prepare_cached(
            "UPDATE tasks SET overdue = 1 WHERE seq = ?1 AND state = 0 AND overdue = 0",
        )?;
        for seq in seqs {
            mark.execute([seq.0])?;
        }
        Ok(Done::Ok)
    }

    pub(super) fn progress(
        &mut self,
        seq: Seq,
        version: u32,
        claim_until: Option<Time>,
        progress: Option<&str>,
    ) -> Result<Done, Stop> {
        let head = self.head(seq, version)?;
        if head.state != State::Running {
            return Err(Refusal::Illegal.into());
        }
        let mut open: Option<String> = None;
        if claim_until.is_some() {
            let mut select = self.conn.prepare_cached("SELECT open FROM tasks WHERE seq = ?1")?;
            let text: String = select.query_row([seq.0], |row| row.get(0))?;
            let attempt: OpenAttempt = parse(&text)?;
            open = Some(json(&OpenAttempt { claim_until, ..attempt })?);
        }
        self.conn
            .prepare_cached(
                "UPDATE tasks SET version = version + 1, open = coalesce(?2, open),
                     progress = coalesce(?3, progress) WHERE seq = ?1",
            )?
            .execute((seq.0, open, progress))?;
        Ok(Done::Ok)
    }
}
