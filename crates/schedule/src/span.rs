//! What lies between two instants: how many occurrences, the first, the last. Misfire policies
//! are made of this.
//!
//! What always holds: an answer takes bounded time however long the span, for a fixed rate by
//! arithmetic. It deliberately lacks an exact count of a cron rule's occurrences beyond the
//! limit, and knows nothing of what has run.

use crate::occurrence::Occurrence;
use crate::timing::Timing;
use crate::{MAX_INSTANT, MIN_INSTANT, Micros, RuleKind};

/// How many occurrences a span holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// The count; at least so many when not `exact`.
    pub count: u64,
    /// Whether the count is exact, rather than cut at the limit.
    pub exact: bool,
    /// The first occurrence.
    pub first: Option<Occurrence>,
    /// The last occurrence, also when the count was cut.
    pub last: Option<Occurrence>,
}

impl Timing {
    /// Counts the occurrences with `from <= logical <= to`.
    ///
    /// A fixed rate without exclusions is counted exactly, by arithmetic. For other rules the count stops at
    /// `limit`, and is then a lower bound; first and last are right all the same. A fixed delay has
    /// no grid: nothing is counted.
    #[must_use]
    pub fn tally(&self, from: Micros, to: Micros, limit: u64) -> Tally {
        let mut tally = Tally { count: 0, exact: true, first: None, last: None };
        if self.rule().kind() == RuleKind::After || from > to {
            return tally;
        }
        let Some(first) = self.next_after(from.saturating_sub(1)).filter(|o| o.logical <= to)
        else {
            return tally;
        };
        tally.first = Some(first);
        tally.count = 1;
        tally.last = tally.first;
        if let Some(interval) = self.plain_grid() {
            tally.last = self.latest(to);
            if let Some(last) = tally.last {
                tally.count = (last.logical.abs_diff(first.logical)) / interval.unsigned_abs() + 1;
            }
            return tally;
        }
        for occurrence in self.occurrences_after(first.logical) {
            if occurrence.logical > to {
                return tally;
            }
            if tally.count >= limit {
                tally.exact = false;
                tally.last = self.latest(to);
                return tally;
            }
            tally.count += 1;
            tally.last = Some(occurrence);
        }
        tally
    }

    /// The last occurrence with `logical <= at`, or `None` when there is none.
    ///
    /// A fixed delay has no grid: `None`. For a cron rule this takes some dozens of searches.
    #[must_use]
    pub fn latest(&self, at: Micros) -> Option<Occurrence> {
        let at = at.min(self.end().unwrap_or(MAX_INSTANT)).min(MAX_INSTANT);
        if self.rule().kind() == RuleKind::After {
            return None;
        }
        if let Some(interval) = self.plain_grid() {
            // The grid point at or before `at` comes right after one interval earlier.
            let occurrence = self.next_after(at.checked_sub(interval)?)?;
            return (occurrence.logical <= at).then_some(occurrence);
        }
        let floor = self.start().unwrap_or(MIN_INSTANT) - 1;
        // Look back ever further, until the span (back, at] holds an occurrence.
        let mut width = 1_000_000_i64;
        let mut empty_from = at;
        let mut found = loop {
            let back = at.saturating_sub(width).max(floor);
            if back >= at {
                return None;
            }
            match self.next_after(back) {
                Some(occurrence) if occurrence.logical <= at => break occurrence,
                _ if back == floor => return None,
                _ => empty_from = back,
            }
            width = width.saturating_mul(4);
        };
        // Then halve: (found, at] may hold more, (empty_from, at] holds none.
        loop {
            match self.next_after(found.logical) {
                Some(occurrence) if occurrence.logical <= at => found = occurrence,
                _ => return Some(found),
            }
            let middle = found.logical + (empty_from - found.logical) / 2;
            match self.next_after(middle) {
                Some(occurrence) if occurrence.logical <= at => found = occurrence,
                _ => empty_from = middle,
            }
        }
    }

    /// The last `count` occurrences with `from <= logical <= to`, oldest first: what is run of a longer
    /// row of missed ones when the oldest are dropped.
    ///
    /// Takes `count` calls of [`Timing::latest`] and as much memory. A fixed delay has none.
    #[must_use]
    pub fn last_between(&self, from: Micros, to: Micros, count: usize) -> Vec<Occurrence> {
        let mut found = Vec::new();
        let mut at = Some(to);
        while let Some(until) = at
            && found.len() < count
            && let Some(occurrence) = self.latest(until)
            && occurrence.logical >= from
        {
            at = occurrence.logical.checked_sub(1);
            found.push(occurrence);
        }
        found.reverse();
        found
    }
}
