//! `tourbillon export`: tasks, schedules or calendars as NDJSON on standard output.

use clap::{Args, Subcommand};
use tourbillon_wire::{NewCalendar, NewSchedule, NewTask};

use super::schedule::list::all;
use super::task::filter::FilterArgs;
use super::task::list::Pages;
use super::{App, calendar};
use crate::exit::Status;
use crate::progress;

/// Write tasks, schedules or calendars as JSON, one a line, to standard output.
#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Tasks with payloads and attempts.
    Tasks {
        #[command(flatten)]
        filter: FilterArgs,
        /// In the form that `import ndjson` reads, without what became of them.
        #[arg(long)]
        importable: bool,
    },
    /// Schedules, in the form that `schedule apply` reads.
    Schedules,
    /// Calendars, in the form that `calendar apply` reads: to be stored before schedules that name
    /// them.
    Calendars,
}

impl Export {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        let bar = progress::bar(None, "exported");
        let mut any = false;
        match self.what {
            What::Schedules => {
                for schedule in all(&client).await? {
                    any = true;
                    app.out.object(&NewSchedule::from(schedule))?;
                    bar.inc(1);
                }
            }
            What::Calendars => {
                for calendar in calendar::all(&client).await? {
                    any = true;
                    app.out.object(&NewCalendar::from(calendar))?;
                    bar.inc(1);
                }
            }
            What::Tasks { filter, importable } => {
                let mut pages = Pages::new(filter.query()?, u64::MAX);
                while let Some(tasks) = pages.next(&client).await? {
                    for listed in tasks {
                        // Lists have no payloads. What was deleted meanwhile is not there any more.
                        let task = match client.task(listed.id).await {
                            Err(error) if error.is_not_found() => continue,
                            task => task?,
                        };
                        any = true;
                        match importable {
                            true => app.out.object(&NewTask::from(task))?,
                            false => app.out.object(&task)?,
                        }
                        bar.inc(1);
                    }
                }
            }
        }
        bar.finish_and_clear();
        if !any {
            eprintln!("nothing to export");
        }
        Ok(Status::of(any))
    }
}
