//! `tourbillon task list …`: tasks, newest first.

use clap::Args;
use tourbillon_client::Client;
use tourbillon_wire::{Task, TaskListQuery};

use super::filter::FilterArgs;
use crate::commands::App;
use crate::exit::Status;
use crate::output::{instant, opt, state, text};

/// List tasks, newest first; with a due range by due time.
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    filter: FilterArgs,
    /// How many at most.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// All of them.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl List {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        let mut pages =
            Pages::new(self.filter.query()?, if self.all { u64::MAX } else { self.limit });
        let mut any = false;
        while let Some(tasks) = pages.next(&client).await? {
            any |= !tasks.is_empty();
            app.out.list(
                &tasks,
                ["ID", "STATE", "QUEUE", "KIND", "KEY", "DUE", "ATTEMPT", "SCHEDULE"],
                |t: &Task| {
                    [
                        text(t.id),
                        state(t.state),
                        text(&t.queue),
                        text(&t.kind),
                        opt(t.key.as_ref()),
                        instant(t.due_at),
                        text(t.attempt),
                        opt(t.schedule.as_ref()),
                    ]
                },
            )?;
        }
        if !any {
            eprintln!("no task matches");
        } else if pages.more {
            eprintln!("there are more; see --limit and --all");
        }
        Ok(Status::of(any))
    }
}

/// The pages of a list, up to a number of tasks.
pub(crate) struct Pages {
    query: TaskListQuery,
    left: u64,
    done: bool,
    /// Whether the server has more than were asked for.
    pub(crate) more: bool,
}

/// How many tasks are asked for at once.
const PAGE: u64 = 500;

impl Pages {
    pub(crate) fn new(query: TaskListQuery, limit: u64) -> Pages {
        Pages { query, left: limit, done: false, more: false }
    }

    /// The next page, which can be empty when the server looked at many tasks in vain.
    pub(crate) async fn next(&mut self, client: &Client) -> anyhow::Result<Option<Vec<Task>>> {
        if self.done {
            return Ok(None);
        }
        self.query.limit = u32::try_from(self.left.min(PAGE)).ok();
        let page = client.tasks(&self.query).await?;
        self.left = self.left.saturating_sub(page.items.len() as u64);
        self.more = page.next_cursor.is_some();
        self.done = self.left == 0 || !self.more;
        self.query.cursor = page.next_cursor;
        Ok(Some(page.items))
    }
}
