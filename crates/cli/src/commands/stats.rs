//! `tourbillon stats`: counts and percentiles.

use clap::Args;
use tourbillon_wire::{Duration, Stats as Document, StatsQuery};

use super::App;
use crate::exit::Status;
use crate::output::{Out, percentiles, text, trimmed, yes};

/// Show counts by state and how late and long attempts were.
#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// How far back outcomes and percentiles go [default: 1h].
    #[arg(long, value_name = "DURATION")]
    span: Option<Duration>,
}

impl Stats {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let query = StatsQuery { span: self.span, ..StatsQuery::default() };
        let stats = app.client()?.stats(&query).await?;
        app.out.either(&stats, tables(app.out, &stats))?;
        Ok(Status::Done)
    }
}

/// The whole as text, also the picture that `top` repeats.
pub(crate) fn tables(out: Out, stats: &Document) -> String {
    let c = &stats.counts;
    let mut parts = vec![format!(
        "{} scheduled, {} ready, {} running; kept: {} succeeded, {} failed, {} cancelled, {} expired, {} skipped",
        c.scheduled, c.ready, c.running, c.succeeded, c.failed, c.cancelled, c.expired, c.skipped
    )];
    parts.push(format!("since {}: {} attempts started", stats.since, stats.started));
    if !stats.queues.is_empty() {
        let mut table = out.table([
            "QUEUE",
            "PAUSED",
            "SCHEDULED",
            "READY",
            "RUNNING",
            "STARTED",
            "SUCCEEDED",
            "FAILED",
            "LATE p50/p99",
            "TOOK p50/p99",
        ]);
        for q in &stats.queues {
            table.add_row([
                text(&q.queue),
                yes(q.paused),
                text(q.counts.scheduled),
                text(q.counts.ready),
                text(match q.concurrency {
                    0 => q.counts.running.to_string(),
                    limit => format!("{}/{limit}", q.counts.running),
                }),
                text(q.started),
                text(q.succeeded),
                text(q.failed),
                percentiles(&q.lateness_ms),
                percentiles(&q.duration_ms),
            ]);
        }
        parts.push(String::new());
        parts.push(trimmed(table));
    }
    if !stats.kinds.is_empty() {
        let mut table = out.table([
            "KIND",
            "QUEUE",
            "STARTED",
            "SUCCEEDED",
            "FAILED",
            "LATE p50/p99",
            "TOOK p50/p99",
        ]);
        for k in &stats.kinds {
            table.add_row([
                text(&k.kind),
                text(&k.queue),
                text(k.started),
                text(k.succeeded),
                text(k.failed),
                percentiles(&k.lateness_ms),
                percentiles(&k.duration_ms),
            ]);
        }
        parts.push(String::new());
        parts.push(trimmed(table));
    }
    parts.join("\n")
}
