//! `tourbillon queue set NAME …`: change a queue's limits; what is not given stays.

use clap::Args;
use tourbillon_wire::{Duration, NewQueue, QueueDefaults, Rate};

use crate::commands::App;
use crate::exit::Status;
use crate::task_args::RetryArgs;

/// Change a queue's limits and defaults; what is not given stays as it is.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Its name.
    name: String,
    /// How many attempts may run at once.
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,
    /// How many attempts may start per period, COUNT/PERIOD[/BURST] such as 100/1s, or none.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<OrNone<Rate>>,
    /// How many attempts with one concurrency key may run at once, or none.
    #[arg(long, value_name = "N", value_parser = number)]
    per_key_concurrency: Option<OrNone<u32>>,
    /// How many partitions it is split in; concerns new tasks only.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    partitions: Option<u32>,
    /// The timeout of its tasks' attempts.
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Duration>,
    #[command(flatten)]
    retry: RetryArgs,
}

/// A value, or the word `none`.
#[derive(Debug, Clone, Copy)]
struct OrNone<T>(Option<T>);

fn number(given: &str) -> Result<OrNone<u32>, String> {
    match given {
        "none" => Ok(OrNone(None)),
        _ => given
            .parse()
            .map(|n| OrNone(Some(n)))
            .map_err(|_| "expected a number, or none".to_owned()),
    }
}

fn rate(given: &str) -> Result<OrNone<Rate>, String> {
    if given == "none" {
        return Ok(OrNone(None));
    }
    let expected = || "expected COUNT/PERIOD[/BURST], such as 100/1s, or none".to_owned();
    let parts: Vec<&str> = given.split('/').collect();
    let (count, per, burst) = match parts[..] {
        [count, per] => (count, per, None),
        [count, per, burst] => (count, per, Some(burst.parse().map_err(|_| expected())?)),
        _ => return Err(expected()),
    };
    Ok(OrNone(Some(Rate {
        count: count.parse().map_err(|_| expected())?,
        per: per.parse().map_err(|e: tourbillon_wire::DurationError| e.to_string())?,
        burst,
    })))
}

impl Set {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        let mut document = match client.queue(&self.name).await {
            Ok(queue) => NewQueue {
                name: Some(queue.name),
                concurrency: Some(queue.concurrency),
                rate: queue.rate,
                per_key_concurrency: queue.per_key_concurrency,
                partitions: Some(queue.partitions),
                // Absent, so that a pause made meanwhile stays.
                paused: None,
                defaults: Some(queue.defaults),
            },
            Err(error) if error.is_not_found() => NewQueue::default(),
            Err(error) => return Err(error.into()),
        };
        document.concurrency = self.concurrency.or(document.concurrency);
        document.partitions = self.partitions.or(document.partitions);
        if let Some(OrNone(rate)) = self.rate {
            document.rate = rate;
        }
        if let Some(OrNone(limit)) = self.per_key_concurrency {
            document.per_key_concurrency = limit;
        }
        let mut defaults = document.defaults.unwrap_or_default();
        defaults.timeout = self.timeout.or(defaults.timeout);
        defaults.retry = self.retry.retry().or(defaults.retry);
        document.defaults = (defaults != QueueDefaults::default()).then_some(defaults);
        let queue = client.put_queue(&self.name, &document).await?;
        app.out.either(
            &queue,
            format!("queue {} set, concurrency {}", queue.name, queue.concurrency),
        )?;
        Ok(Status::Done)
    }
}
