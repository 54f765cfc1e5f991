//! `tourbillon prune`: delete history that was kept long enough.

use clap::Args;
use tourbillon_wire::{PruneReply, PruneRequest};

use super::App;
use crate::exit::Status;

/// Delete history that was kept long enough.
#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// Only say how much there is to delete.
    #[arg(long)]
    dry_run: bool,
}

impl Prune {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        let request = PruneRequest { dry_run: self.dry_run };
        let mut total = PruneReply { dry_run: self.dry_run, ..PruneReply::default() };
        loop {
            let reply = client.prune(&request).await?;
            total.succeeded += reply.succeeded;
            total.other += reply.other;
            if !reply.more || self.dry_run {
                break;
            }
        }
        let verb = if self.dry_run { "would delete" } else { "deleted" };
        app.out.either(
            &total,
            format!("{verb} {} succeeded tasks and {} others", total.succeeded, total.other),
        )?;
        Ok(Status::Done)
    }
}
