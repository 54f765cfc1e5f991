//! `tourbillon task run ID`: make a scheduled task due now.

use clap::Args;
use uuid::Uuid;

use crate::commands::App;
use crate::exit::Status;

/// Make scheduled tasks due now.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The tasks.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Uuid>,
}

impl Run {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        for id in self.ids {
            let task = client.run_now(id).await?;
            app.out.either(&task, format!("task {id} is {}, due {}", task.state, task.due_at))?;
        }
        Ok(Status::Done)
    }
}
