//! Tasks as shown.

use tourbillon_node::api::{Created, Draft};
use tourbillon_store as store;
use tourbillon_store::{AttemptRecord, OpenAttempt, State, Time};
use tourbillon_wire as wire;
use tourbillon_wire::{AttemptOutcome, TaskState};
use uuid::Uuid;

use super::{at, json};
use crate::convert::{retry, target, time};
use crate::state::QueueName;

/// A task of the store; with its attempts and payload when `whole`.
pub(crate) fn task(t: &store::Task, queue: &QueueName, now: Time, whole: bool) -> wire::Task {
    let spec = &t.spec;
    let id = Uuid::from_u128(t.id.0);
    let state = state(t.state, t.due, now);
    let last = t.attempts.last();
    let ready_at = match (&t.open, state) {
        (Some(open), _) => Some(open.ready_at),
        (None, TaskState::Ready) => Some(t.due.max(t.created_at)),
        (None, TaskState::Scheduled) => None,
        (None, _) => last.map(|a| a.ready_at),
    };
    let mut attempts = Vec::new();
    if whole {
        attempts.extend(t.attempts.iter().map(|a| ended(id, a)));
        attempts.extend(t.open.as_ref().map(|open| under_way(id, open)));
    }
    wire::Task {
        id,
        namespace: queue.namespace.clone(),
        queue: queue.name.clone(),
        kind: spec.kind.clone(),
        key: spec.key.clone(),
        state,
        cancelling: t.cancel_requested,
        target: target::show(&spec.target),
        payload: spec.payload.as_deref().filter(|_| whole).and_then(json),
        due_at: at(t.due),
        priority: spec.priority.into(),
        timeout: spec.timeout.map(time::shown),
        expires_at: spec.expires_at.map(at),
        at_most_once: spec.at_most_once,
        retry: retry::show(&spec.retry),
        concurrency_key: spec.concurrency_key.clone(),
        tags: target::pairs(&spec.tags),
        created_at: at(t.created_at),
        ready_at: ready_at.map(at),
        finished_at: t.finished_at.map(at),
        attempt: t.attempt,
        lost: t.lost,
        schedule: t.schedule.as_ref().map(|s| s.name.clone()),
        logical_time: t.schedule.as_ref().map(|s| at(s.logical)),
        origin: t.schedule.as_ref().map(|s| s.origin.clone()),
        skipped: t.skipped.as_ref().map(|s| wire::Skipped {
            from: at(s.from),
            to: at(s.to),
            count: s.count,
            reason: s.reason.clone(),
        }),
        progress: t.progress.as_deref().and_then(json),
        result: last.and_then(|a| a.result.as_deref()).and_then(json),
        outcome_reason: t.outcome_reason.clone(),
        version: t.version.into(),
        attempts,
    }
}

/// A task that is about to be created, to be completed with [`created`]; its payload is left out,
/// as it is in lists.
pub(crate) fn draft(d: &Draft) -> wire::Task {
    let spec = &d.spec;
    let epoch = at(Time::default());
    wire::Task {
        id: Uuid::nil(),
        namespace: d.namespace.clone(),
        queue: d.queue.clone(),
        kind: spec.kind.clone(),
        key: spec.key.clone(),
        state: TaskState::Scheduled,
        cancelling: false,
        target: target::show(&spec.target),
        payload: None,
        due_at: epoch,
        priority: spec.priority.into(),
        timeout: spec.timeout.map(time::shown),
        expires_at: spec.expires_at.map(at),
        at_most_once: spec.at_most_once,
        retry: retry::show(&spec.retry),
        concurrency_key: spec.concurrency_key.clone(),
        tags: target::pairs(&spec.tags),
        created_at: epoch,
        ready_at: None,
        finished_at: None,
        attempt: 0,
        lost: 0,
        schedule: None,
        logical_time: None,
        origin: None,
        skipped: None,
        progress: None,
        result: None,
        outcome_reason: None,
        version: 0,
        attempts: Vec::new(),
    }
}

/// Completes a [`draft`] with what its creation answered.
pub(crate) fn created(draft: &mut wire::Task, created: &Created) {
    draft.id = Uuid::from_u128(created.id.0);
    draft.due_at = at(created.due);
    draft.created_at = at(created.created_at);
    draft.state = state(State::Scheduled, created.due, created.created_at);
}

/// A state as shown, `ready` derived.
pub(crate) fn state(state: State, due: Time, now: Time) -> TaskState {
    match state {
        State::Scheduled if due <= now => TaskState::Ready,
        State::Scheduled => TaskState::Scheduled,
        State::Running => TaskState::Running,
        State::Succeeded => TaskState::Succeeded,
        State::Failed => TaskState::Failed,
        State::Cancelled => TaskState::Cancelled,
        State::Expired => TaskState::Expired,
        State::Skipped => TaskState::Skipped,
    }
}

fn outcome(outcome: store::AttemptOutcome) -> AttemptOutcome {
    match outcome {
        store::AttemptOutcome::Succeeded => AttemptOutcome::Succeeded,
        store::AttemptOutcome::Failed => AttemptOutcome::Failed,
        store::AttemptOutcome::TimedOut => AttemptOutcome::TimedOut,
        store::AttemptOutcome::Lost => AttemptOutcome::Lost,
        store::AttemptOutcome::Cancelled => AttemptOutcome::Cancelled,
        store::AttemptOutcome::Released => AttemptOutcome::Released,
    }
}

fn ended(id: Uuid, a: &AttemptRecord) -> wire::Attempt {
    wire::Attempt {
        n: a.n,
        outcome: Some(outcome(a.outcome)),
        node: a.node.clone(),
        worker: a.worker.clone(),
        started_at: at(a.started_at),
        ended_at: Some(at(a.ended_at)),
        lateness_ms: a.started_at.since(a.due) / 1_000,
        duration_ms: Some((a.ended_at.since(a.started_at).max(0) / 1_000) as u64),
        error: a.error.clone(),
        http_status: a.http_status,
        exit_code: a.exit_code,
        fence: a.fence.0.to_string(),
        output: (a.output_bytes > 0).then(|| wire::OutputInfo {
            bytes: a.output_bytes,
            truncated: a.output_truncated,
            url: output_url(id, a.n),
        }),
    }
}

fn under_way(id: Uuid, open: &OpenAttempt) -> wire::Attempt {
    wire::Attempt {
        n: open.n,
        outcome: None,
        node: open.node.clone(),
        worker: open.worker.clone(),
        started_at: at(open.started_at),
        ended_at: None,
        lateness_ms: open.started_at.since(open.due) / 1_000,
        duration_ms: None,
        error: None,
        http_status: None,
        exit_code: None,
        fence: open.fence().0.to_string(),
        output: Some(wire::OutputInfo { bytes: 0, truncated: false, url: output_url(id, open.n) }),
    }
}

fn output_url(id: Uuid, n: u32) -> String {
    format!("/v1/tasks/{id}/attempts/{n}/output")
}
