//! Queues.

use tourbillon_node::api::QueueDraft;
use tourbillon_store::QueueConfig;
use tourbillon_store::queue::{DEFAULT_CONCURRENCY, Rate};
use tourbillon_wire as wire;

use super::name::name;
use super::number::within;
use super::{Judge, retry, time};
use crate::failure::{Failure, Result};

impl Judge<'_> {
    /// The configuration of the queue called `path_name`; `paused` is how it is now.
    pub(crate) fn queue(
        &self,
        path_name: &str,
        given: wire::NewQueue,
        paused: bool,
    ) -> Result<QueueDraft> {
        let limits = self.limits;
        same_name(path_name, given.name.as_deref())?;
        name(path_name, "name", limits)?;
        let concurrency = given.concurrency.unwrap_or(DEFAULT_CONCURRENCY);
        let partitions =
            within(given.partitions.unwrap_or(1), "partitions", 1, limits.partitions_max.into())?;
        let defaults = given.defaults.unwrap_or_default();
        Ok(QueueDraft {
            namespace: self.namespace.to_owned(),
            name: path_name.to_owned(),
            config: QueueConfig {
                concurrency: within(concurrency, "concurrency", 1, limits.concurrency_max)?,
                rate: given.rate.map(|r| self.rate(r).map_err(|f| f.under("rate"))).transpose()?,
                per_key_concurrency: given
                    .per_key_concurrency
                    .map(|n| within(n, "per_key_concurrency", 1, limits.concurrency_max))
                    .transpose()?,
                partitions: partitions as u16,
                paused: given.paused.unwrap_or(paused),
                timeout: self.timeout(defaults.timeout, "defaults.timeout")?,
                retry: retry::retry(defaults.retry, limits)
                    .map_err(|f| f.under("defaults.retry"))?,
            },
        })
    }

    fn rate(&self, given: wire::Rate) -> Result<Rate> {
        let most = self.limits.rate_max;
        Ok(Rate {
            per: time::span(given.per, "per", 1_000, self.limits.backoff_max)?,
            count: within(given.count, "count", 1, most)?,
            burst: within(given.burst.unwrap_or(given.count), "burst", 1, most)?,
        })
    }
}

/// The name in a document, when it has one, is the path's.
pub(crate) fn same_name(path: &str, document: Option<&str>) -> Result<()> {
    match document {
        Some(given) if given != path => Err(Failure::invalid(
            "name",
            format!("the path names `{}`", super::name::short(path)),
            "the same name, or none",
        )),
        _ => Ok(()),
    }
}
