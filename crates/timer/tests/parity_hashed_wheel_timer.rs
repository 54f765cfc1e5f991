//! What users of Netty's `HashedWheelTimer` rely on, and what is different here.
//!
//! The same: a million timeouts that mostly do not happen; a timeout that is cancelled, has expired or
//! is pending, and says which; `stop` gives back what has not expired; a bound on pending timeouts;
//! an executor for tasks; a task that throws harms no other.
//!
//! Different, on purpose:
//! - No tick to choose: deadlines are exact to the microsecond, and an idle timer does not tick.
//! - Tasks do not run on the timer's thread unless that is asked for (`Builder::inline`).
//! - `stop` may be called by a task.
//! - The bound is exact also when a timeout is cancelled in the tick in which it would expire.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::{Log, SOON, manual, manual_with, ms, pass};
use tourbillon::{Refused, Timer};

#[test]
fn a_timeout_is_not_early_and_does_happen() {
    let timer = Timer::new();
    for micros in [0, 1, 10, 100, 1_000, 10_000] {
        let begun = Instant::now();
        let delay = Duration::from_micros(micros);
        let expired = timer.after(delay, Instant::now).expect("not full");
        assert!(expired.join().expect("runs") - begun >= delay);
    }
}

#[test]
fn stop_gives_back_what_has_not_expired() {
    let (timer, clock) = manual();
    for n in 0..3 {
        drop(timer.after(ms(n), || ()));
    }
    let left: Vec<_> =
        (0..5).map(|n| timer.after(ms(1_000 + n), move || n).expect("not full")).collect();
    pass(&timer, &clock, ms(10));
    let unrun = timer.shutdown_now();
    assert_eq!(unrun.len(), 5);
    assert!(timer.wait_terminated(SOON));
    assert_eq!(timer.after(ms(1), || ()).map(drop), Err(Refused::ShutDown));
    assert!(left.iter().all(|timeout| !timeout.is_finished()), "not cancelled while they are held");
    drop(unrun);
    assert!(left.iter().all(tourbillon::JobHandle::is_finished));
}

/// netty#7765: the largest delay overflowed and expired at once.
#[test]
fn the_largest_delay_does_not_expire() {
    let (timer, clock) = manual();
    let never = timer.after(Duration::MAX, || ()).expect("not full");
    let long = timer.after(Duration::from_millis(i64::MAX as u64), || ()).expect("not full");
    pass(&timer, &clock, Duration::from_secs(100 * 365 * 86_400));
    assert!(!never.is_finished() && !long.is_finished());
    assert!(never.cancel() && long.cancel());
}

/// netty#14959: a timeout that was cancelled in the tick that would expire it was counted twice.
#[test]
fn pending_timeouts_are_counted_right() {
    let (timer, clock) = manual_with(Timer::builder().inline().lanes(1).max_pending(3));
    for _ in 0..100 {
        let one = timer.after(ms(1), || ()).expect("room");
        let other = Arc::new(timer.after(ms(1), || ()).expect("room"));
        // Cancels the one after it, of the same tick, from inside the tick.
        let same_tick = Arc::clone(&other);
        assert!(one.cancel());
        let one = timer.after(ms(1), move || same_tick.cancel()).expect("room");
        pass(&timer, &clock, ms(1));
        assert!(!one.join().expect("runs"), "the other was armed before and has run");
        assert_eq!(timer.len(), 0);
        let all: Vec<_> =
            (0..3).map(|_| timer.after(ms(5), || ()).expect("room for three")).collect();
        assert_eq!(timer.after(ms(5), || ()).map(drop), Err(Refused::Full { max_pending: 3 }));
        assert!(all.iter().all(tourbillon::JobHandle::cancel));
        assert_eq!(timer.len(), 0);
    }
}

#[test]
fn what_is_cancelled_in_its_tick_does_not_run() {
    let (timer, clock) = manual();
    let runs = Log::default();
    let (first, second) = (runs.clone(), runs.clone());
    let (send, receive) = mpsc::channel::<tourbillon::JobHandle<()>>();
    drop(timer.after(ms(1), move || {
        first.add(receive.recv_timeout(SOON).expect("the second's handle").cancel());
    }));
    let job = timer.after(ms(1), move || second.add(false)).expect("not full");
    send.send(job).expect("it waits");
    pass(&timer, &clock, ms(1));
    assert_eq!(runs.take(), [true], "cancelled by the one before it, and true is the answer");
}

/// netty#2541, tokio#8252, grpc-java#1307: cancelled timeouts were kept until their deadlines.
#[test]
fn cancelled_timeouts_are_not_kept() {
    let timer = Timer::new();
    let payload: Arc<[u8]> = vec![0; 1_024].into();
    for round in 0..20 {
        let timeouts: Vec<_> = (0..5_000)
            .map(|n| {
                let payload = Arc::clone(&payload);
                let delay = Duration::from_millis(3_600_000 + n);
                timer.after(delay, move || payload.len()).expect("not full")
            })
            .collect();
        assert_eq!(timer.len(), 5_000);
        assert!(timeouts.iter().all(tourbillon::JobHandle::cancel), "round {round}");
        assert_eq!((timer.len(), Arc::strong_count(&payload)), (0, 1));
    }
}

#[test]
fn a_task_that_throws_does_not_stop_the_timer() {
    std::panic::set_hook(Box::new(|_| {}));
    let timer = Timer::builder().inline().build().expect("a thread");
    for n in 0..100 {
        drop(timer.after(Duration::from_micros(n), || panic!("one of a hundred")));
    }
    assert_eq!(timer.after(ms(1), || 1).expect("not full").join().expect("runs"), 1);
}

#[test]
fn many_threads_make_and_cancel_timeouts() {
    let timer = Timer::new();
    let expired = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..2_000 {
                    let timeout =
                        timer.after(Duration::from_micros(n % 200), || ()).expect("not full");
                    if !timeout.cancel() {
                        expired.fetch_add(1, Ordering::Relaxed);
                        timeout.join().expect("it has expired or does so now");
                    }
                }
            });
        }
    });
    assert!(timer.is_empty());
}
