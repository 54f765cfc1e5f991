//! `tourbillon task add …`: create a task.

use clap::Args;
use tourbillon_wire::{Duration, NewTask};
use uuid::Uuid;

use crate::commands::App;
use crate::exit::Status;
use crate::task_args::{OneShotArgs, TaskArgs};
use crate::when;

/// Create a task.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Due after this delay [default: now].
    #[arg(long = "in", value_name = "DURATION", conflicts_with = "at")]
    delay: Option<Duration>,
    /// Due at this instant.
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
    /// The zone of civil times, by IANA name.
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    #[command(flatten)]
    one: OneShotArgs,
    #[command(flatten)]
    task: TaskArgs,
}

impl Add {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let tz = self.tz.as_deref();
        let mut new = self.task.task(&self.one, tz)?;
        new.delay = self.delay;
        new.due_at = self.at.as_deref().map(|at| when::instant("--at", at, tz)).transpose()?;
        create(app, new).await
    }
}

/// Creates the task and says what became of it.
pub(crate) async fn create(app: &App, mut new: NewTask) -> anyhow::Result<Status> {
    let id = *new.id.get_or_insert_with(Uuid::now_v7);
    let task = app.client()?.create(new).await?;
    let kept = if task.id == id { "" } else { " (kept: it holds the key)" };
    app.out.either(
        &task,
        format!(
            "task {}{kept} in queue {} is {}, due {} ({})",
            task.id,
            task.queue,
            task.state,
            task.due_at,
            when::distance(task.due_at)
        ),
    )?;
    Ok(Status::Done)
}
