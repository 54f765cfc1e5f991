//! The command line: global options and the list of commands.

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    at, calendar, completions, config, cron, every, export, import, in_, nodes, prune, queue,
    schedule, serve, stats, task, top, workers,
};

/// Run work later, and make sure that it happens.
#[derive(Debug, Parser)]
#[command(name = "tourbillon", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// The server to talk to.
    #[arg(
        long,
        global = true,
        env = "TOURBILLON_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:7070",
        help_heading = "Global options"
    )]
    pub(crate) url: String,
    /// The separate world of names to work in [default: default].
    #[arg(long, global = true, value_name = "NAME", help_heading = "Global options")]
    pub(crate) namespace: Option<String>,
    /// Print machine-readable lines (JSON, one object a line) instead of tables.
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Box<serve::Serve>),
    In(in_::In),
    At(at::At),
    Every(every::Every),
    Cron(cron::Cron),
    /// Tasks: add, find, change, cancel, retry.
    #[command(subcommand)]
    Task(task::Task),
    /// Schedules: when to create which task.
    #[command(subcommand)]
    Schedule(schedule::Schedule),
    /// Calendars: days on which schedules do not run.
    #[command(subcommand)]
    Calendar(calendar::Calendar),
    /// Queues: limits, pause, purge.
    #[command(subcommand)]
    Queue(queue::Queue),
    /// Take over schedules or tasks from elsewhere.
    #[command(subcommand)]
    Import(import::Import),
    Export(export::Export),
    Top(top::Top),
    Stats(stats::Stats),
    Nodes(nodes::Nodes),
    Workers(workers::Workers),
    Prune(prune::Prune),
    Completions(completions::Completions),
    /// Settings of this command.
    #[command(subcommand)]
    Config(config::Config),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_options_do_not_contradict_each_other() {
        super::Cli::command().debug_assert();
    }
}
