//! `tourbillon import …`.

use clap::Subcommand;

use super::App;
use crate::exit::Status;

mod crontab;
mod ndjson;

#[derive(Debug, Subcommand)]
pub(crate) enum Import {
    Crontab(crontab::Crontab),
    Ndjson(ndjson::Ndjson),
}

impl Import {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        match self {
            Import::Crontab(command) => command.run(app).await,
            Import::Ndjson(command) => command.run(app).await,
        }
    }
}
