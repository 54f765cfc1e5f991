//! `tourbillon schedule trigger NAME`: a task of the schedule, due now.

use clap::Args;

use crate::commands::App;
use crate::exit::Status;

/// Create a task of a schedule that is due now, besides its plan.
#[derive(Debug, Args)]
pub(crate) struct Trigger {
    /// The schedule's name.
    name: String,
}

impl Trigger {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let reply = app.client()?.trigger_schedule(&self.name).await?;
        app.out.either(
            &reply,
            format!("task {} of schedule {} is due now", reply.task_id, self.name),
        )?;
        Ok(Status::Done)
    }
}
