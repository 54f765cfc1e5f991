//! `tourbillon calendar delete NAME...`.

use clap::Args;
use serde::Serialize;

use crate::commands::App;
use crate::exit::Status;

/// Remove calendars that no schedule names.
#[derive(Debug, Args)]
#[command(visible_alias = "remove")]
pub(crate) struct Delete {
    /// Their names.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

#[derive(Serialize)]
struct Removed<'a> {
    removed: &'a str,
}

impl Delete {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        for name in &self.names {
            client.remove_calendar(name).await?;
            app.out.either(&Removed { removed: name }, format!("calendar {name} removed"))?;
        }
        Ok(Status::Done)
    }
}
