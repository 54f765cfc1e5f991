//! `tourbillon at "2026-12-01 09:00" --tz ZONE …`: a task that is due at an instant.

use clap::Args;

use super::{App, task};
use crate::exit::Status;
use crate::task_args::{OneShotArgs, TaskArgs};
use crate::when;

/// Run something at an instant.
#[derive(Debug, Args)]
pub(crate) struct At {
    /// RFC 3339 such as 2026-12-01T09:00:00Z, or with --tz civil time such as "2026-12-01 09:00".
    when: String,
    /// The zone of civil times, by IANA name.
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    #[command(flatten)]
    one: OneShotArgs,
    #[command(flatten)]
    task: TaskArgs,
}

impl At {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let tz = self.tz.as_deref();
        let due_at = when::instant("WHEN", &self.when, tz)?;
        let mut new = self.task.task(&self.one, tz)?;
        new.due_at = Some(due_at);
        task::add::create(app, new).await
    }
}
