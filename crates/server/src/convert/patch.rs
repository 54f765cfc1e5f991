//! Changes to tasks.

use tourbillon_node::api::TaskPatch;
use tourbillon_wire as wire;

use super::name::name;
use super::{Judge, retry, time};
use crate::failure::{Failure, Result};

impl Judge<'_> {
    /// A change as the node takes it. `at_most_once` is that of the task as it is.
    pub(crate) fn patch(&self, given: wire::TaskPatch, at_most_once: bool) -> Result<TaskPatch> {
        if given.is_empty() {
            return Err(Failure::invalid(
                "",
                "nothing is to be changed",
                "at least one field, such as `due_at` or `payload`",
            ));
        }
        if let Some(kind) = &given.kind {
            name(kind, "kind", self.limits)?;
        }
        let retry = match given.retry {
            None => None,
            Some(policy) => {
                let mut policy = retry::retry(policy, self.limits).map_err(|f| f.under("retry"))?;
                if at_most_once {
                    retry::once(&mut policy)?;
                }
                Some(policy)
            }
        };
        Ok(TaskPatch {
            due: time::due(given.delay, given.due_at, self.now, self.limits)?,
            payload: self.payload(given.payload, "payload")?.map(Some),
            priority: given.priority.map(|p| self.priority(p)).transpose()?,
            timeout: given.timeout.map(|t| self.timeout(t, "timeout")).transpose()?,
            expires_at: given
                .expires_at
                .map(|t| t.map(|t| time::instant(t, "expires_at")).transpose())
                .transpose()?,
            retry,
            tags: given.tags.map(|t| self.tags(t)).transpose()?,
            target: given.target.map(|t| self.target(t)).transpose()?,
            kind: given.kind,
        })
    }
}
