//! Options that select tasks.

use clap::Args;
use tourbillon_wire::{TaskFilter, TaskListQuery, TaskState};
use uuid::Uuid;

use crate::when;

/// Which tasks; everything given must hold.
#[derive(Debug, Clone, Args)]
pub(crate) struct FilterArgs {
    /// In this queue.
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// In this state: scheduled, ready, running, succeeded, failed, cancelled, expired, skipped.
    #[arg(long, value_name = "STATE")]
    state: Option<TaskState>,
    /// Of this kind.
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,
    /// With this key.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Created by this schedule.
    #[arg(long, value_name = "NAME")]
    schedule: Option<String>,
    /// Due at or after this instant.
    #[arg(long, value_name = "INSTANT")]
    due_after: Option<String>,
    /// Due before this instant.
    #[arg(long, value_name = "INSTANT")]
    due_before: Option<String>,
    /// The zone of civil times, by IANA name.
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
}

impl FilterArgs {
    /// The filter of a list.
    pub(crate) fn query(&self) -> anyhow::Result<TaskListQuery> {
        let filter = self.filter(Vec::new())?;
        Ok(TaskListQuery {
            queue: filter.queue,
            state: filter.state,
            kind: filter.kind,
            key: filter.key,
            schedule: filter.schedule,
            due_after: filter.due_after,
            due_before: filter.due_before,
            ..TaskListQuery::default()
        })
    }

    /// The filter of a change to many.
    pub(crate) fn filter(&self, ids: Vec<Uuid>) -> anyhow::Result<TaskFilter> {
        let tz = self.tz.as_deref();
        let instant = |option: &str, given: &Option<String>| {
            given.as_deref().map(|given| when::instant(option, given, tz)).transpose()
        };
        Ok(TaskFilter {
            ids,
            queue: self.queue.clone(),
            state: self.state,
            kind: self.kind.clone(),
            key: self.key.clone(),
            schedule: self.schedule.clone(),
            due_after: instant("--due-after", &self.due_after)?,
            due_before: instant("--due-before", &self.due_before)?,
        })
    }
}
