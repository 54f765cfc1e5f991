//! `tourbillon import ndjson FILE`: tasks, one JSON document a line, in batches.

use std::io::{BufRead, BufReader, Read};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use tourbillon_client::Client;
use tourbillon_wire::{NewTask, from_slice};

use crate::commands::App;
use crate::exit::Status;
use crate::progress;

/// Create tasks from a file with one JSON document a line. Batches are atomic; give tasks ids to
/// make the whole safe to repeat.
#[derive(Debug, Args)]
pub(crate) struct Ndjson {
    /// The file; - for standard input.
    file: String,
    /// How many tasks go in one batch.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000), value_name = "N")]
    batch: u32,
    /// Start at this line, from 1.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..), value_name = "LINE")]
    from_line: u64,
    /// Only read the documents; create nothing.
    #[arg(long)]
    dry_run: bool,
}

/// The longest line that is read; a task's payload has a lower bound at the server.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// A batch is sent when it has this many bytes, however few tasks: a request has a bound.
const BATCH_BYTES_MAX: usize = 8 << 20;

#[derive(Serialize)]
struct Total {
    lines: u64,
    created: u64,
    dry_run: bool,
}

impl Ndjson {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let (source, length): (Box<dyn Read>, _) = match self.file.as_str() {
            "-" => (Box::new(std::io::stdin()), None),
            name => {
                let file =
                    std::fs::File::open(name).with_context(|| format!("cannot read {name}"))?;
                let length =
                    file.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
                (Box::new(file), length)
            }
        };
        let client = if self.dry_run { None } else { Some(app.client()?) };
        let bar = progress::bar(length, "bytes");
        let mut reader = BufReader::new(source);
        let mut batch = Batch { tasks: Vec::new(), bytes: 0, first_line: 0 };
        let mut total = Total { lines: 0, created: 0, dry_run: self.dry_run };
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut reader)
                .take(LINE_BYTES_MAX + 1)
                .read_until(b'\n', &mut line)
                .with_context(|| format!("cannot read {}", self.file))?;
            if read == 0 {
                break;
            }
            total.lines += 1;
            bar.inc(read as u64);
            let at = format!("{}:{}", self.file, total.lines);
            if read as u64 > LINE_BYTES_MAX {
                bail!("{at}: the line has more than {LINE_BYTES_MAX} bytes");
            }
            if total.lines < self.from_line || line.trim_ascii().is_empty() {
                continue;
            }
            let task: NewTask = from_slice(&line)
                .with_context(|| at.clone())
                .with_context(|| self.how_far(&batch, &total))?;
            batch.add(task, read, total.lines);
            if batch.tasks.len() == self.batch as usize || batch.bytes >= BATCH_BYTES_MAX {
                self.send(client.as_ref(), &mut batch, &mut total).await?;
            }
        }
        self.send(client.as_ref(), &mut batch, &mut total).await?;
        bar.finish_and_clear();
        let verb = if self.dry_run { "could be created" } else { "created" };
        app.out
            .either(&total, format!("{} tasks {verb} from {} lines", total.created, total.lines))?;
        Ok(Status::of(total.created > 0))
    }

    async fn send(
        &self,
        client: Option<&Client>,
        batch: &mut Batch,
        total: &mut Total,
    ) -> anyhow::Result<()> {
        if batch.tasks.is_empty() {
            return Ok(());
        }
        if let Some(client) = client {
            client
                .create_batch(&mut batch.tasks)
                .await
                .with_context(|| self.how_far(batch, total))?;
        }
        total.created += batch.tasks.len() as u64;
        batch.tasks.clear();
        batch.bytes = 0;
        Ok(())
    }

    /// What is in already when something went wrong, and how to go on.
    fn how_far(&self, batch: &Batch, total: &Total) -> String {
        let next = if batch.tasks.is_empty() { total.lines } else { batch.first_line };
        format!("{} tasks are in; go on with --from-line {next}", total.created)
    }
}

struct Batch {
    tasks: Vec<NewTask>,
    bytes: usize,
    first_line: u64,
}

impl Batch {
    fn add(&mut self, task: NewTask, bytes: usize, line: u64) {
        if self.tasks.is_empty() {
            self.first_line = line;
        }
        self.bytes += bytes;
        self.tasks.push(task);
    }
}
