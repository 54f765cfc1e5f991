//! `tourbillon schedule apply FILE...`: store schedules from documents.

use std::io::Read;

use anyhow::{Context, bail};
use clap::Args;
use tourbillon_wire::NewSchedule;

use crate::commands::App;
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

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

impl Apply {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        // All are read before the first is stored, so that a slip in the last file changes nothing.
        let mut documents = Vec::new();
        for file in &self.files {
            let text = read(file)?;
            for document in parse(&text).with_context(|| file.clone())? {
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

fn read(file: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    let source: Box<dyn Read> = match file {
        "-" => Box::new(std::io::stdin()),
        file => Box::new(std::fs::File::open(file).with_context(|| format!("cannot read {file}"))?),
    };
    let length = source
        .take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {file}"))?;
    if length as u64 > FILE_BYTES_MAX {
        bail!("{file} has more than {FILE_BYTES_MAX} bytes");
    }
    Ok(text)
}

/// One document, an array of them, or several one after the other.
fn parse(text: &str) -> anyhow::Result<Vec<NewSchedule>> {
    if text.trim_start().starts_with('[') {
        return Ok(tourbillon_wire::from_slice(text.as_bytes())?);
    }
    let documents = serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>();
    documents.map_err(|error: serde_json::Error| {
        let field = tourbillon_wire::path_at(text.as_bytes(), error.line(), error.column());
        tourbillon_wire::Problem::malformed(&error, field).into()
    })
}
