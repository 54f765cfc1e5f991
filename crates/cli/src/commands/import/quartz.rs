//! `tourbillon import quartz FILE`: the triggers of Quartz job scheduling data as schedules.

use clap::Args;

use super::args::ImportArgs;
use crate::commands::App;
use crate::documents;
use crate::exit::Status;

/// Take over Quartz job scheduling data (XML): a schedule for each trigger. Running it again changes
/// nothing.
#[derive(Debug, Args)]
pub(crate) struct Quartz {
    /// The file; - for standard input.
    file: String,
    #[command(flatten)]
    how: ImportArgs,
}

impl Quartz {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let text = documents::read(&self.file)?;
        self.how.run(app, &self.file, |options| tourbillon_import::quartz(&text, options)).await
    }
}
