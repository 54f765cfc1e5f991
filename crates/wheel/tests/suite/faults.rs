//! Faults that were reported against other timers, each absent here. Ticks are milliseconds.

use super::examples::fire;
use tourbillon_wheel::{Budget, TimerQueue};

const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;

/// tokio#5536 and restate#5017: a delay queue panicked on deadlines more than 2^36 ms (2.2
/// years) ahead, and timers beyond that range fired early. Here every deadline is legal.
pub(crate) fn far_deadlines_are_accepted_and_never_early<Q: TimerQueue<Value = u64>>(
    make: fn(u64) -> Q,
) {
    let far = [
        767 * DAY, // 2.1 years
        (1 << 36) - 1,
        1 << 36,
        (1 << 36) + 1,
        1 << 48,
        u64::MAX - 1,
        u64::MAX,
    ];
    let mut queue = make(0);
    for deadline in far {
        queue.insert_at(deadline, deadline);
    }
    for deadline in far {
        assert_eq!(fire(&mut queue, deadline - 1), []);
        assert_eq!(fire(&mut queue, deadline), [(deadline, deadline)]);
    }
}

/// tokio#8334: a very long timer wrapped around in the top level and, after twelve days of
/// uptime, hid the short ones from the driver: sleeps of 10 ms hung.
pub(crate) fn a_far_timer_and_long_uptime_do_not_delay_a_short_one<Q: TimerQueue<Value = u64>>(
    make: fn(u64) -> Q,
) {
    for far in [1 << 36, (1 << 36) + 12 * DAY, u64::MAX] {
        let mut queue = make(0);
        queue.insert_at(far, 1);
        assert_eq!(fire(&mut queue, 12 * DAY), []);
        for n in 0..2000 {
            let now = 12 * DAY + n * 7;
            assert_eq!(fire(&mut queue, now), []);
            queue.insert_at(now + 5, n);
            assert_eq!(queue.next_deadline(), Some(now + 5));
            assert_eq!(fire(&mut queue, now + 4), []);
            assert_eq!(fire(&mut queue, now + 5), [(now + 5, n)]);
        }
    }
}

/// tokio#2473 and #3270: removing or resetting a timer that had expired inside the wheel but
/// had not been polled yet panicked. Here it is pending until it fires.
pub(crate) fn a_due_timer_can_be_removed_before_it_fires<Q: TimerQueue<Value = u64>>(
    make: fn(u64) -> Q,
) {
    let mut queue = make(0);
    let keys: Vec<_> = (0..6).map(|n| queue.insert_at(1000, n)).collect();
    // Stop after the first has fired: the others are due, and expired inside the queue.
    let mut budget = Budget::unlimited();
    assert!(queue.pop(5000, &mut budget).is_some());
    assert_eq!(queue.now(), 1000);
    assert_eq!(queue.cancel(keys[0]), None);
    assert_eq!(queue.cancel(keys[1]), Some(1));
    assert_eq!(queue.cancel(keys[5]), Some(5));
    assert!(queue.reset(keys[2], 9000));
    assert!(queue.reset(keys[3], 10));
    queue.check_invariants();
    assert_eq!(fire(&mut queue, 5000), [(1000, 4), (10, 3)]);
    assert_eq!(fire(&mut queue, 9000), [(9000, 2)]);
}

/// tokio#3558: keys had no generation, so a key kept after its timer had fired removed the
/// stranger that had been given the same place.
pub(crate) fn a_stale_key_removes_nothing<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    let mut queue = make(0);
    let old = queue.insert_at(10, 1);
    assert_eq!(fire(&mut queue, 10), [(10, 1)]);
    let new = queue.insert_at(20, 2);
    assert_eq!(old.index(), new.index(), "the test wants the place reused");
    assert_eq!(queue.cancel(old), None);
    assert!(!queue.reset(old, 5));
    assert_eq!(queue.deadline(old), None);
    assert_eq!(queue.get(old), None);
    assert_eq!(queue.cancel(new), Some(2));
    queue.clear();
    queue.compact();
    let newest = queue.insert_at(30, 3);
    assert_eq!(queue.cancel(old), None);
    assert_eq!(queue.cancel(new), None);
    assert_eq!(queue.cancel(newest), Some(3));
}

/// netty#2541, tokio#8252, grpc-java#1307: cancelled timers kept their memory until they would
/// have fired. Here a million timers, cancelled before they are due, leave next to nothing.
pub(crate) fn memory_returns_when_timers_are_cancelled<Q: TimerQueue<Value = u64>>(
    make: fn(u64) -> Q,
) {
    const TIMERS: u64 = 1_000_000;
    let mut queue = make(0);
    let keys: Vec<_> = (0..TIMERS).map(|n| queue.insert_at(HOUR + n % 60_000, n)).collect();
    let peak = queue.capacity();
    for (key, n) in keys.iter().zip(0..) {
        assert_eq!(queue.cancel(*key), Some(n));
    }
    assert!(queue.capacity() <= 1024, "{} timers' memory is held at once", queue.capacity());
    queue.compact();
    assert_eq!(queue.capacity(), 0);
    queue.check_invariants();
    // Churn with few pending reuses what is there.
    for n in 0..100_000 {
        let key = queue.insert_at(HOUR + n, n);
        queue.cancel(key);
    }
    assert!(queue.capacity() <= 1024 && queue.capacity() < peak);
}

/// tokio#3619: a clock that went back made the timer panic.
pub(crate) fn time_does_not_step_back<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    let mut queue = make(0);
    queue.insert_at(100, 1);
    queue.insert_at(HOUR, 2);
    assert_eq!(fire(&mut queue, 150), [(100, 1)]);
    queue.insert_at(120, 3);
    for now in [149, 100, 1, 0] {
        let done = queue.advance(now, usize::MAX, |_, _, _| unreachable!());
        assert_eq!((done.fired, done.moved, done.finished), (0, 0, true));
        assert_eq!(queue.now(), 150);
    }
    assert_eq!(fire(&mut queue, 150), [(120, 3)]);
    assert_eq!(fire(&mut queue, HOUR), [(HOUR, 2)]);
}

/// node-schedule#214: when the clock stepped forward a day, a task of every minute ran 1,440
/// times. The queue fires a timer once, whatever the step; whether to catch up is the choice of
/// whoever inserts the next.
pub(crate) fn a_step_forward_is_not_a_flood<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    const PERIOD: u64 = 60 * SECOND;
    let mut queue = make(0);
    queue.insert_at(PERIOD, 0);
    let mut budget = Budget::unlimited();
    let mut fired = 0;
    while let Some((_, deadline, n)) = queue.pop(DAY, &mut budget) {
        fired += 1;
        // Skip what was missed: the next planned time after the step.
        let missed = (DAY - deadline) / PERIOD;
        queue.insert_at(deadline + (missed + 1) * PERIOD, n);
    }
    assert_eq!(fired, 1);
    assert_eq!(queue.next_deadline(), Some(DAY + PERIOD));
}

/// robfig/cron#94: a timer that woke a little early ran its period twice, since the next time was
/// counted from the wake-up. Here waking early fires nothing, and the next comes from the plan.
pub(crate) fn waking_early_or_late_keeps_the_plan<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    const PERIOD: u64 = 60 * SECOND;
    let mut queue = make(0);
    queue.insert_at(PERIOD, 1);
    for run in 1..=500 {
        let planned = run * PERIOD;
        for early in [planned - 2, planned - 1] {
            assert_eq!(fire(&mut queue, early), []);
        }
        let late = planned + run % 7;
        assert_eq!(fire(&mut queue, late), [(planned, run)]);
        assert_eq!(fire(&mut queue, late), []);
        queue.insert_at(planned + PERIOD, run + 1);
    }
}

/// JSR-166's tests: delays near the greatest number overflowed in comparisons, and such timers
/// came before all others or held them up.
pub(crate) fn a_huge_delay_starves_nobody<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    for start in [0, HOUR, u64::MAX / 2, u64::MAX - DAY] {
        let mut queue = make(start);
        for delay in [u64::MAX, u64::MAX - 1, u64::MAX / 2 + 1, u64::MAX / 2] {
            queue.insert(delay, 0);
        }
        for n in 1..=1000 {
            let now = start + n * SECOND;
            queue.insert_at(now, n);
            queue.insert(u64::MAX - n, 0);
            assert_eq!(queue.next_deadline(), Some(now));
            assert_eq!(fire(&mut queue, now), [(now, n)]);
        }
        assert_eq!(queue.len(), 1004);
    }
}

/// netty#14959: cancelling a timer inside the tick that would have fired it counted it twice,
/// and the number of pending timers went wrong.
pub(crate) fn the_count_is_right_inside_the_tick<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    let mut queue = make(0);
    let keys: Vec<_> = (0..10).map(|n| queue.insert_at(1000, n)).collect();
    queue.insert_at(2000, 10);
    let mut budget = Budget::unlimited();
    let mut fired = Vec::new();
    while let Some((_, _, n)) = queue.pop(1000, &mut budget) {
        fired.push(n);
        if n < 9 {
            // Each cancels its right neighbour, which is due at this very tick.
            assert_eq!(queue.cancel(keys[n as usize + 1]), Some(n + 1));
            assert_eq!(queue.cancel(keys[n as usize + 1]), None);
        }
        assert_eq!(queue.len() as u64, 11 - 2 * fired.len() as u64);
        queue.check_invariants();
    }
    assert_eq!(fired, [0, 2, 4, 6, 8]);
    assert_eq!(queue.len(), 1);
}

/// Three years in steps: a periodic timer never drifts (rq-scheduler#269), far timers fire on
/// their tick, and short ones inserted on the way are on time.
pub(crate) fn three_years_of_uptime<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    const END: u64 = 3 * 365 * DAY;
    const PERIODIC: u64 = 1;
    const SHORT: u64 = 2;
    const FAR: u64 = 3;
    let mut queue = make(0);
    let mut planned = HOUR;
    queue.insert_at(planned, PERIODIC);
    let mut far_pending = 0;
    for month in 1..=36 {
        queue.insert_at(month * 30 * DAY + month, FAR);
        far_pending += 1;
    }
    let mut now = 0;
    let mut periods = 0;
    while now < END {
        // Wake up a little late, by an amount that wanders.
        now = (queue.next_deadline().unwrap() + now % 13).min(END);
        let mut budget = Budget::unlimited();
        while let Some((_, deadline, what)) = queue.pop(now, &mut budget) {
            assert!(deadline <= now && now - deadline < 13, "late: {deadline} at {now}");
            match what {
                PERIODIC => {
                    assert_eq!(deadline, planned);
                    periods += 1;
                    planned += HOUR;
                    queue.insert_at(planned, PERIODIC);
                    queue.insert_at(now + 10, SHORT);
                }
                SHORT => {}
                _ => {
                    far_pending -= 1;
                    assert_eq!(deadline % (30 * DAY), deadline / (30 * DAY));
                }
            }
        }
    }
    assert_eq!(periods, END / HOUR);
    assert_eq!(far_pending, 0);
    queue.check_invariants();
}

/// camunda#14882: everything due at once blocked the partition. Here a million timers of one
/// tick are fired in bounded portions, and what is added meanwhile is neither lost nor early.
pub(crate) fn mass_expiry_is_bounded_by_the_budget<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    const TIMERS: u64 = 1_000_000;
    const BUDGET: usize = 10_000;
    let mut queue = make(0);
    let tick = HOUR + 7;
    for n in 0..TIMERS {
        queue.insert_at(tick, n);
    }
    let mut next = 0;
    let mut rounds = 0;
    loop {
        let done = queue.advance(tick + rounds, BUDGET, |_, deadline, n| {
            assert_eq!((deadline, n), (tick, next));
            next += 1;
        });
        assert!(done.fired + done.moved <= BUDGET);
        rounds += 1;
        if done.finished {
            break;
        }
        assert!(queue.now() <= tick);
        assert!(rounds < 9 * TIMERS / BUDGET as u64, "no end in sight");
    }
    assert_eq!(next, TIMERS);
    assert!(queue.is_empty());
}
