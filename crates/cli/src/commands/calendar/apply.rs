//! `tourbillon calendar apply FILE...`: store calendars from documents.

use anyhow::{Context, bail};
use clap::Args;
use tourbillon_wire::NewCalendar;

use crate::commands::App;
use crate::exit::{Status, usage};
use crate::{calendar, documents};

/// Store calendars from JSON documents: one, an array, or one a line, as `export calendars` writes
/// them. The same document twice changes nothing.
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
        let mut named: Vec<(String, NewCalendar)> = Vec::new();
        for file in &self.files {
            let text = documents::read(file)?;
            for document in documents::parse::<NewCalendar>(&text).with_context(|| file.clone())? {
                let Some(name) = document.name.clone() else {
                    bail!("{file}: name: a calendar has none; expected \"name\" in each document");
                };
                calendar::days(&document).map_err(|e| usage(format!("{file}: {name}: {e}")))?;
                named.push((name, document));
            }
        }
        if named.is_empty() {
            eprintln!("no document in the files");
            return Ok(Status::Nothing);
        }
        for (name, document) in &named {
            if self.dry_run {
                app.out.either(document, format!("calendar {name} would be stored"))?;
            } else {
                super::store(app, name, document)
                    .await
                    .with_context(|| format!("calendar {name}"))?;
            }
        }
        Ok(Status::Done)
    }
}
