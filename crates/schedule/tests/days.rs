//! The day forms of Quartz and Spring, wrapping ranges and years, each against a description
//! in terms of jiff's calendar.

use jiff::civil::{Date, Weekday, date};
use tourbillon_schedule::{CronExpr, Dialect, Rule, Timing, Zone, format_instant, parse_instant};

/// The dates from 2023 to 2032 that an expression, with time 00:00:00, names.
fn dates(dialect: Dialect, text: &str) -> Vec<Date> {
    let expr = CronExpr::parse(dialect, text, "").unwrap_or_else(|e| panic!("{text}: {e}"));
    let timing = Timing::new(Rule::cron(expr), Zone::utc());
    let end = parse_instant("2033-01-01T00:00:00Z", None).unwrap();
    timing
        .occurrences_after(parse_instant("2022-12-31T23:59:59Z", None).unwrap())
        .take_while(|occurrence| occurrence.logical < end)
        .map(|occurrence| format_instant(occurrence.logical)[..10].parse().unwrap())
        .collect()
}

#[track_caller]
fn check(dialect: Dialect, text: &str, named: impl Fn(Date) -> bool) {
    let mut expected = Vec::new();
    let mut day = date(2023, 1, 1);
    while day.year() < 2033 {
        if named(day) {
            expected.push(day);
        }
        day = day.tomorrow().unwrap();
    }
    assert!(!expected.is_empty());
    assert_eq!(dates(dialect, text), expected, "{text}");
}

/// The Monday to Friday nearest to a day, in the same month.
fn nearest(day: Date) -> Date {
    let by = |days: i64| day.checked_add(jiff::Span::new().days(days)).unwrap();
    let candidates = match day.weekday() {
        Weekday::Saturday => [by(-1), by(2)],
        Weekday::Sunday => [by(1), by(-2)],
        _ => [day, day],
    };
    if candidates[0].month() == day.month() { candidates[0] } else { candidates[1] }
}

fn before_last(of: Date, days: i64) -> Option<Date> {
    let last = of.last_of_month();
    let day = last.checked_sub(jiff::Span::new().days(days)).unwrap();
    (day.month() == of.month()).then_some(day)
}

#[test]
fn days_counted_from_the_end_of_the_month() {
    for back in 0..=30 {
        let last = if back == 0 { "L".to_owned() } else { format!("L-{back}") };
        check(Dialect::Quartz, &format!("0 0 0 {last} * ?"), |day| {
            before_last(day, back) == Some(day)
        });
        check(Dialect::Spring, &format!("0 0 0 {last} * *"), |day| {
            before_last(day, back) == Some(day)
        });
        check(Dialect::Quartz, &format!("0 0 0 {last}W * ?"), |day| {
            before_last(day, back).map(nearest) == Some(day)
        });
    }
}

#[test]
fn weekdays_nearest_to_a_day() {
    for of in 1..=31_i8 {
        for (dialect, text) in [
            (Dialect::Quartz, format!("0 0 0 {of}W * ?")),
            (Dialect::Spring, format!("0 0 0 {of}W * ?")),
        ] {
            check(dialect, &text, |day| {
                Date::new(day.year(), day.month(), of).is_ok_and(|of| nearest(of) == day)
            });
        }
    }
}

#[test]
fn nth_and_last_weekdays_by_each_dialects_numbers() {
    let names = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
    for weekday in 0..7_i8 {
        let is = |day: Date| day.weekday().to_sunday_zero_offset() == weekday;
        let last = |day: Date| is(day) && day.days_in_month() - day.day() < 7;
        let name = names[weekday as usize];
        let quartz = weekday + 1;
        check(Dialect::Quartz, &format!("0 0 0 ? * {quartz}L"), last);
        check(Dialect::Quartz, &format!("0 0 0 ? * {name}L"), last);
        check(Dialect::Spring, &format!("0 0 0 * * {weekday}L"), last);
        check(Dialect::Spring, &format!("0 0 0 * * {name}L"), last);
        for nth in 1..=5_i8 {
            let nth_of = |day: Date| is(day) && (day.day() - 1) / 7 + 1 == nth;
            check(Dialect::Quartz, &format!("0 0 0 ? * {quartz}#{nth}"), nth_of);
            check(Dialect::Spring, &format!("0 0 0 ? * {name}#{nth}"), nth_of);
            check(Dialect::Spring, &format!("0 0 0 ? * {weekday}#{nth}"), nth_of);
        }
    }
    check(Dialect::Spring, "0 0 0 ? * 7#1", |day| {
        day.weekday() == Weekday::Sunday && day.day() <= 7
    });
    check(Dialect::Quartz, "0 0 0 ? * L", |day| day.weekday() == Weekday::Saturday);
}

#[test]
fn lists_mix_plain_and_special_days() {
    check(Dialect::Quartz, "0 0 0 1,15W,L * ?", |day| {
        day.day() == 1
            || day == day.last_of_month()
            || nearest(Date::new(day.year(), day.month(), 15).unwrap()) == day
    });
    check(Dialect::Quartz, "0 0 0 ? * MON,6#2,1L", |day| {
        day.weekday() == Weekday::Monday
            || (day.weekday() == Weekday::Friday && (8..=14).contains(&day.day()))
            || (day.weekday() == Weekday::Sunday && day.days_in_month() - day.day() < 7)
    });
}

#[test]
fn ranges_of_quartz_go_round() {
    check(Dialect::Quartz, "0 0 0 28-3 * ?", |day| day.day() >= 28 || day.day() <= 3);
    check(Dialect::Quartz, "0 0 0 1 NOV-FEB ?", |day| {
        day.day() == 1 && [11, 12, 1, 2].contains(&day.month())
    });
    check(Dialect::Quartz, "0 0 0 ? * FRI-TUE/2", |day| {
        [Weekday::Friday, Weekday::Sunday, Weekday::Tuesday].contains(&day.weekday())
    });
    check(Dialect::Spring, "0 0 0 ? * SUN-TUE", |day| {
        [Weekday::Sunday, Weekday::Monday, Weekday::Tuesday].contains(&day.weekday())
    });
    check(Dialect::Spring, "0 0 0 ? * FRI-SUN", |day| {
        [Weekday::Friday, Weekday::Saturday, Weekday::Sunday].contains(&day.weekday())
    });
}

#[test]
fn years_limit_and_step() {
    check(Dialect::Quartz, "0 0 0 29 2 ? 2020-2032", |day| day.month() == 2 && day.day() == 29);
    check(Dialect::Quartz, "0 0 0 1 1 ? 2024/3", |day| {
        day.month() == 1 && day.day() == 1 && [2024, 2027, 2030].contains(&day.year())
    });
    check(Dialect::Quartz, "0 0 0 1 1 ? 2025,2031", |day| {
        day.month() == 1 && day.day() == 1 && [2025, 2031].contains(&day.year())
    });
}
