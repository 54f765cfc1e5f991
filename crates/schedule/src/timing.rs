//! A schedule's timing: rule, zone, gap and fold policies, bounds and jitter; and the next
//! occurrence.
//!
//! What always holds: [`Timing::next_after`] is strictly after its argument and depends on
//! nothing but the argument and the timing, so a planned time gives the one after it whenever
//! it is asked. It deliberately lacks misfire and overlap policies, which need to know what has
//! run; [`Timing::tally`] and [`Timing::latest`] give them what they need.

use std::sync::Arc;

use crate::civil::DAY_S;
use crate::cron;
use crate::error::{Error, Kind};
use crate::exclusion::{Exclusion, first_allowed};
use crate::hash::{mix, stable};
use crate::occurrence::{Occurrence, Why};
use crate::policy::{Fold, Gap};
use crate::rule::{Form, Rule};
use crate::walk::{Cause, CivilSet, Policy, first_at_or_after};
use crate::{MAX_INSTANT, MIN_INSTANT, Micros, Zone, format_duration, format_instant, instant};

/// Days in a row with excluded occurrences after which the search gives up.
const EXCLUDED_MAX: u32 = 4_000;

/// Every civil second from one on.
struct Since(i64);

impl CivilSet for Since {
    fn at_or_after(&self, local: i64) -> Option<i64> {
        Some(local.max(self.0))
    }
}

/// When a schedule's occurrences are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    rule: Rule,
    zone: Zone,
    policy: Policy,
    start: Option<Micros>,
    end: Option<Micros>,
    jitter: Micros,
    jitter_seed: u64,
    exclusions: Vec<Arc<Exclusion>>,
}

impl Timing {
    /// A timing with gaps shifted, folds taken first, no bounds and no jitter.
    #[must_use]
    pub fn new(rule: Rule, zone: Zone) -> Self {
        Self {
            rule,
            zone,
            policy: Policy { gap: Gap::default(), fold: Fold::default() },
            start: None,
            end: None,
            jitter: 0,
            jitter_seed: 0,
            exclusions: Vec::new(),
        }
    }

    /// With a gap policy. It concerns rules that are sets of civil times; see
    /// [`crate::CronExpr::is_elapsed`].
    #[must_use]
    pub fn with_gap(mut self, gap: Gap) -> Self {
        self.policy.gap = gap;
        self
    }

    /// With a fold policy, for the same rules as the gap policy.
    #[must_use]
    pub fn with_fold(mut self, fold: Fold) -> Self {
        self.policy.fold = fold;
        self
    }

    /// With bounds on logical times, both of them inclusive. `start` also anchors a fixed rate.
    ///
    /// # Errors
    ///
    /// An end before the start, and instants outside [`MIN_INSTANT`]..=[`MAX_INSTANT`].
    pub fn with_bounds(
        mut self,
        start: Option<Micros>,
        end: Option<Micros>,
    ) -> Result<Self, Error> {
        for (field, bound) in [("start", start), ("end", end)] {
            if let Some(bound) = bound
                && !(MIN_INSTANT..=MAX_INSTANT).contains(&bound)
            {
                let given = format_instant(bound);
                let expected = "an instant from year 1 to the end of year 9999";
                return Err(Error::new(Kind::Timing, field, None, &given, expected));
            }
        }
        if let (Some(start), Some(end)) = (start, end)
            && end < start
        {
            return Err(Error::new(
                Kind::Timing,
                "end",
                None,
                &format_instant(end),
                format!("an instant from the start on, {}", format_instant(start)),
            ));
        }
        self.start = start;
        self.end = end;
        Ok(self)
    }

    /// With jitter: each occurrence is due up to `jitter` after its logical time, always the same
    /// for the same `seed` (the schedule's name) and logical time. Whole milliseconds, unless
    /// `jitter` itself is shorter.
    ///
    /// # Errors
    ///
    /// A negative jitter, or one of more than 366 days.
    pub fn with_jitter(mut self, jitter: Micros, seed: &str) -> Result<Self, Error> {
        const JITTER_MAX: Micros = 366 * 86_400_000_000;
        if !(0..=JITTER_MAX).contains(&jitter) {
            return Err(Error::new(
                Kind::Timing,
                "jitter",
                None,
                &format_duration(jitter),
                "from 0s to 366d",
            ));
        }
        self.jitter = jitter;
        self.jitter_seed = stable(seed, 1);
        Ok(self)
    }

    /// With exclusion calendars: no occurrence has its logical time on a day, in the schedule's
    /// zone, that one of them leaves out. An occurrence of a fixed delay moves to the beginning of
    /// the next day that is not left out.
    #[must_use]
    pub fn with_exclusions(mut self, exclusions: Vec<Arc<Exclusion>>) -> Self {
        self.exclusions = exclusions;
        self
    }

    /// The rule.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The zone.
    #[must_use]
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The gap policy.
    #[must_use]
    pub fn gap(&self) -> Gap {
        self.policy.gap
    }

    /// The fold policy.
    #[must_use]
    pub fn fold(&self) -> Fold {
        self.policy.fold
    }

    /// The earliest logical time.
    #[must_use]
    pub fn start(&self) -> Option<Micros> {
        self.start
    }

    /// The latest logical time.
    #[must_use]
    pub fn end(&self) -> Option<Micros> {
        self.end
    }

    /// The greatest jitter.
    #[must_use]
    pub fn jitter(&self) -> Micros {
        self.jitter
    }

    /// The exclusion calendars.
    #[must_use]
    pub fn exclusions(&self) -> &[Arc<Exclusion>] {
        &self.exclusions
    }

    /// Whether a calendar leaves out an instant's day in the schedule's zone.
    #[must_use]
    pub fn excludes(&self, instant: Micros) -> bool {
        let day = self.day_of(instant.clamp(MIN_INSTANT, MAX_INSTANT));
        self.exclusions.iter().any(|calendar| calendar.has(day))
    }

    /// The first occurrence whose logical time is strictly after `after`, or `None` when there
    /// is none up to the end and [`MAX_INSTANT`].
    ///
    /// For a fixed delay `after` is the final time of the previous run (or when the
    /// schedule was created), and the occurrence is one delay later.
    ///
    /// It takes about a microsecond for an ordinary rule, and well under a millisecond for one that
    /// never fires. After 4,000 days in a row whose occurrences are excluded there is held to be none.
    #[must_use]
    pub fn next_after(&self, after: Micros) -> Option<Occurrence> {
        let start = self.start.unwrap_or(MIN_INSTANT);
        let mut least = after.max(MIN_INSTANT - 1).checked_add(1)?.max(start);
        if let Form::After(delay) = &self.rule.0 {
            least = after.max(MIN_INSTANT).checked_add(*delay)?.max(start);
        }
        for _ in 0..=EXCLUDED_MAX {
            let (logical, why) = self.rule_at_or_after(least)?;
            if logical > self.end.unwrap_or(MAX_INSTANT).min(MAX_INSTANT) {
                return None;
            }
            match self.excluded_until(logical)? {
                None => return Some(self.occurrence(logical, why)),
                Some(until) => least = until,
            }
        }
        None
    }

    /// The occurrences strictly after an instant, in order.
    ///
    /// For a fixed delay each is taken as the final time of the one before.
    pub fn occurrences_after(&self, after: Micros) -> impl Iterator<Item = Occurrence> + '_ {
        let mut at = Some(after);
        std::iter::from_fn(move || {
            let next = self.next_after(at?);
            at = next.map(|occurrence| occurrence.logical);
            next
        })
    }

    /// An instant as civil time with offset in the schedule's zone (RFC 9557):
    /// `2026-03-08T03:00:00-04:00[America/New_York]`.
    #[must_use]
    pub fn local(&self, instant: Micros) -> String {
        instant::format_local(instant, &self.zone)
    }

    /// The rule's first time at or after `least`, exclusions aside.
    fn rule_at_or_after(&self, least: Micros) -> Option<(Micros, Why)> {
        if let Some(interval) = self.rule.interval() {
            return Some((self.on_grid(interval, least)?, Why::default()));
        }
        match &self.rule.0 {
            Form::Cron(expr) => match expr.form() {
                cron::Form::Fields(fields) if fields.elapsed => {
                    self.civil(fields, Policy::ELAPSED, least)
                }
                cron::Form::Fields(fields) => self.civil(fields, self.policy, least),
                cron::Form::Every(_) => None,
            },
            Form::Calendar(calendar) => {
                let local = |start: Micros| {
                    let second = start.div_euclid(1_000_000);
                    second + self.zone.offset_at(second)
                };
                self.civil(&calendar.grid(self.start.map(local)), self.policy, least)
            }
            // The delay is in `least`.
            Form::After(_) | Form::Every(_) => Some((least, Why::default())),
        }
    }

    /// When the instant's day is excluded, the first instant after it whose day is not.
    /// `None` when no day is left.
    fn excluded_until(&self, instant: Micros) -> Option<Option<Micros>> {
        if self.exclusions.is_empty() {
            return Some(None);
        }
        let day = self.day_of(instant);
        let allowed = first_allowed(self.exclusions.iter().map(Arc::as_ref), day)?;
        if allowed == day {
            return Some(None);
        }
        self.first_instant_of(allowed, instant).map(Some)
    }

    /// The civil day of an instant in the schedule's zone.
    pub(crate) fn day_of(&self, instant: Micros) -> i64 {
        let second = instant.div_euclid(1_000_000);
        (second + self.zone.offset_at(second)).div_euclid(DAY_S)
    }

    /// The first instant from one on whose civil day is `day` or a later one.
    pub(crate) fn first_instant_of(&self, day: i64, from: Micros) -> Option<Micros> {
        let second = from.div_euclid(1_000_000);
        let since = Since(day * DAY_S);
        let found = first_at_or_after(&since, &self.zone, Policy::ELAPSED, second)?;
        Some(found.second * 1_000_000)
    }

    fn civil(&self, set: &impl CivilSet, policy: Policy, least: Micros) -> Option<(Micros, Why)> {
        let second = least.div_euclid(1_000_000) + i64::from(least.rem_euclid(1_000_000) != 0);
        let found = first_at_or_after(set, &self.zone, policy, second)?;
        let mut why = Why::default();
        if policy != Policy::ELAPSED {
            why.shifted = found.cause == Cause::Shifted;
            why.fold_first = found.cause == Cause::FoldFirst;
            why.fold_last = found.cause == Cause::FoldLast;
            why.clamped = set.is_clamped(found.local);
        }
        Some((found.second * 1_000_000, why))
    }

    /// The first point of the grid at or after `least`.
    fn on_grid(&self, interval: Micros, least: Micros) -> Option<Micros> {
        let anchor = i128::from(self.start.unwrap_or(0));
        let interval = i128::from(interval);
        let periods = -(anchor - i128::from(least)).div_euclid(interval);
        i64::try_from(anchor + periods * interval).ok()
    }

    /// Whether the occurrences are a plain grid, to be counted by arithmetic; its interval.
    pub(crate) fn plain_grid(&self) -> Option<Micros> {
        self.rule.interval().filter(|_| self.exclusions.is_empty())
    }

    fn occurrence(&self, logical: Micros, mut why: Why) -> Occurrence {
        let mut due = logical;
        if self.jitter > 0 {
            let draw = mix(self.jitter_seed ^ mix(logical as u64));
            let mut late = ((u128::from(draw) * self.jitter as u128) >> 64) as i64;
            if self.jitter >= 1_000 {
                late -= late % 1_000;
            }
            due += late;
            why.jittered = late > 0;
        }
        Occurrence { logical, due, why }
    }
}
