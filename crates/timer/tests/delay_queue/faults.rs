//! Faults that were reported against other delay queues. Each must be absent here.

use super::support::{Task, block_on, manual, ms, us, value};
use std::thread;
use std::time::{Duration, Instant};
use tourbillon::DelayQueue;

/// tokio#5536: a deadline more than 2^36 milliseconds (2.1 years) away made the queue panic.
/// Here every instant and every duration is legal, and nothing comes early.
#[test]
fn a_deadline_may_be_any_time_away() {
    let (queue, clock) = manual();
    let year = Duration::from_secs(365 * 86_400);
    let delays = [
        Duration::MAX,
        ms(1 << 36),
        ms((1 << 36) + 1),
        ms((1 << 36) - 1),
        us(u64::MAX),
        year * 3,
        year * 10_000,
        ms(1),
    ];
    for (number, delay) in delays.into_iter().enumerate() {
        queue.insert(number, delay).unwrap();
    }
    clock.advance(ms(1));
    assert_eq!(queue.try_poll().map(|it| it.into_inner()), Some(7));
    clock.advance(ms(1 << 36) - ms(1) - us(1));
    assert_eq!(queue.try_poll().map(|it| it.into_inner()), Some(3));
    assert!(queue.try_poll().is_none());
    clock.advance(us(1));
    assert_eq!(queue.try_poll().map(|it| it.into_inner()), Some(1));
    assert!(queue.try_poll().is_none());
    clock.advance(year * 200_000);
    for expected in [2, 5, 6] {
        assert_eq!(queue.try_poll().map(|it| it.into_inner()), Some(expected));
    }
    assert!(queue.try_poll().is_none());
    assert_eq!(queue.len(), 2);
    queue.check_invariants();
}

/// The same in real time, where a sleep has to be asked of the operating system: neither a thread nor a
/// task that waits for the end of time may fail, and an earlier item reaches them.
#[test]
fn whoever_sleeps_for_ages_is_woken_by_an_earlier_item() {
    for delay in [Duration::MAX, us(u64::MAX / 4), ms(1 << 36), Duration::from_secs(1 << 40)] {
        let queue = DelayQueue::new();
        queue.insert(1, delay).unwrap();
        thread::scope(|scope| {
            let by_thread = scope.spawn(|| queue.poll().map(|it| it.into_inner()));
            let by_task = scope.spawn(|| block_on(queue.next()).map(|it| it.into_inner()));
            super::support::until("both wait", || queue.waiting() == 2);
            queue.insert(2, Duration::ZERO).unwrap();
            queue.insert(2, ms(1)).unwrap();
            assert_eq!(by_thread.join().unwrap(), Some(2));
            assert_eq!(by_task.join().unwrap(), Some(2));
        });
        assert!(queue.poll_timeout(us(100)).is_none());
    }
}

/// tokio#3558: keys named a place in storage, so the key of an item that had gone removed the stranger
/// that had got its place. Here a key carries a generation.
#[test]
fn a_stale_key_touches_no_stranger() {
    let (queue, clock) = manual();
    let taken = queue.insert(1, us(0)).unwrap();
    queue.try_poll().unwrap();
    let removed = queue.insert(2, us(50)).unwrap();
    queue.remove(removed).unwrap();
    let late = {
        clock.advance(us(10));
        queue.insert(3, us(0)).unwrap();
        queue.try_poll().unwrap();
        let late = queue.insert_at(4, queue.now() - us(5)).unwrap();
        queue.try_poll().unwrap();
        late
    };
    let stranger = queue.insert(5, us(20)).unwrap();
    let deadline = queue.deadline(stranger);
    for stale in [taken, removed, late] {
        assert_ne!(stale, stranger);
        assert_eq!(queue.remove(stale), None);
        assert!(!queue.reset(stale, us(0)));
        assert_eq!(queue.deadline(stale), None);
    }
    assert_eq!(queue.deadline(stranger), deadline);
    assert_eq!(queue.len(), 1);
    queue.check_invariants();
}

/// tokio#3270: removing an item that was due and not yet polled panicked, because it was no longer where
/// it was looked for. Here what is due stays in its place until it is taken.
#[test]
fn a_due_item_can_be_removed() {
    let (queue, clock) = manual();
    let keys: Vec<_> = (0..10).map(|number| queue.insert(number, us(5)).unwrap()).collect();
    clock.advance(us(7));
    assert_eq!(queue.try_poll().map(|it| it.into_inner()), Some(0));
    for (number, key) in keys.iter().enumerate().skip(1).step_by(2) {
        assert_eq!(queue.remove(*key), Some(number as i32));
        assert_eq!(queue.remove(*key), None);
    }
    for expected in [2, 4, 6, 8] {
        assert_eq!(queue.try_poll().map(|it| it.into_inner()), Some(expected));
    }
    assert!(queue.is_empty());
    queue.check_invariants();
}

/// tokio#2473: resetting an item that was due and not yet polled panicked or left it due. Here it
/// comes at its new time, and not before.
#[test]
fn a_due_item_can_be_reset() {
    let (queue, clock) = manual();
    let key = queue.insert(1, us(5)).unwrap();
    let mut task = Task::new(queue.next());
    assert!(task.poll().is_pending());
    clock.advance(us(7));
    assert_eq!(task.wakes(), 1); // it is due, the task knows, and has not looked
    assert!(queue.reset(key, us(10)));
    assert!(task.poll().is_pending());
    clock.advance(us(9));
    assert!(queue.try_poll().is_none());
    clock.advance(us(1));
    assert_eq!(task.wakes(), 2);
    assert_eq!(value(task.poll()), Some(1));
}

/// tokio#6751: a queue that a task waits for was changed such that the next item was an earlier
/// one, or the first one again after it had been empty, and the task was not woken. Here whatever makes the
/// first deadline earlier wakes the leader.
#[test]
fn every_change_that_makes_the_first_deadline_earlier_is_noticed() {
    let changes: [fn(&DelayQueue<u32>); 6] = [
        |queue| assert!(queue.insert(1, us(10)).is_ok()),
        |queue| assert!(queue.insert_at(1, queue.now() + us(10)).is_ok()),
        |queue| {
            let key = queue.insert(1, Duration::MAX).unwrap();
            assert!(queue.reset(key, us(10)));
        },
        |queue| {
            let key = queue.insert(1, us(30)).unwrap();
            assert!(queue.reset(key, us(40)));
            assert!(queue.reset_at(key, queue.now() + us(10)));
        },
        |queue| {
            let gone = queue.insert(9, us(2)).unwrap();
            queue.insert(1, us(10)).unwrap();
            assert_eq!(queue.remove(gone), Some(9));
        },
        |queue| {
            queue.insert(9, us(2)).unwrap();
            queue.clear();
            queue.insert(1, us(10)).unwrap();
        },
    ];
    for (number, change) in changes.iter().enumerate() {
        for other in [None, Some(us(60)), Some(Duration::MAX)] {
            let (queue, clock) = manual();
            let mut task = Task::new(queue.next());
            if let Some(other) = other {
                queue.insert(8, other).unwrap();
            }
            assert!(task.poll().is_pending());
            change(&queue);
            clock.advance(us(10));
            assert_eq!(task.wakes(), 1, "change {number}, besides {other:?}");
            assert_eq!(value(task.poll()), Some(1));
        }
    }
}

/// The same with a thread that waits, in real time, many times over: one lost wake-up hangs the test.
#[test]
fn a_thread_that_waits_misses_no_item() {
    let queue = DelayQueue::new();
    thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            let mut count = 0;
            while queue.poll().is_some() {
                count += 1;
            }
            count
        });
        for round in 0..2_000 {
            if round % 3 == 0 {
                super::support::until("it waits", || queue.waiting() == 1);
            }
            let far = queue.insert(round, Duration::from_secs(3_600)).unwrap();
            if round % 2 == 0 {
                assert!(queue.reset(far, Duration::ZERO));
            } else {
                queue.insert(round, us(5)).unwrap();
                assert!(queue.remove(far).is_some());
            }
        }
        queue.close();
        assert_eq!(consumer.join().unwrap(), 2_000);
    });
}

/// tokio#8252 and netty#2541: timers that were cancelled kept their memory until they would have been
/// due. Here a million items that are inserted and removed leave next to nothing behind.
#[test]
fn what_was_removed_is_no_longer_held() {
    let queue = DelayQueue::new();
    let keys: Vec<_> = (0..100_000_u64)
        .map(|number| queue.insert([number; 4], Duration::from_secs(60 + number)).unwrap())
        .collect();
    for key in keys {
        assert!(queue.remove(key).is_some());
    }
    assert!(queue.is_empty());
    queue.check_invariants();
    // And one that stays does not make the first deadline of the others linger: a task that waits
    // for it would wake for nothing.
    let begin = Instant::now();
    assert!(queue.poll_timeout(us(200)).is_none());
    assert!(begin.elapsed() >= us(200));
}

/// An item without a delay was rounded up to the next microsecond like any other, so that whoever inserted
/// it and polled at once came back with nothing, sometimes. Repetition makes the microsecond's middle
/// certain to be hit.
#[test]
fn what_has_no_delay_is_due_at_once() {
    let queue = DelayQueue::new();
    for number in 0..20_000 {
        let key = queue.insert(number, Duration::ZERO).unwrap();
        assert_eq!(queue.try_poll().map(|it| it.key()), Some(key));
        let key = queue.insert(number, Duration::from_secs(1)).unwrap();
        assert!(queue.reset(key, Duration::ZERO));
        assert_eq!(queue.poll_timeout(Duration::ZERO).map(|it| it.key()), Some(key));
    }
}
