//! Queues as shown.

use tourbillon_node::api::QueueView;
use tourbillon_store::queue::Rate;
use tourbillon_store::{QueueRecord, State};
use tourbillon_wire as wire;
use tourbillon_wire::StateCounts;

use crate::convert::{retry, time};

/// A queue with its counts.
pub(crate) fn queue(view: &QueueView) -> wire::Queue {
    record(&view.record, counts(view))
}

/// A queue with counts from elsewhere.
pub(crate) fn record(r: &QueueRecord, counts: StateCounts) -> wire::Queue {
    let c = &r.config;
    wire::Queue {
        name: r.name.clone(),
        namespace: r.namespace_name.clone(),
        concurrency: c.concurrency,
        rate: c.rate.as_ref().map(rate),
        per_key_concurrency: c.per_key_concurrency,
        partitions: c.partitions.into(),
        paused: c.paused,
        defaults: wire::QueueDefaults {
            timeout: c.timeout.map(time::shown),
            retry: retry::show(&c.retry),
        },
        counts,
    }
}

fn rate(r: &Rate) -> wire::Rate {
    wire::Rate { per: time::shown(r.per), count: r.count, burst: Some(r.burst) }
}

/// Counts by state, `ready` taken out of `scheduled`.
pub(crate) fn counts(view: &QueueView) -> StateCounts {
    let mut counts = StateCounts::default();
    for &(state, n) in &view.counts {
        *slot(&mut counts, state) += n;
    }
    counts.ready = view.ready.min(counts.scheduled);
    counts.scheduled -= counts.ready;
    counts
}

/// Adds `more` to `total`.
pub(crate) fn add(total: &mut StateCounts, more: &StateCounts) {
    total.ready += more.ready;
    for state in State::ALL {
        let mut more = *more;
        *slot(total, state) += *slot(&mut more, state);
    }
}

fn slot(counts: &mut StateCounts, state: State) -> &mut u64 {
    match state {
        State::Scheduled => &mut counts.scheduled,
        State::Running => &mut counts.running,
        State::Succeeded => &mut counts.succeeded,
        State::Failed => &mut counts.failed,
        State::Cancelled => &mut counts.cancelled,
        State::Expired => &mut counts.expired,
        State::Skipped => &mut counts.skipped,
    }
}
