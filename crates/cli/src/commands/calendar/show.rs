//! `tourbillon calendar show NAME`.

use clap::Args;
use tourbillon_wire::Calendar;

use super::list::{events, next_days};
use crate::commands::App;
use crate::exit::Status;
use crate::output::{Out, text, trimmed};

/// Next days that are shown.
const DAYS: usize = 10;
/// Dates and ranges that are written out.
const LISTED_MAX: usize = 20;

/// Show a calendar, the schedules that name it, and the days it leaves out next.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Its name.
    name: String,
}

impl Show {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let calendar = app.client()?.calendar(&self.name).await?;
        if app.out.is_json() {
            app.out.object(&calendar)?;
        } else {
            print(app.out, &calendar)?;
        }
        Ok(Status::Done)
    }
}

fn print(out: Out, c: &Calendar) -> anyhow::Result<()> {
    let ranges: Vec<String> = c.ranges.iter().map(|r| format!("{} to {}", r.from, r.to)).collect();
    let next = next_days(c, DAYS);
    let rows = [
        ("name", Some(c.name.clone())),
        ("namespace", Some(c.namespace.clone())),
        ("dates", some(&c.dates)),
        ("ranges", some(&ranges)),
        ("weekdays", some(&c.weekdays)),
        ("events", c.ics.is_some().then(|| events(c).to_string())),
        ("used by", some(&c.used_by)),
        ("next days", Some(some(&next).unwrap_or_else(|| "none".to_owned()))),
        ("version", Some(c.version.to_string())),
        ("changed", Some(c.updated_at.to_string())),
    ];
    let mut table = out.bare_table();
    for (name, value) in rows {
        if let Some(value) = value {
            table.add_row([text(name), text(value)]);
        }
    }
    out.line(trimmed(table))
}

/// The first of many, and how many there are.
fn some(items: &[String]) -> Option<String> {
    match items.len() {
        0 => None,
        n if n <= LISTED_MAX => Some(items.join(", ")),
        n => Some(format!("{}, … ({n} in all)", items[..LISTED_MAX].join(", "))),
    }
}
