//! `tourbillon cron "0 9 * * mon-fri" …`: a schedule by a cron expression.

use clap::Args;
use tourbillon_wire::NewSchedule;

use super::{App, schedule};
use crate::exit::Status;
use crate::rule::{PolicyArgs, TimingArgs};
use crate::task_args::TaskArgs;
use crate::timing;

/// Run something by a cron expression: creates a schedule, or replaces the one of that name.
#[derive(Debug, Args)]
pub(crate) struct Cron {
    /// The cron expression, in one argument: "0 9 * * mon-fri".
    expression: String,
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

impl Cron {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let mut document = NewSchedule::new(self.task.template()?);
        document.cron = Some(self.expression);
        self.timing.apply(&mut document)?;
        self.policy.apply(&mut document);
        // A slip in the expression is found before anything is sent.
        timing::timing(&document, self.name.as_deref().unwrap_or_default())?;
        schedule::put(app, self.name, document).await
    }
}
