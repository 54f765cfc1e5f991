//! The hand-over between consumers of a delay queue, every interleaving tried by loom: `cargo xtask loom`.
//!
//! A lost wake-up shows as a deadlock, which loom reports. Time is a manual clock, so nobody wakes
//! because time has passed: whoever sleeps has to be woken. Each model has as few threads and steps as
//! show the race; those with three threads are bounded in switches.
#![cfg(loom)]

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tourbillon::DelayQueue;
use tourbillon::delay_queue::{Expired, ManualClock};

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

fn manual() -> (DelayQueue<u32>, ManualClock) {
    let clock = ManualClock::new(1_000);
    (DelayQueue::builder().manual_clock(&clock).build(), clock)
}

/// For models too large to try everything: at most three switches that no thread asked for. Faults
/// that need more are rare (Musuvathi and Qadeer, "Iterative context bounding", PLDI 2007).
fn bounded(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A waker that loom sees.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

struct Ring(Arc<Bell>);

impl Wake for Ring {
    fn wake(self: std::sync::Arc<Self>) {
        *self.0.rung.lock().unwrap() = true;
        self.0.changed.notify_one();
    }
}

/// Runs a future, but drops it when it was polled so many times.
fn run<F: Future>(future: F, polls_max: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(std::sync::Arc::new(Ring(bell.clone())));
    for _ in 0..polls_max {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        if polls_max == usize::MAX {
            let mut rung = bell.rung.lock().unwrap();
            while !*rung {
                rung = bell.changed.wait(rung).unwrap();
            }
            *rung = false;
        }
    }
    None
}

fn value(expired: Option<Expired<u32>>) -> Option<u32> {
    expired.map(Expired::into_inner)
}

/// A consumer goes to sleep while an item comes in.
#[test]
fn insert_against_going_to_sleep() {
    loom::model(|| {
        let (queue, _clock) = manual();
        let other = queue.clone();
        let consumer = thread::spawn(move || value(other.poll()));
        queue.insert(7, us(0)).unwrap();
        assert_eq!(consumer.join().unwrap(), Some(7));
    });
}

/// The same with a task.
#[test]
fn insert_against_a_task_going_to_sleep() {
    loom::model(|| {
        let (queue, _clock) = manual();
        let other = queue.clone();
        let consumer = thread::spawn(move || run(other.next(), usize::MAX).and_then(value));
        queue.insert(7, us(0)).unwrap();
        assert_eq!(consumer.join().unwrap(), Some(7));
    });
}

/// The clock is moved while the leader goes to sleep until the item's deadline.
#[test]
fn the_clock_against_going_to_sleep() {
    loom::model(|| {
        let (queue, clock) = manual();
        queue.insert(7, us(5)).unwrap();
        let other = queue.clone();
        let consumer = thread::spawn(move || value(other.poll()));
        clock.advance(us(5));
        assert_eq!(consumer.join().unwrap(), Some(7));
    });
}

/// An item earlier than the one that the leader sleeps for, by insertion and by reset.
#[test]
fn an_earlier_item_against_the_leader() {
    for by_reset in [false, true] {
        loom::model(move || {
            let (queue, _clock) = manual();
            let far = queue.insert(1, us(50)).unwrap();
            let other = queue.clone();
            let consumer = thread::spawn(move || value(other.poll()));
            if by_reset {
                assert!(queue.reset(far, us(0)));
                assert_eq!(consumer.join().unwrap(), Some(1));
            } else {
                queue.insert(2, us(0)).unwrap();
                assert_eq!(consumer.join().unwrap(), Some(2));
            }
        });
    }
}

/// Two items, two threads: the leader leaves with one, and the follower gets the other.
#[test]
fn the_leader_promotes_a_follower() {
    bounded(|| {
        let (queue, _clock) = manual();
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || value(queue.poll()))
            })
            .collect();
        queue.insert(1, us(0)).unwrap();
        queue.insert(2, us(0)).unwrap();
        let mut taken: Vec<_> = consumers.into_iter().map(|it| it.join().unwrap()).collect();
        taken.sort();
        assert_eq!(taken, [Some(1), Some(2)]);
    });
}

/// The same with a thread and a task, and a clock: the second item is due later.
#[test]
fn threads_and_tasks_promote_each_other() {
    bounded(|| {
        let (queue, clock) = manual();
        queue.insert(1, us(1)).unwrap();
        queue.insert(2, us(2)).unwrap();
        let (first, second) = (queue.clone(), queue.clone());
        let by_thread = thread::spawn(move || value(first.poll()));
        let by_task = thread::spawn(move || run(second.next(), usize::MAX).and_then(value));
        clock.advance(us(1));
        clock.advance(us(1));
        let mut taken = [by_thread.join().unwrap(), by_task.join().unwrap()];
        taken.sort();
        assert_eq!(taken, [Some(1), Some(2)]);
    });
}

/// A future is polled once and dropped, perhaps with its turn; a thread waits, and there is one item.
#[test]
fn a_dropped_future_hands_its_turn_on() {
    bounded(|| {
        let (queue, _clock) = manual();
        let (first, second) = (queue.clone(), queue.clone());
        let dropped = thread::spawn(move || run(first.next(), 1).and_then(value));
        let patient = thread::spawn(move || value(second.poll()));
        queue.insert(1, us(0)).unwrap();
        if let Some(taken) = dropped.join().unwrap() {
            assert_eq!(taken, 1);
            queue.insert(1, us(0)).unwrap();
        }
        assert_eq!(patient.join().unwrap(), Some(1));
        assert_eq!(queue.waiting(), 0);
    });
}

/// The leader's patience ends while an item comes in: it takes the item, or the other one does.
#[test]
fn patience_against_an_item() {
    bounded(|| {
        let (queue, clock) = manual();
        let (first, second) = (queue.clone(), queue.clone());
        let impatient = thread::spawn(move || value(first.poll_timeout(us(1))));
        let patient = thread::spawn(move || value(second.poll()));
        clock.advance(us(1));
        queue.insert(1, us(0)).unwrap();
        queue.close(); // whoever gets nothing ends
        let taken = [impatient.join().unwrap(), patient.join().unwrap()];
        assert_eq!(taken.iter().flatten().count(), 1);
    });
}

/// An item is removed or taken, and that once.
#[test]
fn remove_against_poll() {
    loom::model(|| {
        let (queue, _clock) = manual();
        let key = queue.insert(7, us(0)).unwrap();
        let other = queue.clone();
        let consumer = thread::spawn(move || value(other.try_poll()));
        let removed = queue.remove(key);
        assert_eq!([removed, consumer.join().unwrap()].iter().flatten().count(), 1);
        assert!(queue.is_empty());
    });
}

/// Everybody who waits learns of the end, also when it comes with the last item.
#[test]
fn the_end_against_those_who_wait() {
    bounded(|| {
        let (queue, clock) = manual();
        queue.insert(7, us(1)).unwrap();
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || value(queue.poll()))
            })
            .collect();
        queue.close();
        clock.advance(us(1));
        let mut taken: Vec<_> = consumers.into_iter().map(|it| it.join().unwrap()).collect();
        taken.sort();
        assert_eq!(taken, [None, Some(7)]);
    });
}
