//! `tourbillon calendar list`.

use clap::Args;
use tourbillon_wire::{Calendar, NewCalendar};

use crate::commands::App;
use crate::exit::Status;
use crate::output::{opt, text};
use crate::{calendar, when};

/// List calendars of days that schedules leave out.
#[derive(Debug, Args)]
pub(crate) struct List {}

impl List {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let calendars = super::all(&app.client()?).await?;
        if calendars.is_empty() {
            eprintln!("there is no calendar");
        }
        let header = ["NAME", "DATES", "RANGES", "WEEKDAYS", "EVENTS", "NEXT DAY", "VERSION"];
        app.out.list(&calendars, header, |c| {
            [
                text(&c.name),
                text(c.dates.len()),
                text(c.ranges.len()),
                opt((!c.weekdays.is_empty()).then(|| c.weekdays.join(","))),
                text(events(c)),
                opt(next_days(c, 1).pop()),
                text(c.version),
            ]
        })?;
        Ok(Status::of(!calendars.is_empty()))
    }
}

/// How many events its iCalendar text has.
pub(super) fn events(c: &Calendar) -> usize {
    c.ics.as_deref().map_or(0, |text| text.matches("BEGIN:VEVENT").count())
}

/// The days that it leaves out from today on, in UTC.
pub(super) fn next_days(c: &Calendar, n: usize) -> Vec<String> {
    let Ok(days) = calendar::days(&NewCalendar::from(c.clone())) else { return Vec::new() };
    days.days_from(when::now().as_micros()).take(n).map(|(day, _)| day).collect()
}
