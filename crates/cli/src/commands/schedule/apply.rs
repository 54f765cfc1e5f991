//! `tourbillon schedule apply PATH...`: schedules and calendars as files say.
//!
//! What always holds: everything is read and judged before the first is stored, so a slip in the last
//! file changes nothing; the same files twice change nothing; nothing is removed unless that is asked for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use tourbillon_client::Client;
use tourbillon_wire::{Calendar, NewCalendar, NewSchedule, Schedule};

use super::list;
use crate::commands::{App, calendar};
use crate::documents::{self, Document};
use crate::exit::{Status, usage};
use crate::{difference, progress, timing};

/// Store schedules, and calendars that they name, as files say: YAML or JSON, several documents a file.
/// The same files twice change nothing.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// Files, or folders whose .yaml, .yml, .json and .ndjson files are read; - for standard input.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,
    /// Remove schedules and calendars of the namespace that no file has.
    #[arg(long)]
    prune: bool,
    /// Only show what would change.
    #[arg(long)]
    dry_run: bool,
}

/// What becomes of a schedule or calendar, as shown.
#[derive(Serialize)]
struct Line {
    what: &'static str,
    name: String,
    /// `created`, `changed`, `unchanged`, `removed`.
    change: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
    dry_run: bool,
}

impl Line {
    /// The server has the last word on whether something that it had has changed.
    fn stored(&mut self, changed: bool) {
        if !changed {
            self.fields.clear();
        } else if self.fields.is_empty() {
            self.fields.push("stored anew".to_owned());
        }
    }

    fn settled(mut self) -> Line {
        if !self.fields.is_empty() {
            self.change = "changed";
        }
        self
    }
}

/// The documents of all files by name.
#[derive(Default)]
struct Wanted {
    calendars: BTreeMap<String, NewCalendar>,
    schedules: BTreeMap<String, NewSchedule>,
}

impl Apply {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let wanted = self.read()?;
        if wanted.calendars.is_empty() && wanted.schedules.is_empty() {
            // Nor is anything removed: an empty folder is more likely a slip than a wish.
            eprintln!("no document in the files");
            return Ok(Status::Nothing);
        }
        let client = app.client()?;
        let work = wanted.calendars.len() + wanted.schedules.len();
        let bar = progress::bar(Some(work as u64), "documents");
        let mut lines = Vec::new();
        let stored = calendar::all(&client).await?;
        let calendars: BTreeMap<String, Calendar> =
            stored.into_iter().map(|c| (c.name.clone(), c)).collect();
        for (name, document) in &wanted.calendars {
            let old = calendars.get(name);
            let mut line = self.line("calendar", name, old.is_some());
            if let Some(old) = old {
                let document = NewCalendar { name: Some(name.clone()), ..document.clone() };
                line.fields = difference::of(&NewCalendar::from(old.clone()), &document)?;
            }
            if !self.dry_run {
                let put = client.put_calendar(name, document).await;
                let put = put.with_context(|| format!("calendar {name}"))?;
                line.stored(old.is_some_and(|old| old.version != put.version));
            }
            bar.inc(1);
            lines.push(line.settled());
        }
        let stored = list::all(&client).await?;
        let schedules: BTreeMap<String, Schedule> =
            stored.into_iter().map(|s| (s.name.clone(), s)).collect();
        for (name, document) in &wanted.schedules {
            let old = schedules.get(name);
            let mut line = self.line("schedule", name, old.is_some());
            if let Some(old) = old {
                let old = NewSchedule::from(old.clone());
                let filled = difference::filled(document.clone(), &old);
                line.fields = difference::of(&old, &filled)?;
            }
            if !self.dry_run {
                let put = client.put_schedule(name, document).await;
                let put = put.with_context(|| format!("schedule {name}"))?;
                line.stored(old.is_some_and(|old| old.updated_at != put.updated_at));
            }
            bar.inc(1);
            lines.push(line.settled());
        }
        if self.prune {
            let kept: BTreeSet<&String> = wanted.schedules.keys().collect();
            let gone = schedules.keys().filter(|name| !kept.contains(name));
            self.remove(&client, "schedule", gone, &mut lines).await?;
            let kept: BTreeSet<&String> = wanted.calendars.keys().collect();
            let gone = calendars.keys().filter(|name| !kept.contains(name));
            self.remove(&client, "calendar", gone, &mut lines).await?;
        }
        bar.finish_and_clear();
        for line in &lines {
            let fields = match line.fields.is_empty() {
                true => String::new(),
                false => format!(": {}", line.fields.join("; ")),
            };
            let would = if self.dry_run && line.change != "unchanged" { "would be " } else { "" };
            app.out.either(
                line,
                format!("{} {} {would}{}{fields}", line.what, line.name, line.change),
            )?;
        }
        Ok(Status::Done)
    }

    fn read(&self) -> anyhow::Result<Wanted> {
        let mut wanted = Wanted::default();
        for file in documents::files(&self.paths)? {
            for document in documents::rules(&file)? {
                let place = document.place;
                match document.document {
                    Document::Schedule(schedule) => {
                        let name = named(&place, "schedule", schedule.name.as_ref())?;
                        check(&schedule, &name).with_context(|| format!("{place}: {name}"))?;
                        if wanted.schedules.insert(name.clone(), *schedule).is_some() {
                            bail!("{place}: the schedule {name} comes twice");
                        }
                    }
                    Document::Calendar(calendar) => {
                        let name = named(&place, "calendar", calendar.name.as_ref())?;
                        crate::calendar::days(&calendar)
                            .map_err(|e| usage(format!("{place}: {name}: {e}")))?;
                        if wanted.calendars.insert(name.clone(), calendar).is_some() {
                            bail!("{place}: the calendar {name} comes twice");
                        }
                    }
                }
            }
        }
        Ok(wanted)
    }

    /// What is to become of one, before its differences are known.
    fn line(&self, what: &'static str, name: &str, known: bool) -> Line {
        let change = if known { "unchanged" } else { "created" };
        Line { what, name: name.to_owned(), change, fields: Vec::new(), dry_run: self.dry_run }
    }

    async fn remove<'a>(
        &self,
        client: &Client,
        what: &'static str,
        names: impl Iterator<Item = &'a String>,
        lines: &mut Vec<Line>,
    ) -> anyhow::Result<()> {
        for name in names {
            if !self.dry_run {
                let removed = match what {
                    "schedule" => client.remove_schedule(name).await,
                    _ => client.remove_calendar(name).await,
                };
                removed.with_context(|| format!("{what} {name}"))?;
            }
            lines.push(Line {
                what,
                name: name.clone(),
                change: "removed",
                fields: Vec::new(),
                dry_run: self.dry_run,
            });
        }
        Ok(())
    }
}

fn named(place: &str, what: &str, name: Option<&String>) -> anyhow::Result<String> {
    name.cloned().with_context(|| {
        format!("{place}: name: a {what} has none; expected \"name\" in each document")
    })
}

/// What can be judged without the server: that there is one rule, and that it makes sense.
fn check(schedule: &NewSchedule, name: &str) -> anyhow::Result<()> {
    let rules = [
        schedule.cron.is_some(),
        schedule.every.is_some(),
        schedule.after.is_some(),
        schedule.calendar.is_some(),
    ];
    match rules.into_iter().filter(|given| *given).count() {
        1 => timing::timing(schedule, name).map(|_| ()),
        n => Err(usage(format!("{n} rules; expected one of cron, every, after, calendar"))),
    }
}
