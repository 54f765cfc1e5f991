//! When another scheduler would fire, found day by day.
//!
//! It shares the sets of fields with our evaluator and nothing of the search: it lists the civil times
//! of one day after another and asks jiff which instants they are. What always holds: the answer is
//! in order, strictly after the argument, and the work is bounded. Speed is deliberately absent.

use jiff::civil::DateTime;
use jiff::tz::AmbiguousOffset;

use crate::civil::{DAY_S, date_of};
use crate::cron::{Fields, Form};
use crate::{CronExpr, MAX_INSTANT, MIN_INSTANT, Micros, OnCalendar, Zone};

/// Days that are looked at: 29 February comes again within eight years, a weekday on it within forty.
const DAYS_MAX: i64 = 41 * 366;

/// How a scheduler reads civil times where clocks change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Kubernetes: each real instant whose civil time matches. Nothing in a gap, twice in a fold.
    Kubernetes,
    /// Quartz, by Java's calendar: a time in a gap is moved by the gap's length, one that comes twice is
    /// its second.
    Quartz,
    /// systemd: nothing in a gap, the first of a fold.
    Systemd,
}

impl Reading {
    /// The next `n` times after an instant by which a cron expression fires there; fewer when there are
    /// no more within forty years. Empty for an interval, which is not a set of civil times.
    ///
    /// ```
    /// use tourbillon_schedule::{CronExpr, Dialect, Reading, Zone, format_instant, parse_instant};
    /// let expr = CronExpr::parse(Dialect::Quartz, "0 30 2 * * ?", "")?;
    /// let after = parse_instant("2026-03-08T05:00:00Z", None)?;
    /// let next = Reading::Quartz.times(&expr, &Zone::get("America/New_York")?, after, 1);
    /// assert_eq!(format_instant(next[0]), "2026-03-08T07:30:00Z");
    /// # Ok::<(), tourbillon_schedule::Error>(())
    /// ```
    #[must_use]
    pub fn times(self, expr: &CronExpr, zone: &Zone, after: Micros, n: usize) -> Vec<Micros> {
        match expr.form() {
            Form::Fields(fields) => self.of_fields(fields, zone, after, n),
            Form::Every(_) => Vec::new(),
        }
    }

    /// The same of a calendar event of systemd; `zone` is for one that names none.
    #[must_use]
    pub fn times_of(self, event: &OnCalendar, zone: &Zone, after: Micros, n: usize) -> Vec<Micros> {
        let zone = event.zone().unwrap_or(zone);
        self.of_fields(&event.fields(), zone, after, n)
    }

    fn of_fields(self, fields: &Fields, zone: &Zone, after: Micros, n: usize) -> Vec<Micros> {
        let after = after.clamp(MIN_INSTANT, MAX_INSTANT);
        let second = after.div_euclid(1_000_000);
        let today = (second + zone.offset_at(second)).div_euclid(DAY_S);
        let mut found: Vec<Micros> = Vec::new();
        let mut of_day = Vec::new();
        // A fold at midnight belongs to the day before.
        for day in today - 1..today + DAYS_MAX {
            if found.len() >= n {
                break;
            }
            if !has_day(fields, day) {
                continue;
            }
            of_day.clear();
            self.instants(fields, zone, day, &mut of_day);
            of_day.sort_unstable();
            for second in &of_day {
                let at = second * 1_000_000;
                if at > found.last().copied().unwrap_or(after) && found.len() < n {
                    found.push(at);
                }
            }
        }
        found
    }

    /// The instants of a day's civil times, in seconds.
    fn instants(self, fields: &Fields, zone: &Zone, day: i64, found: &mut Vec<i64>) {
        let (year, month, date) = date_of(day);
        for (hour, minute, second) in times_of_day(fields) {
            let time =
                (year as i16, month as i8, date as i8, hour as i8, minute as i8, second as i8);
            let (y, mo, d, h, mi, s) = time;
            let Ok(civil) = DateTime::new(y, mo, d, h, mi, s, 0) else { continue };
            let local = day * DAY_S + hour * 3600 + minute * 60 + second;
            let at = |offset: jiff::tz::Offset| local - i64::from(offset.seconds());
            match zone.tz().to_ambiguous_timestamp(civil).offset() {
                AmbiguousOffset::Unambiguous { offset } => found.push(at(offset)),
                AmbiguousOffset::Gap { before, .. } if self == Reading::Quartz => {
                    found.push(at(before));
                }
                AmbiguousOffset::Gap { .. } => {}
                AmbiguousOffset::Fold { before, after } => {
                    if self != Reading::Quartz {
                        found.push(at(before));
                    }
                    if self != Reading::Systemd {
                        found.push(at(after));
                    }
                }
            }
        }
    }
}

fn has_day(fields: &Fields, day: i64) -> bool {
    let (year, month, date) = date_of(day);
    (1..=9999).contains(&year)
        && fields.months >> month & 1 == 1
        && fields.years.as_ref().is_none_or(|years| years.has(year))
        && fields.days.of_month(year, month) >> date & 1 == 1
}

fn times_of_day(fields: &Fields) -> impl Iterator<Item = (i64, i64, i64)> {
    let members = |set: u64| (0..60_i64).filter(move |n| set >> n & 1 == 1);
    let (hours, minutes, seconds) = (fields.hours, fields.minutes, fields.seconds);
    members(hours).flat_map(move |hour| {
        members(minutes)
            .flat_map(move |minute| members(seconds).map(move |second| (hour, minute, second)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, Fold, Gap, Rule, Timing, format_instant, parse_instant};

    fn times(reading: Reading, expr: &str, after: &str, n: usize) -> Vec<String> {
        let expr = CronExpr::parse(Dialect::Spring, expr, "").unwrap();
        let zone = Zone::get("America/New_York").unwrap();
        let after = parse_instant(after, None).unwrap();
        reading.times(&expr, &zone, after, n).into_iter().map(format_instant).collect()
    }

    #[test]
    fn each_reads_a_gap_and_a_fold_its_own_way() {
        let gap = "2026-03-08T05:00:00Z";
        assert_eq!(times(Reading::Quartz, "0 30 2 * * ?", gap, 1), ["2026-03-08T07:30:00Z"]);
        assert_eq!(times(Reading::Systemd, "0 30 2 * * ?", gap, 1), ["2026-03-09T06:30:00Z"]);
        assert_eq!(times(Reading::Kubernetes, "0 30 2 * * ?", gap, 1), ["2026-03-09T06:30:00Z"]);
        let fold = "2026-11-01T04:00:00Z";
        let (first, second) = ("2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z");
        assert_eq!(times(Reading::Quartz, "0 30 1 * * ?", fold, 1), [second]);
        assert_eq!(times(Reading::Systemd, "0 30 1 * * ?", fold, 1), [first]);
        assert_eq!(times(Reading::Kubernetes, "0 30 1 * * ?", fold, 2), [first, second]);
    }

    /// Where a reading is one of our policies, it and the search agree.
    #[test]
    fn the_readings_that_are_policies_agree_with_the_search() {
        for name in ["America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "UTC"] {
            let zone = Zone::get(name).unwrap();
            for text in ["0 30 1,2 * * ?", "0 15 0 1-7 * MON", "0 0 0 29 2 ?", "0 0 12 L * ?"] {
                let expr = CronExpr::parse(Dialect::Spring, text, "").unwrap();
                for (reading, gap, fold) in [
                    (Reading::Kubernetes, Gap::Skip, Fold::Both),
                    (Reading::Systemd, Gap::Skip, Fold::First),
                ] {
                    let timing = Timing::new(Rule::cron(expr.clone()), zone.clone())
                        .with_gap(gap)
                        .with_fold(fold);
                    for after in ["2026-03-01T00:00:00Z", "2026-10-20T00:00:00Z"] {
                        let after = parse_instant(after, None).unwrap();
                        let ours = timing.occurrences_after(after).map(|o| o.logical).take(9);
                        let ours: Vec<Micros> = ours.collect();
                        assert_eq!(reading.times(&expr, &zone, after, 9), ours, "{name} {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_expression_that_never_fires_ends() {
        assert_eq!(times(Reading::Quartz, "0 0 0 30 2 ?", "2026-01-01T00:00:00Z", 3), [""; 0]);
    }
}
