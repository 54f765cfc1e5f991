//! `tourbillon queue …`.

use clap::Subcommand;

use super::App;
use crate::exit::Status;

mod list;
mod pause;
mod purge;
mod resume;
mod set;

#[derive(Debug, Subcommand)]
pub(crate) enum Queue {
    List(list::List),
    Set(set::Set),
    Pause(pause::Pause),
    Resume(resume::Resume),
    Purge(purge::Purge),
}

impl Queue {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        match self {
            Queue::List(command) => command.run(app).await,
            Queue::Set(command) => command.run(app).await,
            Queue::Pause(command) => command.run(app).await,
            Queue::Resume(command) => command.run(app).await,
            Queue::Purge(command) => command.run(app).await,
        }
    }
}
