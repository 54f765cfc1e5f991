//! Events as shown.

use tourbillon_engine::api::Notice;
use tourbillon_store::State;
use tourbillon_wire::{Event, EventKind};
use uuid::Uuid;

use super::{at, task};
use crate::state::QueueName;

/// What a notice tells, as the `seq`th event of `node`.
pub(crate) fn event(notice: &Notice, seq: u64, queue: &QueueName, node: &str) -> Event {
    let kind = match notice.state {
        State::Scheduled if notice.attempt == 0 => EventKind::TaskCreated,
        State::Scheduled => EventKind::AttemptEnded,
        State::Running => EventKind::AttemptStarted,
        State::Skipped => EventKind::ScheduleSkipped,
        _ => EventKind::TaskFinished,
    };
    Event {
        seq,
        at: at(notice.at),
        kind,
        namespace: queue.namespace.clone(),
        queue: Some(queue.name.clone()),
        task_id: Some(Uuid::from_u128(notice.id.0)),
        task_kind: Some(notice.kind.clone()),
        state: Some(task::state(notice.state, tourbillon_store::Time::MAX, notice.at)),
        attempt: (notice.attempt > 0).then_some(notice.attempt),
        outcome: None,
        schedule: None,
        calendar: None,
        node: Some(node.to_owned()),
        worker: None,
        actor: None,
        detail: None,
    }
}
