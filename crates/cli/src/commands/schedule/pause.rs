//! `tourbillon schedule pause NAME...`.

use clap::Args;

use crate::commands::App;
use crate::exit::Status;

/// Let schedules plan nothing until they are resumed.
#[derive(Debug, Args)]
pub(crate) struct Pause {
    /// Their names.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

impl Pause {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        for name in self.names {
            let schedule = client.pause_schedule(&name).await?;
            app.out.either(&schedule, format!("schedule {name} paused"))?;
        }
        Ok(Status::Done)
    }
}
