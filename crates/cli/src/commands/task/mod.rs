//! `tourbillon task …`.

use clap::Subcommand;

use super::App;
use crate::exit::Status;

pub(crate) mod add;
mod cancel;
mod edit;
pub(crate) mod filter;
pub(crate) mod list;
mod logs;
mod many;
mod retry;
mod run;
mod show;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    Add(add::Add),
    List(list::List),
    Show(show::Show),
    Edit(edit::Edit),
    Cancel(cancel::Cancel),
    Retry(retry::Retry),
    Run(run::Run),
    Logs(logs::Logs),
}

impl Task {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        match self {
            Task::Add(command) => command.run(app).await,
            Task::List(command) => command.run(app).await,
            Task::Show(command) => command.run(app).await,
            Task::Edit(command) => command.run(app).await,
            Task::Cancel(command) => command.run(app).await,
            Task::Retry(command) => command.run(app).await,
            Task::Run(command) => command.run(app).await,
            Task::Logs(command) => command.run(app).await,
        }
    }
}
