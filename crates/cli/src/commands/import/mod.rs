//! `tourbillon import …`.

use clap::Subcommand;

use super::App;
use crate::exit::Status;

mod args;
mod crontab;
mod foreign;
mod k8s;
mod ndjson;
mod quartz;
mod systemd;

#[derive(Debug, Subcommand)]
pub(crate) enum Import {
    Crontab(crontab::Crontab),
    Quartz(quartz::Quartz),
    K8s(k8s::K8s),
    Systemd(systemd::Systemd),
    Ndjson(ndjson::Ndjson),
}

impl Import {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        match self {
            Import::Crontab(command) => command.run(app).await,
            Import::Quartz(command) => command.run(app).await,
            Import::K8s(command) => command.run(app).await,
            Import::Systemd(command) => command.run(app).await,
            Import::Ndjson(command) => command.run(app).await,
        }
    }
}
