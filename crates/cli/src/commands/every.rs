//! `tourbillon every 5m …`: a schedule at a fixed rate.

use clap::Args;
use tourbillon_wire::{Duration, NewSchedule};

use super::{App, schedule};
use crate::exit::Status;
use crate::rule::{PolicyArgs, TimingArgs};
use crate::task_args::TaskArgs;

/// Run something at a fixed rate: creates a schedule, or replaces the one of that name.
#[derive(Debug, Args)]
pub(crate) struct Every {
    /// How often: 30s, 5m, 1h30m, 2d.
    interval: Duration,
    /// The schedule's name [default: derived from what runs and when].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    timing: TimingArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    task: TaskArgs,
}

impl Every {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let mut document = NewSchedule::new(self.task.template()?);
        document.every = Some(self.interval);
        self.timing.apply(&mut document)?;
        self.policy.apply(&mut document);
        schedule::put(app, self.name, document).await
    }
}
