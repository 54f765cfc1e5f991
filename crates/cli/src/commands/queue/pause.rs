//! `tourbillon queue pause NAME...`.

use clap::Args;

use crate::commands::App;
use crate::exit::Status;

/// Let nothing of the queues start until they are resumed.
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
            let queue = client.pause_queue(&name).await?;
            app.out.either(&queue, format!("queue {name} paused"))?;
        }
        Ok(Status::Done)
    }
}
