//! `tourbillon task edit ID …`: change a task before its first start.

use clap::Args;
use tourbillon_wire::{Duration, TaskPatch};
use uuid::Uuid;

use crate::commands::App;
use crate::exit::{Status, usage};
use crate::task_args::{RetryArgs, TargetArgs, payload};
use crate::{when, words};

/// Change a task before its first start.
#[derive(Debug, Args)]
pub(crate) struct Edit {
    /// The task.
    id: Uuid,
    /// Due this long from now.
    #[arg(long = "in", value_name = "DURATION", conflicts_with = "at")]
    delay: Option<Duration>,
    /// Due at this instant.
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
    /// The zone of civil times, by IANA name.
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// Another kind.
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,
    /// Another priority, from -8 to 7.
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-8..=7), value_name = "N")]
    priority: Option<i32>,
    /// Another timeout of an attempt, or `none` for the queue's.
    #[arg(long, value_name = "DURATION", value_parser = or_none)]
    timeout: Option<OrNone>,
    /// Give up when it has not started by this instant, or `none` for never.
    #[arg(long, value_name = "INSTANT")]
    expires: Option<String>,
    #[command(flatten)]
    retry: RetryArgs,
    /// Other tags, all of them; can be repeated.
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = words::pair)]
    tags: Vec<(String, String)>,
    /// Another payload as JSON; @FILE reads a file, @- standard input.
    #[arg(long, visible_alias = "payload", value_name = "JSON")]
    body: Option<String>,
    /// Refuse unless the task still has this version.
    #[arg(long, value_name = "VERSION")]
    if_version: Option<u64>,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Clone, Copy)]
struct OrNone(Option<Duration>);

fn or_none(given: &str) -> Result<OrNone, String> {
    match given {
        "none" => Ok(OrNone(None)),
        _ => given
            .parse()
            .map(|d| OrNone(Some(d)))
            .map_err(|e: tourbillon_wire::DurationError| e.to_string()),
    }
}

impl Edit {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let tz = self.tz.as_deref();
        let expires_at = match self.expires.as_deref() {
            None => None,
            Some("none") => Some(None),
            Some(given) => Some(Some(when::instant("--expires", given, tz)?)),
        };
        let patch = TaskPatch {
            version: self.if_version,
            delay: self.delay,
            due_at: self.at.as_deref().map(|at| when::instant("--at", at, tz)).transpose()?,
            kind: self.kind,
            target: self.target.is_given().then(|| self.target.target()).transpose()?,
            payload: self.body.as_deref().map(payload).transpose()?,
            priority: self.priority,
            timeout: self.timeout.map(|t| t.0),
            expires_at,
            retry: self.retry.retry().map(Some),
            tags: (!self.tags.is_empty()).then(|| self.tags.into_iter().collect()),
        };
        if patch.is_empty() {
            return Err(usage("nothing to change: give at least one of the options"));
        }
        let task = app.client()?.edit(self.id, &patch).await?;
        app.out.either(
            &task,
            format!(
                "task {} changed, due {} ({})",
                task.id,
                task.due_at,
                when::distance(task.due_at)
            ),
        )?;
        Ok(Status::Done)
    }
}
