//! What callers may do to tasks, queues, schedules and calendars, by API or console: done by the node, then
//! told to whoever watches, with who asked.

use tourbillon_node::api::{
    BackfillDraft, BackfillView, CalendarDraft, Cancelled, Created, Draft, NodeError, PutCalendar,
    PutSchedule, QueueDraft, ScheduleDraft, TaskPatch,
};
use tourbillon_store::{ScheduleRecord, TaskId};
use tourbillon_wire::{Event, EventKind, TaskState};
use uuid::Uuid;

use crate::doors::Caller;
use crate::failure::{Failure, Result};
use crate::show::at;
use crate::state::Shared;

impl Shared {
    /// Creates tasks, all or none.
    pub(crate) async fn create(&self, drafts: Vec<Draft>, by: &Caller) -> Result<Vec<Created>> {
        let told: Vec<Event> = if self.events.watched() {
            drafts.iter().map(|d| self.creation(d, by)).collect()
        } else {
            Vec::new()
        };
        let created = self.node.create(drafts).await?;
        for (mut event, created) in told.into_iter().zip(&created) {
            if !created.existing {
                event.task_id = Some(Uuid::from_u128(created.id.0));
                event.at = at(created.created_at);
                self.events.tell(event);
            }
        }
        Ok(created)
    }

    fn creation(&self, draft: &Draft, by: &Caller) -> Event {
        Event {
            queue: Some(draft.queue.clone()),
            task_kind: Some(draft.spec.kind.clone()),
            state: Some(TaskState::Scheduled),
            ..self.event(EventKind::TaskCreated, &draft.namespace, by)
        }
    }

    /// Cancels a task.
    pub(crate) async fn cancel(
        &self,
        namespace: &str,
        id: TaskId,
        by: &Caller,
    ) -> Result<Cancelled, NodeError> {
        let cancelled = self.node.cancel(namespace, id).await?;
        match cancelled {
            Cancelled::Cancelled => {
                self.tell_task(EventKind::TaskFinished, namespace, id, TaskState::Cancelled, by);
            }
            Cancelled::Cancelling => {
                self.tell_task(EventKind::TaskChanged, namespace, id, TaskState::Running, by);
            }
        }
        Ok(cancelled)
    }

    /// Changes a task that has not started.
    pub(crate) async fn edit(
        &self,
        namespace: &str,
        id: TaskId,
        patch: TaskPatch,
        by: &Caller,
    ) -> Result<()> {
        self.node.edit(namespace, id, patch).await?;
        self.tell_task(EventKind::TaskChanged, namespace, id, TaskState::Scheduled, by);
        Ok(())
    }

    /// Makes a scheduled task due now.
    pub(crate) async fn run_now(&self, namespace: &str, id: TaskId, by: &Caller) -> Result<()> {
        self.node.run_now(namespace, id).await?;
        self.tell_task(EventKind::TaskChanged, namespace, id, TaskState::Ready, by);
        Ok(())
    }

    /// Tries a task that is over again.
    pub(crate) async fn retry(
        &self,
        namespace: &str,
        id: TaskId,
        by: &Caller,
    ) -> Result<(), NodeError> {
        self.node.retry(namespace, id).await?;
        self.tell_task(EventKind::TaskRetried, namespace, id, TaskState::Ready, by);
        Ok(())
    }

    /// Creates a queue or replaces its configuration.
    pub(crate) async fn put_queue(&self, draft: QueueDraft, by: &Caller) -> Result<()> {
        let record = self.node.put_queue(draft).await?;
        self.tell_queue(&record.namespace_name, &record.name, by);
        Ok(())
    }

    /// Pauses or resumes a queue, which must exist.
    pub(crate) async fn pause_queue(
        &self,
        namespace: &str,
        name: &str,
        paused: bool,
        by: &Caller,
    ) -> Result<()> {
        // The node would create it, and a slip of the pen would be a queue.
        if self.node.queue(namespace, name).await?.is_none() {
            return Err(Failure::not_found("queue"));
        }
        self.node.pause_queue(namespace, name, paused).await?;
        self.tell_queue(namespace, name, by);
        Ok(())
    }

    /// Creates a schedule or replaces its document.
    pub(crate) async fn put_schedule(
        &self,
        draft: ScheduleDraft,
        by: &Caller,
    ) -> Result<PutSchedule> {
        let namespace = draft.namespace.clone();
        let put = self.node.put_schedule(draft).await?;
        if put.changed {
            self.tell_schedule(EventKind::ScheduleChanged, &namespace, &put.record.name, by);
        }
        Ok(put)
    }

    /// Pauses or resumes a schedule.
    pub(crate) async fn pause_schedule(
        &self,
        namespace: &str,
        name: &str,
        paused: bool,
        by: &Caller,
    ) -> Result<ScheduleRecord> {
        let record = self.node.pause_schedule(namespace, name, paused).await?;
        self.tell_schedule(EventKind::ScheduleChanged, namespace, name, by);
        Ok(record)
    }

    /// Removes a schedule.
    pub(crate) async fn delete_schedule(
        &self,
        namespace: &str,
        name: &str,
        by: &Caller,
    ) -> Result<()> {
        self.node.delete_schedule(namespace, name).await?;
        self.tell_schedule(EventKind::ScheduleRemoved, namespace, name, by);
        Ok(())
    }

    /// Creates an exclusion calendar or replaces it.
    pub(crate) async fn put_calendar(
        &self,
        draft: CalendarDraft,
        by: &Caller,
    ) -> Result<PutCalendar> {
        let namespace = draft.namespace.clone();
        let put = self.node.put_calendar(draft).await?;
        if put.changed {
            self.tell_calendar(&namespace, &put.record.name, by);
        }
        Ok(put)
    }

    /// Removes an exclusion calendar.
    pub(crate) async fn delete_calendar(
        &self,
        namespace: &str,
        name: &str,
        by: &Caller,
    ) -> Result<()> {
        self.node.delete_calendar(namespace, name).await?;
        self.tell_calendar(namespace, name, by);
        Ok(())
    }

    /// Runs a schedule's task now, beside its plan.
    pub(crate) async fn trigger(&self, namespace: &str, name: &str, by: &Caller) -> Result<TaskId> {
        let id = self.node.trigger_schedule(namespace, name).await?;
        if self.events.watched() {
            self.events.tell(Event {
                task_id: Some(Uuid::from_u128(id.0)),
                schedule: Some(name.to_owned()),
                state: Some(TaskState::Ready),
                ..self.event(EventKind::TaskCreated, namespace, by)
            });
        }
        Ok(id)
    }

    /// Begins a backfill of a schedule, or only counts it.
    pub(crate) async fn backfill(
        &self,
        namespace: &str,
        name: &str,
        draft: BackfillDraft,
        by: &Caller,
    ) -> Result<BackfillView> {
        let begins = !draft.dry_run;
        let view = self.node.backfill_schedule(namespace, name, draft).await?;
        if begins {
            self.tell_schedule(EventKind::ScheduleChanged, namespace, name, by);
        }
        Ok(view)
    }

    /// Ends a backfill before it is through.
    pub(crate) async fn end_backfill(
        &self,
        namespace: &str,
        name: &str,
        id: &str,
        by: &Caller,
    ) -> Result<()> {
        self.node.end_backfill(namespace, name, id).await?;
        self.tell_schedule(EventKind::ScheduleChanged, namespace, name, by);
        Ok(())
    }

    fn tell_task(
        &self,
        kind: EventKind,
        namespace: &str,
        id: TaskId,
        state: TaskState,
        by: &Caller,
    ) {
        if self.events.watched() {
            self.events.tell(Event {
                task_id: Some(Uuid::from_u128(id.0)),
                state: Some(state),
                ..self.event(kind, namespace, by)
            });
        }
    }

    fn tell_queue(&self, namespace: &str, name: &str, by: &Caller) {
        if self.events.watched() {
            let event = self.event(EventKind::QueueChanged, namespace, by);
            self.events.tell(Event { queue: Some(name.to_owned()), ..event });
        }
    }

    fn tell_schedule(&self, kind: EventKind, namespace: &str, name: &str, by: &Caller) {
        if self.events.watched() {
            let event = self.event(kind, namespace, by);
            self.events.tell(Event { schedule: Some(name.to_owned()), ..event });
        }
    }

    fn tell_calendar(&self, namespace: &str, name: &str, by: &Caller) {
        if self.events.watched() {
            let event = self.event(EventKind::CalendarChanged, namespace, by);
            self.events.tell(Event { calendar: Some(name.to_owned()), ..event });
        }
    }

    fn event(&self, kind: EventKind, namespace: &str, by: &Caller) -> Event {
        Event {
            seq: 0,
            at: at(self.node.now()),
            kind,
            namespace: namespace.to_owned(),
            queue: None,
            task_id: None,
            task_kind: None,
            state: None,
            attempt: None,
            outcome: None,
            schedule: None,
            calendar: None,
            node: Some(self.node.options().name.clone()),
            worker: None,
            actor: Some(by.actor()),
            detail: None,
        }
    }
}
