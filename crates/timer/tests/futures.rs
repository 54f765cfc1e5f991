//! Sleeps, limits and intervals, polled by hand and by a runtime.

mod common;

use std::future::{Future, pending, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use common::{SOON, manual, ms, pass};
use tourbillon::{Missed, Timer, interval, sleep, sleep_until, timeout};

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Woken {
    fn pair() -> (Arc<Self>, Waker) {
        let woken = Arc::new(Self::default());
        (Arc::clone(&woken), Waker::from(woken))
    }

    fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

#[test]
fn a_sleep_is_ready_at_its_deadline_and_not_before() {
    let (timer, clock) = manual();
    let (woken, waker) = Woken::pair();
    let mut sleep = timer.sleep(ms(5));
    assert_eq!(timer.len(), 0, "it is armed when it is polled");
    assert!(poll(&mut sleep, &waker).is_pending());
    assert_eq!(timer.len(), 1);
    pass(&timer, &clock, ms(5) - Duration::from_micros(1));
    assert!(poll(&mut sleep, &waker).is_pending());
    assert_eq!((woken.times(), sleep.is_elapsed()), (0, false));
    pass(&timer, &clock, Duration::from_micros(1));
    assert_eq!((woken.times(), sleep.is_elapsed()), (1, true));
    assert!(poll(&mut sleep, &waker).is_ready());
    assert!(poll(&mut sleep, &waker).is_ready(), "and stays so");
    // One whose time has passed before it is polled never enters the wheel.
    let mut late = timer.sleep(ms(1));
    pass(&timer, &clock, ms(1));
    assert!(poll(&mut late, &waker).is_ready());
    assert_eq!(woken.times(), 1);
}

/// tokio-util#6751 and its like: the task that polled last is the one to be woken.
#[test]
fn the_last_waker_counts() {
    let (timer, clock) = manual();
    let (first, first_waker) = Woken::pair();
    let (last, last_waker) = Woken::pair();
    let mut sleep = timer.sleep(ms(5));
    assert!(poll(&mut sleep, &first_waker).is_pending());
    assert!(poll(&mut sleep, &last_waker).is_pending());
    pass(&timer, &clock, ms(5));
    assert_eq!((first.times(), last.times()), (0, 1));
}

#[test]
fn dropping_a_sleep_takes_it_out_of_the_wheel() {
    let (timer, clock) = manual();
    let (woken, waker) = Woken::pair();
    for polled in [false, true] {
        let mut sleep = timer.sleep(ms(5));
        if polled {
            assert!(poll(&mut sleep, &waker).is_pending());
        }
        drop(sleep);
        assert_eq!(timer.len(), 0);
        assert_eq!(Arc::strong_count(&woken), 2, "and its waker with it");
    }
    // When it has fired and was not polled since, too.
    let mut sleep = timer.sleep(ms(5));
    assert!(poll(&mut sleep, &waker).is_pending());
    pass(&timer, &clock, ms(5));
    drop(sleep);
    assert_eq!((woken.times(), timer.len()), (1, 0));
}

#[test]
fn a_sleep_that_is_reset_waits_for_its_new_deadline() {
    let (timer, clock) = manual();
    let (woken, waker) = Woken::pair();
    let mut sleep = timer.sleep(ms(5));
    for _ in 0..10 {
        assert!(poll(&mut sleep, &waker).is_pending());
        pass(&timer, &clock, ms(4));
        sleep.reset(timer.now() + ms(5));
        assert_eq!(timer.len(), 1);
    }
    pass(&timer, &clock, ms(5));
    assert!(poll(&mut sleep, &waker).is_ready());
    assert_eq!(woken.times(), 1);
    // Also when it was ready, and when it has fired and nobody looked.
    for looked in [true, false] {
        sleep.reset(timer.now() + ms(5));
        assert!(poll(&mut sleep, &waker).is_pending());
        pass(&timer, &clock, ms(5));
        if looked {
            assert!(poll(&mut sleep, &waker).is_ready());
        }
        sleep.reset(timer.now() + ms(5));
        assert!(poll(&mut sleep, &waker).is_pending(), "{looked}");
        pass(&timer, &clock, ms(5));
        assert!(poll(&mut sleep, &waker).is_ready());
    }
}

#[test]
fn a_limit_gives_the_output_or_tells_that_it_passed() {
    let (timer, clock) = manual();
    let (_, waker) = Woken::pair();
    assert_eq!(poll(&mut timer.timeout(Duration::ZERO, ready(7)), &waker), Poll::Ready(Ok(7)));
    let mut limited = timer.timeout(ms(5), pending::<()>());
    assert!(poll(&mut limited, &waker).is_pending());
    pass(&timer, &clock, ms(5));
    let Poll::Ready(Err(elapsed)) = poll(&mut limited, &waker) else { panic!("not elapsed") };
    assert_eq!(elapsed.to_string(), "the time limit has passed");
    drop(limited);
    assert_eq!(timer.len(), 0);
}

#[test]
fn an_interval_keeps_its_rate_by_its_policy() {
    for (missed, expected) in [
        // Planned times of the ticks that come at 0, then at 35, then in steps of 10 ms.
        (Missed::Burst, [0, 10, 20, 30, 40, 50]),
        (Missed::Skip, [0, 10, 40, 50, 60, 70]),
        (Missed::Delay, [0, 10, 45, 55, 65, 75]),
    ] {
        let (timer, clock) = manual();
        let (_, waker) = Woken::pair();
        let start = timer.now();
        let mut interval = timer.interval(ms(10)).missed(missed);
        let mut ticks = Vec::new();
        let mut look = |interval: &mut tourbillon::Interval| {
            while let Poll::Ready(planned) = interval.poll_tick(&mut Context::from_waker(&waker)) {
                ticks.push((planned - start).as_millis());
            }
        };
        look(&mut interval);
        pass(&timer, &clock, ms(35));
        for _ in 0..40 {
            look(&mut interval);
            pass(&timer, &clock, ms(5));
        }
        assert_eq!(ticks[..6], expected, "{missed}");
    }
}

#[tokio::test]
async fn on_a_runtime() {
    let begun = Instant::now();
    sleep(ms(2)).await;
    sleep_until(begun + ms(4)).await;
    assert!(begun.elapsed() >= ms(4));
    assert!(timeout(ms(1), pending::<()>()).await.is_err());
    assert_eq!(timeout(SOON, async { 5 }).await, Ok(5));
    let mut ticks = interval(ms(1));
    let (first, third) = (ticks.tick().await, {
        ticks.tick().await;
        ticks.tick().await
    });
    assert!(third - first >= ms(2));
    // Dropping the future of a tick takes no tick.
    let mut slow = interval(ms(3));
    let first = slow.tick().await;
    for _ in 0..50 {
        let _ = timeout(Duration::from_micros(10), slow.tick()).await;
    }
    // One of those fifty may have been ready; none is lost between.
    let next = slow.tick().await;
    assert_eq!((next - first).as_micros() % 3_000, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_sleep_and_give_up() {
    let tasks: Vec<_> = (0..2_000_u64)
        .map(|n| {
            tokio::spawn(async move {
                let begun = Instant::now();
                let delay = Duration::from_micros(n * 7 % 3_000);
                if n % 2 == 0 {
                    sleep(delay).await;
                    assert!(begun.elapsed() >= delay);
                } else {
                    let long = sleep(Duration::from_secs(3_600));
                    assert!(timeout(delay, long).await.is_err());
                    assert!(begun.elapsed() >= delay);
                }
            })
        })
        .collect();
    for task in tasks {
        timeout(SOON, task).await.expect("in time").expect("no panic");
    }
}

/// A sleep outlives its timer: it goes on by the process's.
#[tokio::test]
async fn a_sleep_whose_timer_ends_goes_on() {
    for orderly in [true, false] {
        let timer = Timer::new();
        let begun = Instant::now();
        let armed = timer.sleep(ms(4));
        let unpolled = timer.sleep(ms(6));
        let mut armed = pin!(armed);
        assert!(timeout(Duration::ZERO, armed.as_mut()).await.is_err());
        if orderly {
            timer.shutdown();
            assert!(timer.wait_terminated(SOON), "a sleep does not hold up the end");
        }
        drop(timer);
        timeout(SOON, armed).await.expect("in time");
        assert!(begun.elapsed() >= ms(4));
        timeout(SOON, unpolled).await.expect("in time");
        assert!(begun.elapsed() >= ms(6));
    }
}

#[tokio::test]
async fn a_handle_is_a_future() {
    let timer = Timer::new();
    assert_eq!(timer.after(ms(1), || 5).expect("not full").await.expect("runs"), 5);
    let job = timer.after(SOON, || ()).expect("not full");
    assert!(job.cancel());
    assert!(job.await.expect_err("cancelled").is_cancelled());
}
