//! `tourbillon schedule preview …`: the next occurrences and why they are there.
//!
//! A rule given as options is worked out here, without a server, calendars from files with it; a
//! stored schedule, and a rule that names stored calendars, by the server.

use std::sync::Arc;

use clap::Args;
use tourbillon_schedule::Exclusion;
use tourbillon_wire::{
    LeftOut, NewCalendar, NewSchedule, Preview as Shown, PreviewQuery, PreviewRequest, Target,
    TaskTemplate, Timestamp,
};

use crate::commands::App;
use crate::exit::{Status, usage};
use crate::output::text;
use crate::rule::{RuleArgs, TimingArgs};
use crate::{calendar, timing, when};

/// Show the next occurrences of a rule, or of a stored schedule, and why they are there or left out.
#[derive(Debug, Args)]
pub(crate) struct Preview {
    /// A stored schedule; without one, a rule is given by the options and no server is needed.
    #[arg(conflicts_with_all = ["rule", "RuleArgs", "TimingArgs", "seed", "exclude_file"])]
    name: Option<String>,
    #[command(flatten)]
    rule: RuleArgs,
    #[command(flatten)]
    timing: TimingArgs,
    /// A calendar whose days are left out, from a file: a calendar document (JSON) or an iCalendar
    /// file, which needs no server; can be repeated.
    #[arg(long, value_name = "FILE")]
    exclude_file: Vec<String>,
    /// Only occurrences strictly after this instant [default: now].
    #[arg(long, value_name = "INSTANT")]
    after: Option<String>,
    /// How many.
    #[arg(short, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "N")]
    n: u32,
    /// Stands for the schedule's name where ~ or jitter needs it.
    #[arg(long, value_name = "NAME")]
    seed: Option<String>,
}

impl Preview {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let tz = Some(self.timing.tz.as_deref().unwrap_or("UTC"));
        let after =
            self.after.as_deref().map(|after| when::instant("--after", after, tz)).transpose()?;
        let preview = match &self.name {
            Some(name) => {
                let query = PreviewQuery { after, n: Some(self.n), ..PreviewQuery::default() };
                app.client()?.preview_schedule(name, &query).await?
            }
            None if !self.rule.is_given() => {
                return Err(usage(
                    "what? give a schedule's NAME, or --cron, --every, --fixed-delay or --calendar",
                ));
            }
            None => self.by_rule(app, after).await?,
        };
        print(app, &preview)?;
        Ok(Status::of(!preview.items.is_empty()))
    }

    async fn by_rule(&self, app: &App, after: Option<Timestamp>) -> anyhow::Result<Shown> {
        // What the schedule would run does not matter here, but a document has a task.
        let mut document = NewSchedule::new(TaskTemplate::new(Target::worker()));
        self.rule.apply(&mut document)?;
        self.timing.apply(&mut document)?;
        let seed = self.seed.clone().unwrap_or_default();
        let timing = timing::timing(&document, &seed)?;
        let (calendars, days) = self.calendars()?;
        let names: Vec<String> = calendars.iter().filter_map(|c| c.name.clone()).collect();
        if !document.exclude.is_empty() {
            document.name = self.seed.clone();
            document.exclude.extend(names);
            let n = Some(self.n);
            let request = PreviewRequest { schedule: document, after, n, calendars };
            return Ok(app.client()?.preview(&request).await?);
        }
        let n = document.max_runs.map_or(u64::from(self.n), |max| max.min(u64::from(self.n)));
        let timing = timing.with_exclusions(days);
        Ok(timing::preview(&timing, &names, after.unwrap_or_else(when::now), n as usize))
    }

    /// The calendars from files, each with a name, and their days.
    fn calendars(&self) -> anyhow::Result<(Vec<NewCalendar>, Vec<Arc<Exclusion>>)> {
        let mut calendars = Vec::new();
        let mut days = Vec::new();
        for file in &self.exclude_file {
            let mut found = calendar::from_file(file)?;
            let of_file = calendar::days(&found).map_err(|e| usage(format!("{file}: {e}")))?;
            found.name.get_or_insert_with(|| format!("calendar {}", calendars.len() + 1));
            if calendars.iter().any(|other: &NewCalendar| other.name == found.name) {
                let name = found.name.unwrap_or_default();
                return Err(usage(format!("{file}: another calendar is called {name} too")));
            }
            days.push(Arc::new(of_file));
            calendars.push(found);
        }
        Ok((calendars, days))
    }
}

/// Writes the occurrences; in a table what is left out stands among them, in order of time.
fn print(app: &App, preview: &Shown) -> anyhow::Result<()> {
    let Shown { items, left_out } = preview;
    if items.is_empty() {
        let why = match left_out.is_empty() {
            true => "the rule never fires after that instant",
            false => "calendars leave out every time that the rule has",
        };
        eprintln!("there is no next occurrence: {why}");
    }
    if items.is_empty() || app.out.is_json() {
        for run in left_out {
            eprintln!("{} {}", run.from, told(run));
        }
        return app.out.list(items, [""; 0], |_| []);
    }
    let mut rows = Vec::new();
    let add = |rows: &mut Vec<_>, runs: &[LeftOut]| {
        rows.extend(runs.iter().map(|run| (run.from, run.local.clone(), told(run))));
    };
    for o in items {
        add(&mut rows, &o.left_out);
        rows.push((o.at, o.local.clone(), o.why.clone()));
    }
    add(&mut rows, left_out);
    app.out
        .list(&rows, ["AT", "LOCAL", "WHY"], |(at, local, why)| [text(at), text(local), text(why)])
}

/// Why occurrences are left out.
fn told(run: &LeftOut) -> String {
    let LeftOut { calendar, why, .. } = run;
    match run.count {
        1 => format!("left out by {calendar}: {why}"),
        n => format!("left out by {calendar}: {why} ({n} times until {})", run.to),
    }
}
