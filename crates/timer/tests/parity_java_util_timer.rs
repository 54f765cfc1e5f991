//! What users of `java.util.Timer` rely on, and what is different here.
//!
//! The same: one thread that runs tasks one after the other (`Builder::inline`); tasks for a delay, for
//! a moment, at a fixed rate that catches up after a pause (`Missed::Burst`), with a fixed delay;
//! moments in the past run at once; a task may cancel itself, the timer or others; nothing is taken
//! after the end; a cancelled task answers whether that kept it from running.
//!
//! Different, on purpose:
//! - A task that throws kills Java's timer and every other task with it. Here it ends that run only.
//! - `schedule` with a period counts from the actual start of the run before. `with_delay` counts from
//!   its end, `every` from its planned time; `Missed::Delay` starts anew after a late one.
//! - `scheduleAtFixedRate` runs all missed times after a pause. Here that is `Missed::Burst`, and leaving
//!   them out is the default.
//! - `purge` is not needed: what is cancelled is gone at once.
//! - Dates are of the wall clock as it stands; on a timer by `ClockKind::Wall` they follow it, as in Java.
//! - Threads do not keep the process alive (Java: only daemons do not).

mod common;

use std::time::{Duration, SystemTime};

use common::{Log, SOON, manual, manual_with, ms, pass};
use tourbillon::{ClockKind, Missed, OnFailure, Plan, Refused, Timer};

#[test]
fn a_task_runs_once_after_its_delay() {
    let (timer, clock) = manual();
    let runs = Log::default();
    let log = runs.clone();
    let task = timer.after(ms(10), move || log.add(1)).expect("not full");
    pass(&timer, &clock, ms(9));
    assert_eq!(runs.len(), 0);
    pass(&timer, &clock, ms(1));
    assert_eq!(runs.take(), [1]);
    pass(&timer, &clock, ms(1_000));
    assert_eq!(runs.len(), 0);
    assert!(!task.cancel(), "it has run: cancelling keeps it from nothing");
}

#[test]
fn a_moment_in_the_past_is_now() {
    let timer = Timer::builder().inline().build().expect("a thread");
    let long_ago = timer.at_wall(SystemTime::UNIX_EPOCH, || 1).expect("not full");
    assert_eq!(long_ago.join().expect("runs"), 1);
    let begun = SystemTime::now();
    let soon = timer.at_wall(begun + ms(5), SystemTime::now).expect("not full");
    assert!(soon.join().expect("runs") >= begun + ms(5));
}

#[test]
fn tasks_run_one_after_the_other_in_the_order_of_their_times() {
    let (timer, clock) = manual();
    let runs = Log::default();
    for (n, delay) in [30, 10, 20, 10, 0].into_iter().enumerate() {
        let log = runs.clone();
        drop(timer.after(ms(delay), move || log.add(n)));
    }
    pass(&timer, &clock, ms(100));
    assert_eq!(runs.take(), [4, 1, 3, 2, 0]);
}

#[test]
fn a_fixed_rate_catches_up_after_a_pause() {
    let (timer, clock) = manual_with(Timer::builder().inline().missed(Missed::Burst));
    let runs = Log::default();
    let log = runs.clone();
    let task = timer.every(ms(10), move || log.add(())).expect("not full");
    pass(&timer, &clock, ms(105));
    assert_eq!(runs.take().len(), 10);
    assert!(task.cancel());
    assert!(!task.cancel(), "the second time keeps it from nothing");
    pass(&timer, &clock, ms(105));
    assert_eq!(runs.len(), 0);
}

#[test]
fn a_fixed_delay_counts_from_the_run_before() {
    let (timer, clock) = manual();
    let runs = Log::default();
    let (log, own) = (runs.clone(), timer.clone());
    let start = timer.now();
    let task = timer.with_delay(ms(10), move || log.add(own.now() - start)).expect("not full");
    pass(&timer, &clock, ms(13));
    pass(&timer, &clock, ms(9));
    pass(&timer, &clock, ms(1));
    assert_eq!(runs.take(), [ms(13), ms(23)]);
    assert!(task.cancel());
}

#[test]
fn an_initial_delay_and_a_period() {
    let (timer, clock) = manual();
    let runs = Log::default();
    let (log, own, start) = (runs.clone(), timer.clone(), timer.now());
    let plan = Plan::every(ms(10)).first_in(ms(3));
    let task = timer.repeat(plan, move |_| log.add(own.now() - start)).expect("not full");
    for _ in 0..24 {
        pass(&timer, &clock, ms(1));
    }
    assert_eq!(runs.take(), [ms(3), ms(13), ms(23)]);
    drop(task);
}

#[test]
fn a_task_may_cancel_itself_and_the_timer() {
    let (timer, clock) = manual();
    let runs = Log::default();
    let log = runs.clone();
    let task = timer.repeat(Plan::every(ms(1)), move |run| {
        log.add(run.number);
        if run.number == 3 {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    });
    pass(&timer, &clock, ms(3));
    pass(&timer, &clock, ms(1));
    pass(&timer, &clock, ms(1));
    pass(&timer, &clock, ms(9));
    let seen = runs.take().len();
    assert_eq!(seen, 3);
    assert_eq!(task.expect("not full").join().expect("it ended by itself"), 3);

    let (own, log) = (timer.clone(), runs.clone());
    let others = timer.after(ms(6), move || log.add(0)).expect("not full");
    drop(timer.after(ms(5), move || own.shutdown_now().len()));
    clock.advance(ms(10));
    assert!(timer.wait_terminated(SOON));
    assert_eq!(runs.len(), 0, "nothing begins after the timer was cancelled");
    assert!(others.join().expect_err("dropped").is_cancelled());
    assert_eq!(timer.after(ms(1), || ()).map(drop), Err(Refused::ShutDown));
}

/// In Java the timer is dead after this.
#[test]
fn a_task_that_throws_ends_itself_only() {
    std::panic::set_hook(Box::new(|_| {}));
    let (timer, clock) = manual();
    let runs = Log::default();
    let log = runs.clone();
    let good = timer.every(ms(1), move || log.add(()));
    let throws = timer.every(ms(1), || -> () { panic!("goes on by default") }).expect("not full");
    let plan = Plan::every(ms(1)).on_failure(OnFailure::Stop);
    let stops = timer.repeat(plan, |_| -> () { panic!("stops when asked to") }).expect("not full");
    for _ in 0..5 {
        pass(&timer, &clock, ms(1));
    }
    assert_eq!(runs.take().len(), 5);
    assert!(!throws.is_finished());
    assert!(stops.join().expect_err("it stopped").is_panic());
    drop(good);
}

/// tokio#3619, node-schedule#214: a clock that goes a day forward made a task of every minute run 1,440
/// times; one that goes back must not run anything twice.
#[test]
fn dates_follow_a_wall_clock_that_is_set() {
    let (timer, clock) = manual();
    let runs = Log::default();
    let log = runs.clone();
    let minute = timer.every(Duration::from_secs(60), move || log.add(()));
    pass(&timer, &clock, Duration::from_secs(86_430));
    assert_eq!(runs.take().len(), 1, "the rest are left out, by policy");
    // A wall clock that goes back and forth.
    clock.step_wall(-3_600_000_000);
    pass(&timer, &clock, Duration::from_secs(60));
    clock.step_wall(7_200_000_000);
    pass(&timer, &clock, Duration::from_secs(60));
    assert_eq!(runs.take().len(), 2);
    drop(minute);
    // Under the real wall clock nothing is early.
    let timer = Timer::builder().clock(ClockKind::Wall).inline().build().expect("a thread");
    let begun = SystemTime::now();
    let done = timer.after(ms(5), SystemTime::now).expect("not full");
    assert!(done.join().expect("runs") >= begun + ms(5));
}
