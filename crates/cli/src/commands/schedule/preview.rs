//! `tourbillon schedule preview …`: the next occurrences and why they are there.
//!
//! A rule given as options is worked out here, without a server; a stored schedule, and a rule
//! that names calendars, by the server.

use clap::Args;
use tourbillon_wire::{
    NewSchedule, Occurrence, PreviewQuery, PreviewRequest, Target, TaskTemplate, Timestamp,
};

use crate::commands::App;
use crate::exit::{Status, usage};
use crate::output::text;
use crate::rule::{RuleArgs, TimingArgs};
use crate::{timing, when};

/// Show the next occurrences of a rule, or of a stored schedule, and why they are there.
#[derive(Debug, Args)]
pub(crate) struct Preview {
    /// A stored schedule; without one, a rule is given by the options and no server is needed.
    #[arg(conflicts_with_all = ["rule", "RuleArgs", "TimingArgs", "seed"])]
    name: Option<String>,
    #[command(flatten)]
    rule: RuleArgs,
    #[command(flatten)]
    timing: TimingArgs,
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
        let items = match &self.name {
            Some(name) => {
                let query = PreviewQuery { after, n: Some(self.n), ..PreviewQuery::default() };
                app.client()?.preview_schedule(name, &query).await?.items
            }
            None if !self.rule.is_given() => {
                return Err(usage(
                    "what? give a schedule's NAME, or --cron, --every, --fixed-delay or --calendar",
                ));
            }
            None => self.by_rule(app, after).await?,
        };
        if items.is_empty() {
            eprintln!("there is no next occurrence: the rule never fires after that instant");
        }
        app.out
            .list(&items, ["AT", "LOCAL", "WHY"], |o| [text(o.at), text(&o.local), text(&o.why)])?;
        Ok(Status::of(!items.is_empty()))
    }

    async fn by_rule(
        &self,
        app: &App,
        after: Option<Timestamp>,
    ) -> anyhow::Result<Vec<Occurrence>> {
        // What the schedule would run does not matter here, but a document has a task.
        let mut document = NewSchedule::new(TaskTemplate::new(Target::worker()));
        self.rule.apply(&mut document)?;
        self.timing.apply(&mut document)?;
        let seed = self.seed.clone().unwrap_or_default();
        let timing = timing::timing(&document, &seed)?;
        if !document.exclude.is_empty() {
            document.name = self.seed.clone();
            let request = PreviewRequest {
                schedule: document,
                after,
                n: Some(self.n),
                calendars: Vec::new(),
            };
            return Ok(app.client()?.preview(&request).await?.items);
        }
        let n = document.max_runs.map_or(u64::from(self.n), |max| max.min(u64::from(self.n)));
        Ok(timing::occurrences(&timing, after.unwrap_or_else(when::now), n as usize))
    }
}
