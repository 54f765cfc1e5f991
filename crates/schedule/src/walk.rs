//! From civil times to instants: the one place where gaps and folds are dealt with.
//!
//! A zone is a row of stretches of constant offset. Within a stretch a civil time is one instant, so
//! the walk looks at one stretch after another, and jumps over those that hold nothing. What always holds:
//! the result is the first instant at or after the start that the policy allows, and the
//! walk ends at [`MAX_INSTANT`].

use crate::civil::DAY_S;
use crate::policy::{Fold, Gap};
use crate::{MAX_INSTANT, Zone};

/// A set of civil times, in seconds counted as if the zone were UTC.
pub(crate) trait CivilSet {
    /// The first member at or after a civil time. `None` when there is none up to year 9999.
    fn at_or_after(&self, local: i64) -> Option<i64>;

    /// Whether a member stands at its month's end for a later day that the month lacks.
    fn is_clamped(&self, _local: i64) -> bool {
        false
    }
}

/// What to do where civil time jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) gap: Gap,
    pub(crate) fold: Fold,
}

impl Policy {
    /// Each real instant whose civil time matches: nothing added in a gap, nothing left out in
    /// a fold.
    pub(crate) const ELAPSED: Policy = Policy { gap: Gap::Skip, fold: Fold::Both };
}

/// Why an instant was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Normal,
    Shifted,
    FoldFirst,
    FoldLast,
}

/// An instant, in seconds, and the civil time it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) second: i64,
    pub(crate) local: i64,
    pub(crate) cause: Cause,
}

/// No two offsets of one zone are further apart than this.
const OFFSETS_APART_MAX: i64 = 2 * DAY_S;

/// The first instant at or after `start` (seconds) that the set has under the policy.
pub(crate) fn first_at_or_after(
    set: &impl CivilSet,
    zone: &Zone,
    policy: Policy,
    start: i64,
) -> Option<Found> {
    let mut start = start;
    while start <= MAX_INSTANT / 1_000_000 {
        let stretch = zone.stretch_at(start);
        let offset = stretch.offset;
        if policy.gap == Gap::Shift && stretch.from >= start && offset > stretch.offset_before {
            let gap = stretch.from + stretch.offset_before..stretch.from + offset;
            if let Some(local) = set.at_or_after(gap.start)
                && local < gap.end
            {
                // When the instant after the gap is a member itself, it is there anyway.
                let itself = set.at_or_after(gap.end) == Some(gap.end);
                return Some(Found {
                    second: stretch.from,
                    local: if itself { gap.end } else { local },
                    cause: if itself { Cause::Normal } else { Cause::Shifted },
                });
            }
        }
        let folds_before = stretch.offset_before > offset;
        let folds_after = stretch.offset_after < offset;
        // Civil times below `again_until` were there before; those from `again_from` on come again.
        let again_until =
            if folds_before { stretch.from + stretch.offset_before } else { i64::MIN };
        let again_from = if folds_after { stretch.until + stretch.offset_after } else { i64::MAX };
        let mut low = start + offset;
        if policy.fold == Fold::First {
            low = low.max(again_until);
        }
        let mut high = stretch.until.saturating_add(offset);
        if policy.fold == Fold::Last {
            high = high.min(again_from);
        }
        let member = set.at_or_after(low);
        if let Some(local) = member
            && local < high
        {
            let second = local - offset;
            let cause = if local < again_until {
                Cause::FoldLast
            } else if local >= again_from {
                Cause::FoldFirst
            } else {
                Cause::Normal
            };
            return (second <= MAX_INSTANT / 1_000_000).then_some(Found { second, local, cause });
        }
        if stretch.until == i64::MAX {
            return None;
        }
        start = stretch.until;
        // Unless civil time goes back below `low`, nothing lies before the member that was found.
        if stretch.until.saturating_add(stretch.offset_after) >= low {
            let member = member?;
            start = start.max(member - offset - OFFSETS_APART_MAX);
            // Most members lie well within a stretch, where there is nothing to ask any more.
            let there = zone.stretch_at(member - offset);
            let inside = there.from.saturating_add(OFFSETS_APART_MAX)
                ..there.until.saturating_sub(OFFSETS_APART_MAX);
            let second = member - there.offset;
            if inside.contains(&second) && second <= MAX_INSTANT / 1_000_000 {
                return Some(Found { second, local: member, cause: Cause::Normal });
            }
        }
    }
    None
}
