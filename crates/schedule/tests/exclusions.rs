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

        // A preview has the same occurrences, and between them, in runs, everything else that the
        // rule has; each run says which calendar leaves it out.
        let preview = left.preview(start, expected.len());
        let items: Vec<_> = preview.items.iter().map(|item| item.occurrence).collect();
        prop_assert_eq!(&items, &expected);
        let mut at = start;
        for item in &preview.items {
            let raw: Vec<i64> = all
                .occurrences_after(at)
                .map(|o| o.logical)
                .take_while(|logical| *logical < item.occurrence.logical)
                .collect();
            at = item.occurrence.logical;
            let mut told = raw.as_slice();
            for run in &item.left_out {
                prop_assert_eq!(told.first(), Some(&run.first));
                let by = [&dates, &weekly][run.calendar];
                let length = told.iter().position(|logical| *logical == run.last).map(|at| at + 1);
                let (of_run, rest) = told.split_at(length.expect("a run ends with a time of the rule"));
                prop_assert_eq!(run.count, of_run.len().min(1_000) as u64);
                for logical in of_run {
                    prop_assert!(by.excludes(&date_of(*logical).to_string()).unwrap());
                    prop_assert!(left.excludes(*logical));
                }
                told = rest;
            }
            prop_assert!(told.is_empty(), "{} are not told of", told.len());
            prop_assert!(!left.excludes(at));
        }
    }
}

/// A minute's rule over a week of holidays is one entry, and a rule that never fires says why.
#[test]
fn what_is_left_out_is_told_in_runs() {
    let calendars = vec![
        Arc::new(Exclusion::new().with_dates("2026-10-01", "2026-10-07").unwrap()),
        Arc::new(Exclusion::new().with_weekday("thu").unwrap()),
    ];
    let told = |rule: Rule, after: &str, n: usize| {
        let zone = Zone::get("Asia/Shanghai").unwrap();
        let timing = Timing::new(rule, zone).with_exclusions(calendars.clone());
        let preview = timing.preview(parse_instant(after, None).unwrap(), n);
        let run = |run: &tourbillon_schedule::LeftOut| {
            let (first, last) = (format_instant(run.first), format_instant(run.last));
            format!("{first} {last} {} {} {}", run.count, run.calendar, run.reason)
        };
        let items: Vec<Vec<String>> =
            preview.items.iter().map(|item| item.left_out.iter().map(run).collect()).collect();
        let rest: Vec<String> = preview.left_out.iter().map(run).collect();
        (items, rest)
    };
    let week = "0 2026-10-01 to 2026-10-07";
    let (items, rest) = told(cron("* * * * *"), "2026-09-30T15:58:30Z", 3);
    assert_eq!(items[0], Vec::<String>::new());
    // Thursday 8 October follows the holidays.
    let thursday = "2026-10-07T16:00:00Z 2026-10-08T15:59:00Z 1000 1 every thu";
    let holidays = format!("2026-09-30T16:00:00Z 2026-10-07T15:59:00Z 1000 {week}");
    assert_eq!(items[1], [holidays, thursday.to_owned()]);
    assert!(items[2].is_empty() && rest.is_empty());
    let (items, _) = told(cron("0 9 * * *"), "2026-09-30T02:00:00Z", 1);
    let thursday = "2026-10-08T01:00:00Z 2026-10-08T01:00:00Z 1 1 every thu";
    assert_eq!(
        items[0],
        [format!("2026-10-01T01:00:00Z 2026-10-07T01:00:00Z 7 {week}"), thursday.to_owned()]
    );
    // Every Thursday from 2026 on: one run, not one entry a week.
    let (items, rest) = told(cron("0 9 * * thu"), "2026-10-08T02:00:00Z", 5);
    assert!(items.is_empty());
    assert_eq!(rest.len(), 1);
    assert!(rest[0].starts_with("2026-10-15T01:00:00Z ") && rest[0].ends_with(" 1000 1 every thu"));
    // The one time of a fixed delay moves.
    let delay = Rule::after(parse_duration("2h").unwrap()).unwrap();
    let (items, rest) = told(delay, "2026-09-30T15:00:00Z", 5);
    assert_eq!(items, [[format!("2026-09-30T17:00:00Z 2026-09-30T17:00:00Z 1 {week}")]]);
    assert!(rest.is_empty());
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
