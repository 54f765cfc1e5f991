//! The commands, one a file, and what runs them.

use anyhow::Context as _;
use tourbillon_client::Client;

use crate::cli::{Cli, Command, Global};
use crate::connect;
use crate::exit::Status;
use crate::output::Out;

pub(crate) mod at;
pub(crate) mod calendar;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod cron;
pub(crate) mod every;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod in_;
pub(crate) mod nodes;
pub(crate) mod prune;
pub(crate) mod queue;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod task;
pub(crate) mod top;
pub(crate) mod workers;

/// What a command works with.
pub(crate) struct App {
    pub(crate) global: Global,
    pub(crate) out: Out,
}

impl App {
    /// A client of the server that the options name.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        connect::client(&self.global)
    }
}

/// Runs the command.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Status> {
    let app = App { out: Out::new(cli.global.json), global: cli.global };
    match cli.command {
        Command::Serve(command) => command.run(),
        Command::Completions(command) => command.run(),
        command => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("the runtime cannot be set up")?
            .block_on(client_command(&app, command)),
    }
}

async fn client_command(app: &App, command: Command) -> anyhow::Result<Status> {
    match command {
        Command::In(command) => command.run(app).await,
        Command::At(command) => command.run(app).await,
        Command::Every(command) => command.run(app).await,
        Command::Cron(command) => command.run(app).await,
        Command::Task(command) => command.run(app).await,
        Command::Schedule(command) => command.run(app).await,
        Command::Calendar(command) => command.run(app).await,
        Command::Queue(command) => command.run(app).await,
        Command::Import(command) => command.run(app).await,
        Command::Export(command) => command.run(app).await,
        Command::Top(command) => command.run(app).await,
        Command::Stats(command) => command.run(app).await,
        Command::Nodes(command) => command.run(app).await,
        Command::Workers(command) => command.run(app).await,
        Command::Prune(command) => command.run(app).await,
        Command::Config(command) => command.run(app),
        Command::Serve(command) => command.run(),
        Command::Completions(command) => command.run(),
    }
}
