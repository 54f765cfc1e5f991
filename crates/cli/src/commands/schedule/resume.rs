//! `tourbillon schedule resume NAME...`.

use clap::Args;

use crate::commands::App;
use crate::exit::Status;

/// Let paused schedules plan again.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// Their names.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

impl Resume {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        for name in self.names {
            let schedule = client.resume_schedule(&name).await?;
            app.out.either(&schedule, format!("schedule {name} resumed"))?;
        }
        Ok(Status::Done)
    }
}
