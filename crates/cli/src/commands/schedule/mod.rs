//! `tourbillon schedule …`.

use clap::Subcommand;
use tourbillon_wire::NewSchedule;

use super::App;
use crate::exit::Status;

mod add;
mod apply;
mod backfill;
pub(crate) mod list;
mod name;
mod pause;
mod preview;
mod remove;
mod resume;
mod show;
mod trigger;

#[derive(Debug, Subcommand)]
pub(crate) enum Schedule {
    Add(Box<add::Add>),
    Apply(apply::Apply),
    List(list::List),
    Show(show::Show),
    Pause(pause::Pause),
    Resume(resume::Resume),
    Trigger(trigger::Trigger),
    Backfill(backfill::Backfill),
    Remove(remove::Remove),
    Preview(Box<preview::Preview>),
}

impl Schedule {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        match self {
            Schedule::Add(command) => command.run(app).await,
            Schedule::Apply(command) => command.run(app).await,
            Schedule::List(command) => command.run(app).await,
            Schedule::Show(command) => command.run(app).await,
            Schedule::Pause(command) => command.run(app).await,
            Schedule::Resume(command) => command.run(app).await,
            Schedule::Trigger(command) => command.run(app).await,
            Schedule::Backfill(command) => command.run(app).await,
            Schedule::Remove(command) => command.run(app).await,
            Schedule::Preview(command) => command.run(app).await,
        }
    }
}

/// Stores a schedule under its name, or one derived from it, and says when it runs next.
pub(crate) async fn put(
    app: &App,
    name: Option<String>,
    mut document: NewSchedule,
) -> anyhow::Result<Status> {
    let name = match name {
        Some(name) => name,
        None => name::derive(&document)?,
    };
    document.name = Some(name.clone());
    let schedule = app.client()?.put_schedule(&name, &document).await?;
    let next = match (&schedule.next_at, schedule.paused) {
        (_, true) => "paused".to_owned(),
        (Some(at), _) => format!("next at {at} ({})", crate::when::distance(*at)),
        (None, _) => "no next occurrence".to_owned(),
    };
    app.out.either(&schedule, format!("schedule {name}: {next}"))?;
    Ok(Status::Done)
}
