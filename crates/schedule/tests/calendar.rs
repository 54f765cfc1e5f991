//! The calendar rule against a description in terms of jiff's calendar, date by date.

use jiff::civil::{Date, Weekday, date};
use proptest::prelude::*;
use tourbillon_schedule::{
    Calendar, Fold, Gap, MonthEnd, On, Rule, Timing, Unit, Zone, format_instant, parse_instant,
};

fn times(
    calendar: Calendar,
    zone: &str,
    start: Option<&str>,
    after: &str,
    n: usize,
) -> Vec<String> {
    let zone = Zone::get(zone).unwrap();
    let start = start.map(|start| parse_instant(start, Some(&zone)).unwrap());
    let timing = Timing::new(Rule::calendar(calendar), zone).with_bounds(start, None).unwrap();
    timing
        .occurrences_after(parse_instant(after, None).unwrap())
        .take(n)
        .map(|o| match o.why.to_string().as_str() {
            "normal" => format_instant(o.logical),
            why => format!("{} {why}", format_instant(o.logical)),
        })
        .collect()
}

fn every(text: &str) -> Calendar {
    Calendar::parse(text).unwrap()
}

#[test]
fn months_clamp_or_skip() {
    let on_31st = every("1 month").with_on(On::Day(31)).unwrap().with_at("02:00").unwrap();
    assert_eq!(
        times(on_31st.clone(), "UTC", None, "2026-01-31T02:00:00Z", 3),
        [
            "2026-02-28T02:00:00Z clamped to the month's end",
            "2026-03-31T02:00:00Z",
            "2026-04-30T02:00:00Z clamped to the month's end",
        ]
    );
    assert_eq!(
        times(on_31st.with_month_end(MonthEnd::Skip), "UTC", None, "2026-01-31T02:00:00Z", 3),
        ["2026-03-31T02:00:00Z", "2026-05-31T02:00:00Z", "2026-07-31T02:00:00Z"]
    );
    let leap = every("1 year");
    assert_eq!(
        times(leap.clone(), "UTC", Some("2024-02-29"), "2024-01-01T00:00:00Z", 3),
        [
            "2024-02-29T00:00:00Z",
            "2025-02-28T00:00:00Z clamped to the month's end",
            "2026-02-28T00:00:00Z clamped to the month's end",
        ]
    );
    let skip = leap.with_month_end(MonthEnd::Skip);
    assert_eq!(
        times(skip, "UTC", Some("2096-02-29"), "2026-01-01T00:00:00Z", 2),
        ["2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"]
    );
}

#[test]
fn periods_count_from_the_start() {
    let quarter = every("3 months").with_on(On::LastBusinessDay).unwrap().with_at("18:30").unwrap();
    assert_eq!(
        times(quarter, "Asia/Shanghai", Some("2026-02-10"), "2026-01-01T00:00:00Z", 3),
        ["2026-02-27T10:30:00Z", "2026-05-29T10:30:00Z", "2026-08-31T10:30:00Z"]
    );
    let fortnight = every("2 weeks").with_at("09:00").unwrap();
    assert_eq!(
        times(fortnight.clone(), "UTC", Some("2026-01-07"), "2026-01-01T00:00:00Z", 3),
        ["2026-01-07T09:00:00Z", "2026-01-21T09:00:00Z", "2026-02-04T09:00:00Z"]
    );
    // Without a start: Mondays.
    let first = &times(fortnight, "UTC", None, "2026-01-01T00:00:00Z", 1)[0];
    assert_eq!(first[..10].parse::<Date>().unwrap().weekday(), Weekday::Monday);
    // The start's own day is past its time: the next period.
    let daily = every("10 days").with_at("06:00").unwrap();
    assert_eq!(
        times(daily, "Europe/Berlin", Some("2026-01-01 12:00"), "2020-01-01T00:00:00Z", 2),
        ["2026-01-11T05:00:00Z", "2026-01-21T05:00:00Z"]
    );
}

/// A quarter is one of the calendar, so that a start which is only a bound moves nothing; three
/// months are counted from the start.
#[test]
fn quarters_and_years_end_with_their_last_business_day() {
    let of = |text: &str| every(text).with_on(On::LastBusinessDay).unwrap();
    let quarters = ["2026-03-31T00:00:00Z", "2026-06-30T00:00:00Z", "2026-09-30T00:00:00Z"];
    for start in [None, Some("2026-01-01"), Some("2026-02-10")] {
        assert_eq!(times(of("quarter"), "UTC", start, "2026-02-11T00:00:00Z", 3), quarters);
        // 31 December 2028 is a Sunday.
        assert_eq!(
            times(of("1 year"), "UTC", start, "2027-01-01T00:00:00Z", 2),
            ["2027-12-31T00:00:00Z", "2028-12-29T00:00:00Z"]
        );
    }
    let months = times(of("3 months"), "UTC", Some("2026-02-10"), "2026-02-11T00:00:00Z", 2);
    assert_eq!(months, ["2026-02-27T00:00:00Z", "2026-05-29T00:00:00Z"]);
    // A day of the quarter's first month, or of the month that the start has in its quarter.
    let on_31st = every("2 quarters").with_on(On::Day(31)).unwrap().with_at("02:00").unwrap();
    assert_eq!(
        times(on_31st.clone(), "UTC", None, "2026-01-01T00:00:00Z", 2),
        ["2026-01-31T02:00:00Z", "2026-07-31T02:00:00Z"]
    );
    assert_eq!(
        times(on_31st, "UTC", Some("2026-02-01"), "2026-01-01T00:00:00Z", 2),
        ["2026-02-28T02:00:00Z clamped to the month's end", "2026-08-31T02:00:00Z"]
    );
}

#[test]
fn gaps_and_folds_concern_it() {
    let new_york = Zone::get("America/New_York").unwrap();
    let daily = every("day").with_at("02:30").unwrap();
    let timing = Timing::new(Rule::calendar(daily), new_york.clone());
    let after = parse_instant("2026-03-08T05:00:00Z", None).unwrap();
    let next = timing.next_after(after).unwrap();
    assert_eq!(format_instant(next.logical), "2026-03-08T07:00:00Z");
    assert!(next.why.shifted);
    let next = timing.with_gap(Gap::Skip).next_after(after).unwrap();
    assert_eq!(format_instant(next.logical), "2026-03-09T06:30:00Z");
    let daily = every("day").with_at("01:30").unwrap();
    let timing = Timing::new(Rule::calendar(daily), new_york).with_fold(Fold::Both);
    let after = parse_instant("2026-11-01T04:00:00Z", None).unwrap();
    let why: Vec<_> = timing.occurrences_after(after).take(3).map(|o| o.why.to_string()).collect();
    assert_eq!(why, ["first of a fold", "last of a fold", "normal"]);
}

#[test]
fn refusals_name_the_field() {
    for text in
        ["", "0 months", "1 fortnight", "month 1", "-1 day", "99999999999 days", "10001 days"]
    {
        let error = Calendar::parse(text).unwrap_err();
        assert!(error.is_timing() && error.field() == "every", "{text}: {error}");
    }
    for (text, on) in [
        ("day", On::Day(1)),
        ("week", On::Day(0)),
        ("week", On::Day(8)),
        ("week", On::LastBusinessDay),
        ("month", On::Day(0)),
        ("month", On::Day(32)),
        ("quarter", On::Day(0)),
        ("quarter", On::Day(32)),
        ("year", On::Day(32)),
    ] {
        assert_eq!(every(text).with_on(on).unwrap_err().field(), "on");
    }
    for at in ["", "2:00", "24:00", "02:60", "02:00:60", "02", "02:00:00:00", "ab:cd", "+2:00"] {
        assert_eq!(every("day").with_at(at).unwrap_err().field(), "at", "{at}");
    }
    assert_eq!("last_business_day".parse::<On>().unwrap(), On::LastBusinessDay);
    assert_eq!("31".parse::<On>().unwrap(), On::Day(31));
    assert!("x".parse::<On>().is_err());
}

#[test]
fn a_day_that_never_comes_is_an_end() {
    let calendar = every("12 months").with_on(On::Day(30)).unwrap().with_month_end(MonthEnd::Skip);
    assert!(times(calendar, "UTC", Some("2026-02-01"), "2026-01-01T00:00:00Z", 1).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_date_agrees_with_its_description(
        n in 1_u32..15,
        unit in prop::sample::select(vec![Unit::Day, Unit::Week, Unit::Month, Unit::Quarter, Unit::Year]),
        on in prop::option::of(1_u8..=31),
        business in any::<bool>(),
        skip in any::<bool>(),
        start_day in 0_i64..4_000,
    ) {
        let start = date(2020, 1, 1).checked_add(jiff::Span::new().days(start_day)).unwrap();
        let month_end = if skip { MonthEnd::Skip } else { MonthEnd::Clamp };
        let mut calendar = Calendar::every(n, unit).unwrap().with_month_end(month_end);
        let on = match (unit, on) {
            (Unit::Day, _) | (_, None) => None,
            (Unit::Week, Some(day)) => Some(On::Day((day - 1) % 7 + 1)),
            (_, Some(_)) if business => Some(On::LastBusinessDay),
            (_, Some(day)) => Some(On::Day(day)),
        };
        if let Some(on) = on {
            calendar = calendar.with_on(on).unwrap();
        }
        let on_month_day = |day: Date| match on {
            Some(On::LastBusinessDay) => {
                let mut last = day.last_of_month();
                while [Weekday::Saturday, Weekday::Sunday].contains(&last.weekday()) {
                    last = last.yesterday().unwrap();
                }
                last == day
            }
            wanted => {
                let wanted = match wanted {
                    Some(On::Day(wanted)) => wanted as i8,
                    _ => start.day(),
                };
                day.day() == wanted || (!skip && wanted > day.days_in_month() && day == day.last_of_month())
            }
        };
        // The last business day is the unit's, in whatever month that ends.
        let is_last = on == Some(On::LastBusinessDay);
        let quarter = |d: Date| i64::from(d.year()) * 4 + i64::from((d.month() - 1) / 3);
        let n = i64::from(n);
        let days = |a: Date, b: Date| i64::from((b - a).get_days());
        let months = |d: Date| i64::from(d.year()) * 12 + i64::from(d.month());
        let monday = |d: Date| d.checked_sub(jiff::Span::new().days(d.weekday().to_monday_zero_offset())).unwrap();
        let named = |day: Date| match unit {
            Unit::Day => days(start, day) % n == 0,
            Unit::Week => {
                let weekday = match on {
                    Some(On::Day(weekday)) => weekday as i8,
                    _ => start.weekday().to_monday_one_offset(),
                };
                day.weekday().to_monday_one_offset() == weekday
                    && days(monday(start), monday(day)) / 7 % n == 0
            }
            Unit::Month => (months(day) - months(start)) % n == 0 && on_month_day(day),
            Unit::Quarter => {
                let within = if is_last { 2 } else { (start.month() - 1) % 3 };
                (quarter(day) - quarter(start)) % n == 0
                    && (day.month() - 1) % 3 == within
                    && on_month_day(day)
            }
            Unit::Year => {
                (i64::from(day.year()) - i64::from(start.year())) % n == 0
                    && day.month() == if is_last { 12 } else { start.month() }
                    && on_month_day(day)
            }
        };
        let start_at = parse_instant(&start.to_string(), Some(&Zone::utc())).unwrap();
        let timing = Timing::new(Rule::calendar(calendar), Zone::utc()).with_bounds(Some(start_at), None).unwrap();
        let horizon = parse_instant("2036-01-01T00:00:00Z", None).unwrap();
        let actual: Vec<Date> = timing
            .occurrences_after(start_at - 1)
            .take_while(|o| o.logical < horizon)
            .map(|o| format_instant(o.logical)[..10].parse().unwrap())
            .collect();
        let mut expected = Vec::new();
        let mut day = start;
        while day.year() < 2036 {
            if named(day) {
                expected.push(day);
            }
            day = day.tomorrow().unwrap();
        }
        prop_assert_eq!(actual, expected);
    }
}
