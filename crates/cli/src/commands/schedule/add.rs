//! `tourbillon schedule add NAME …`: create a schedule.

use clap::Args;
use tourbillon_wire::NewSchedule;

use crate::commands::App;
use crate::exit::Status;
use crate::rule::{PolicyArgs, RuleArgs, TimingArgs};
use crate::task_args::TaskArgs;

/// Create a schedule.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Its name.
    name: String,
    #[command(flatten)]
    rule: RuleArgs,
    #[command(flatten)]
    timing: TimingArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Replace the schedule of that name when there is one.
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    task: TaskArgs,
}

impl Add {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let mut document = NewSchedule::new(self.task.template()?);
        self.rule.apply(&mut document)?;
        self.timing.apply(&mut document)?;
        self.policy.apply(&mut document);
        if !self.replace {
            match app.client()?.schedule(&self.name).await {
                Ok(_) => anyhow::bail!(
                    "there is a schedule {} already; --replace replaces it",
                    self.name
                ),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        super::put(app, Some(self.name), document).await
    }
}
