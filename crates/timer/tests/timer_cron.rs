//! Jobs at civil times.
#![cfg(feature = "cron")]

mod common;

use std::time::Duration;

use common::{Log, manual, pass};
use tourbillon::schedule::{CronExpr, Dialect, Rule, Timing, Zone};
use tourbillon::{Missed, Plan, Refused};

fn cron(text: &str, zone: &str) -> Timing {
    let expr = CronExpr::parse(Dialect::Vixie, text, "test").expect("an expression");
    Timing::new(Rule::cron(expr), Zone::get(zone).expect("a zone"))
}

/// 2023-11-14T22:13:20Z is where manual clocks of these tests begin.
const MINUTE: u64 = 60;

#[test]
fn a_cron_job_runs_at_its_times() {
    let (timer, clock) = manual();
    let runs = Log::default();
    let (log, wall) = (runs.clone(), clock.clone());
    let job = timer.cron(cron("30 9 * * *", "Asia/Shanghai"), move || log.add(seconds(&wall)));
    // 09:30 in Shanghai is 01:30 UTC: in 3 h 16 min 40 s.
    for _ in 0..60 * 24 * 2 {
        pass(&timer, &clock, Duration::from_secs(MINUTE));
    }
    let first = 1_700_000_000 + 3 * 3_600 + 16 * 60 + 40;
    let seen = runs.take();
    assert_eq!(seen.len(), 2);
    for (day, at) in seen.into_iter().enumerate() {
        let planned = first + 86_400 * day as i64;
        assert!((planned..planned + 60).contains(&at), "{at} is not at {planned}");
    }
    assert!(job.expect("it has times ahead").cancel());
}

fn seconds(clock: &tourbillon::ManualClock) -> i64 {
    use tourbillon::Clock;
    clock.wall() / 1_000_000
}

/// A clock that wakes a job a little early, or that is set back, must not make it run twice
/// (robfig/cron#94); one that is set forward brings it to its time.
#[test]
fn a_cron_job_follows_the_wall_clock() {
    let (timer, clock) = manual();
    let runs = Log::default();
    let log = runs.clone();
    let job = timer.cron(cron("0 * * * *", "UTC"), move || log.add(()));
    // At 23:00:10 it has run; the clock goes back by 20 s, and 23:00 comes again.
    pass(&timer, &clock, Duration::from_secs(46 * 60 + 50));
    assert_eq!(runs.take().len(), 1);
    clock.step_wall(-20_000_000);
    for _ in 0..5 {
        pass(&timer, &clock, Duration::from_secs(MINUTE));
    }
    assert_eq!(runs.take().len(), 0, "the same hour does not run twice");
    // Set forward to 23:59:40, it is found within a minute.
    clock.set_wall((1_700_000_000 + 106 * 60 + 20) * 1_000_000);
    for _ in 0..2 {
        pass(&timer, &clock, Duration::from_secs(MINUTE));
    }
    assert_eq!(runs.take().len(), 1);
    drop(job);
}

#[test]
fn missed_times_are_left_out_or_caught_up_with() {
    for (missed, expected) in [(Missed::Skip, 1), (Missed::Burst, 10)] {
        let (timer, clock) = manual();
        let runs = Log::default();
        let log = runs.clone();
        let plan = Plan::cron(cron("* * * * *", "UTC")).missed(missed);
        let job = timer.repeat(plan, move |_| log.add(()));
        pass(&timer, &clock, Duration::from_secs(10 * MINUTE));
        assert_eq!(runs.take().len(), expected, "{missed}");
        drop(job);
    }
}

#[test]
fn a_schedule_without_a_time_ahead_is_refused() {
    let (timer, _clock) = manual();
    let never = timer.cron(cron("0 0 30 2 *", "UTC"), || ());
    assert_eq!(never.map(drop), Err(Refused::NeverRuns));
    let ends =
        cron("* * * * *", "UTC").with_bounds(None, Some(1_600_000_000_000_000)).expect("bounds");
    assert_eq!(timer.cron(ends, || ()).map(drop), Err(Refused::NeverRuns));
    assert_eq!(timer.every(Duration::ZERO, || ()).map(drop), Err(Refused::ZeroPeriod));
    assert_eq!(
        timer.with_delay(Duration::from_nanos(999), || ()).map(drop),
        Err(Refused::ZeroPeriod)
    );
}

#[test]
fn a_schedule_that_ends_ends_its_job() {
    let (timer, clock) = manual();
    let end = 1_700_000_000_000_000 + 150 * 1_000_000;
    let timing = cron("* * * * *", "UTC").with_bounds(None, Some(end)).expect("bounds");
    let job = timer.cron(timing, || ()).expect("it has times ahead");
    for _ in 0..10 {
        pass(&timer, &clock, Duration::from_secs(30));
    }
    assert_eq!(job.join().expect("it ended by itself"), 2);
}
