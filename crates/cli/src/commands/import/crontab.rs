//! `tourbillon import crontab FILE`: a crontab's lines as schedules with command targets.

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use tourbillon_schedule::{Crontab as Parsed, CrontabFormat};
use tourbillon_wire::{Occurrence, Timestamp};

use super::args::ImportArgs;
use crate::commands::App;
use crate::exit::Status;
use crate::output::{Out, opt, text};
use crate::{crontab, documents, progress, timing, when};

/// Take over a crontab: a schedule for each line. Running it again changes nothing.
#[derive(Debug, Args)]
pub(crate) struct Crontab {
    /// The file; - for standard input, as in `crontab -l | tourbillon import crontab -`.
    file: String,
    /// It is a system crontab, with a user in each line (/etc/crontab, /etc/cron.d).
    #[arg(long)]
    system: bool,
    #[command(flatten)]
    how: ImportArgs,
}

/// One line of the crontab, as shown.
#[derive(Serialize)]
struct Line {
    line: usize,
    name: String,
    cron: String,
    tz: String,
    command: String,
    next: Vec<Occurrence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<Timestamp>,
}

impl Crontab {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let content = documents::read(&self.file)?;
        let (zone_name, zone) = self.how.zone()?;
        let format = if self.system { CrontabFormat::System } else { CrontabFormat::User };
        let parsed = Parsed::parse(&content, format, &zone);
        if self.how.tz.is_none() {
            eprintln!("times are taken to be in {zone_name}, this machine's zone; see --tz");
        }
        for note in &parsed.notes {
            eprintln!("{}:{}: note: {}", self.file, note.line, note.text);
        }
        for entry in parsed.entries.iter() {
            if let Some(user) = &entry.user {
                eprintln!(
                    "{}:{}: note: it ran as {user}; commands run as the server's user",
                    self.file, entry.line
                );
            }
        }
        for error in &parsed.errors {
            eprintln!("{}:{}: error: {}", self.file, error.line, error.error);
        }
        if parsed.entries.is_empty() {
            eprintln!("no line of {} runs a command", self.file);
            return Ok(Status::Nothing);
        }
        if self.how.dry_run {
            self.show(app.out, &parsed)?;
        } else {
            self.store(app, &parsed).await?;
        }
        Ok(Status::of(parsed.errors.is_empty()))
    }

    fn show(&self, out: Out, parsed: &Parsed) -> anyhow::Result<()> {
        let now = when::now();
        let lines: Vec<Line> = parsed
            .entries
            .iter()
            .map(|entry| Line {
                line: entry.line,
                name: entry.name.clone(),
                cron: entry.expr.as_str().to_owned(),
                tz: entry.zone.name().to_owned(),
                command: entry.command.clone(),
                next: timing::preview(&entry.timing(), &[], now, self.how.n as usize).items,
                next_at: None,
            })
            .collect();
        out.list(&lines, ["LINE", "SCHEDULE", "CRON", "NEXT", "COMMAND"], |l| {
            let next: Vec<&str> = l.next.iter().filter_map(|o| o.local.split('[').next()).collect();
            [
                text(l.line),
                text(&l.name),
                text(&l.cron),
                // Not through `text`: one time a line.
                comfy_table::Cell::new(if next.is_empty() {
                    "never".to_owned()
                } else {
                    next.join("\n")
                }),
                text(&l.command),
            ]
        })
    }

    async fn store(&self, app: &App, parsed: &Parsed) -> anyhow::Result<()> {
        let client = app.client()?;
        let bar = progress::bar(Some(parsed.entries.len() as u64), "schedules");
        let mut lines = Vec::new();
        for entry in &parsed.entries {
            let document = crontab::schedule(entry, self.how.queue.as_deref());
            let stored = client.put_schedule(&entry.name, &document).await.with_context(|| {
                format!("{}:{}: schedule {}", self.file, entry.line, entry.name)
            })?;
            bar.inc(1);
            lines.push(Line {
                line: entry.line,
                name: stored.name,
                cron: entry.expr.as_str().to_owned(),
                tz: stored.tz,
                command: entry.command.clone(),
                next: Vec::new(),
                next_at: stored.next_at,
            });
        }
        bar.finish_and_clear();
        app.out.list(&lines, ["LINE", "SCHEDULE", "CRON", "NEXT", "COMMAND"], |l| {
            [text(l.line), text(&l.name), text(&l.cron), opt(l.next_at), text(&l.command)]
        })
    }
}
