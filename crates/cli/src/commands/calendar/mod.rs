//! `tourbillon calendar …`.

use clap::Subcommand;
use tourbillon_client::Client;
use tourbillon_wire::{Calendar as Shown, NewCalendar, ScheduleListQuery};

use super::App;
use crate::exit::Status;

mod apply;
mod delete;
mod list;
mod put;
mod show;

/// Calendars of one page of a list: documents can be long.
const PAGE: u32 = 100;

#[derive(Debug, Subcommand)]
pub(crate) enum Calendar {
    List(list::List),
    Show(show::Show),
    Put(put::Put),
    Apply(apply::Apply),
    Delete(delete::Delete),
}

impl Calendar {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        match self {
            Calendar::List(command) => command.run(app).await,
            Calendar::Show(command) => command.run(app).await,
            Calendar::Put(command) => command.run(app).await,
            Calendar::Apply(command) => command.run(app).await,
            Calendar::Delete(command) => command.run(app).await,
        }
    }
}

/// Every calendar of the namespace.
pub(crate) async fn all(client: &Client) -> anyhow::Result<Vec<Shown>> {
    let mut query = ScheduleListQuery { limit: Some(PAGE), ..ScheduleListQuery::default() };
    let mut calendars = Vec::new();
    loop {
        let page = client.calendars(&query).await?;
        calendars.extend(page.items);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return Ok(calendars);
        }
    }
}

/// Stores a calendar and says so.
async fn store(app: &App, name: &str, calendar: &NewCalendar) -> anyhow::Result<()> {
    let stored = app.client()?.put_calendar(name, calendar).await?;
    let used = match stored.used_by.len() {
        0 => "no schedule names it".to_owned(),
        1 => "1 schedule is planned by it".to_owned(),
        n => format!("{n} schedules are planned by it"),
    };
    let text = format!("calendar {name} stored, version {}; {used}", stored.version);
    app.out.either(&stored, text)
}
