//! Tasks to create.

use tourbillon_node::api::{Draft, Due, OnConflict};
use tourbillon_store::task::Target;
use tourbillon_store::{TaskId, TaskSpec};
use tourbillon_wire as wire;
use tourbillon_wire::{Pairs, code};

use super::name::{key, name};
use super::number::within;
use super::{Judge, fingerprint, payload, retry, target, time};
use crate::failure::{Failure, Result};

/// The queue of what names none, and the namespace.
pub(crate) const DEFAULT: &str = "default";

impl Judge<'_> {
    /// A task as the node takes it.
    pub(crate) fn task(&self, new: wire::NewTask) -> Result<Draft> {
        let namespace = match new.namespace {
            None => self.namespace.to_owned(),
            Some(given) if given == self.namespace => given,
            Some(given) if self.namespace == DEFAULT => {
                name(&given, "namespace", self.limits)?;
                given
            }
            Some(_) => {
                return Err(Failure::invalid(
                    "namespace",
                    format!("the request is for the namespace `{}`", self.namespace),
                    "the same namespace in both places, or in one of them",
                ));
            }
        };
        let queue = self.queue_name(new.queue)?;
        if let Some(k) = &new.key {
            key(k, "key", self.limits)?;
        }
        let due = time::due(new.delay, new.due_at, self.now, self.limits)?.unwrap_or(Due::Now);
        let expires_at = new.expires_at.map(|t| time::instant(t, "expires_at")).transpose()?;
        let mut spec = self.spec(Parts {
            kind: new.kind,
            target: new.target,
            payload: new.payload,
            priority: new.priority,
            timeout: new.timeout,
            at_most_once: new.at_most_once,
            retry: new.retry,
            concurrency_key: new.concurrency_key,
            tags: new.tags,
        })?;
        spec.key = new.key;
        spec.expires_at = expires_at;
        let on_conflict = match new.on_conflict {
            wire::OnConflict::Reject => OnConflict::Reject,
            wire::OnConflict::Keep => OnConflict::Keep,
            wire::OnConflict::Replace => OnConflict::Replace,
        };
        // As asked: a `due_at` that lies in the past means now, but is not the same request.
        let asked_due =
            new.due_at.map_or(due, |at| Due::At(tourbillon_store::Time(at.as_micros())));
        let id = new.id.map(|id| {
            let asked = fingerprint::of(&namespace, &queue, asked_due, on_conflict, &spec);
            (TaskId(id.as_u128()), asked)
        });
        Ok(Draft { namespace, queue, id, due, spec, on_conflict })
    }

    /// A task of a batch, of which it is the `index`th.
    pub(crate) fn task_of_batch(&self, index: usize, new: wire::NewTask) -> Result<Draft> {
        if new.on_conflict == wire::OnConflict::Replace {
            return Err(Failure::invalid(
                "on_conflict",
                "`replace` is refused in a batch",
                "`reject` or `keep`; or the task by itself",
            )
            .at(index));
        }
        self.task(new).map_err(|f| f.at(index))
    }

    /// The queue and the definition of a schedule's tasks.
    pub(crate) fn template(&self, given: wire::TaskTemplate) -> Result<(String, TaskSpec)> {
        let queue = self.queue_name(given.queue)?;
        let spec = self.spec(Parts {
            kind: given.kind,
            target: given.target,
            payload: given.payload,
            priority: given.priority,
            timeout: given.timeout,
            at_most_once: given.at_most_once,
            retry: given.retry,
            concurrency_key: given.concurrency_key,
            tags: given.tags,
        })?;
        Ok((queue, spec))
    }

    fn queue_name(&self, given: Option<String>) -> Result<String> {
        match given {
            None => Ok(DEFAULT.to_owned()),
            Some(queue) => name(&queue, "queue", self.limits).map(|()| queue),
        }
    }

    fn spec(&self, given: Parts) -> Result<TaskSpec> {
        let limits = self.limits;
        let kind = match given.kind {
            None => given.target.name().to_owned(),
            Some(kind) => name(&kind, "kind", limits).map(|()| kind)?,
        };
        if let Some(k) = &given.concurrency_key {
            key(k, "concurrency_key", limits)?;
        }
        let mut policy = retry::retry(given.retry, limits).map_err(|f| f.under("retry"))?;
        if given.at_most_once {
            retry::once(&mut policy)?;
        }
        Ok(TaskSpec {
            kind,
            key: None,
            target: self.target(given.target)?,
            payload: self.payload(given.payload, "payload")?,
            priority: self.priority(given.priority)?,
            timeout: self.timeout(given.timeout, "timeout")?,
            expires_at: None,
            at_most_once: given.at_most_once,
            retry: policy,
            concurrency_key: given.concurrency_key,
            tags: self.tags(given.tags)?,
        })
    }

    /// A target; one that runs a command needs the token.
    pub(crate) fn target(&self, given: wire::Target) -> Result<Target> {
        if matches!(given, wire::Target::Command(_)) && !self.commands {
            return Err(Failure::new(401, code::UNAUTHORIZED)
                .field("target.command")
                .detail("command targets need the token")
                .expected("the header `Authorization: Bearer` with the server's token"));
        }
        target::target(given, self.limits)
    }

    /// A payload, result or progress report as JSON text.
    pub(crate) fn payload(&self, given: Option<wire::Json>, field: &str) -> Result<Option<String>> {
        let Some(json) = given else { return Ok(None) };
        payload::check(json.get(), field, self.limits)?;
        Ok(Some(json.into_text()))
    }

    pub(crate) fn priority(&self, given: i32) -> Result<i8> {
        within(given, "priority", -8, 7).map(|p| p as i8)
    }

    pub(crate) fn timeout(
        &self,
        given: Option<wire::Duration>,
        field: &str,
    ) -> Result<Option<i64>> {
        given.map(|d| time::span(d, field, 1_000, self.limits.timeout_max)).transpose()
    }

    pub(crate) fn tags(&self, given: Pairs) -> Result<Vec<(String, String)>> {
        if given.len() > self.limits.tags {
            return Err(Failure::invalid(
                "tags",
                format!("{} tags", given.len()),
                format!("at most {}", self.limits.tags),
            ));
        }
        let most = self.limits.tag_bytes;
        for (tag, value) in given.iter() {
            let control = tag.chars().chain(value.chars()).any(char::is_control);
            if tag.is_empty() || tag.len() > most || value.len() > most || control {
                return Err(Failure::invalid(
                    format!("tags.{}", super::name::short(tag)),
                    "the name or the value is empty, too long, or has a control character",
                    format!("names of 1 to {most} bytes and values of at most {most} bytes"),
                ));
            }
        }
        Ok(given.into_vec())
    }
}

/// What a task and a template have in common.
struct Parts {
    kind: Option<String>,
    target: wire::Target,
    payload: Option<wire::Json>,
    priority: i32,
    timeout: Option<wire::Duration>,
    at_most_once: bool,
    retry: Option<wire::Retry>,
    concurrency_key: Option<String>,
    tags: Pairs,
}
