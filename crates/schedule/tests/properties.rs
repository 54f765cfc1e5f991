//! What holds for every timing: strictly after, strictly increasing, no panic, counts that
//! agree with counting, jitter that stays put.

use proptest::prelude::*;
use tourbillon_schedule::{
    CronExpr, Dialect, Fold, Gap, MAX_INSTANT, Micros, Rule, Timing, Zone, parse_duration,
    parse_instant,
};

const DIALECTS: [Dialect; 3] = [Dialect::Vixie, Dialect::Quartz, Dialect::Spring];

fn at(text: &str) -> Micros {
    parse_instant(text, None).unwrap()
}

fn cron(dialect: Dialect, text: &str, zone: &str) -> Timing {
    let expr = CronExpr::parse(dialect, text, "a-schedule").unwrap();
    Timing::new(Rule::cron(expr), Zone::get(zone).unwrap())
}

/// Text that is often nearly an expression.
fn nearly() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("*".to_owned()),
        Just("?".to_owned()),
        Just("L".to_owned()),
        "[0-9]{1,4}",
        "[*0-9LW?#~/,-]{1,6}",
        "[0-9]{1,2}[-~/#,][0-9]{1,2}(/[0-9]{1,20})?",
        "[a-zA-Z]{3}(-[a-zA-Z]{3})?",
        "(mon|TUE|sun|sat|JAN|dec)([-,#~](fri|SUN|7|0|3))?L?",
        "@(every|daily|yearly|[a-z]{1,6})",
        "PT[0-9]{1,18}[SMH]",
        "\\PC{1,4}",
    ];
    let parted = prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.join(" "));
    prop_oneof![8 => parted, 1 => "\\PC{0,40}"]
}

fn zones() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "UTC",
        "America/New_York",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Asia/Kolkata",
        "Africa/Casablanca",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn no_expression_and_no_instant_panics(
        text in nearly(),
        zone in zones(),
        after in prop_oneof![any::<i64>(), -3_000_000_000_000_000..MAX_INSTANT],
        shift in any::<bool>(),
        fold in 0_usize..3,
    ) {
        for dialect in DIALECTS {
            match CronExpr::parse(dialect, &text, "seed") {
                Err(error) => {
                    prop_assert!(error.is_cron());
                    prop_assert!(error.column().is_some_and(|c| c >= 1 && c <= text.len() + 1));
                    prop_assert!(error.to_string().len() < 600);
                }
                Ok(expr) => {
                    let timing = Timing::new(Rule::cron(expr), Zone::get(zone).unwrap())
                        .with_gap(if shift { Gap::Shift } else { Gap::Skip })
                        .with_fold([Fold::First, Fold::Last, Fold::Both][fold]);
                    let mut last = after;
                    for occurrence in timing.occurrences_after(after).take(5) {
                        prop_assert!(occurrence.logical > last);
                        prop_assert!(occurrence.logical <= MAX_INSTANT);
                        prop_assert_eq!(timing.next_after(occurrence.logical - 1), Some(occurrence));
                        last = occurrence.logical;
                    }
                    if let Some(latest) = timing.latest(after) {
                        prop_assert!(latest.logical <= after);
                        let next = timing.next_after(latest.logical);
                        prop_assert!(next.is_none_or(|next| next.logical > after));
                    }
                }
            }
        }
    }

    #[test]
    fn a_fixed_rate_is_a_grid(
        interval in 1_000_i64..100_000_000_000,
        start in prop::option::of(-1_000_000_000_000_000_i64..1_000_000_000_000_000),
        after in -2_000_000_000_000_000_i64..2_000_000_000_000_000,
    ) {
        let timing = Timing::new(Rule::every(interval).unwrap(), Zone::utc())
            .with_bounds(start, None)
            .unwrap();
        let anchor = start.unwrap_or(0);
        let next = timing.next_after(after).unwrap().logical;
        prop_assert!(next > after);
        prop_assert_eq!((next - anchor).rem_euclid(interval), 0);
        if start.is_none_or(|start| after >= start) {
            prop_assert!(next - after <= interval);
        } else {
            prop_assert_eq!(next, anchor);
        }
        let latest = timing.latest(after).map(|o| o.logical);
        let before = (next - interval >= start.unwrap_or(i64::MIN)).then_some(next - interval);
        prop_assert_eq!(latest, before);
    }

    #[test]
    fn a_tally_agrees_with_counting(
        text in prop::sample::select(vec![
            "*/7 * * * *", "30 2 * * *", "0 0 * * 1", "@every 37m", "0 9 1 * *", "15,45 1-3 * * *",
        ]),
        zone in zones(),
        from in 1_700_000_000_i64..1_900_000_000,
        length in 0_i64..4_000_000,
        limit in 0_u64..40,
        count in 0_usize..20,
    ) {
        let (from, to) = (from * 1_000_000 + 1, (from + length) * 1_000_000);
        let timing = cron(Dialect::Vixie, text, zone);
        let all: Vec<_> = timing
            .occurrences_after(from - 1)
            .take_while(|o| o.logical <= to)
            .collect();
        let tally = timing.tally(from, to, limit);
        prop_assert_eq!(tally.first, all.first().copied());
        prop_assert_eq!(tally.last, all.last().copied());
        if tally.exact {
            prop_assert_eq!(tally.count, all.len() as u64);
        } else {
            prop_assert!(tally.count <= all.len() as u64);
            prop_assert_eq!(tally.count, limit.max(1));
        }
        let last = timing.last_between(from, to, count);
        prop_assert_eq!(&last[..], &all[all.len() - count.min(all.len())..]);
    }

    #[test]
    fn jitter_is_stable_bounded_and_whole_milliseconds(
        jitter in 0_i64..100_000_000,
        seed in "[a-z-]{1,12}",
        after in 0_i64..4_000_000_000_000_000,
    ) {
        let timing = cron(Dialect::Vixie, "*/5 * * * *", "UTC").with_jitter(jitter, &seed).unwrap();
        let occurrence = timing.next_after(after).unwrap();
        prop_assert_eq!(timing.next_after(occurrence.logical - 1), Some(occurrence));
        let late = occurrence.due - occurrence.logical;
        prop_assert!(late == 0 || (0..jitter).contains(&late));
        prop_assert_eq!(occurrence.why.jittered, late > 0);
        if jitter >= 1_000 {
            prop_assert_eq!(late % 1_000, 0);
        }
    }
}

#[test]
fn jitter_spreads_over_its_whole_range() {
    let timing =
        cron(Dialect::Vixie, "* * * * *", "UTC").with_jitter(10_000_000, "spread").unwrap();
    let mut buckets = [0; 10];
    for occurrence in timing.occurrences_after(0).take(10_000) {
        buckets[((occurrence.due - occurrence.logical) / 1_000_000) as usize] += 1;
    }
    assert!(buckets.iter().all(|n| (850..1_150).contains(n)), "{buckets:?}");
}

#[test]
fn rules_that_never_fire_say_so() {
    for text in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *"] {
        for zone in ["UTC", "America/New_York", "Africa/Casablanca"] {
            let timing = cron(Dialect::Vixie, text, zone);
            assert_eq!(timing.next_after(at("2026-01-01T00:00:00Z")), None);
            assert_eq!(timing.latest(at("2026-01-01T00:00:00Z")), None);
        }
    }
    // A civil time that only ever falls into the gap.
    let timing = cron(Dialect::Quartz, "0 30 2 8 3 ? 2026", "America/New_York").with_gap(Gap::Skip);
    assert_eq!(timing.next_after(at("2026-01-01T00:00:00Z")), None);
}

#[test]
fn the_end_of_time_is_an_end() {
    let timing = cron(Dialect::Vixie, "0 0 * * *", "Pacific/Apia");
    assert_eq!(timing.next_after(MAX_INSTANT), None);
    assert_eq!(timing.next_after(i64::MAX), None);
    assert!(timing.next_after(i64::MIN).is_some());
    assert!(timing.latest(i64::MAX).is_some());
    assert_eq!(timing.latest(i64::MIN), None);
    let timing = Timing::new(Rule::after(1_000).unwrap(), Zone::utc());
    assert_eq!(timing.next_after(i64::MAX), None);
    assert_eq!(timing.next_after(MAX_INSTANT), None);
    let timing = Timing::new(Rule::every(86_400_000_000).unwrap(), Zone::utc());
    assert_eq!(timing.next_after(MAX_INSTANT), None);
    assert_eq!(timing.latest(i64::MAX).unwrap().logical, MAX_INSTANT);
}

#[test]
fn bounds_are_inclusive() {
    let (first, last) = (at("2026-01-01T09:00:00Z"), at("2026-01-03T09:00:00Z"));
    let timing =
        cron(Dialect::Vixie, "0 9 * * *", "UTC").with_bounds(Some(first), Some(last)).unwrap();
    let times: Vec<_> = timing.occurrences_after(0).map(|o| o.logical).collect();
    assert_eq!(times, [first, at("2026-01-02T09:00:00Z"), last]);
    assert_eq!(timing.latest(first - 1), None);
    assert_eq!(timing.latest(first).unwrap().logical, first);
    assert_eq!(timing.latest(i64::MAX).unwrap().logical, last);
    let error = timing.clone().with_bounds(Some(last), Some(first)).unwrap_err();
    assert!(error.is_timing() && error.field() == "end");
}

#[test]
fn a_fixed_delay_counts_from_the_final_time() {
    let delay = parse_duration("5m").unwrap();
    let timing = Timing::new(Rule::after(delay).unwrap(), Zone::utc());
    let ended = at("2026-01-01T00:00:00.25Z");
    assert_eq!(timing.next_after(ended).unwrap().logical, ended + delay);
    assert_eq!(timing.tally(0, ended, 10).count, 0);
    assert!(Rule::after(0).is_err() && Rule::after(-1).is_err());
    assert!(Rule::every(999).is_err() && Rule::every(i64::MAX).is_err());
}

#[test]
fn a_tilde_depends_on_the_name_alone_and_spreads() {
    let minute = |seed: &str, text: &str| {
        let expr = CronExpr::parse(Dialect::Vixie, text, seed).unwrap();
        assert_eq!(expr, CronExpr::parse(Dialect::Vixie, text, seed).unwrap());
        let timing = Timing::new(Rule::cron(expr), Zone::utc());
        timing.next_after(0).unwrap().logical / 60_000_000 % 60
    };
    let mut seen = std::collections::BTreeSet::new();
    for n in 0..300 {
        let name = format!("schedule-{n}");
        assert!((10..=19).contains(&minute(&name, "10~19 * * * *")));
        assert!((50..=59).contains(&minute(&name, "50~ * * * *")));
        assert!((0..=9).contains(&minute(&name, "~9 * * * *")));
        seen.insert(minute(&name, "~ * * * *"));
    }
    assert!(seen.len() > 55, "{} of 60 minutes", seen.len());
}

#[test]
fn refusals_name_field_and_column() {
    for (dialect, text, field, column) in [
        (Dialect::Vixie, "60 * * * *", "minute", 1),
        (Dialect::Vixie, "  0  24 * * *", "hour", 6),
        (Dialect::Vixie, "0 0 0 * *", "day of month", 5),
        (Dialect::Vixie, "0 0 * foo *", "month", 7),
        (Dialect::Vixie, "0 0 * * 8", "day of week", 9),
        (Dialect::Vixie, "0 0 * * mon,tue,x", "day of week", 17),
        (Dialect::Vixie, "5-1 * * * *", "minute", 1),
        (Dialect::Vixie, "0 0 * * sat-mon", "day of week", 9),
        (Dialect::Vixie, "*/0 * * * *", "minute", 3),
        (Dialect::Vixie, "5/15 * * * *", "minute", 1),
        (Dialect::Vixie, "1,,2 * * * *", "minute", 3),
        (Dialect::Vixie, "1-2-3 * * * *", "minute", 3),
        (Dialect::Vixie, "-5 * * * *", "minute", 1),
        (Dialect::Vixie, "* * * *", "expression", 8),
        (Dialect::Vixie, "0 * * * * ?", "expression", 1),
        (Dialect::Vixie, "", "expression", 1),
        (Dialect::Vixie, "0 0 ? * *", "day of month", 5),
        (Dialect::Vixie, "@reboot", "expression", 1),
        (Dialect::Vixie, "@fortnightly", "expression", 1),
        (Dialect::Vixie, "@daily *", "expression", 8),
        (Dialect::Vixie, "@every", "expression", 1),
        (Dialect::Vixie, "@every 5", "duration", 8),
        (Dialect::Vixie, "@every 5m x", "duration", 11),
        (Dialect::Vixie, "@every 1us", "interval", 8),
        (Dialect::Vixie, "20~10 * * * *", "minute", 1),
        (Dialect::Quartz, "0 0 0 * * 1", "day of week", 11),
        (Dialect::Quartz, "0 0 0 ? * ?", "day of week", 11),
        (Dialect::Quartz, "0 0 0 ? * 0", "day of week", 11),
        (Dialect::Quartz, "0 0 0 ? * 2#6", "day of week", 13),
        (Dialect::Quartz, "0 0 0 32W * ?", "day of month", 7),
        (Dialect::Quartz, "0 0 0 L-31 * ?", "day of month", 9),
        (Dialect::Quartz, "0 0/60 0 1 * ?", "minute", 5),
        (Dialect::Quartz, "0 0 0 1 1 ? 2100", "year", 13),
        (Dialect::Quartz, "0 0 0 1 1 ? 2030-2020", "year", 13),
        (Dialect::Quartz, "0 0 * * *", "expression", 1),
        (Dialect::Quartz, "@daily", "expression", 7),
        (Dialect::Spring, "0 0 0 ? * L", "day of week", 11),
        (Dialect::Spring, "0 ? 0 * * *", "minute", 3),
        (Dialect::Spring, "0 0 0 * * 5-2", "day of week", 11),
        (Dialect::Spring, "0 0 22-2 * * *", "hour", 5),
        (Dialect::Spring, "é 0 0 * * *", "second", 1),
    ] {
        let error = CronExpr::parse(dialect, text, "").unwrap_err();
        assert_eq!(error.field(), field, "{text}: {error}");
        assert_eq!(error.column(), Some(column), "{text}: {error}");
    }
}

#[test]
fn the_two_spellings_of_a_rule_are_equal() {
    let vixie = |text| CronExpr::parse(Dialect::Vixie, text, "").unwrap();
    assert_eq!(vixie("@daily"), vixie("0 0 * * *"));
    assert_eq!(vixie("0 0 * * 7"), vixie("0 0 * * SUN"));
    assert_eq!(vixie("0 0 * * 0-7"), vixie("0 0 * * sun-sat,7"));
    assert_eq!(vixie("0\t0  *\t*  fri-sun "), vixie("0 0 * * 5-7"));
    assert_eq!(vixie("0 0 * * 5-0"), vixie("0 0 * * 5-7"));
    let spring = |text| CronExpr::parse(Dialect::Spring, text, "").unwrap();
    assert_eq!(spring("@hourly"), spring("0 0 * ? * ?"));
    let quartz = |text| CronExpr::parse(Dialect::Quartz, text, "").unwrap();
    assert_eq!(quartz("0 0 0 ? * 1,7"), quartz("0 0 0 ? * SAT-SUN"));
    assert_eq!(spring("0 0 0 ? * MON"), quartz("0 0 0 ? * 2"));
}
