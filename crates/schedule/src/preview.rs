//! What comes next and what was left out on the way, for people to look at.
//!
//! What always holds: the occurrences are those of [`Timing::next_after`]; what calendars left out
//! stands before the occurrence that follows it, in runs of one calendar and one reason, so that a
//! holiday of a rule that fires every minute is one entry. Entries and counting are bounded. It
//! deliberately lacks the calendars' names, which a timing does not know.

use std::sync::Arc;

use crate::exclusion::{Exclusion, Reason};
use crate::occurrence::Occurrence;
use crate::timing::Timing;
use crate::{MAX_INSTANT, Micros, RuleKind};

/// Runs told of in one preview.
const RUNS_MAX: usize = 1_000;
/// Stretches of excluded days looked at in one preview.
const STRETCHES_MAX: usize = 2_000;
/// Occurrences counted in one run, and in all of a preview.
const COUNT_MAX: u64 = 1_000;
const COUNT_ALL_MAX: u64 = 100_000;

/// The next occurrences, and what calendars left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preview {
    /// The occurrences, in order.
    pub items: Vec<Previewed>,
    /// What was left out after the last of them, when no other follows.
    pub left_out: Vec<LeftOut>,
}

/// An occurrence and what was left out before it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Previewed {
    /// The occurrence.
    pub occurrence: Occurrence,
    /// What was left out between the one before and this one.
    pub left_out: Vec<LeftOut>,
}

/// Occurrences in a row that one calendar left out for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The logical time of the first.
    pub first: Micros,
    /// The logical time of the last.
    pub last: Micros,
    /// How many; more than 1,000 are not counted, nor more than 100,000 in one preview.
    pub count: u64,
    /// The first of the timing's calendars that leaves their days out, counted from 0.
    pub calendar: usize,
    /// Which of its days they are.
    pub reason: Reason,
}

struct Budget {
    runs: usize,
    stretches: usize,
    count: u64,
}

impl Timing {
    /// The next `n` occurrences strictly after an instant, and what calendars left out between them.
    /// A fixed delay has one: what follows depends on when runs end.
    ///
    /// Takes `n` calls of [`Timing::next_after`], and as much again for what was left out.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tourbillon_schedule::{Calendar, Exclusion, Rule, Timing, Zone, parse_instant};
    /// let weekdays = Exclusion::new().with_weekday("sat")?.with_weekday("sun")?;
    /// let daily = Rule::calendar(Calendar::parse("day")?.with_at("09:00")?);
    /// let timing = Timing::new(daily, Zone::utc()).with_exclusions(vec![Arc::new(weekdays)]);
    /// let friday = parse_instant("2026-10-02T12:00:00Z", None)?;
    /// let monday = &timing.preview(friday, 1).items[0];
    /// let why: Vec<_> = monday.left_out.iter().map(|run| run.reason.to_string()).collect();
    /// assert_eq!(why, ["every sat", "every sun"]);
    /// # Ok::<(), tourbillon_schedule::Error>(())
    /// ```
    #[must_use]
    pub fn preview(&self, after: Micros, n: usize) -> Preview {
        let n = if self.rule().kind() == RuleKind::After { n.min(1) } else { n };
        let raw = self.clone().with_exclusions(Vec::new());
        let mut budget = Budget { runs: RUNS_MAX, stretches: STRETCHES_MAX, count: COUNT_ALL_MAX };
        let mut preview = Preview { items: Vec::new(), left_out: Vec::new() };
        let mut at = after;
        while preview.items.len() < n {
            let Some(occurrence) = self.next_after(at) else {
                preview.left_out = self.left_out(&raw, at, MAX_INSTANT, &mut budget);
                break;
            };
            let left_out = self.left_out(&raw, at, occurrence.logical, &mut budget);
            at = occurrence.logical;
            preview.items.push(Previewed { occurrence, left_out });
        }
        preview
    }

    /// What the rule alone has strictly between two instants; `raw` is the timing without calendars.
    fn left_out(
        &self,
        raw: &Timing,
        after: Micros,
        before: Micros,
        budget: &mut Budget,
    ) -> Vec<LeftOut> {
        let mut runs: Vec<LeftOut> = Vec::new();
        if self.exclusions().is_empty() {
            return runs;
        }
        let mut next = raw.next_after(after);
        while let Some(found) = next
            && found.logical < before
            && budget.stretches > 0
            && let Some((calendar, reason, until)) = self.excluded_by(found.logical)
        {
            budget.stretches -= 1;
            // A fixed delay has no grid: there is this one time, which moves.
            let tally = raw.tally(found.logical, until - 1, budget.count.clamp(1, COUNT_MAX));
            let count = tally.count.clamp(1, COUNT_MAX);
            let last = tally.last.map_or(found.logical, |o| o.logical);
            budget.count = budget.count.saturating_sub(count);
            match runs.last_mut().filter(|run| (run.calendar, run.reason) == (calendar, reason)) {
                Some(run) => {
                    run.last = last;
                    run.count = (run.count + count).min(COUNT_MAX);
                }
                None if budget.runs == 0 => break,
                None => {
                    budget.runs -= 1;
                    runs.push(LeftOut { first: found.logical, last, count, calendar, reason });
                }
            }
            next = match raw.rule().kind() {
                RuleKind::After => None,
                _ => raw.next_after(until - 1),
            };
        }
        runs
    }

    /// Which calendar leaves an instant's day out, why, and the first instant after the stretch of
    /// days for which it does so.
    fn excluded_by(&self, instant: Micros) -> Option<(usize, Reason, Micros)> {
        let day = self.day_of(instant);
        let reasons = self.exclusions().iter().map(Arc::as_ref).map(|c: &Exclusion| c.reason(day));
        let (calendar, reason) =
            reasons.enumerate().find_map(|(index, reason)| Some((index, reason?)))?;
        let until = self.first_instant_of(reason.last_day(day) + 1, instant);
        Some((calendar, reason, until.unwrap_or(MAX_INSTANT)))
    }
}
