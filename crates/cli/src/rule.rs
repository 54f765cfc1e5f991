//! Options that say when: a schedule's rule, its zone and its policies.

use clap::Args;
use tourbillon_wire::{
    CalendarRule, Dialect, Duration, Fold, Gap, Misfire, MisfirePolicy, MonthEnd, NewSchedule, On,
    Overlap,
};

use crate::exit::usage;
use crate::{when, words};

/// The rule: exactly one.
#[derive(Debug, Clone, Args)]
pub(crate) struct RuleArgs {
    /// By a cron expression.
    #[arg(long, value_name = "EXPR", group = "rule")]
    pub(crate) cron: Option<String>,
    /// At a fixed rate.
    #[arg(long, value_name = "DURATION", group = "rule")]
    pub(crate) every: Option<Duration>,
    /// With a fixed delay after the previous run has ended.
    #[arg(long, value_name = "DURATION", group = "rule")]
    pub(crate) fixed_delay: Option<Duration>,
    /// Every so many days, weeks, months, quarters or years, such as "1 month".
    #[arg(long, value_name = "PERIOD", group = "rule")]
    pub(crate) calendar: Option<String>,
    /// With --calendar: the day of the month (1 to 31) or week (1, Monday, to 7), or last_business_day.
    #[arg(long, value_name = "DAY", requires = "calendar")]
    pub(crate) on: Option<String>,
    /// With --calendar: the time of day, such as 02:00.
    #[arg(long, value_name = "HH:MM", requires = "calendar")]
    pub(crate) at_time: Option<String>,
    /// With --calendar: what becomes of a day that a month lacks [default: clamp].
    #[arg(long, value_parser = words::one_of::<MonthEnd>(&["clamp", "skip"]), requires = "calendar", value_name = "WHAT")]
    pub(crate) month_end: Option<MonthEnd>,
}

/// How the rule is read.
#[derive(Debug, Clone, Args)]
pub(crate) struct TimingArgs {
    /// How the cron expression is read [default: vixie].
    #[arg(long, value_parser = words::one_of::<Dialect>(&["vixie", "quartz", "spring"]), value_name = "DIALECT")]
    pub(crate) dialect: Option<Dialect>,
    /// The IANA name of the time zone [default: UTC].
    #[arg(long, value_name = "ZONE")]
    pub(crate) tz: Option<String>,
    /// What becomes of civil times that a change of clocks leaves out [default: shift].
    #[arg(long, value_parser = words::one_of::<Gap>(&["shift", "skip"]), value_name = "WHAT")]
    pub(crate) gap: Option<Gap>,
    /// Which one of civil times that come twice [default: first].
    #[arg(long, value_parser = words::one_of::<Fold>(&["first", "last", "both"]), value_name = "WHICH")]
    pub(crate) fold: Option<Fold>,
    /// Nothing before this instant; also what a fixed rate is counted from.
    #[arg(long, value_name = "INSTANT")]
    pub(crate) start: Option<String>,
    /// Nothing after this instant.
    #[arg(long, value_name = "INSTANT")]
    pub(crate) end: Option<String>,
    /// No more planned occurrences than this.
    #[arg(long, value_name = "N")]
    pub(crate) max_runs: Option<u64>,
    /// Move each occurrence later by up to this much.
    #[arg(long, value_name = "DURATION")]
    pub(crate) jitter: Option<Duration>,
    /// A calendar whose days are left out; can be repeated.
    #[arg(long, value_name = "CALENDAR")]
    pub(crate) exclude: Vec<String>,
}

/// What becomes of occurrences that cannot run on time.
#[derive(Debug, Clone, Args)]
pub(crate) struct PolicyArgs {
    /// Which missed occurrences are made up for [default: once].
    #[arg(long, value_parser = words::one_of::<MisfirePolicy>(&["skip", "once", "all"]), value_name = "WHICH")]
    pub(crate) misfire: Option<MisfirePolicy>,
    /// No later than this it is no misfire.
    #[arg(long, value_name = "DURATION")]
    pub(crate) misfire_grace: Option<Duration>,
    /// With --misfire all: no more catch-up runs than this [default: 100].
    #[arg(long, value_name = "N")]
    pub(crate) misfire_limit: Option<u32>,
    /// What to do when the previous run is not over [default: skip].
    #[arg(long, value_parser = words::one_of::<Overlap>(&["allow", "skip", "wait", "cancel_running"]), value_name = "WHAT")]
    pub(crate) overlap: Option<Overlap>,
    /// Store it, but plan nothing until it is resumed.
    #[arg(long)]
    pub(crate) paused: bool,
    /// Warn when no run succeeded within this time.
    #[arg(long, value_name = "DURATION")]
    pub(crate) expect_within: Option<Duration>,
}

impl RuleArgs {
    /// Whether a rule was given.
    pub(crate) fn is_given(&self) -> bool {
        self.cron.is_some()
            || self.every.is_some()
            || self.fixed_delay.is_some()
            || self.calendar.is_some()
    }

    /// Puts the rule into the document.
    pub(crate) fn apply(&self, schedule: &mut NewSchedule) -> anyhow::Result<()> {
        if !self.is_given() {
            return Err(usage("when? give --cron, --every, --fixed-delay or --calendar"));
        }
        schedule.cron = self.cron.clone();
        schedule.every = self.every;
        schedule.after = self.fixed_delay;
        schedule.calendar = self.calendar.clone().map(|every| CalendarRule {
            every,
            on: self.on.as_deref().map(|on| match on.parse() {
                Ok(day) => On::Day(day),
                Err(_) => On::Name(on.to_owned()),
            }),
            at: self.at_time.clone(),
            month_end: self.month_end,
        });
        Ok(())
    }
}

impl TimingArgs {
    /// Puts zone, policies and bounds into the document.
    pub(crate) fn apply(&self, schedule: &mut NewSchedule) -> anyhow::Result<()> {
        let tz = Some(self.tz.as_deref().unwrap_or("UTC"));
        let instant = |option: &str, given: &Option<String>| {
            given.as_deref().map(|given| when::instant(option, given, tz)).transpose()
        };
        schedule.dialect = self.dialect;
        schedule.tz = self.tz.clone();
        schedule.gap = self.gap;
        schedule.fold = self.fold;
        schedule.start = instant("--start", &self.start)?;
        schedule.end = instant("--end", &self.end)?;
        schedule.max_runs = self.max_runs;
        schedule.jitter = self.jitter;
        schedule.exclude = self.exclude.clone();
        Ok(())
    }
}

impl PolicyArgs {
    /// Puts the policies into the document.
    pub(crate) fn apply(&self, schedule: &mut NewSchedule) {
        if self.misfire.is_some() || self.misfire_grace.is_some() || self.misfire_limit.is_some() {
            schedule.misfire = Some(Misfire {
                policy: self.misfire.unwrap_or_default(),
                grace: self.misfire_grace,
                limit: self.misfire_limit,
            });
        }
        schedule.overlap = self.overlap;
        schedule.paused = self.paused.then_some(true);
        schedule.expect_within = self.expect_within;
    }
}
