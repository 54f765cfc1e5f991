//! What every importer of schedules is told beside its file.

use clap::Args;
use tourbillon_schedule::Zone;

use crate::{crontab, when};

/// The options of every importer of schedules.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The zone of times that name none [default: this machine's].
    #[arg(long, value_name = "ZONE")]
    pub(super) tz: Option<String>,
    /// The queue of the tasks [default: default].
    #[arg(long, value_name = "NAME")]
    pub(super) queue: Option<String>,
    /// Only show the next times, before and after, and what cannot be carried over.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// With --dry-run: how many times to show of each schedule.
    #[arg(short, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100), value_name = "N")]
    pub(super) n: u32,
}

impl ImportArgs {
    /// The zone of times that name none, with its name: the one that was asked for, or this machine's.
    pub(super) fn zone(&self) -> anyhow::Result<(String, Zone)> {
        let name = self.tz.clone().or_else(crontab::host_zone).unwrap_or_else(|| "UTC".to_owned());
        let zone = when::zone(&name)?;
        Ok((name, zone))
    }
}
