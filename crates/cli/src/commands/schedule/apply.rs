//! `tourbillon schedule apply FILE...`: store schedules from documents.

use anyhow::{Context, bail};
use clap::Args;
use tourbillon_wire::NewSchedule;

use crate::commands::App;
use crate::documents;
use crate::exit::Status;

/// Store schedules from JSON documents: one, an array, or one a line. The same document twice
/// changes nothing.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// The files; - for standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// Only read the documents; change nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Apply {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        // All are read before the first is stored, so that a slip in the last file changes nothing.
        let mut documents = Vec::new();
        for file in &self.files {
            let text = documents::read(file)?;
            for document in documents::parse::<NewSchedule>(&text).with_context(|| file.clone())? {
                let Some(name) = document.name.clone() else {
                    bail!("{file}: name: a schedule has none; expected \"name\" in each document");
                };
                documents.push((name, document));
            }
        }
        if documents.is_empty() {
            eprintln!("no document in the files");
            return Ok(Status::Nothing);
        }
        let client = app.client()?;
        for (name, document) in &documents {
            if self.dry_run {
                app.out.either(document, format!("schedule {name} would be stored"))?;
                continue;
            }
            let schedule = client
                .put_schedule(name, document)
                .await
                .with_context(|| format!("schedule {name}"))?;
            app.out.either(
                &schedule,
                format!("schedule {name} stored, version {}", schedule.version),
            )?;
        }
        Ok(Status::Done)
    }
}
