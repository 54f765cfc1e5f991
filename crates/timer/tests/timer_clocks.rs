//! Which clock a timer goes by, and windows in which it may choose.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Log, SOON, manual, ms, pass};
use tourbillon::{Clock, ClockKind, ManualClock, Timer};

#[test]
fn by_every_clock_timers_fire_and_are_not_early() {
    let custom: Arc<dyn Clock> = Arc::new(Slow(ManualClock::new(0), Instant::now()));
    for kind in [ClockKind::Monotonic, ClockKind::Boot, ClockKind::Wall, ClockKind::Custom(custom)]
    {
        let timer = Timer::builder().clock(kind.clone()).inline().build().expect("a thread");
        let (own, begun) = (timer.clone(), timer.now());
        let job = timer.after(ms(3), move || own.now()).expect("not full");
        let ran = job.join().expect("runs");
        assert!(ran - begun >= ms(3), "{kind:?}: early by {:?}", ms(3).saturating_sub(ran - begun));
        let job = timer.at(timer.now() + ms(2), || ()).expect("not full");
        assert!(job.deadline().is_some_and(|deadline| deadline > begun));
        job.join().expect("runs");
    }
}

/// Half as fast as the monotonic clock.
struct Slow(ManualClock, Instant);

impl Clock for Slow {
    fn mono(&self) -> tourbillon_clock::Mono {
        self.0.mono().saturating_add(self.1.elapsed() / 2)
    }

    fn wall(&self) -> i64 {
        self.0.wall()
    }
}

/// The machine was suspended, or the clock was moved on for some other reason: everything that became
/// due meanwhile fires, in order, and periodic jobs by their policy.
#[test]
fn a_clock_that_jumps_ahead_makes_due_what_lies_between() {
    let (timer, clock) = manual();
    let fired = Log::default();
    for hour in 1..=48 {
        let log = fired.clone();
        drop(timer.after(Duration::from_secs(hour * 3_600), move || log.add(hour)));
    }
    pass(&timer, &clock, Duration::from_secs(86_400));
    assert_eq!(fired.take(), (1..=24).collect::<Vec<_>>());
    pass(&timer, &clock, Duration::from_secs(86_400));
    assert_eq!(fired.take(), (25..=48).collect::<Vec<_>>());
}

/// tokio#8334: with a timer far ahead and after 12 days of uptime, short timers hung.
#[test]
fn years_of_uptime_change_nothing() {
    let (timer, clock) = manual();
    let far = timer.after(Duration::from_secs(50 * 365 * 86_400), || ()).expect("not full");
    for day in [12, 24, 50, 365, 1_000, 4_000] {
        pass(&timer, &clock, Duration::from_secs(day * 86_400));
        let short = timer.after(ms(10), || ()).expect("not full");
        pass(&timer, &clock, ms(10) - Duration::from_micros(1));
        assert!(!short.is_finished());
        pass(&timer, &clock, Duration::from_micros(1));
        assert!(short.is_finished(), "after {day} days");
    }
    assert!(far.cancel());
}

/// Jobs with a window run within it, and windows that overlap share a wake-up.
#[test]
fn windows_are_kept_and_merged() {
    let (timer, _clock) = manual();
    let mut ticks = std::collections::BTreeSet::new();
    let start = timer.now();
    for n in 0..1_000_u64 {
        let (earliest, latest) =
            (Duration::from_micros(n * 10), Duration::from_micros(n * 10 + 2_100));
        let job = timer.between(earliest, latest, || ()).expect("not full");
        let deadline = job.deadline().map_or(Duration::ZERO, |deadline| deadline - start);
        assert!(n == 0 || (earliest..=latest).contains(&deadline), "{n}: {deadline:?}");
        ticks.insert(deadline);
        drop(job);
    }
    assert!(ticks.len() <= 12, "a thousand windows take {} wake-ups", ticks.len());
    assert!(timer.wait_idle(SOON));
}
