//! How much work one advance may do, and what it has done.
//!
//! One unit of budget pays for one timer handled: fired, or moved (cascaded to a finer level,
//! or looked at and left in place by a queue that keeps rounds). Work is counted in timers and
//! not in time, because a queue knows no clock; the caller who wants a time limit picks a
//! number of units and looks at its clock between calls.

/// A number of units to spend, and a record of what they were spent on.
///
/// Pass the same budget to every [`pop`](crate::TimerQueue::pop) of one round.
///
/// ```
/// use tourbillon_wheel::{Budget, HierarchicalWheel, TimerQueue};
///
/// let mut wheel = HierarchicalWheel::new();
/// for n in 0..3 {
///     wheel.insert_at(10, n);
/// }
/// let mut budget = Budget::new(2);
/// while let Some((_key, _deadline, n)) = wheel.pop(10, &mut budget) {
///     assert!(n < 2);
/// }
/// assert_eq!(budget.fired(), 2);
/// assert!(budget.ran_out()); // the third timer is due and still pending
/// assert_eq!(wheel.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    left: usize,
    fired: usize,
    moved: usize,
    ran_out: bool,
}

impl Budget {
    /// A budget of `units` timers handled. Zero units handle nothing and only tell, by
    /// [`ran_out`](Self::ran_out), whether there would have been something to do.
    #[inline]
    pub const fn new(units: usize) -> Self {
        Self { left: units, fired: 0, moved: 0, ran_out: false }
    }

    /// A budget that does not run out: `usize::MAX` units.
    pub const fn unlimited() -> Self {
        Self::new(usize::MAX)
    }

    /// Units not yet spent.
    #[inline]
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Timers fired on this budget.
    #[inline]
    pub const fn fired(&self) -> usize {
        self.fired
    }

    /// Timers moved, or looked at and left in place, on this budget.
    #[inline]
    pub const fn moved(&self) -> usize {
        self.moved
    }

    /// Whether work was left undone because no unit was left to pay for it. A budget spent
    /// to the last unit on the last thing to do has not run out.
    #[inline]
    pub const fn ran_out(&self) -> bool {
        self.ran_out
    }

    /// Pays for firing one timer; false, and the budget has run out, when no unit is left.
    /// For implementors of [`TimerQueue`](crate::TimerQueue).
    #[inline]
    #[must_use]
    pub const fn pay_fired(&mut self) -> bool {
        if self.pay() {
            self.fired += 1;
            true
        } else {
            false
        }
    }

    /// Pays for moving one timer; false, and the budget has run out, when no unit is left.
    /// For implementors of [`TimerQueue`](crate::TimerQueue).
    #[inline]
    #[must_use]
    pub const fn pay_moved(&mut self) -> bool {
        if self.pay() {
            self.moved += 1;
            true
        } else {
            false
        }
    }

    /// Pays for moving timers, `wanted` of them or as many as there are units left for; answers
    /// for how many. The budget has run out when that is none although some were wanted.
    #[must_use]
    pub(crate) const fn pay_moved_up_to(&mut self, wanted: usize) -> usize {
        let paid = if wanted < self.left { wanted } else { self.left };
        self.left -= paid;
        self.moved += paid;
        self.ran_out |= paid == 0 && wanted > 0;
        paid
    }

    #[inline]
    const fn pay(&mut self) -> bool {
        if self.left == 0 {
            self.ran_out = true;
            return false;
        }
        self.left -= 1;
        true
    }
}

/// What one [`advance`](crate::TimerQueue::advance) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    /// Timers fired.
    pub fired: usize,
    /// Timers moved, or looked at and left in place.
    pub moved: usize,
    /// True when nothing due is left; false when the budget ran out first, and the same call
    /// again would go on where this one stopped.
    pub finished: bool,
}

impl From<Budget> for Advance {
    fn from(budget: Budget) -> Self {
        Self { fired: budget.fired, moved: budget.moved, finished: !budget.ran_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spent_to_the_last_unit_is_not_run_out() {
        let mut budget = Budget::new(2);
        assert!(budget.pay_fired());
        assert!(budget.pay_moved());
        assert!(!budget.ran_out());
        assert_eq!(Advance::from(budget.clone()), Advance { fired: 1, moved: 1, finished: true });
        assert!(!budget.pay_moved());
        assert!(budget.ran_out());
        assert_eq!(Advance::from(budget), Advance { fired: 1, moved: 1, finished: false });
    }
}
