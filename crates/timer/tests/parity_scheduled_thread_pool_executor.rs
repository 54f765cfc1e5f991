//! What users of `ScheduledThreadPoolExecutor` rely on, and what is different here.
//!
//! The same: one-shot work with a result; fixed rate and fixed delay, never overlapping, stopped by a
//! failure (`OnFailure::Stop`) and catching up (`Missed::Burst`); ties in order of submission; a bound on
//! threads; cancelling; both policies of what becomes of work at shutdown; `shutdownNow` returns what
//! never began; waiting for the end.
//!
//! Different, on purpose:
//! - What is cancelled is removed at once (`setRemoveOnCancelPolicy(true)`; Java's default keeps it).
//! - Workers are started when they are needed up to a bound, and end when they are idle. Java's core
//!   threads stay.
//! - `cancel(true)` interrupts a running task. Rust has no such thing; a running job goes to its end.
//! - A periodic job goes on after a failure unless it was told to stop, and leaves missed runs out
//!   unless it was told to catch up.
//! - A failing periodic job's handle tells of the panic, as Java's future does; a one-shot's too.
//! - `execute`, `submit` without a delay: `after(Duration::ZERO, …)`. `invokeAll` and `invokeAny` are not
//!   here: join handles, or use an executor.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use common::{Log, SOON, manual, manual_with, ms, pass};
use tourbillon::{Builder, Missed, OnFailure, Plan, Refused, Timer};

fn java() -> Builder {
    Timer::builder().missed(Missed::Burst).on_failure(OnFailure::Stop)
}

#[test]
fn delayed_work_gives_its_result() {
    let timer = java().build().expect("a thread");
    let begun = std::time::Instant::now();
    let mut job = timer.after(ms(5), || "done").expect("not full");
    assert!(job.deadline().is_some_and(|deadline| deadline >= begun + ms(5)));
    let never = timer.after(Duration::from_secs(3_600), || ()).expect("not full");
    assert_eq!(job.join_timeout(SOON).expect("in time").expect("runs"), "done");
    assert!(begun.elapsed() >= ms(5));
    assert!(job.is_finished() && job.deadline().is_none());
    let mut never = never;
    assert!(never.join_timeout(ms(1)).is_none(), "a wait with a limit ends by it");
    assert!(never.cancel() && never.is_finished());
}

#[test]
fn a_failure_is_told_by_the_handle() {
    std::panic::set_hook(Box::new(|_| {}));
    let timer = java().build().expect("a thread");
    let job = timer.after(ms(1), || -> u8 { panic!("broken {}", 7) }).expect("not full");
    let error = job.join().expect_err("it panicked");
    assert_eq!(error.to_string(), "the job panicked: broken 7");
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let periodic = timer.every(ms(1), move || {
        assert!(counted.fetch_add(1, Ordering::SeqCst) < 2, "the third time");
    });
    assert!(periodic.expect("not full").join().expect_err("it panicked").is_panic());
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    let failing = timer.every(ms(1), || Err::<(), _>("an error")).expect("not full");
    assert_eq!(
        failing.join().expect_err("it failed").to_string(),
        "the job failed and was stopped"
    );
}

#[test]
fn equal_times_run_in_the_order_of_submission() {
    let (timer, clock) = manual_with(java().inline().lanes(1));
    let runs = Log::default();
    for n in 0..1_000 {
        let log = runs.clone();
        drop(timer.after(ms(5), move || log.add(n)));
    }
    pass(&timer, &clock, ms(5));
    assert_eq!(runs.take(), (0..1_000).collect::<Vec<_>>());
}

#[test]
fn a_periodic_job_never_overlaps_itself() {
    let timer = java().workers(4).build().expect("a thread");
    let inside = Arc::new(AtomicUsize::new(0));
    let job = timer.repeat(Plan::every(Duration::from_micros(50)).times(200), {
        let inside = Arc::clone(&inside);
        move |_| {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two runs at once");
            std::thread::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
        }
    });
    assert_eq!(job.expect("not full").join().expect("no run overlapped"), 200);
}

/// JSR-166: a delay of Long.MAX_VALUE beside short ones made the comparison overflow.
#[test]
fn huge_delays_and_periods_starve_nobody() {
    let (timer, clock) = manual_with(java().inline());
    let huge = timer.after(Duration::MAX, || ()).expect("not full");
    let periodic = timer.every(Duration::MAX, || ()).expect("not full");
    let delayed = timer.with_delay(Duration::from_nanos(u64::MAX - 1), || ()).expect("not full");
    let first = timer.repeat(Plan::every(Duration::MAX).first_in(ms(1)), |_| ()).expect("not full");
    for n in 0..100 {
        let job = timer.after(ms(2), move || n).expect("not full");
        pass(&timer, &clock, ms(2));
        assert_eq!(job.join().expect("runs"), n);
    }
    assert!(huge.cancel() && periodic.cancel() && delayed.cancel() && first.cancel());
    assert!(timer.is_empty());
}

#[test]
fn at_shutdown_delayed_work_runs_and_periodic_work_stops() {
    let (timer, clock) = manual_with(java().inline());
    let runs = Log::default();
    let (one, two) = (runs.clone(), runs.clone());
    let delayed = timer.after(ms(10), move || one.add("delayed")).expect("not full");
    let periodic = timer.every(ms(3), move || two.add("periodic")).expect("not full");
    pass(&timer, &clock, ms(4));
    assert_eq!(runs.take(), ["periodic"]);
    timer.shutdown();
    assert!(timer.is_shutdown() && !timer.is_terminated());
    assert_eq!(timer.after(ms(1), || ()).map(drop), Err(Refused::ShutDown));
    assert!(!timer.wait_terminated(ms(1)), "the delayed one is waited for");
    clock.advance(ms(6));
    assert!(timer.wait_terminated(SOON));
    delayed.join().expect("it ran");
    assert!(periodic.join().expect_err("stopped").is_cancelled());
    assert_eq!(runs.take(), ["delayed"]);
}

#[test]
fn at_shutdown_delayed_work_is_dropped_when_so_configured() {
    let (timer, _clock) = manual_with(java().run_delayed_after_shutdown(false));
    let delayed = timer.after(ms(10), || ()).expect("not full");
    timer.shutdown();
    assert!(timer.wait_terminated(SOON));
    assert!(delayed.join().expect_err("dropped").is_cancelled());
}

#[test]
fn at_shutdown_periodic_work_goes_on_when_so_configured() {
    let (timer, clock) = manual_with(java().inline().continue_periodic_after_shutdown(true));
    let runs = Log::default();
    let log = runs.clone();
    let periodic = timer.every(ms(3), move || log.add(())).expect("not full");
    timer.shutdown();
    for _ in 0..4 {
        pass(&timer, &clock, ms(3));
    }
    assert_eq!(runs.take().len(), 4);
    assert!(!timer.is_terminated());
    assert!(periodic.cancel());
    clock.advance(ms(1));
    assert!(timer.wait_terminated(SOON));
}

#[test]
fn shutdown_now_returns_what_never_began() {
    let timer = java().workers(1).build().expect("a thread");
    let (begun, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    let running = timer.after(Duration::ZERO, move || {
        begun.send(()).expect("the test waits");
        may_end.recv_timeout(SOON).expect("the test lets it end");
    });
    has_begun.recv_timeout(SOON).expect("it begins");
    // One is due and waits for the only worker, two are not due, one of them periodic.
    let due = timer.after(Duration::ZERO, || 1).expect("not full");
    let later = timer.after(Duration::from_secs(3_600), || 2).expect("not full");
    let periodic = timer.every(Duration::from_secs(7_200), || ()).expect("not full");
    let cancelled = timer.after(Duration::from_secs(1_800), || 3).expect("not full");
    assert!(cancelled.cancel());
    let unrun = timer.shutdown_now();
    assert_eq!(unrun.len(), 3);
    assert!(unrun.iter().map(tourbillon::Due::deadline).is_sorted());
    assert!(!timer.is_terminated() && !timer.wait_terminated(ms(1)), "one still runs");
    end.send(()).expect("it waits");
    assert!(timer.wait_terminated(SOON));
    running.expect("not full").join().expect("what runs goes to its end");
    for due in unrun {
        due.run();
    }
    assert_eq!((due.join().expect("by hand"), later.join().expect("by hand")), (1, 2));
    assert!(
        periodic.join().expect_err("one run by hand, and no timer for the next").is_cancelled()
    );
    assert!(timer.shutdown_now().is_empty(), "the second time there is nothing");
}

#[test]
fn a_job_cancelled_during_its_run_does_not_run_again() {
    let timer = java().build().expect("a thread");
    let (send, receive) = mpsc::channel::<tourbillon::PeriodicHandle>();
    let (started, has_started) = mpsc::channel();
    let periodic = timer.every(ms(1), move || {
        started.send(()).expect("the test listens");
        receive
            .recv_timeout(SOON)
            .expect("its own handle")
            .cancel()
            .then_some(())
            .ok_or("a running periodic job has runs ahead to be kept from")
    });
    send.send(periodic.expect("not full")).expect("it waits");
    has_started.recv_timeout(SOON).expect("it runs once");
    assert!(timer.wait_idle(SOON));
    assert!(timer.is_empty(), "and is not armed again");
    assert!(has_started.recv().is_err(), "its closure is gone");
}

#[test]
fn remove_on_cancel() {
    let (timer, _clock) = manual();
    let held = Arc::new(());
    let jobs: Vec<_> = (0..1_000)
        .map(|n| {
            let held = Arc::clone(&held);
            timer.after(ms(1_000 + n), move || drop(held)).expect("not full")
        })
        .collect();
    assert_eq!((timer.len(), Arc::strong_count(&held)), (1_000, 1_001));
    for job in &jobs {
        assert!(job.cancel());
    }
    assert_eq!((timer.len(), Arc::strong_count(&held)), (0, 1), "closures are dropped at once");
}
