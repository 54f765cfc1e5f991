//! `tourbillon queue purge NAME`: cancel what waits in a queue.

use clap::Args;
use tourbillon_wire::PurgeReply;

use crate::commands::App;
use crate::exit::{Status, usage};
use crate::progress;

/// Cancel everything that waits in a queue.
#[derive(Debug, Args)]
pub(crate) struct Purge {
    /// Its name.
    name: String,
    /// Really do it.
    #[arg(long)]
    yes: bool,
}

impl Purge {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        if !self.yes {
            return Err(usage(format!(
                "purge cancels all that waits in queue {}; say --yes",
                self.name
            )));
        }
        let client = app.client()?;
        let bar = progress::bar(None, "tasks");
        let mut total = PurgeReply::default();
        loop {
            let reply = client.purge_queue(&self.name).await?;
            total.cancelled += reply.cancelled;
            bar.inc(reply.cancelled);
            if !reply.more || reply.cancelled == 0 {
                break;
            }
        }
        bar.finish_and_clear();
        app.out.either(
            &total,
            format!("{} tasks of queue {} cancelled", total.cancelled, self.name),
        )?;
        Ok(Status::Done)
    }
}
