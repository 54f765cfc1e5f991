//! `tourbillon completions SHELL`: completions for a shell, on standard output.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Status;
use crate::output::Out;

/// Print completions for a shell.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<Status> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "tourbillon", &mut script);
        Out::new(false).raw(&script)?;
        Ok(Status::Done)
    }
}
