//! `tourbillon workers`: the clients that claim tasks.

use clap::Args;

use super::App;
use crate::exit::Status;
use crate::output::{instant, text};

/// Show the workers that claimed lately.
#[derive(Debug, Args)]
pub(crate) struct Workers {}

impl Workers {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let workers = app.client()?.workers().await?.items;
        if workers.is_empty() {
            eprintln!("no worker has claimed lately");
        }
        let header = ["WORKER", "QUEUES", "KINDS", "RUNNING", "COMPLETED", "SEEN"];
        app.out.list(&workers, header, |w| {
            [
                text(&w.worker),
                text(w.queues.join(", ")),
                text(if w.kinds.is_empty() { "any".to_owned() } else { w.kinds.join(", ") }),
                text(w.running),
                text(w.completed),
                instant(w.last_seen_at),
            ]
        })?;
        Ok(Status::of(!workers.is_empty()))
    }
}
