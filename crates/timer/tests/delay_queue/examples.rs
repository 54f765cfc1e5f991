//! One thread, one queue, one behaviour a test.

use super::support::{manual, ms, us};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tourbillon::DelayQueue;

fn values(queue: &DelayQueue<u32>) -> Vec<u32> {
    std::iter::from_fn(|| queue.try_poll()).map(|expired| expired.into_inner()).collect()
}

#[test]
fn an_item_comes_at_its_deadline_and_not_before() {
    let (queue, clock) = manual();
    let key = queue.insert(7, us(100)).unwrap();
    let due = queue.now() + us(100);
    clock.advance(us(99));
    assert!(queue.try_poll().is_none());
    assert!(queue.poll_timeout(Duration::ZERO).is_none());
    clock.advance(us(1));
    let mut expired = queue.try_poll().unwrap();
    assert_eq!((expired.key(), expired.deadline(), *expired.get_ref()), (key, due, 7));
    *expired.get_mut() += 1;
    assert_eq!(expired.into_inner(), 8);
    assert!(queue.is_empty());
}

#[test]
fn what_lies_in_the_past_comes_in_the_order_of_deadlines() {
    let (queue, clock) = manual();
    clock.advance(ms(10));
    let now = queue.now();
    queue.insert_at(3, now - us(30)).unwrap();
    assert_eq!(values(&queue), [3]);
    // All of these are before what was taken last.
    queue.insert_at(5, now - us(50)).unwrap();
    queue.insert_at(8, now - us(80)).unwrap();
    queue.insert_at(6, now - us(50)).unwrap();
    let removed = queue.insert_at(7, now - us(70)).unwrap();
    let reset = queue.insert_at(9, now - us(90)).unwrap();
    queue.insert_at(1, now - us(10)).unwrap();
    assert_eq!(queue.deadline(removed), Some(now - us(70)));
    assert_eq!(queue.peek(), Some((reset, now - us(90))));
    assert_eq!(queue.remove(removed), Some(7));
    assert!(queue.reset_at(reset, now - us(50)));
    assert_eq!(values(&queue), [8, 5, 6, 9, 1]);
    queue.check_invariants();
}

#[test]
fn items_of_one_microsecond_come_in_the_order_of_insertion() {
    let (queue, clock) = manual();
    let base = queue.now();
    for (number, ns) in [(1, 5_900), (2, 5_001), (3, 6_000), (4, 5_000)] {
        queue.insert_at(number, base + Duration::from_nanos(ns)).unwrap();
    }
    clock.advance(us(6));
    assert_eq!(values(&queue), [4, 1, 2, 3]);
}

#[test]
fn a_bound_refuses_and_gives_the_value_back() {
    let queue = DelayQueue::builder().max_len(2).build();
    assert_eq!(queue.max_len(), 2);
    let first = queue.insert("a", ms(0)).unwrap();
    queue.insert("b", Duration::MAX).unwrap();
    let refused = queue.insert("c", ms(0)).unwrap_err();
    assert!(refused.is_full() && !refused.is_closed());
    assert_eq!(
        refused.to_string(),
        "no room for another item: the queue holds 2, which is the most allowed (max_len)"
    );
    assert_eq!(refused.into_value(), "c");
    // Moving an item needs no room.
    assert!(queue.reset(first, ms(1)));
    assert_eq!(queue.remove(first), Some("a"));
    assert!(queue.insert("c", ms(0)).is_ok());
    let none = DelayQueue::builder().max_len(0).build();
    assert!(none.insert((), ms(0)).is_err_and(|refused| refused.is_full()));
}

#[test]
fn closed_for_new_items_the_rest_still_comes() {
    let (queue, clock) = manual();
    queue.insert(1, us(5)).unwrap();
    queue.close();
    assert!(queue.is_closed());
    let refused = queue.insert(2, us(0)).unwrap_err();
    assert!(refused.is_closed() && !refused.is_full());
    assert_eq!(refused.to_string(), "the queue is closed and takes no more items");
    assert!(queue.try_poll().is_none());
    clock.advance(us(5));
    assert_eq!(queue.poll().map(|it| it.into_inner()), Some(1));
    assert!(queue.poll().is_none());
    assert!(queue.poll_timeout(Duration::MAX).is_none());
}

#[test]
fn closed_at_once_nothing_comes_and_the_rest_can_be_drained() {
    let (queue, clock) = manual();
    queue.insert(2, us(9)).unwrap();
    let first = queue.insert(1, us(5)).unwrap();
    let third = queue.insert(3, us(9)).unwrap();
    clock.advance(us(7));
    queue.close_now();
    queue.close(); // changes nothing any more
    assert!(queue.poll().is_none());
    assert_eq!(queue.drain_expired(9, &mut Vec::new()), 0);
    assert_eq!(queue.remove(third), Some(3));
    let deadline = queue.deadline(first).unwrap();
    assert_eq!(queue.drain(), [(deadline, 1), (deadline + us(4), 2)]);
    assert!(queue.is_empty());
}

#[test]
fn draining_what_is_due_takes_no_more_than_asked() {
    let (queue, clock) = manual();
    for number in 0..1_000_u32 {
        queue.insert(number, us(u64::from(number))).unwrap();
    }
    clock.advance(us(699));
    let mut out = Vec::new();
    assert_eq!(queue.drain_expired(0, &mut out), 0);
    assert_eq!(queue.drain_expired(150, &mut out), 150);
    assert_eq!(queue.drain_expired(usize::MAX, &mut out), 550);
    let numbers: Vec<_> = out.into_iter().map(|it| it.into_inner()).collect();
    assert_eq!(numbers, (0..700).collect::<Vec<_>>());
    assert_eq!(queue.len(), 300);
}

#[test]
fn a_look_may_panic_and_the_queue_is_sound() {
    let queue = DelayQueue::new();
    queue.insert(1, Duration::ZERO).unwrap();
    let looked = catch_unwind(AssertUnwindSafe(|| queue.peek_with(|_, _, _| panic!("a look"))));
    assert!(looked.is_err());
    let looked = catch_unwind(AssertUnwindSafe(|| queue.for_each(|_, _, _| panic!("a look"))));
    assert!(looked.is_err());
    assert_eq!(queue.try_poll().map(|it| it.into_inner()), Some(1));
}

#[test]
fn printing_a_queue_from_under_its_lock_does_not_wait_for_it() {
    let queue = DelayQueue::new();
    queue.insert(1, Duration::ZERO).unwrap();
    let inside = queue.peek_with(|_, _, _| format!("{queue:?}")).unwrap();
    assert!(inside.contains("len: None"), "{inside}");
    assert!(format!("{queue:?}").contains("len: Some(1)"));
}

#[test]
fn values_are_dropped_once_and_without_the_lock() {
    /// Uses the queue when it is dropped, which would hang under the lock.
    struct Uses {
        queue: Option<DelayQueue<Uses>>,
        _alive: Arc<()>,
    }
    impl Drop for Uses {
        fn drop(&mut self) {
            if let Some(queue) = &self.queue {
                let _ = queue.len();
            }
        }
    }
    let queue = DelayQueue::new();
    let alive = Arc::new(());
    let uses = |queue| Uses { queue, _alive: alive.clone() };
    let item = |delay| queue.insert(uses(Some(queue.clone())), delay).unwrap();
    let first = item(ms(0));
    item(Duration::MAX);
    item(ms(50));
    drop(queue.remove(first));
    queue.clear();
    assert_eq!(Arc::strong_count(&alive), 1);
    item(ms(0));
    drop(queue.try_poll());
    item(ms(0));
    drop(queue.drain());
    queue.insert(uses(None), Duration::MAX).unwrap();
    drop(queue);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn instants_before_the_queue_and_of_real_time_are_legal() {
    let queue = DelayQueue::new();
    let now = Instant::now();
    queue.insert_at(2, now).unwrap();
    queue.insert_at(1, now - Duration::from_millis(5)).unwrap();
    queue.insert_at(3, now + Duration::from_micros(50)).unwrap();
    let third = now + Duration::from_micros(50);
    for expected in 1..=3 {
        assert_eq!(queue.poll().map(|it| it.into_inner()), Some(expected));
    }
    assert!(Instant::now() >= third);
    assert!(queue.now() <= Instant::now());
}
