//! `tourbillon schedule list`.

use clap::Args;
use tourbillon_client::Client;
use tourbillon_wire::{Schedule, ScheduleListQuery};

use crate::commands::App;
use crate::exit::Status;
use crate::output::{opt, state, text, yes};

/// List schedules.
#[derive(Debug, Args)]
pub(crate) struct List {}

impl List {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let schedules = all(&app.client()?).await?;
        if schedules.is_empty() {
            eprintln!("there is no schedule");
        }
        app.out.list(&schedules, ["NAME", "RULE", "TZ", "PAUSED", "NEXT", "LAST"], |s| {
            [
                text(&s.name),
                text(rule(s)),
                text(&s.tz),
                yes(s.paused),
                opt(s.next_at),
                s.last.as_ref().map_or_else(|| opt(None::<String>), |last| state(last.state)),
            ]
        })?;
        Ok(Status::of(!schedules.is_empty()))
    }
}

/// Every schedule of the namespace.
pub(crate) async fn all(client: &Client) -> anyhow::Result<Vec<Schedule>> {
    let mut query = ScheduleListQuery { limit: Some(1000), ..ScheduleListQuery::default() };
    let mut schedules = Vec::new();
    loop {
        let page = client.schedules(&query).await?;
        schedules.extend(page.items);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return Ok(schedules);
        }
    }
}

/// The rule in a few words.
pub(crate) fn rule(s: &Schedule) -> String {
    if let Some(cron) = &s.cron {
        return cron.clone();
    }
    if let Some(every) = s.every {
        return format!("every {every}");
    }
    if let Some(after) = s.after {
        return format!("{after} after each run");
    }
    s.calendar.as_ref().map_or_else(String::new, |c| {
        let on = match &c.on {
            Some(tourbillon_wire::On::Day(day)) => format!(" on {day}"),
            Some(tourbillon_wire::On::Name(name)) => format!(" on {name}"),
            None => String::new(),
        };
        let skip = match c.month_end {
            Some(tourbillon_wire::MonthEnd::Skip) => " (months without it skipped)",
            _ => "",
        };
        format!("every {}{on} at {}{skip}", c.every, c.at.as_deref().unwrap_or("00:00"))
    })
}
