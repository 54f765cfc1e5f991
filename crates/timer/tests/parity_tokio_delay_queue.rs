//! What users of tokio-util's `DelayQueue` rely on, as its documentation and tests state it, and how the
//! queue here does the same.
//!
//! | there | here | test |
//! |---|---|---|
//! | `insert`, `insert_at` give a key | the same | `an_item_expires_after_its_timeout`, `items_expire_at_instants` |
//! | `poll_expired`, and the `Stream` | `next`, `stream` | `an_item_expires_after_its_timeout`, `the_stream_gives_items_in_order` |
//! | zero and past delays expire at once | the same | `what_is_due_at_once_comes_at_once` |
//! | `remove`, `try_remove` | `remove`, which never panics | `a_removed_item_does_not_expire` |
//! | `reset`, `reset_at` to a later and an earlier time | the same, false for a stale key | `reset_moves_later_and_earlier` |
//! | `deadline(key)` | the same, `None` for a stale key | `the_deadline_of_a_key` |
//! | `peek` gives the next key | `peek` gives key and deadline | `peek_gives_the_next_key` |
//! | inserting an earlier item wakes the task | the same | `an_earlier_item_wakes_the_task` |
//! | inserting a later one does not | the same | `a_later_item_does_not_wake_the_task` |
//! | removing the item that is waited for is noticed | the same | `removing_the_first_leaves_the_second` |
//! | `len`, `is_empty`, `clear`, `compact` | the same | `counting_and_clearing` |
//! | `Expired`: `get_ref`, `get_mut`, `into_inner`, `key`, `deadline` | the same | `an_expired_item_tells_what_it_was` |
//! | delays of very different lengths | the same, without a longest | `delays_of_all_lengths` |
//! | keys are not reused while they are live | nor afterwards | `a_key_is_not_used_again` |
//!
//! # Differences
//!
//! - The queue is shared: everything takes `&self`, clones are handles, any number of threads and tasks
//!   consume. There `&mut self` allows one.
//! - It needs no runtime. There only tokio's timer drives it.
//! - A tick is a microsecond, not a millisecond.
//! - The stream does not end when the queue is empty, but when it was closed: others may insert.
//! - No key panics. There `remove`, `reset` and `deadline` panic for a key that is stale.
//! - No delay panics. There the longest is 2^36 milliseconds, and a longer one panics.
//! - There is no capacity to reserve: memory comes and goes in pages.
#![cfg(not(loom))]

#[path = "delay_queue/support.rs"]
mod support;

use std::collections::HashSet;
use std::time::{Duration, Instant};
use support::{Task, block_on, manual, ms, next_of, us, value};
use tourbillon::DelayQueue;

#[test]
fn an_item_expires_after_its_timeout() {
    let queue = DelayQueue::new();
    let begin = Instant::now();
    let key = queue.insert("foo", ms(2)).unwrap();
    let expired = block_on(queue.next()).unwrap();
    assert!(begin.elapsed() >= ms(2));
    assert_eq!((expired.key(), *expired.get_ref()), (key, "foo"));
}

#[test]
fn items_expire_at_instants() {
    let (queue, clock) = manual();
    queue.insert_at("a", queue.now() + us(5)).unwrap();
    let mut task = Task::new(queue.next());
    assert!(task.poll().is_pending());
    clock.advance(us(5));
    assert_eq!(value(task.poll()), Some("a"));
}

#[test]
fn what_is_due_at_once_comes_at_once() {
    let (queue, clock) = manual();
    clock.advance(us(50));
    queue.insert_at(1, queue.now() - us(20)).unwrap();
    queue.insert_at(2, queue.now()).unwrap();
    queue.insert(3, Duration::ZERO).unwrap();
    for expected in 1..=3 {
        assert_eq!(value(Task::new(queue.next()).poll()), Some(expected));
    }
}

#[test]
fn the_stream_gives_items_in_order() {
    let queue = DelayQueue::new();
    for number in [3, 1, 2] {
        queue.insert(number, ms(number)).unwrap();
    }
    let mut stream = queue.stream();
    for expected in 1..=3 {
        assert_eq!(block_on(next_of(&mut stream)).map(|it| it.into_inner()), Some(expected));
    }
    let mut next = Task::new(next_of(&mut stream));
    assert!(next.poll().is_pending()); // empty is not the end
    queue.close();
    assert!(matches!(next.poll(), std::task::Poll::Ready(None)));
}

#[test]
fn a_removed_item_does_not_expire() {
    let (queue, clock) = manual();
    let key = queue.insert("gone", us(5)).unwrap();
    let mut task = Task::new(queue.next());
    assert!(task.poll().is_pending());
    assert_eq!(queue.remove(key), Some("gone"));
    assert_eq!(queue.remove(key), None);
    clock.advance(us(10));
    assert!(task.poll().is_pending());
}

#[test]
fn reset_moves_later_and_earlier() {
    let (queue, clock) = manual();
    let key = queue.insert("x", us(10)).unwrap();
    let mut task = Task::new(queue.next());
    assert!(task.poll().is_pending());
    assert!(queue.reset(key, us(100)));
    clock.advance(us(50));
    assert!(task.poll().is_pending());
    assert!(queue.reset_at(key, queue.now() + us(5)));
    let before = task.wakes();
    clock.advance(us(5));
    assert_eq!(task.wakes(), before + 1);
    assert_eq!(value(task.poll()), Some("x"));
    assert!(!queue.reset(key, us(5)));
}

#[test]
fn the_deadline_of_a_key() {
    let (queue, _clock) = manual();
    let key = queue.insert((), us(7)).unwrap();
    assert_eq!(queue.deadline(key), Some(queue.now() + us(7)));
    queue.remove(key);
    assert_eq!(queue.deadline(key), None);
}

#[test]
fn peek_gives_the_next_key() {
    let (queue, clock) = manual();
    assert_eq!(queue.peek(), None);
    let second = queue.insert(2, us(20)).unwrap();
    let first = queue.insert(1, us(10)).unwrap();
    assert_eq!(queue.peek().map(|it| it.0), Some(first));
    clock.advance(us(15));
    assert_eq!(queue.peek().map(|it| it.0), Some(first));
    queue.try_poll().unwrap();
    assert_eq!(queue.peek().map(|it| it.0), Some(second));
}

#[test]
fn an_earlier_item_wakes_the_task() {
    let (queue, clock) = manual();
    queue.insert("late", us(1_000)).unwrap();
    let mut task = Task::new(queue.next());
    assert!(task.poll().is_pending());
    queue.insert("early", us(10)).unwrap();
    clock.advance(us(10));
    assert_eq!(task.wakes(), 1);
    assert_eq!(value(task.poll()), Some("early"));
}

#[test]
fn a_later_item_does_not_wake_the_task() {
    let (queue, clock) = manual();
    queue.insert("early", us(10)).unwrap();
    let mut task = Task::new(queue.next());
    assert!(task.poll().is_pending());
    queue.insert("late", us(1_000)).unwrap();
    clock.advance(us(9));
    assert_eq!(task.wakes(), 0);
}

#[test]
fn removing_the_first_leaves_the_second() {
    let (queue, clock) = manual();
    let first = queue.insert(1, us(10)).unwrap();
    queue.insert(2, us(20)).unwrap();
    let mut task = Task::new(queue.next());
    assert!(task.poll().is_pending());
    queue.remove(first);
    clock.advance(us(10));
    assert!(task.poll().is_pending());
    clock.advance(us(10));
    assert_eq!(value(task.poll()), Some(2));
}

#[test]
fn counting_and_clearing() {
    let queue = DelayQueue::new();
    assert!(queue.is_empty());
    let keys: Vec<_> = (0..100_u64).map(|n| queue.insert(n, ms(10 + n)).unwrap()).collect();
    assert_eq!(queue.len(), 100);
    queue.remove(keys[7]);
    assert_eq!(queue.len(), 99);
    queue.clear();
    queue.compact();
    assert!(queue.is_empty());
    assert!(keys.iter().all(|key| queue.remove(*key).is_none()));
}

#[test]
fn an_expired_item_tells_what_it_was() {
    let (queue, clock) = manual();
    let key = queue.insert(String::from("a"), us(3)).unwrap();
    let deadline = queue.now() + us(3);
    clock.advance(us(30));
    let mut expired = queue.try_poll().unwrap();
    expired.get_mut().push('b');
    assert_eq!(expired.get_ref(), "ab");
    assert_eq!((expired.key(), expired.deadline()), (key, deadline));
    assert_eq!(expired.into_inner(), "ab");
}

#[test]
fn delays_of_all_lengths() {
    let (queue, clock) = manual();
    let delays: Vec<_> = (0..50).map(|bits| us(1 << bits)).collect();
    for delay in delays.iter().rev() {
        queue.insert(*delay, *delay).unwrap();
    }
    let begin = queue.now();
    for delay in delays {
        let now = queue.now();
        clock.advance(begin + delay - now - us(1));
        assert!(queue.try_poll().is_none());
        clock.advance(us(1));
        assert_eq!(queue.try_poll().map(|it| it.into_inner()), Some(delay));
    }
}

#[test]
fn a_key_is_not_used_again() {
    let queue = DelayQueue::new();
    let mut keys = HashSet::new();
    for round in 0..3_000 {
        assert!(keys.insert(queue.insert(round, Duration::ZERO).unwrap()));
        if round % 3 > 0 {
            assert!(queue.try_poll().is_some());
        }
        if round % 1_000 == 999 {
            queue.clear();
        }
    }
}
