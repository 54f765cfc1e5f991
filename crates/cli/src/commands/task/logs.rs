//! `tourbillon task logs ID [-f]`: what an attempt printed.

use std::time::Duration;

use clap::Args;
use tourbillon_client::Client;
use tourbillon_wire::Task;
use uuid::Uuid;

use crate::commands::App;
use crate::exit::Status;

/// Print what an attempt printed.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The task.
    id: Uuid,
    /// Which attempt [default: the last].
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Go on until the task is over, through all of its attempts.
    #[arg(short, long)]
    follow: bool,
}

/// How often a running attempt is asked for more.
const POLL: Duration = Duration::from_millis(500);

impl Logs {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        let task = client.task(self.id).await?;
        let Some(mut n) = self.attempt.or_else(|| last(&task)) else {
            if !self.follow || task.state.is_final() {
                eprintln!("task {} has made no attempt", self.id);
                return Ok(Status::Nothing);
            }
            return self.follow(app, &client, 1).await;
        };
        if self.follow {
            return self.follow(app, &client, n).await;
        }
        n = n.max(1);
        let mut reader = Reader { n, at: 0 };
        let any = reader.print(app, &client, self.id).await?;
        if !any {
            eprintln!("attempt {n} of task {} printed nothing", self.id);
        }
        Ok(Status::of(any))
    }

    /// Prints what comes from attempt `n` on until the task is over.
    async fn follow(&self, app: &App, client: &Client, n: u32) -> anyhow::Result<Status> {
        let mut reader = Reader { n, at: 0 };
        let mut any = false;
        loop {
            // The state is read before the output, so that nothing printed before the end is missed.
            let task = client.task(self.id).await?;
            let last = last(&task).unwrap_or(0);
            while reader.n <= last {
                any |= reader.print(app, client, self.id).await?;
                let ended = task.attempts.iter().any(|a| a.n == reader.n && a.outcome.is_some());
                if reader.n == last && !ended {
                    break;
                }
                if self.attempt.is_some() {
                    return Ok(Status::of(any));
                }
                reader = Reader { n: reader.n + 1, at: 0 };
            }
            if task.state.is_final() {
                eprintln!("task {} {}", task.id, task.state);
                return Ok(Status::of(any));
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

fn last(task: &Task) -> Option<u32> {
    task.attempts.last().map(|a| a.n).or((task.attempt > 0).then_some(task.attempt))
}

/// How far an attempt's output has been printed.
struct Reader {
    n: u32,
    at: u64,
}

impl Reader {
    /// Prints what is new; whether there was any.
    async fn print(&mut self, app: &App, client: &Client, id: Uuid) -> anyhow::Result<bool> {
        let output = match client.output(id, self.n, self.at).await {
            Err(error) if error.is_not_found() => return Ok(false),
            output => output?,
        };
        if output.bytes.is_empty() {
            return Ok(false);
        }
        if output.from > self.at {
            eprintln!("[{} bytes were not kept]", output.from - self.at);
        }
        self.at = output.from + output.bytes.len() as u64;
        app.out.raw(&output.bytes)?;
        Ok(true)
    }
}
