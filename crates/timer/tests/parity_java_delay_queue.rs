//! What users of `java.util.concurrent.DelayQueue` rely on, as its documentation and the JSR-166 tests
//! state it, and how the queue here does the same.
//!
//! | there | here | test |
//! |---|---|---|
//! | `add`, `offer`, `put` never block | `insert`, `insert_at` | `inserting_never_waits` |
//! | `poll()` is null unless the head has expired | `try_poll` | `poll_is_empty_handed_until_the_head_expires` |
//! | `take` waits for an element, and for its delay | `poll` | `take_waits_for_an_element_and_for_its_delay` |
//! | `poll(timeout)` waits no longer than asked | `poll_timeout` | `a_timed_poll_gives_up_in_time`, `a_timed_poll_gets_what_expires_in_time` |
//! | `peek` shows the head also before it expires | `peek`, `peek_with` | `peek_shows_the_head_also_before_it_expires` |
//! | elements come in the order of their delays | the same | `elements_come_in_the_order_of_their_delays` |
//! | an earlier element replaces the one that `take` waits for | the same | `an_earlier_element_is_what_take_gives` |
//! | `size` counts expired and unexpired | `len` | `size_counts_both_kinds` |
//! | `remainingCapacity` is without bound | `max_len` | `capacity` |
//! | `remove(x)` takes out expired or not | `remove(key)` | `remove_takes_out_either_kind` |
//! | `contains(x)` | `deadline(key).is_some()` | `remove_takes_out_either_kind` |
//! | `clear` empties it, and it can be used again | `clear` | `clear_empties_and_leaves_it_usable` |
//! | `drainTo` moves the expired ones only | `drain_expired` | `drain_to_moves_the_expired_only` |
//! | `drainTo(c, n)` moves at most n | `drain_expired(n, ..)` | `drain_to_moves_no_more_than_asked` |
//! | the iterator shows a snapshot of both kinds, in no order | `snapshot`, `for_each` | `iteration_shows_both_kinds` |
//! | `take` in another thread hands over | the same | `producer_and_consumer_hand_over` |
//! | leader and followers: one timed waiter | the same, over threads and tasks | `one_thread_waits_with_a_time` |
//!
//! # Differences
//!
//! - The delay is given with the value, not by the value: `Delayed`, `compareTo` and `equals` have no
//!   counterpart, and a value cannot change its delay behind the queue's back. `reset` does it.
//! - An item is named by its key, so removing one is O(1) and not a search, and two equal values are two.
//! - Elements of one deadline come in the order of insertion; there the order is open.
//! - `null` does not exist, and so neither do the `NullPointerException`s.
//! - There are no interrupts. `close` and `close_now` end waiting, and an insertion is refused then.
//! - A queue may be bounded (`max_len`), and refuses then; nothing blocks the inserter.
//! - An iterator there may be used while the queue changes. Here `snapshot` is of one moment.
//! - `drain` takes the unexpired too; there the iterator does that, one by one.
#![cfg(not(loom))]

#[path = "delay_queue/support.rs"]
mod support;

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};
use support::{manual, ms, until, us};
use tourbillon::DelayQueue;
use tourbillon::delay_queue::{Expired, ManualClock};

const LONG: Duration = Duration::from_secs(3_600);

/// A queue with these numbers, the delay of each as many microseconds as it says.
fn filled(numbers: impl IntoIterator<Item = u64>) -> (DelayQueue<u64>, ManualClock) {
    let (queue, clock) = manual();
    for number in numbers {
        queue.insert(number, us(number)).unwrap();
    }
    (queue, clock)
}

fn value<T>(expired: Option<Expired<T>>) -> Option<T> {
    expired.map(Expired::into_inner)
}

#[test]
fn inserting_never_waits() {
    let queue = DelayQueue::new();
    for number in 0..20 {
        assert!(queue.insert(number, LONG).is_ok());
        assert!(queue.insert_at(number, Instant::now()).is_ok());
    }
    assert_eq!(queue.len(), 40);
}

#[test]
fn poll_is_empty_handed_until_the_head_expires() {
    let (queue, clock) = filled([]);
    assert!(queue.try_poll().is_none());
    queue.insert(1, us(10)).unwrap();
    assert!(queue.try_poll().is_none());
    clock.advance(us(10));
    assert_eq!(value(queue.try_poll()), Some(1));
    assert!(queue.try_poll().is_none());
}

#[test]
fn take_waits_for_an_element_and_for_its_delay() {
    let queue = DelayQueue::new();
    thread::scope(|scope| {
        let taker = scope.spawn(|| {
            let taken = queue.poll().unwrap();
            let now = Instant::now();
            assert!(now >= taken.deadline());
            (now, taken.into_inner())
        });
        until("it waits", || queue.waiting() == 1);
        let begin = Instant::now();
        queue.insert("late", ms(5)).unwrap();
        let (end, taken) = taker.join().unwrap();
        assert_eq!(taken, "late");
        assert!(end - begin >= ms(5));
    });
}

#[test]
fn a_timed_poll_gives_up_in_time() {
    let queue = DelayQueue::new();
    let begin = Instant::now();
    assert!(queue.poll_timeout(ms(2)).is_none());
    assert!(begin.elapsed() >= ms(2));
    queue.insert((), LONG).unwrap();
    let begin = Instant::now();
    assert!(queue.poll_timeout(ms(2)).is_none());
    assert!(begin.elapsed() >= ms(2));
    assert!(queue.poll_timeout(Duration::ZERO).is_none());
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_timed_poll_gets_what_expires_in_time() {
    let queue = DelayQueue::new();
    let begin = Instant::now();
    queue.insert(1, ms(2)).unwrap();
    assert_eq!(value(queue.poll_timeout(LONG)), Some(1));
    assert!(begin.elapsed() >= ms(2));
    queue.insert(2, Duration::ZERO).unwrap();
    assert_eq!(value(queue.poll_timeout(Duration::ZERO)), Some(2));
}

#[test]
fn peek_shows_the_head_also_before_it_expires() {
    let (queue, clock) = filled([30, 10, 20]);
    assert_eq!(queue.peek_with(|_, _, number| *number), Some(10));
    assert_eq!(queue.len(), 3);
    clock.advance(us(25));
    assert_eq!(queue.peek_with(|_, _, number| *number), Some(10));
    assert_eq!(value(queue.try_poll()), Some(10));
    assert_eq!(value(queue.try_poll()), Some(20));
    assert_eq!(queue.peek_with(|_, _, number| *number), Some(30));
    assert!(queue.try_poll().is_none());
    queue.clear();
    assert!(queue.peek().is_none());
}

#[test]
fn elements_come_in_the_order_of_their_delays() {
    let (queue, clock) = filled([7, 3, 9, 1, 5, 3, 1_000_000, 70_000, 300]);
    clock.advance(us(1_000_000));
    let mut taken = Vec::new();
    while let Some(number) = value(queue.try_poll()) {
        taken.push(number);
    }
    assert_eq!(taken, [1, 3, 3, 5, 7, 9, 300, 70_000, 1_000_000]);
}

#[test]
fn an_earlier_element_is_what_take_gives() {
    let queue = DelayQueue::new();
    queue.insert("far", LONG).unwrap();
    thread::scope(|scope| {
        let taker = scope.spawn(|| value(queue.poll()));
        until("it waits", || queue.waiting() == 1);
        queue.insert("near", ms(1)).unwrap();
        assert_eq!(taker.join().unwrap(), Some("near"));
    });
}

#[test]
fn size_counts_both_kinds() {
    let (queue, clock) = filled(1..=20);
    clock.advance(us(10));
    assert!(!queue.is_empty());
    for left in (10..20).rev() {
        assert!(queue.try_poll().is_some());
        assert_eq!(queue.len(), left);
    }
    assert!(queue.try_poll().is_none());
    assert_eq!(queue.len(), 10);
}

#[test]
fn capacity() {
    let unbounded = DelayQueue::<()>::new();
    assert!(unbounded.max_len() > 4_000_000_000);
    let bounded = DelayQueue::builder().max_len(1).build();
    bounded.insert(1, LONG).unwrap();
    assert_eq!(bounded.insert(2, LONG).unwrap_err().into_value(), 2);
}

#[test]
fn remove_takes_out_either_kind() {
    let (queue, clock) = manual();
    let keys: Vec<_> = (1..=4).map(|n| queue.insert(n, us(10 * n)).unwrap()).collect();
    clock.advance(us(20));
    assert!(keys.iter().all(|key| queue.deadline(*key).is_some()));
    assert_eq!(queue.remove(keys[1]), Some(2)); // expired
    assert_eq!(queue.remove(keys[3]), Some(4)); // not expired
    assert_eq!(queue.remove(keys[3]), None);
    assert!(queue.deadline(keys[3]).is_none());
    assert_eq!(value(queue.try_poll()), Some(1));
    assert_eq!(queue.len(), 1);
}

#[test]
fn clear_empties_and_leaves_it_usable() {
    let (queue, clock) = filled(1..=20);
    clock.advance(us(5));
    queue.clear();
    assert!(queue.is_empty());
    assert!(queue.try_poll().is_none());
    queue.insert(1, Duration::ZERO).unwrap();
    assert_eq!(value(queue.try_poll()), Some(1));
}

#[test]
fn drain_to_moves_the_expired_only() {
    let (queue, clock) = filled(1..=20);
    let mut moved = Vec::new();
    assert_eq!(queue.drain_expired(usize::MAX, &mut moved), 0);
    clock.advance(us(12));
    assert_eq!(queue.drain_expired(usize::MAX, &mut moved), 12);
    assert_eq!(queue.len(), 8);
    let numbers: Vec<_> = moved.into_iter().map(Expired::into_inner).collect();
    assert_eq!(numbers, (1..=12).collect::<Vec<_>>());
}

#[test]
fn drain_to_moves_no_more_than_asked() {
    let (queue, clock) = filled(1..=20);
    clock.advance(us(20));
    let mut moved = Vec::new();
    for (asked, left) in [(0, 20), (1, 19), (7, 12), (100, 0), (100, 0)] {
        let before = moved.len();
        let count = queue.drain_expired(asked, &mut moved);
        assert_eq!(count, moved.len() - before);
        assert_eq!(queue.len(), left);
    }
}

#[test]
fn iteration_shows_both_kinds() {
    let (queue, clock) = filled(1..=20);
    clock.advance(us(10));
    let mut seen = BTreeSet::new();
    queue.for_each(|_, _, number| assert!(seen.insert(*number)));
    assert_eq!(seen, (1..=20).collect());
    let snapshot = queue.snapshot();
    queue.clear();
    assert_eq!(snapshot.len(), 20);
    assert!(snapshot.iter().all(|(key, _)| queue.remove(*key).is_none()));
}

#[test]
fn producer_and_consumer_hand_over() {
    let queue = DelayQueue::new();
    thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            (0..500).map(|_| queue.poll().unwrap().into_inner()).collect::<BTreeSet<u64>>()
        });
        for number in 0..500 {
            queue.insert(number, us(number % 7)).unwrap();
        }
        assert_eq!(consumer.join().unwrap(), (0..500).collect());
    });
    assert!(queue.is_empty());
}

#[test]
fn one_thread_waits_with_a_time() {
    let (queue, clock) = manual();
    queue.insert(1, us(10)).unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| queue.poll());
        }
        until("all wait", || queue.waiting() == 8);
        clock.advance(us(10));
        until("it is taken", || queue.is_empty());
        until("the others wait", || queue.waiting() == 7);
        assert_eq!(queue.signals(), 1);
        queue.close();
    });
}
