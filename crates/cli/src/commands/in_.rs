//! `tourbillon in 30m …`: a task that is due after a delay.

use clap::Args;
use tourbillon_wire::Duration;

use super::{App, task};
use crate::exit::Status;
use crate::task_args::{OneShotArgs, TaskArgs};

/// Run something after a delay.
#[derive(Debug, Args)]
pub(crate) struct In {
    /// How long from now: 250ms, 30s, 1h30m, 2d or PT30S.
    delay: Duration,
    #[command(flatten)]
    one: OneShotArgs,
    #[command(flatten)]
    task: TaskArgs,
}

impl In {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let mut new = self.task.task(&self.one, None)?;
        new.delay = Some(self.delay);
        task::add::create(app, new).await
    }
}
