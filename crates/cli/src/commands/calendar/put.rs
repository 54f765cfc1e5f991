//! `tourbillon calendar put NAME …`: create or replace a calendar.

use clap::Args;
use tourbillon_wire::{DateRange, NewCalendar};

use crate::calendar;
use crate::commands::App;
use crate::exit::{Status, usage};

/// Create or replace a calendar: the union of everything given. The same again changes nothing.
#[derive(Debug, Args)]
pub(crate) struct Put {
    /// Its name.
    name: String,
    /// A calendar document (JSON) or an iCalendar file; - for standard input.
    #[arg(value_name = "FILE")]
    file: Option<String>,
    /// A date, such as 2026-10-01; can be repeated.
    #[arg(long = "date", value_name = "DATE", value_delimiter = ',')]
    dates: Vec<String>,
    /// The dates from one to another, such as 2026-10-01..2026-10-07; can be repeated.
    #[arg(long = "range", value_name = "FROM..TO", value_parser = range)]
    ranges: Vec<DateRange>,
    /// A day of the week, mon to sun; can be repeated.
    #[arg(long = "weekday", value_name = "DAY", value_delimiter = ',')]
    weekdays: Vec<String>,
}

fn range(given: &str) -> Result<DateRange, String> {
    let (from, to) =
        given.split_once("..").ok_or("expected FROM..TO, such as 2026-10-01..2026-10-07")?;
    Ok(DateRange { from: from.to_owned(), to: to.to_owned() })
}

impl Put {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let by_options = [self.dates.len(), self.ranges.len(), self.weekdays.len()];
        let mut document = match &self.file {
            Some(file) => calendar::from_file(file)?,
            None if by_options == [0; 3] => {
                return Err(usage("which days? give --date, --range, --weekday or a FILE"));
            }
            None => NewCalendar::default(),
        };
        // What the file is called does not matter here.
        document.name = None;
        document.dates.extend(self.dates);
        document.ranges.extend(self.ranges);
        document.weekdays.extend(self.weekdays);
        calendar::days(&document).map_err(usage)?;
        super::store(app, &self.name, &document).await?;
        Ok(Status::Done)
    }
}
