//! Exclusions: what is left is exactly what the rule has on other days.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use tourbillon_schedule::{
    Calendar, CronExpr, Dialect, Exclusion, Fold, Rule, Timing, Zone, format_instant,
    parse_duration, parse_instant,
};

fn cron(text: &str) -> Rule {
    Rule::cron(CronExpr::parse(Dialect::Vixie, text, "").unwrap())
}

fn rules() -> impl Strategy<Value = Rule> {
    prop::sample::select(vec![
        cron("0 9 * * *"),
        cron("*/20 * * * *"),
        cron("30 0,23 * * mon-fri"),
        cron("@every 5h"),
        Rule::every(parse_duration("7m").unwrap()).unwrap(),
        Rule::calendar(Calendar::parse("3 days").unwrap().with_at("00:30").unwrap()),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_left_is_what_other_days_have(
        rule in rules(),
        zone in prop::sample::select(vec![
            // Cairo and Beirut change their clocks at midnight, back into the day before.
            "UTC", "Africa/Cairo", "Asia/Beirut", "America/New_York", "Pacific/Apia",
        ]),
        from in prop::sample::select(vec![
            "2026-04-20T00:00:00Z", "2026-10-25T12:00:00Z", "2026-03-25T00:00:00Z", "2011-12-26T00:00:00Z",
        ]),
        ranges in prop::collection::vec((0_i64..12, 0_i64..3), 0..4),
        weekday in prop::option::of(prop::sample::select(vec!["mon", "Thu", "sat", "sun"])),
    ) {
        let start = parse_instant(from, None).unwrap();
        let end = start + parse_duration("10d").unwrap();
        let tz = TimeZone::get(zone).unwrap();
        let date_of = |micros: i64| tz.to_datetime(Timestamp::from_microsecond(micros).unwrap()).date();
        let mut dates = Exclusion::new();
        for (offset, length) in ranges {
            let first = date_of(start).checked_add(jiff::Span::new().days(offset)).unwrap();
            let last = first.checked_add(jiff::Span::new().days(length)).unwrap();
            dates = dates.with_dates(&first.to_string(), &last.to_string()).unwrap();
        }
        let mut weekly = Exclusion::new();
        if let Some(weekday) = weekday {
            weekly = weekly.with_weekday(weekday).unwrap();
        }
        let all = Timing::new(rule, Zone::get(zone).unwrap()).with_fold(Fold::Both);
        let left = all.clone().with_exclusions(vec![Arc::new(dates.clone()), Arc::new(weekly.clone())]);
        let out = |micros: i64| {
            let date = date_of(micros).to_string();
            dates.excludes(&date).unwrap() || weekly.excludes(&date).unwrap()
        };
        let expected: Vec<_> = all
            .occurrences_after(start)
            .take_while(|o| o.logical < end)
            .filter(|o| !out(o.logical))
            .collect();
        let actual: Vec<_> = left.occurrences_after(start).take_while(|o| o.logical < end).collect();
        prop_assert_eq!(&actual, &expected);
        let tally = left.tally(start + 1, end - 1, 5_000);
        prop_assert_eq!(tally.count, expected.len() as u64);
        prop_assert_eq!(tally.last, expected.last().copied());
        let latest = left.latest(end - 1).filter(|o| o.logical > start);
        prop_assert_eq!(latest, expected.last().copied());
    }
}

#[test]
fn a_rule_whose_every_day_is_excluded_never_fires() {
    let sundays = Arc::new(Exclusion::new().with_weekday("sun").unwrap());
    let timing = Timing::new(cron("0 0 * * sun"), Zone::utc()).with_exclusions(vec![sundays]);
    assert_eq!(timing.next_after(0), None);
    let always = Arc::new(Exclusion::new().with_dates("0001-01-01", "9999-12-31").unwrap());
    let timing = Timing::new(cron("* * * * *"), Zone::utc()).with_exclusions(vec![always]);
    assert_eq!(timing.next_after(0), None);
    assert_eq!(timing.latest(1_000_000_000_000_000), None);
}

#[test]
fn a_fixed_delay_moves_to_the_next_day_that_is_left() {
    let holiday = Arc::new(Exclusion::new().with_dates("2026-10-01", "2026-10-07").unwrap());
    let delay = Rule::after(parse_duration("2h").unwrap()).unwrap();
    let timing =
        Timing::new(delay, Zone::get("Asia/Shanghai").unwrap()).with_exclusions(vec![holiday]);
    let next = |text: &str| {
        let next = timing.next_after(parse_instant(text, None).unwrap()).unwrap();
        format_instant(next.logical)
    };
    assert_eq!(next("2026-09-30T10:00:00Z"), "2026-09-30T12:00:00Z");
    assert_eq!(next("2026-09-30T15:00:00Z"), "2026-10-07T16:00:00Z");
}
