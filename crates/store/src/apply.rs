//! What each write does to a task's record: the one definition that stores share.
//!
//! Pure: a record goes in, the changed record or a refusal comes out. The order of checks is part
//! of the contract: first the version (`Conflict`), then the transition table (`Illegal`). What a
//! store adds is where the record is kept and how it is found again.

use crate::id::Seq;
use crate::state::{AttemptOutcome, Move, State, next_state};
use crate::task::{AttemptRecord, NewTask, OpenAttempt, SkippedRun, Task, TaskSpec};
use crate::time::Time;
use crate::write::{Refusal, Then};

/// The record of a task just created.
pub(crate) fn created(new: &NewTask, seq: Seq) -> Task {
    Task {
        seq,
        id: new.id,
        namespace: new.namespace,
        partition: new.partition,
        shard: new.shard,
        state: State::Scheduled,
        version: 0,
        spec: new.spec.clone(),
        due: new.due,
        first_due: new.due,
        created_at: new.created_at,
        finished_at: None,
        attempt: 0,
        lost: 0,
        released: 0,
        schedule: new.schedule.clone(),
        open: None,
        cancel_requested: false,
        attempts: Vec::new(),
        progress: None,
        outcome_reason: None,
        skipped: None,
        fingerprint: new.fingerprint,
    }
}

/// Compare-and-set: the version must be the one the writer read.
pub(crate) fn check(task: &Task, version: u32) -> Result<(), Refusal> {
    if task.version == version { Ok(()) } else { Err(Refusal::Conflict) }
}

fn moved(task: &mut Task, by: Move) -> Result<(), Refusal> {
    task.state = next_state(task.state, by).ok_or(Refusal::Illegal)?;
    task.version = task.version.wrapping_add(1);
    Ok(())
}

/// An attempt starts.
pub(crate) fn start(task: &mut Task, open: &OpenAttempt) -> Result<(), Refusal> {
    moved(task, Move::Start)?;
    task.attempt = open.n;
    task.open = Some(open.clone());
    task.cancel_requested = false;
    Ok(())
}

/// The move that the end of an attempt makes.
pub(crate) fn end_move(then: &Then) -> Move {
    match then {
        Then::Finish { to, .. } => Move::Finish(*to),
        Then::Again { .. } => Move::Again,
    }
}

/// An attempt ends.
pub(crate) fn end(task: &mut Task, attempt: &AttemptRecord, then: &Then) -> Result<(), Refusal> {
    moved(task, end_move(then))?;
    task.attempt = attempt.n;
    task.lost += u32::from(attempt.outcome == AttemptOutcome::Lost);
    task.released += u32::from(attempt.outcome == AttemptOutcome::Released);
    task.open = None;
    task.cancel_requested = false;
    match then {
        Then::Finish { reason, .. } => {
            task.finished_at = Some(attempt.ended_at);
            task.outcome_reason.clone_from(reason);
        }
        Then::Again { due } => task.due = *due,
    }
    task.attempts.push(attempt.clone());
    Ok(())
}

/// The task is over without another attempt.
pub(crate) fn close(
    task: &mut Task,
    to: State,
    at: Time,
    reason: &Option<String>,
    skipped: &Option<SkippedRun>,
) -> Result<(), Refusal> {
    moved(task, Move::Close(to))?;
    task.finished_at = Some(at);
    task.outcome_reason.clone_from(reason);
    task.skipped.clone_from(skipped);
    Ok(())
}

/// The running attempt is asked to stop.
pub(crate) fn request_cancel(task: &mut Task) -> Result<(), Refusal> {
    moved(task, Move::RequestCancel)?;
    task.cancel_requested = true;
    Ok(())
}

/// A scheduled task is changed; what decides where it lives stays.
pub(crate) fn edit(task: &mut Task, due: Time, spec: &TaskSpec) -> Result<(), Refusal> {
    moved(task, Move::Edit)?;
    task.due = due;
    if task.attempt == 0 {
        task.first_due = due;
    }
    let (key, concurrency_key) = (task.spec.key.take(), task.spec.concurrency_key.take());
    task.spec = TaskSpec { key, concurrency_key, ..spec.clone() };
    Ok(())
}

/// Whether a task may vanish without a trace: it is scheduled and never started.
pub(crate) fn discard(task: &Task) -> Result<(), Refusal> {
    if task.state == State::Scheduled && task.attempt == 0 { Ok(()) } else { Err(Refusal::Illegal) }
}

/// A worker is alive.
pub(crate) fn progress(
    task: &mut Task,
    claim_until: Option<Time>,
    progress: &Option<String>,
) -> Result<(), Refusal> {
    let (State::Running, Some(open)) = (task.state, task.open.as_mut()) else {
        return Err(Refusal::Illegal);
    };
    if claim_until.is_some() {
        open.claim_until = claim_until;
    }
    if progress.is_some() {
        task.progress.clone_from(progress);
    }
    task.version = task.version.wrapping_add(1);
    Ok(())
}

/// A task of history becomes live again. Its attempts stay with it; `give_up_after` counts anew,
/// and an `expires_at` that would end it at once is dropped.
pub(crate) fn redrive(task: &mut Task, due: Time) -> Result<(), Refusal> {
    moved(task, Move::Redrive)?;
    task.due = due;
    task.first_due = due;
    task.finished_at = None;
    task.outcome_reason = None;
    task.skipped = None;
    if task.spec.expires_at.is_some_and(|expires| expires <= due) {
        task.spec.expires_at = None;
    }
    Ok(())
}
