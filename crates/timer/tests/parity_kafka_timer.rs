//! What users of Kafka's `SystemTimer` rely on, and what is different here.
//!
//! The same: tasks that are due at once run without waiting; tasks expire in the order of their
//! deadlines, whichever wheel they were in; a long task passes through wheels and is not early; a task
//! can be cancelled and added again; the size counts what is pending; time is advanced by whoever
//! drives, in tests.
//!
//! Different, on purpose: the wheel is not limited to levels made as needed, buckets are not locked
//! one by one, and no queue of buckets beside the wheel says which comes next.

mod common;

use std::time::Duration;

use common::{Log, manual, ms, pass};

#[test]
fn what_has_expired_already_runs_at_once() {
    let (timer, _clock) = manual();
    let runs = Log::default();
    for n in 0..5 {
        let log = runs.clone();
        drop(timer.after(Duration::ZERO, move || log.add(n)));
        let log = runs.clone();
        drop(timer.at(timer.now(), move || log.add(10 + n)));
    }
    assert!(timer.wait_idle(common::SOON));
    let mut seen = runs.take();
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]);
    assert!(timer.is_empty());
}

#[test]
fn tasks_expire_in_order_from_every_wheel() {
    let (timer, clock) = manual();
    let runs = Log::default();
    // Over eight orders of magnitude, added from the last to the first.
    let delays: Vec<u64> = (0..27).rev().map(|bit| (1 << bit) * 17).collect();
    for &delay in &delays {
        let log = runs.clone();
        drop(timer.after(Duration::from_micros(delay), move || log.add(delay)));
    }
    assert_eq!(timer.len(), delays.len());
    let mut now = 0;
    for &delay in delays.iter().rev() {
        pass(&timer, &clock, Duration::from_micros(delay - 1 - now));
        assert_eq!(runs.len(), 0, "{delay} is early");
        pass(&timer, &clock, Duration::from_micros(1));
        assert_eq!(runs.take(), [delay]);
        now = delay;
    }
}

#[test]
fn a_task_is_cancelled_and_added_again() {
    let (timer, clock) = manual();
    let runs = Log::default();
    for round in 0..10 {
        let log = runs.clone();
        let task = timer.after(ms(100), move || log.add(round)).expect("not full");
        pass(&timer, &clock, ms(99));
        assert!(task.cancel());
        assert_eq!(timer.len(), 0);
    }
    pass(&timer, &clock, ms(1_000));
    assert_eq!(runs.len(), 0);
    let log = runs.clone();
    let task = timer.after(ms(100), move || log.add(0)).expect("not full");
    for _ in 0..10 {
        pass(&timer, &clock, ms(99));
        assert!(task.reset(ms(100)));
    }
    pass(&timer, &clock, ms(100));
    assert_eq!(runs.take(), [0]);
    assert!(!task.reset(ms(1)), "it has run");
}
