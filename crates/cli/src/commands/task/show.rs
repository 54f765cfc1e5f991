//! `tourbillon task show ID`: a task with its attempts.

use clap::Args;
use tourbillon_wire::{Attempt, Task};
use uuid::Uuid;

use crate::commands::App;
use crate::exit::Status;
use crate::output::{Out, instant, opt, state, text, trimmed};
use crate::when;

/// Show a task with its attempts.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The task.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Uuid>,
}

impl Show {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        for id in self.ids {
            let task = client.task(id).await?;
            if app.out.is_json() {
                app.out.object(&task)?;
            } else {
                print(app.out, &task)?;
            }
        }
        Ok(Status::Done)
    }
}

/// A task as a table of its fields, and its attempts.
pub(crate) fn print(out: Out, t: &Task) -> anyhow::Result<()> {
    let mut table = out.bare_table();
    table.add_row([text("id"), text(t.id)]);
    table.add_row([text("state"), state(t.state)]);
    if t.cancelling {
        table.add_row([text("cancelling"), text("its attempt is being stopped")]);
    }
    let target = serde_json::to_string(&t.target)?;
    let retry = t.retry.as_ref().map(serde_json::to_string).transpose()?;
    let skipped = t
        .skipped
        .as_ref()
        .map(|s| format!("{} occurrences from {} to {}: {}", s.count, s.from, s.to, s.reason));
    let rows: [(&str, Option<String>); 24] = [
        ("reason", t.outcome_reason.clone()),
        ("namespace", Some(t.namespace.clone())),
        ("queue", Some(t.queue.clone())),
        ("kind", Some(t.kind.clone())),
        ("key", t.key.clone()),
        ("target", Some(target)),
        ("payload", t.payload.as_ref().map(ToString::to_string)),
        ("due", Some(format!("{} ({})", t.due_at, when::distance(t.due_at)))),
        ("created", Some(t.created_at.to_string())),
        ("ready", t.ready_at.map(|at| at.to_string())),
        ("finished", t.finished_at.map(|at| at.to_string())),
        ("expires", t.expires_at.map(|at| at.to_string())),
        ("priority", (t.priority != 0).then(|| t.priority.to_string())),
        ("timeout", t.timeout.map(|d| d.to_string())),
        ("at most once", t.at_most_once.then(|| "yes".to_owned())),
        ("retry", retry),
        ("concurrency key", t.concurrency_key.clone()),
        (
            "tags",
            (!t.tags.is_empty()).then(|| {
                t.tags.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(", ")
            }),
        ),
        ("schedule", t.schedule.clone()),
        ("logical time", t.logical_time.map(|at| at.to_string())),
        ("origin", t.origin.clone()),
        ("skipped", skipped),
        ("progress", t.progress.as_ref().map(ToString::to_string)),
        ("result", t.result.as_ref().map(ToString::to_string)),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            table.add_row([text(name), text(value)]);
        }
    }
    table.add_row([text("lost"), text(t.lost)]);
    table.add_row([text("version"), text(t.version)]);
    out.line(trimmed(table))?;
    if !t.attempts.is_empty() {
        out.line("")?;
        out.line(trimmed(attempts(out, &t.attempts)))?;
    }
    Ok(())
}

fn attempts(out: Out, attempts: &[Attempt]) -> comfy_table::Table {
    let mut table =
        out.table(["N", "OUTCOME", "STARTED", "LATE", "TOOK", "BY", "CODE", "OUTPUT", "ERROR"]);
    for a in attempts {
        table.add_row([
            text(a.n),
            text(a.outcome.map_or("running", |outcome| outcome.as_str())),
            instant(a.started_at),
            text(format!("{}ms", a.lateness_ms)),
            opt(a.duration_ms.map(|ms| format!("{ms}ms"))),
            text(a.worker.as_ref().unwrap_or(&a.node)),
            opt(a.http_status.map(i32::from).or(a.exit_code)),
            opt(a.output.as_ref().map(|o| format!("{} B", o.bytes))),
            opt(a.error.as_ref()),
        ]);
    }
    table
}
