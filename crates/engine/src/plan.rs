//! Which occurrence is planned next, and which are not planned again.
//!
//! What always holds: an occurrence that is in the store already is not planned a second time. A rule
//! alone does not see to that: the clock may go back over what has run; what was cancelled or run ahead of
//! its time lies in the future of a plan that is made anew; and where its start or a calendar moves
//! them, several times of a fixed delay are one. Deliberately absent: misfire and overlap.

use std::collections::BTreeSet;

use tourbillon_schedule::Timing;
use tourbillon_store::{ScheduleRecord, Time};

/// Times that are remembered of one schedule; there are more only when as many were met in vain.
const TAKEN_MAX: usize = 1_000;

/// Logical times that the store has already, found when planning ran into them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Taken(BTreeSet<i64>);

impl Taken {
    /// One more; of too many the earliest is forgotten, and would be found again.
    pub(crate) fn add(&mut self, logical: Time) {
        self.0.insert(logical.0);
        if self.0.len() > TAKEN_MAX {
            self.0.pop_first();
        }
    }
}

/// What bounds a plan beside the document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Nothing of a grid up to here.
    pub(crate) until: i64,
    /// The occurrence that leaves the plan.
    pub(crate) leaves: Option<Time>,
    /// The occurrence that waits and may stay, though the store has it.
    pub(crate) stays: Option<Time>,
}

/// The next occurrence after `after`, with its due time, unless the schedule is paused or has created
/// enough.
pub(crate) fn next_of(
    record: &ScheduleRecord,
    timing: &Timing,
    created: u64,
    taken: &Taken,
    bounds: Bounds,
    after: i64,
) -> Option<(Time, Time)> {
    if record.paused || record.doc.max_runs.is_some_and(|max| created >= max) {
        return None;
    }
    let mut found = match timing.rule().delay() {
        None => timing.next_after(after.max(bounds.until)),
        Some(delay) => timing.next_after(after).and_then(|found| match bounds.leaves {
            // It was moved to the same time, or to one before that.
            Some(Time(leaves))
                if found.logical == leaves
                    || found.logical < leaves && found.logical > after.saturating_add(delay) =>
            {
                timing.next_after(leaves)
            }
            _ => Some(found),
        }),
    };
    while let Some(occurrence) = found
        && taken.0.contains(&occurrence.logical)
        && bounds.stays != Some(Time(occurrence.logical))
    {
        found = timing.next_after(occurrence.logical);
    }
    found.map(|o| (Time(o.logical), Time(o.due).ceil_milli()))
}
