//! `tourbillon export`: tasks, schedules or calendars as NDJSON or YAML on standard output.

use clap::{Args, Subcommand};
use serde::Serialize;
use tourbillon_import::yaml;
use tourbillon_wire::{NewCalendar, NewSchedule, NewTask};

use super::schedule::list::all;
use super::task::filter::FilterArgs;
use super::task::list::Pages;
use super::{App, calendar};
use crate::exit::Status;
use crate::progress;

/// Write tasks, schedules or calendars as JSON, one a line, or as YAML to standard output.
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
    Schedules {
        /// As YAML documents instead of JSON, a line each.
        #[arg(long)]
        yaml: bool,
        /// The calendars before them, so that the whole can be applied to an empty server.
        #[arg(long)]
        with_calendars: bool,
    },
    /// Calendars, in the form that `calendar apply` and `schedule apply` read.
    Calendars {
        /// As YAML documents instead of JSON, a line each.
        #[arg(long)]
        yaml: bool,
    },
}

/// Writes one document.
fn document<T: Serialize>(app: &App, yaml: bool, document: &T) -> anyhow::Result<()> {
    match yaml {
        true => app.out.raw(yaml::write(document)?.as_bytes()),
        false => app.out.object(document),
    }
}

impl Export {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        let bar = progress::bar(None, "exported");
        let mut any = false;
        match self.what {
            What::Schedules { yaml, with_calendars } => {
                let calendars = match with_calendars {
                    true => calendar::all(&client).await?,
                    false => Vec::new(),
                };
                for calendar in calendars {
                    any = true;
                    document(app, yaml, &NewCalendar::from(calendar))?;
                    bar.inc(1);
                }
                for schedule in all(&client).await? {
                    any = true;
                    document(app, yaml, &NewSchedule::from(schedule))?;
                    bar.inc(1);
                }
            }
            What::Calendars { yaml } => {
                for calendar in calendar::all(&client).await? {
                    any = true;
                    document(app, yaml, &NewCalendar::from(calendar))?;
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
