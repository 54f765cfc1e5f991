//! Options that describe a task: what to run, and how.
//!
//! [`TaskArgs`] is what a task and a schedule's template share; [`OneShotArgs`] is what only a task
//! created by itself has.

use std::io::Read;

use anyhow::Context;
use clap::Args;
use tourbillon_wire::{
    Backoff, CommandTarget, Duration, Exponential, Fixed, HttpTarget, Json, Linear, NewTask,
    OnConflict, Pairs, Retry, Target, TaskTemplate,
};
use uuid::Uuid;

use crate::exit::usage;
use crate::{when, words};

/// What to run, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct TaskArgs {
    /// The queue it waits in [default: default].
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// What sort of work it is; selects the worker's handler [default: the target's name].
    #[arg(long, value_name = "NAME")]
    pub(crate) kind: Option<String>,
    /// From -8 to 7, higher starts first among the ready.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-8..=7), value_name = "N")]
    pub(crate) priority: i32,
    /// How long one attempt may take [default: the queue's].
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<Duration>,
    /// Never attempt it twice, even after a crash.
    #[arg(long)]
    pub(crate) at_most_once: bool,
    #[command(flatten)]
    pub(crate) retry: RetryArgs,
    /// Tasks with the same one count against the queue's per-key concurrency.
    #[arg(long, value_name = "KEY")]
    pub(crate) concurrency_key: Option<String>,
    /// A name and value to find it by; can be repeated.
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = words::pair)]
    pub(crate) tags: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// The payload as JSON, the body of an HTTP call; @FILE reads a file, @- standard input.
    #[arg(long, visible_alias = "payload", value_name = "JSON")]
    pub(crate) body: Option<String>,
}

/// What happens after an attempt that failed.
#[derive(Debug, Clone, Args)]
pub(crate) struct RetryArgs {
    /// How many attempts there may be [default: the queue's].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    pub(crate) max_attempts: Option<u32>,
    /// How many attempts may be lost to a dead node or worker [default: 3].
    #[arg(long, value_name = "N")]
    pub(crate) max_lost: Option<u32>,
    /// No further attempt later than this after the due time.
    #[arg(long, value_name = "DURATION")]
    pub(crate) give_up_after: Option<Duration>,
    /// The wait before the next attempt: fixed:DELAY, linear:STEP:MAX or
    /// exponential:FIRST:FACTOR:MAX; FACTOR and MAX may be left out.
    #[arg(long, value_parser = backoff, value_name = "BACKOFF")]
    pub(crate) backoff: Option<Backoff>,
}

/// How attempts are made.
#[derive(Debug, Clone, Args)]
pub(crate) struct TargetArgs {
    /// Call a URL.
    #[arg(long, num_args = 2, value_names = ["METHOD", "URL"], conflicts_with_all = ["worker", "command"])]
    pub(crate) http: Option<Vec<String>>,
    /// A header of the HTTP call; can be repeated.
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = words::header)]
    pub(crate) headers: Vec<(String, String)>,
    /// Leave it to workers that claim from the queue.
    #[arg(long, conflicts_with = "command")]
    pub(crate) worker: bool,
    /// An environment variable of the command; can be repeated.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = words::pair)]
    pub(crate) env: Vec<(String, String)>,
    /// The command's working folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// What the command reads on standard input.
    #[arg(long, value_name = "TEXT")]
    pub(crate) stdin: Option<String>,
    /// Run a command on the server's machine: the program and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// What only a task created by itself has.
#[derive(Debug, Clone, Args)]
pub(crate) struct OneShotArgs {
    /// At most one task that is not final may have this key in its queue.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// What to do when the key is taken.
    #[arg(long, value_parser = words::one_of::<OnConflict>(&["reject", "keep", "replace"]), value_name = "WHAT")]
    pub(crate) on_conflict: Option<OnConflict>,
    /// The task's id, which makes the command safe to repeat [default: a new one].
    #[arg(long, value_name = "UUID")]
    pub(crate) id: Option<Uuid>,
    /// Give up when it has not started by then: an instant, or a duration from now.
    #[arg(long, value_name = "WHEN")]
    pub(crate) expires: Option<String>,
}

impl TaskArgs {
    /// The template of a schedule's tasks.
    pub(crate) fn template(&self) -> anyhow::Result<TaskTemplate> {
        Ok(TaskTemplate {
            queue: self.queue.clone(),
            kind: self.kind.clone(),
            payload: self.body.as_deref().map(payload).transpose()?,
            priority: self.priority,
            timeout: self.timeout,
            at_most_once: self.at_most_once,
            retry: self.retry.retry(),
            concurrency_key: self.concurrency_key.clone(),
            tags: self.tags.iter().cloned().collect(),
            ..TaskTemplate::new(self.target.target()?)
        })
    }

    /// A task by itself, due now.
    pub(crate) fn task(&self, one: &OneShotArgs, tz: Option<&str>) -> anyhow::Result<NewTask> {
        let template = self.template()?;
        let expires_at = match &one.expires {
            None => None,
            Some(given) => Some(match given.parse::<Duration>() {
                Ok(span) => later(when::now(), span)?,
                Err(_) => when::instant("--expires", given, tz)?,
            }),
        };
        Ok(NewTask {
            id: one.id,
            key: one.key.clone(),
            on_conflict: one.on_conflict.unwrap_or_default(),
            expires_at,
            queue: template.queue,
            kind: template.kind,
            payload: template.payload,
            priority: template.priority,
            timeout: template.timeout,
            at_most_once: template.at_most_once,
            retry: template.retry,
            concurrency_key: template.concurrency_key,
            tags: template.tags,
            ..NewTask::new(template.target)
        })
    }
}

fn later(
    at: tourbillon_wire::Timestamp,
    span: Duration,
) -> anyhow::Result<tourbillon_wire::Timestamp> {
    i64::try_from(span.as_micros())
        .ok()
        .and_then(|span| at.as_micros().checked_add(span))
        .map(tourbillon_wire::Timestamp::from_micros)
        .ok_or_else(|| usage(format!("--expires: {span} is too far away")))
}

impl RetryArgs {
    /// The policy, when any part of it was given.
    pub(crate) fn retry(&self) -> Option<Retry> {
        let retry = Retry {
            max_attempts: self.max_attempts,
            max_lost: self.max_lost,
            give_up_after: self.give_up_after,
            backoff: self.backoff.clone(),
        };
        (retry != Retry::default()).then_some(retry)
    }
}

impl TargetArgs {
    /// Whether anything about a target was given.
    pub(crate) fn is_given(&self) -> bool {
        self.http.is_some()
            || self.worker
            || !(self.command.is_empty() && self.env.is_empty() && self.headers.is_empty())
            || self.cwd.is_some()
            || self.stdin.is_some()
    }

    /// The one target that was chosen.
    pub(crate) fn target(&self) -> anyhow::Result<Target> {
        // clap's `requires` does not hold when what is required conflicts with something given.
        if self.command.is_empty()
            && (!self.env.is_empty() || self.cwd.is_some() || self.stdin.is_some())
        {
            return Err(usage("--env, --cwd and --stdin are for a command: -- COMMAND ARGS..."));
        }
        if self.http.is_none() && !self.headers.is_empty() {
            return Err(usage("--header is for an HTTP call: --http METHOD URL"));
        }
        if let Some([method, url]) = self.http.as_deref() {
            return Ok(Target::Http(HttpTarget {
                method: Some(method.to_ascii_uppercase()),
                url: url.clone(),
                headers: self.headers.iter().cloned().collect(),
            }));
        }
        if self.worker {
            return Ok(Target::worker());
        }
        if self.command.is_empty() {
            return Err(usage(
                "what is to run? give --http METHOD URL, --worker, or -- COMMAND ARGS...",
            ));
        }
        Ok(Target::Command(CommandTarget {
            argv: self.command.clone(),
            env: self.env.iter().cloned().collect::<Pairs>(),
            cwd: self.cwd.clone(),
            stdin: self.stdin.clone(),
        }))
    }
}

/// The most bytes read as a payload; the server's own bound is lower.
const PAYLOAD_BYTES_MAX: u64 = 16 << 20;

/// JSON as given, from a file, or from standard input.
pub(crate) fn payload(given: &str) -> anyhow::Result<Json> {
    let text = match given.strip_prefix('@') {
        None => given.to_owned(),
        Some(file) => {
            let mut text = String::new();
            let source: Box<dyn Read> = match file {
                "-" => Box::new(std::io::stdin()),
                file => Box::new(
                    std::fs::File::open(file)
                        .with_context(|| format!("--body: cannot read {file}"))?,
                ),
            };
            source
                .take(PAYLOAD_BYTES_MAX)
                .read_to_string(&mut text)
                .with_context(|| format!("--body: cannot read {file}"))?;
            text
        }
    };
    Json::from_text(text.trim().to_owned()).map_err(|e| {
        usage(format!("--body: not JSON: {e}; expected such as '{{\"order\": 42}}', or '\"text\"' with its quotes"))
    })
}

/// `fixed:30s`, `linear:10s:1h`, `exponential:1s:2:1h`.
fn backoff(given: &str) -> Result<Backoff, String> {
    let expected = "expected fixed:DELAY, linear:STEP[:MAX] or exponential:FIRST[:FACTOR[:MAX]]";
    let mut parts = given.split(':');
    let name = parts.next().unwrap_or("");
    let rest: Vec<&str> = parts.collect();
    let duration = |text: &str| text.parse::<Duration>().map_err(|e| e.to_string());
    match (name, &rest[..]) {
        ("fixed", [delay]) => Ok(Backoff::Fixed(Fixed { delay: duration(delay)?, jitter: None })),
        ("linear", [step, max @ ..]) if max.len() <= 1 => Ok(Backoff::Linear(Linear {
            initial: Some(duration(step)?),
            step: None,
            max: max.first().map(|max| duration(max)).transpose()?,
            jitter: None,
        })),
        ("exponential", [first, more @ ..]) if more.len() <= 2 => {
            let factor =
                more.first().map(|f| f.parse::<f64>().ok().filter(|f| f.is_finite() && *f >= 1.0));
            if factor == Some(None) {
                return Err("the factor is a number of at least 1".to_owned());
            }
            Ok(Backoff::Exponential(Exponential {
                initial: Some(duration(first)?),
                factor: factor.flatten(),
                max: more.get(1).map(|max| duration(max)).transpose()?,
                jitter: None,
            }))
        }
        _ => Err(expected.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoffs_are_read() {
        let written = |given: &str| serde_json::to_string(&backoff(given).unwrap()).unwrap();
        assert_eq!(written("fixed:30s"), r#"{"fixed":{"delay":"30s"}}"#);
        assert_eq!(written("linear:10s"), r#"{"linear":{"initial":"10s"}}"#);
        assert_eq!(written("linear:10s:1h"), r#"{"linear":{"initial":"10s","max":"1h"}}"#);
        assert_eq!(written("exponential:1s"), r#"{"exponential":{"initial":"1s"}}"#);
        assert_eq!(
            written("exponential:1s:1.5:1h"),
            r#"{"exponential":{"initial":"1s","factor":1.5,"max":"1h"}}"#
        );
        for wrong in [
            "",
            "fixed",
            "fixed:5",
            "linear:1s:2s:3s",
            "exponential:1s:x",
            "exponential:1s:0.5",
            "random:1s",
        ] {
            assert!(backoff(wrong).is_err(), "{wrong}");
        }
    }
}
