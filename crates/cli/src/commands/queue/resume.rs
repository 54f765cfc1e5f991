//! `tourbillon queue resume NAME...`.

use clap::Args;

use crate::commands::App;
use crate::exit::Status;

/// Let paused queues go on.
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
            let queue = client.resume_queue(&name).await?;
            app.out.either(&queue, format!("queue {name} resumed"))?;
        }
        Ok(Status::Done)
    }
}
