//! When a periodic job runs, and what becomes of runs that were missed or that failed.

use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

#[cfg(feature = "cron")]
use tourbillon_schedule::Timing;

use super::error::Refused;
use crate::time::{Time, nanos};

/// What becomes of the runs of a fixed rate whose time passed, because a run before took too long,
/// the machine was busy or the clock moved on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// They are left out: the next run is at the next planned time that is not past. The default.
    #[default]
    Skip,
    /// All of them run, one right after the other, until the plan is caught up with: as with
    /// `java.util.Timer` and `ScheduledThreadPoolExecutor`.
    Burst,
    /// One runs, and the plan starts from there: a period after it comes the next.
    Delay,
}

/// What becomes of a periodic job whose closure panicked or gave an `Err`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// It goes on as planned. The default.
    #[default]
    Continue,
    /// It is over, as with `ScheduledThreadPoolExecutor`.
    Stop,
}

/// What a periodic job's closure gives back: whether it went well, and whether to go on.
pub trait Outcome {
    /// What it says.
    fn verdict(&self) -> Verdict;
}

/// What the [`Outcome`] of a run says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It went well.
    Continue,
    /// It failed: the plan's [`OnFailure`] decides.
    Failed,
    /// It went well, and there is to be no other run.
    Break,
}

impl Outcome for () {
    fn verdict(&self) -> Verdict {
        Verdict::Continue
    }
}

impl<T, E> Outcome for Result<T, E> {
    fn verdict(&self) -> Verdict {
        if self.is_ok() { Verdict::Continue } else { Verdict::Failed }
    }
}

impl<B> Outcome for ControlFlow<B> {
    fn verdict(&self) -> Verdict {
        if self.is_continue() { Verdict::Continue } else { Verdict::Break }
    }
}

/// One run of a periodic job.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Run {
    /// Which run it is, from 1.
    pub number: u64,
    /// When it was planned for. Times of a fixed rate are exactly a period apart, however late runs
    /// began.
    pub planned: Instant,
    /// How many runs were left out between the one before and this one.
    pub skipped: u64,
}

/// A periodic job's plan: [`Timer::repeat`](super::Timer::repeat) takes it.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Missed, OnFailure, Plan, Timer};
///
/// let timer = Timer::new();
/// let plan = Plan::every(Duration::from_millis(2))
///     .first_in(Duration::ZERO)
///     .missed(Missed::Burst)
///     .on_failure(OnFailure::Stop)
///     .times(3);
/// let job = timer.repeat(plan, |run| println!("run {} of 3", run.number))?;
/// assert_eq!(job.join()?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a plan does nothing until a timer repeats by it"]
pub struct Plan {
    pub(crate) rule: Rule,
    pub(crate) first: First,
    pub(crate) missed: Option<Missed>,
    pub(crate) on_failure: Option<OnFailure>,
    pub(crate) times: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Rule {
    /// Nanoseconds from one planned time to the next.
    Every(u64),
    /// Nanoseconds from the end of a run to the next.
    Delay(u64),
    #[cfg(feature = "cron")]
    Cron(Box<Timing>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum First {
    /// After one period, or at the schedule's next time.
    ByRule,
    In(Duration),
    At(Instant),
}

impl Plan {
    fn of(rule: Rule) -> Self {
        Self { rule, first: First::ByRule, missed: None, on_failure: None, times: u64::MAX }
    }

    /// A fixed rate: planned times are a period apart. Runs of one job never overlap. The first is a
    /// period from now.
    pub fn every(period: Duration) -> Self {
        Self::of(Rule::Every(nanos(period)))
    }

    /// A fixed delay from the end of each run to the start of the next. The first run is a delay from
    /// now.
    pub fn with_delay(delay: Duration) -> Self {
        Self::of(Rule::Delay(nanos(delay)))
    }

    /// Civil times: cron expressions in three dialects, calendar rules, bounds, exclusions. Times that
    /// passed during a run are left out, unless [`Missed::Burst`] is asked for.
    ///
    /// The wall clock is looked at anew once a minute at least, so that a run is at its time also when
    /// the clock was set meanwhile. When it was set back, what has run does not run again.
    #[cfg(feature = "cron")]
    pub fn cron(timing: Timing) -> Self {
        Self::of(Rule::Cron(Box::new(timing)))
    }

    /// The first run is in `delay`. Does nothing to a [`cron`](Self::cron) plan.
    pub fn first_in(mut self, delay: Duration) -> Self {
        self.first = First::In(delay);
        self
    }

    /// The first run is at this instant. Does nothing to a [`cron`](Self::cron) plan.
    pub fn first_at(mut self, at: Instant) -> Self {
        self.first = First::At(at);
        self
    }

    /// What becomes of missed runs; otherwise as the timer has it.
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = Some(missed);
        self
    }

    /// What becomes of it when a run fails; otherwise as the timer has it.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = Some(on_failure);
        self
    }

    /// It is over after so many runs; at least one.
    pub fn times(mut self, runs: u64) -> Self {
        self.times = runs.max(1);
        self
    }
}

/// When the next run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    /// In nanoseconds of the timer's time.
    pub(crate) planned: u64,
    /// Of a schedule in civil time: the moment of the wall, in microseconds.
    pub(crate) wall: i64,
    /// Runs left out.
    pub(crate) skipped: u64,
}

impl Rule {
    /// The first run.
    pub(crate) fn first(&self, first: First, time: &Time) -> Result<Next, Refused> {
        let (Rule::Every(span) | Rule::Delay(span)) = self else { return self.first_by_wall(time) };
        if *span < 1_000 {
            return Err(Refused::ZeroPeriod);
        }
        let planned = match first {
            First::ByRule => time.nanos_after(Duration::from_nanos(*span)),
            First::In(delay) => time.nanos_after(delay),
            First::At(at) => time.nanos_at(at),
        };
        Ok(Next { planned, wall: 0, skipped: 0 })
    }

    #[cfg(feature = "cron")]
    fn first_by_wall(&self, time: &Time) -> Result<Next, Refused> {
        let Rule::Cron(timing) = self else { return Err(Refused::NeverRuns) };
        let wall = timing.next_after(time.wall()).ok_or(Refused::NeverRuns)?.due;
        Ok(Next { planned: time.nanos_at_wall(wall), wall, skipped: 0 })
    }

    #[cfg(not(feature = "cron"))]
    fn first_by_wall(&self, _: &Time) -> Result<Next, Refused> {
        Err(Refused::NeverRuns)
    }

    /// The run after the one that was planned for `last` and has just ended.
    pub(crate) fn next(&self, last: Next, missed: Missed, time: &Time) -> Option<Next> {
        let now = time.nanos_after(Duration::ZERO);
        match self {
            Rule::Every(period) => Some(next_of_rate(last.planned, *period, missed, now)),
            Rule::Delay(delay) => {
                Some(Next { planned: now.saturating_add(*delay), wall: 0, skipped: 0 })
            }
            #[cfg(feature = "cron")]
            Rule::Cron(timing) => {
                // Strictly after the planned time, so that a clock that goes back repeats nothing.
                let after = match missed {
                    Missed::Burst => last.wall,
                    Missed::Skip | Missed::Delay => last.wall.max(time.wall().saturating_sub(1)),
                };
                let wall = timing.next_after(after)?.due;
                Some(Next { planned: time.nanos_at_wall(wall), wall, skipped: 0 })
            }
        }
    }

    /// Whether it waits for a moment of the wall clock.
    pub(crate) fn is_by_wall(&self) -> bool {
        !matches!(self, Rule::Every(_) | Rule::Delay(_))
    }
}

impl Missed {
    /// The time of a rate that comes after the one planned for `last`, in nanoseconds.
    pub(crate) fn after(self, last: u64, period: Duration, time: &Time) -> u64 {
        next_of_rate(last, nanos(period), self, time.nanos_after(Duration::ZERO)).planned
    }
}

/// The planned time after `last`. Exact: the times of a rate are `first + n * period`, whatever
/// happens, except where `Delay` starts anew.
fn next_of_rate(last: u64, period: u64, missed: Missed, now: u64) -> Next {
    let next = last.saturating_add(period);
    let (planned, skipped) = match missed {
        Missed::Burst => (next, 0),
        _ if next >= now => (next, 0),
        Missed::Delay => (now.saturating_add(period), 0),
        Missed::Skip => {
            let skipped = (now - next).div_ceil(period);
            (next.saturating_add(skipped.saturating_mul(period)), skipped)
        }
    };
    Next { planned, wall: 0, skipped }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Skip => "skip",
            Self::Burst => "burst",
            Self::Delay => "delay",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_does_not_drift() {
        // A period that is no whole number of microseconds, over a million runs (rq-scheduler#269).
        let (period, first) = (333_333, 7);
        let mut planned = first;
        for n in 1..=1_000_000 {
            // Each run ends a little after its time.
            planned = next_of_rate(planned, period, Missed::Skip, planned + 50_000).planned;
            assert_eq!(planned, first + n * period);
        }
    }

    #[test]
    fn what_was_missed() {
        let next = |missed, now| {
            let next = next_of_rate(1_000, 100, missed, now);
            (next.planned, next.skipped)
        };
        for missed in [Missed::Skip, Missed::Burst, Missed::Delay] {
            assert_eq!(next(missed, 1_050), (1_100, 0));
            assert_eq!(next(missed, 1_100), (1_100, 0), "what is due now is not missed");
        }
        assert_eq!(next(Missed::Skip, 1_101), (1_200, 1));
        assert_eq!(next(Missed::Skip, 1_450), (1_500, 4));
        assert_eq!(next(Missed::Skip, 1_500), (1_500, 4));
        assert_eq!(next(Missed::Burst, 1_450), (1_100, 0));
        assert_eq!(next(Missed::Delay, 1_450), (1_550, 0));
    }

    #[test]
    fn the_end_of_time_is_not_passed() {
        let next = next_of_rate(u64::MAX - 5, 100, Missed::Skip, u64::MAX - 1);
        assert_eq!(next.planned, u64::MAX);
        assert_eq!(next_of_rate(5, u64::MAX, Missed::Skip, 10).planned, u64::MAX);
    }
}
