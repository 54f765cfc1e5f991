//! `tourbillon queue list`.

use clap::Args;
use tourbillon_wire::{Queue, Rate};

use crate::commands::App;
use crate::exit::Status;
use crate::output::{opt, text, yes};

/// List queues with their limits and counts.
#[derive(Debug, Args)]
pub(crate) struct List {}

impl List {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let queues = app.client()?.queues().await?.items;
        if queues.is_empty() {
            eprintln!("there is no queue");
        }
        let header = [
            "QUEUE",
            "PAUSED",
            "SCHEDULED",
            "READY",
            "RUNNING",
            "LIMIT",
            "RATE",
            "PER KEY",
            "PARTITIONS",
            "FAILED",
        ];
        app.out.list(&queues, header, |q: &Queue| {
            [
                text(&q.name),
                yes(q.paused),
                text(q.counts.scheduled),
                text(q.counts.ready),
                text(q.counts.running),
                text(q.concurrency),
                opt(q.rate.as_ref().map(rate)),
                opt(q.per_key_concurrency),
                text(q.partitions),
                text(q.counts.failed),
            ]
        })?;
        Ok(Status::of(!queues.is_empty()))
    }
}

fn rate(rate: &Rate) -> String {
    format!("{} per {}", rate.count, rate.per)
}
