//! `tourbillon schedule remove NAME...`.

use clap::Args;
use serde::Serialize;

use crate::commands::App;
use crate::exit::Status;

/// Remove schedules; what already runs goes on.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Their names.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

#[derive(Serialize)]
struct Removed<'a> {
    removed: &'a str,
}

impl Remove {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        for name in &self.names {
            client.remove_schedule(name).await?;
            app.out.either(&Removed { removed: name }, format!("schedule {name} removed"))?;
        }
        Ok(Status::Done)
    }
}
