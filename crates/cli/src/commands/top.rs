//! `tourbillon top`: the figures of `stats`, again and again.

use std::time::Duration as Span;

use clap::Args;
use tourbillon_wire::{Duration, StatsQuery};

use super::{App, stats};
use crate::exit::Status;

/// Watch counts and percentiles; ends with Ctrl-C.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// How long between two pictures.
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    interval: Duration,
    /// How many pictures [default: no end on a terminal, else one].
    #[arg(short, value_name = "N")]
    n: Option<u64>,
}

/// Home, and clear from there on: steadier to look at than clearing the whole screen first.
const HOME: &str = "\x1b[H\x1b[J";

impl Top {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        let query = StatsQuery { span: Duration::from_secs(60), ..StatsQuery::default() };
        let live = app.out.is_terminal() && !app.out.is_json();
        let last = self.n.unwrap_or(if app.out.is_terminal() { u64::MAX } else { 1 });
        let interval = Span::from(self.interval).max(Span::from_millis(100));
        for picture in 0..last {
            if picture > 0 {
                tokio::time::sleep(interval).await;
            }
            let stats = client.stats(&query).await?;
            if app.out.is_json() {
                app.out.object(&stats)?;
            } else if live {
                let body = stats::tables(app.out, &stats);
                app.out
                    .raw(format!("{HOME}{}  {}\n\n{body}\n", client.url(), stats.now).as_bytes())?;
            } else {
                app.out.line(stats::tables(app.out, &stats))?;
            }
        }
        Ok(Status::Done)
    }
}
