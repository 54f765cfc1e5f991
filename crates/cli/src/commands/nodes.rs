//! `tourbillon nodes`: the server processes.

use clap::Args;

use super::App;
use crate::exit::Status;
use crate::output::{instant, opt, text, yes};

/// Show the server's nodes.
#[derive(Debug, Args)]
pub(crate) struct Nodes {}

impl Nodes {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let nodes = app.client()?.nodes().await?.items;
        let header = [
            "NODE", "ADDRESS", "VERSION", "STORE", "SHARDS", "RUNNING", "DRAINING", "STARTED",
            "SEEN",
        ];
        app.out.list(&nodes, header, |n| {
            [
                text(&n.id),
                opt(n.address.as_ref()),
                text(&n.version),
                text(&n.store),
                text(format!("{}/{}", n.shards, n.shards_total)),
                text(n.running),
                yes(n.draining),
                instant(n.started_at),
                instant(n.last_seen_at),
            ]
        })?;
        Ok(Status::of(!nodes.is_empty()))
    }
}
