//! Real threads and tasks on one queue. What is asserted does not depend on how they interleave: every
//! item once, none early, in order, no wake-up lost, no herd.

use super::support::{Numbers, block_on, manual, ms, next_of, until, us};
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tourbillon::DelayQueue;

/// How a consumer waits.
#[derive(Clone, Copy, Debug)]
enum By {
    Poll,
    PollTimeout,
    TryPoll,
    DrainExpired,
    Next,
    Stream,
}

/// Takes everything until the end, and shows each item with the time at which it came.
fn consume<T: Send + 'static>(queue: &DelayQueue<T>, by: By, mut show: impl FnMut(T, Instant)) {
    let mut stream = queue.stream();
    let mut batch = Vec::new();
    loop {
        let found = match by {
            By::Poll => queue.poll(),
            By::PollTimeout => queue.poll_timeout(us(300)),
            By::TryPoll => queue.try_poll(),
            By::DrainExpired => {
                queue.drain_expired(7, &mut batch);
                for expired in batch.drain(..) {
                    let deadline = expired.deadline();
                    show(expired.into_inner(), deadline);
                }
                None
            }
            By::Next => block_on(queue.next()),
            By::Stream => block_on(next_of(&mut stream)),
        };
        match found {
            Some(expired) => {
                assert!(expired.deadline() <= Instant::now(), "early");
                let deadline = expired.deadline();
                show(expired.into_inner(), deadline);
            }
            None if queue.is_closed() && queue.is_empty() => return,
            None => {
                let waits = !matches!(by, By::Poll | By::Next | By::Stream);
                assert!(waits, "{by:?} came back with nothing before the end");
                thread::yield_now();
            }
        }
    }
}

/// Producers insert, reset and remove while consumers of all kinds take. Every item comes to one
/// consumer or to whoever removes it, and that once; none comes before its time.
#[test]
fn every_item_once_and_never_early() {
    const PRODUCERS: usize = 3;
    const EACH: usize = 3_000;
    let queue = DelayQueue::<(usize, Instant)>::new();
    let seen = Mutex::new(HashSet::new());
    let removed = AtomicUsize::new(0);
    let kinds = [By::Poll, By::Next, By::PollTimeout, By::Stream, By::Poll, By::DrainExpired];
    thread::scope(|scope| {
        for by in kinds {
            let (queue, seen) = (&queue, &seen);
            scope.spawn(move || {
                consume(queue, by, |(number, due), deadline| {
                    assert!(due <= Instant::now(), "early");
                    // Up, or down for no delay at all.
                    assert!(due <= deadline + us(1), "the deadline is rounded");
                    assert!(seen.lock().unwrap().insert(number), "{number} came twice");
                });
            });
        }
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|id| {
                let (queue, seen, removed) = (&queue, &seen, &removed);
                scope.spawn(move || {
                    let mut random = Numbers(id as u64);
                    let mut keys = Vec::new();
                    for number in id * EACH..(id + 1) * EACH {
                        let delay = us(random.below(3_000));
                        let key = queue.insert((number, Instant::now() + delay), delay).unwrap();
                        keys.push(key);
                        let other = keys[random.below(keys.len() as u64) as usize];
                        match random.below(4) {
                            // To an earlier time would be early by what the value says.
                            0 => drop(queue.reset(other, us(3_000 + random.below(2_000)))),
                            1 => {
                                if let Some((number, _)) = queue.remove(other) {
                                    assert!(seen.lock().unwrap().insert(number));
                                    removed.fetch_add(1, Ordering::Relaxed);
                                }
                            }
                            _ => {}
                        }
                    }
                })
            })
            .collect();
        for producer in producers {
            producer.join().unwrap();
        }
        queue.close();
    });
    assert_eq!(seen.into_inner().unwrap().len(), PRODUCERS * EACH);
    assert!(removed.into_inner() > 0);
    assert_eq!((queue.len(), queue.waiting()), (0, 0));
    queue.check_invariants();
}

/// All items are there before the first is taken: each consumer sees deadlines in order, and those of one
/// deadline in the order of insertion.
#[test]
fn each_consumer_sees_deadlines_in_order() {
    const ITEMS: usize = 60_000;
    for kinds in [
        [By::Poll, By::Poll, By::Poll, By::Poll],
        [By::Poll, By::Next, By::Stream, By::PollTimeout],
        [By::TryPoll, By::DrainExpired, By::Next, By::Poll],
    ] {
        let queue = DelayQueue::new();
        let base = queue.now();
        let mut random = Numbers(7);
        for number in 0..ITEMS {
            let off = us(random.below(20_000));
            let deadline = if number % 2 == 0 { base - off } else { base + off };
            queue.insert_at((deadline, number), deadline).unwrap();
        }
        queue.close();
        let taken = AtomicUsize::new(0);
        thread::scope(|scope| {
            for by in kinds {
                let (queue, taken) = (&queue, &taken);
                scope.spawn(move || {
                    let mut last = None;
                    consume(queue, by, |item, _| {
                        assert!(last.is_none_or(|last| last < item), "{item:?} after {last:?}");
                        last = Some(item);
                        taken.fetch_add(1, Ordering::Relaxed);
                    });
                });
            }
        });
        assert_eq!(taken.into_inner(), ITEMS, "{kinds:?}");
    }
}

/// Sixteen threads wait. An item that becomes the first one wakes one of them, and one that does not
/// wakes none. The clock stands still, so nobody wakes by itself.
#[test]
fn one_is_woken_and_not_the_herd() {
    const WAITERS: usize = 16;
    const ITEMS: u64 = 100;
    let (queue, clock) = manual::<u64>();
    thread::scope(|scope| {
        for _ in 0..WAITERS {
            scope.spawn(|| while queue.poll().is_some() {});
        }
        until("all wait", || queue.waiting() == WAITERS);
        assert_eq!(queue.signals(), 0);
        queue.insert(0, us(1_000)).unwrap();
        assert_eq!(queue.signals(), 1);
        for number in 1..ITEMS {
            queue.insert(number, us(1_000 + number)).unwrap();
        }
        assert_eq!(queue.signals(), 1);
        for number in 0..ITEMS {
            clock.advance(us(if number == 0 { 1_000 } else { 1 }));
            until("it is taken", || queue.len() as u64 == ITEMS - number - 1);
            until("all wait", || queue.waiting() == WAITERS);
        }
        // For each item the leader is woken once when it is promoted and once when the item is due.
        assert!(queue.signals() <= 2 * ITEMS + 1, "{} signals", queue.signals());
        let before = queue.signals();
        queue.close();
        assert_eq!(queue.signals() - before, WAITERS as u64);
    });
}

/// Threads and tasks wait in one line: whoever has waited longest leads.
#[test]
fn threads_and_tasks_take_turns() {
    let (queue, clock) = manual::<u64>();
    let order = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for place in 0..6 {
            let (queue, order) = (&queue, &order);
            scope.spawn(move || {
                let taken = if place % 2 == 0 { queue.poll() } else { block_on(queue.next()) };
                order.lock().unwrap().push((place, taken.unwrap().into_inner()));
            });
            until("it waits", || queue.waiting() == place as usize + 1);
        }
        for item in 0..6 {
            queue.insert(item, us(1)).unwrap();
            clock.advance(us(1));
            until("it was taken", || order.lock().unwrap().len() as u64 == item + 1);
        }
    });
    let expected: Vec<_> = (0..6).map(|place| (place, place)).collect();
    assert_eq!(order.into_inner().unwrap(), expected);
}

/// A leader whose patience ends hands over to one that is patient.
#[test]
fn who_leaves_without_an_item_hands_over() {
    let (queue, clock) = manual();
    queue.insert(1, us(100)).unwrap();
    thread::scope(|scope| {
        let impatient = scope.spawn(|| queue.poll_timeout(us(10)).map(|it| it.into_inner()));
        until("it waits", || queue.waiting() == 1);
        let patient = scope.spawn(|| queue.poll_timeout(us(100)).map(|it| it.into_inner()));
        until("both wait", || queue.waiting() == 2);
        clock.advance(us(9));
        assert_eq!(queue.waiting(), 2);
        clock.advance(us(1));
        assert_eq!(impatient.join().unwrap(), None);
        clock.advance(us(90));
        assert_eq!(patient.join().unwrap(), Some(1));
    });
}

/// Followers' patience counts too, and in real time.
#[test]
fn patience_ends_in_time() {
    let queue = DelayQueue::new();
    queue.insert(1, Duration::from_secs(3_600)).unwrap();
    thread::scope(|scope| {
        let leader = scope.spawn(|| queue.poll());
        until("it waits", || queue.waiting() == 1);
        let begin = Instant::now();
        assert!(queue.poll_timeout(ms(3)).is_none());
        assert!(begin.elapsed() >= ms(3));
        assert!(queue.poll_timeout(Duration::ZERO).is_none());
        queue.close_now();
        assert!(leader.join().unwrap().is_none());
    });
    assert_eq!(queue.len(), 1);
}

/// One item goes round among threads and tasks, each waiting for it: every lost wake-up hangs the test.
#[test]
fn an_item_goes_round() {
    const ROUNDS: usize = 3_000;
    let queue = DelayQueue::new();
    let rounds = AtomicUsize::new(0);
    queue.insert((), Duration::ZERO).unwrap();
    thread::scope(|scope| {
        for by in [By::Poll, By::Next, By::Poll, By::Stream, By::PollTimeout] {
            let (queue, rounds) = (&queue, &rounds);
            scope.spawn(move || {
                let mut random = Numbers(rounds as *const _ as u64);
                consume(queue, by, |(), _| {
                    if rounds.fetch_add(1, Ordering::Relaxed) < ROUNDS {
                        queue.insert((), us(random.below(2) * random.below(80))).unwrap();
                    } else {
                        queue.close();
                    }
                });
            });
        }
    });
    assert_eq!(rounds.into_inner(), ROUNDS + 1);
}

/// Futures are dropped at random moments while they wait or have been woken; the others get every item.
#[test]
fn dropped_futures_lose_nothing() {
    const ITEMS: usize = 5_000;
    let queue = DelayQueue::new();
    let taken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for id in 0..2 {
            let (queue, taken) = (&queue, &taken);
            scope.spawn(move || {
                let mut random = Numbers(id);
                while !(queue.is_closed() && queue.is_empty()) {
                    let mut task = super::support::Task::new(queue.next());
                    for _ in 0..random.below(4) {
                        if let std::task::Poll::Ready(found) = task.poll() {
                            taken.fetch_add(usize::from(found.is_some()), Ordering::Relaxed);
                            break;
                        }
                        thread::yield_now();
                    }
                }
            });
        }
        for by in [By::Poll, By::Stream] {
            let (queue, taken) = (&queue, &taken);
            scope.spawn(move || {
                consume(queue, by, |_, _| {
                    taken.fetch_add(1, Ordering::Relaxed);
                });
            });
        }
        let mut random = Numbers(99);
        for number in 0..ITEMS {
            queue.insert(number, us(random.below(60))).unwrap();
            if number % 8 == 0 {
                until("some were taken", || queue.len() < 64);
            }
        }
        queue.close();
    });
    assert_eq!(taken.into_inner(), ITEMS);
}

/// Never more than the bound, whoever inserts.
#[test]
fn the_bound_holds_under_contention() {
    const ROOM: usize = 10;
    let queue = DelayQueue::builder().max_len(ROOM).build();
    let accepted = AtomicUsize::new(0);
    let producing = AtomicUsize::new(3);
    let mut taken = 0;
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for number in 0..5_000 {
                    match queue.insert(number, Duration::ZERO) {
                        Ok(_) => drop(accepted.fetch_add(1, Ordering::Relaxed)),
                        Err(refused) => {
                            assert!(refused.is_full());
                            assert_eq!(refused.into_value(), number);
                        }
                    }
                }
                if producing.fetch_sub(1, Ordering::AcqRel) == 1 {
                    queue.close();
                }
            });
        }
        while queue.poll().is_some() {
            assert!(queue.len() <= ROOM);
            taken += 1;
        }
    });
    assert_eq!(accepted.into_inner(), taken);
}
