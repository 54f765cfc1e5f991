//! `tourbillon import systemd FILE`: a systemd timer as schedules.

use std::path::Path;

use anyhow::Context;
use clap::Args;
use tourbillon_import::Service;

use super::args::ImportArgs;
use crate::commands::App;
use crate::documents;
use crate::exit::{Status, usage};

/// Take over a systemd timer: a schedule for each of its OnCalendar, OnUnitActiveSec and
/// OnUnitInactiveSec. Running it again changes nothing.
#[derive(Debug, Args)]
pub(crate) struct Systemd {
    /// The .timer file. When the service that it starts lies beside it, its command is taken over; else
    /// the schedule runs systemctl start.
    file: String,
    /// Run systemctl start though the service lies beside the timer.
    #[arg(long)]
    systemctl: bool,
    #[command(flatten)]
    how: ImportArgs,
}

impl Systemd {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let path = Path::new(&self.file);
        let Some(timer) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(usage(format!("{}: expected a .timer file", self.file)));
        };
        let text = documents::read(&self.file)?;
        let name = tourbillon_import::service_of(timer, &text);
        let beside = path.with_file_name(&name);
        // A name with a folder in it would be read from there.
        let plain = !name.contains('/');
        let service = match plain && !self.systemctl && beside.is_file() {
            true => {
                let shown = beside.to_str().with_context(|| format!("cannot read {name}"))?;
                Some(documents::read(shown)?)
            }
            false => None,
        };
        let service = Service { name: &name, text: service.as_deref() };
        self.how
            .run(app, &self.file, |options| {
                tourbillon_import::systemd(timer, &text, service, options)
            })
            .await
    }
}
