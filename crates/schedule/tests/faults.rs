//! Faults that other schedulers had, as inputs and right answers.

use tourbillon_schedule::{CronExpr, Dialect, Rule, Timing, Zone, format_instant, parse_instant};

fn daily(text: &str, zone: &str) -> Timing {
    let expr = CronExpr::parse(Dialect::Vixie, text, "").unwrap();
    Timing::new(Rule::cron(expr), Zone::get(zone).unwrap())
}

/// robfig/cron#94: a timer woke a few milliseconds before the planned time, the job ran, and
/// the next time was computed from the clock, which gave the same planned time again: one period
/// ran twice. The next time comes from the planned one, however early or late the wake-up.
#[test]
fn a_wake_up_that_is_a_little_early_does_not_run_a_period_twice() {
    let timing = daily("0 * * * *", "UTC");
    let planned = timing.next_after(parse_instant("2026-01-01T09:30:00Z", None).unwrap()).unwrap();
    assert_eq!(format_instant(planned.logical), "2026-01-01T10:00:00Z");
    let woken = planned.logical - 5_000;
    // From the clock it would be the same occurrence, recognisable as such.
    assert_eq!(timing.next_after(woken).unwrap().logical, planned.logical);
    // From the planned time it is the next.
    let next = timing.next_after(planned.logical).unwrap();
    assert_eq!(format_instant(next.logical), "2026-01-01T11:00:00Z");
}

/// rq-scheduler#269: each repetition was planned from the moment the last had been
/// handled, so a job every minute drifted by seconds a day. A fixed rate is a grid: a million periods on, it is exact.
#[test]
fn a_fixed_rate_drifts_by_nothing_over_a_million_periods() {
    let start = parse_instant("2026-01-01T00:00:00.123Z", None).unwrap();
    let interval = 7_001_000;
    let timing = Timing::new(Rule::every(interval).unwrap(), Zone::utc())
        .with_bounds(Some(start), None)
        .unwrap();
    let mut at = start - 1;
    for n in 0..1_000_000 {
        let next = timing.next_after(at).unwrap().logical;
        assert_eq!(next, start + n * interval);
        // Handled late, by up to most of a period.
        at = next + (n * 7_919_000) % interval;
    }
    let tally = timing.tally(start, at, 10);
    assert_eq!((tally.count, tally.exact), (1_000_000, true));
}

/// systemd#32039: a calendar timer whose next time equalled the present was elapsed at once, found
/// the same next time again, and spun. The next time is strictly after, to the microsecond.
#[test]
fn the_next_time_is_strictly_after_the_present() {
    for (text, zone) in [
        ("* * * * *", "UTC"),
        ("30 2 * * *", "America/New_York"),
        ("30 1 * * *", "America/New_York"),
        ("0 0 * * *", "Africa/Cairo"),
        ("@every 1m", "UTC"),
    ] {
        let timing = daily(text, zone);
        let mut at = parse_instant("2026-01-01T00:00:00Z", None).unwrap();
        for _ in 0..1_000 {
            let next = timing.next_after(at).unwrap().logical;
            assert!(next > at, "{text} {zone}");
            assert_eq!(timing.next_after(next - 1).unwrap().logical, next);
            at = next;
        }
    }
}

/// medusa#13393: schedules ran by the zone of whatever host had stored them. The zone is the
/// schedule's: nothing here reads `TZ` or the host's zone, and the default is UTC.
#[test]
fn the_zone_is_the_schedules_own() {
    let after = parse_instant("2026-06-01T00:00:00Z", None).unwrap();
    for (zone, expected) in [
        ("UTC", "2026-06-01T09:00:00Z"),
        ("Asia/Shanghai", "2026-06-01T01:00:00Z"),
        ("America/New_York", "2026-06-01T13:00:00Z"),
    ] {
        let next = daily("0 9 * * *", zone).next_after(after).unwrap();
        assert_eq!(format_instant(next.logical), expected);
    }
    for host in ["localtime", "local", "system", ""] {
        assert!(Zone::get(host).is_err(), "{host:?} is no zone of a schedule");
    }
}
