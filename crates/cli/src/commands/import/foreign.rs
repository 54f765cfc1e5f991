//! What the importers of other schedulers' documents share: the file, the dry run with the times before
//! and after, and the storing.

use anyhow::Context;
use comfy_table::Cell;
use serde::Serialize;
use tourbillon_import::{Entry, Import, Options};
use tourbillon_schedule::{Micros, Zone};
use tourbillon_wire::Timestamp;

use super::args::ImportArgs;
use crate::commands::App;
use crate::exit::Status;
use crate::output::{Out, opt, printable, text};
use crate::{progress, timing, when};

/// Times of each schedule that are compared, so that a change of clocks is among them where they are hours apart.
const COMPARED: usize = 1_000;

/// An entry, as shown.
#[derive(Serialize)]
struct Line {
    place: String,
    name: String,
    rule: String,
    tz: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// When the other scheduler fires next; absent when that depends on what it did before.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Vec<Timestamp>>,
    /// When the schedule fires next.
    new: Vec<Timestamp>,
    /// Where the two differ first, in the schedule's zone, as before and as after.
    #[serde(skip_serializing_if = "Option::is_none")]
    differs: Option<(Option<String>, Option<String>)>,
    #[serde(skip)]
    shown: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<Timestamp>,
}

impl ImportArgs {
    /// Reads a text by `read`, and shows or stores what it holds. `file` is what messages call it.
    pub(crate) async fn run(
        &self,
        app: &App,
        file: &str,
        read: impl FnOnce(&Options<'_>) -> Import,
    ) -> anyhow::Result<Status> {
        let (name, zone) = self.zone()?;
        let import = read(&Options { zone: &zone, queue: self.queue.as_deref() });
        if self.tz.is_none() {
            eprintln!("times without a zone are taken to be in {name}, this machine's; see --tz");
        }
        let say = |place: &str, kind: &str, text: &str| {
            let place = if place.is_empty() { String::new() } else { format!(": {place}") };
            eprintln!("{file}{}: {kind}: {}", printable(&place), printable(text));
        };
        for note in &import.notes {
            say(&note.place, "note", &note.text);
        }
        for entry in &import.entries {
            for note in &entry.notes {
                say(&entry.place, "note", &format!("{}: {note}", entry.name()));
            }
        }
        for error in &import.errors {
            say(&error.place, "error", &error.text);
        }
        if import.entries.is_empty() {
            eprintln!("nothing in {file} becomes a schedule");
            return Ok(Status::Nothing);
        }
        if self.dry_run {
            self.show(app.out, &import.entries)?;
        } else {
            store(app, file, &import.entries).await?;
        }
        Ok(Status::of(import.errors.is_empty()))
    }

    fn show(&self, out: Out, entries: &[Entry]) -> anyhow::Result<()> {
        let now = when::now();
        let mut lines: Vec<Line> = Vec::new();
        for entry in entries {
            let line = self.compared(entry, now)?;
            if let Some((old, new)) = &line.differs {
                let (name, old, new) = (&line.name, shown(old), shown(new));
                eprintln!(
                    "note: {name}: the times differ first where it was {old} and will be {new}"
                );
            }
            lines.push(line);
        }
        out.list(&lines, ["SCHEDULE", "RULE", "BEFORE", "AFTER"], |line| {
            let old = match &line.old {
                Some(old) => beside(old, &line.new, &line.tz),
                None => vec!["(by what it did)".to_owned()],
            };
            let joined = |times: &[String]| match times.is_empty() {
                true => Cell::new("never"),
                false => Cell::new(times.join("\n")),
            };
            [text(&line.name), text(&line.rule), joined(&old), joined(&line.shown)]
        })
    }

    fn compared(&self, entry: &Entry, now: Timestamp) -> anyhow::Result<Line> {
        let n = self.n as usize;
        let most = n.max(COMPARED);
        let timing = timing::timing(&entry.schedule, entry.name())
            .with_context(|| format!("{}: {}", entry.place, entry.name()))?;
        let all: Vec<Micros> =
            timing.occurrences_after(now.as_micros()).map(|o| o.logical).take(most).collect();
        let stamps = |times: &[Micros]| times.iter().copied().map(Timestamp::from_micros).collect();
        let before = entry.times_before(now.as_micros(), most);
        let at =
            |times: &[Micros], index: usize| times.get(index).map(|at| local(*at, timing.zone()));
        let differs = before.as_deref().and_then(|before| {
            let index = (0..most).find(|index| before.get(*index) != all.get(*index))?;
            Some((at(before, index), at(&all, index)))
        });
        let next = &all[..all.len().min(n)];
        let old = before.as_deref().map(|before| &before[..before.len().min(n)]);
        Ok(Line {
            place: entry.place.clone(),
            name: entry.name().to_owned(),
            rule: entry.rule.clone(),
            tz: timing.zone().name().to_owned(),
            notes: entry.notes.clone(),
            old: old.map(stamps),
            differs,
            shown: next.iter().map(|at| local(*at, timing.zone())).collect(),
            new: stamps(next),
            next_at: None,
        })
    }
}

fn shown(at: &Option<String>) -> &str {
    at.as_deref().unwrap_or("never")
}

/// The times of the other scheduler, those that ours does not have marked.
fn beside(old: &[Timestamp], new: &[Timestamp], tz: &str) -> Vec<String> {
    let zone = Zone::get(tz).unwrap_or_else(|_| Zone::utc());
    let one = |at: &Timestamp| {
        let mark = if new.contains(at) { "" } else { " !" };
        format!("{}{mark}", local(at.as_micros(), &zone))
    };
    old.iter().map(one).collect()
}

/// An instant in its zone, with offset and without the zone's name.
fn local(at: Micros, zone: &Zone) -> String {
    use tourbillon_schedule::{Rule, Timing};
    let text = match Rule::every(1_000) {
        Ok(rule) => Timing::new(rule, zone.clone()).local(at),
        Err(_) => Timestamp::from_micros(at).to_string(),
    };
    text.split('[').next().unwrap_or_default().to_owned()
}

async fn store(app: &App, file: &str, entries: &[Entry]) -> anyhow::Result<()> {
    let client = app.client()?;
    let bar = progress::bar(Some(entries.len() as u64), "schedules");
    let mut lines = Vec::new();
    for entry in entries {
        let stored = client
            .put_schedule(entry.name(), &entry.schedule)
            .await
            .with_context(|| format!("{file}: {}: schedule {}", entry.place, entry.name()))?;
        bar.inc(1);
        lines.push(Line {
            place: entry.place.clone(),
            name: stored.name,
            rule: entry.rule.clone(),
            tz: stored.tz,
            notes: entry.notes.clone(),
            old: None,
            new: Vec::new(),
            differs: None,
            shown: Vec::new(),
            next_at: stored.next_at,
        });
    }
    bar.finish_and_clear();
    app.out.list(&lines, ["SCHEDULE", "RULE", "TZ", "NEXT"], |line| {
        [text(&line.name), text(&line.rule), text(&line.tz), opt(line.next_at)]
    })
}
