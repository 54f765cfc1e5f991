//! Small scenes with exact expectations, each run on every structure.

use tourbillon_wheel::{Budget, TimerQueue};

/// Advances without a bound and gives (deadline, value) of what fired.
pub(crate) fn fire<Q: TimerQueue<Value = u64>>(queue: &mut Q, now: u64) -> Vec<(u64, u64)> {
    let mut fired = Vec::new();
    let done = queue.advance(now, usize::MAX, |_, deadline, value| fired.push((deadline, value)));
    assert!(done.finished);
    queue.check_invariants();
    fired
}

pub(crate) fn an_empty_queue_jumps<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    let mut queue = make(0);
    assert_eq!(queue.next_deadline(), None);
    assert!(queue.peek().is_none());
    for now in [0, 1, 1 << 20, 1 << 36, 1 << 60, u64::MAX] {
        let done = queue.advance(now, 0, |_, _, _| unreachable!());
        assert!(done.finished);
        assert_eq!(queue.now(), now);
    }
    queue.insert_at(u64::MAX, 1);
    assert_eq!(fire(&mut queue, u64::MAX), [(u64::MAX, 1)]);
}

pub(crate) fn equal_deadlines_fire_in_insertion_order_from_every_distance<
    Q: TimerQueue<Value = u64>,
>(
    make: fn(u64) -> Q,
) {
    // The same deadline is inserted from far away and from ever nearer, so that the timers
    // come to the deadline's slot by different ways.
    let deadline = 0x0203_0405_0607_0809;
    let mut queue = make(0);
    let mut expected = Vec::new();
    for shift in (0..58).rev() {
        let now = deadline - (1 << shift);
        if now < queue.now() {
            continue;
        }
        assert_eq!(fire(&mut queue, now), []);
        for _ in 0..2 {
            let n = expected.len() as u64;
            queue.insert_at(deadline, n);
            expected.push((deadline, n));
        }
    }
    assert_eq!(fire(&mut queue, deadline - 1), []);
    assert_eq!(fire(&mut queue, deadline), expected);
}

pub(crate) fn insertion_during_an_interrupted_advance_keeps_the_order<
    Q: TimerQueue<Value = u64>,
>(
    make: fn(u64) -> Q,
) {
    // A slot of a coarse level holds timers for three ticks. The budget stops the advance
    // after each unit of work, and each time a timer for each of these ticks is added: it must
    // fire behind those that were there, whether they have been moved already or not.
    let base = 5 << 16;
    let ticks = [base, base + 1, base + 300];
    let mut queue = make(0);
    let mut n = 0;
    let mut pending = [const { Vec::new() }; 3];
    let mut add = |queue: &mut Q| {
        for (tick, pending) in ticks.iter().zip(&mut pending) {
            if queue.now() <= *tick && n < 200 {
                queue.insert_at(*tick, n);
                pending.push(n);
                n += 1;
            }
        }
    };
    for _ in 0..5 {
        add(&mut queue);
    }
    let mut fired = Vec::new();
    loop {
        let done = queue.advance(base + 300, 1, |_, deadline, n| fired.push((deadline, n)));
        queue.check_invariants();
        if done.finished {
            break;
        }
        add(&mut queue);
    }
    let expected: Vec<(u64, u64)> = ticks
        .iter()
        .zip(&pending)
        .flat_map(|(tick, pending)| pending.iter().map(|n| (*tick, *n)))
        .collect();
    assert_eq!(fired, expected);
    assert!(queue.is_empty());
}

pub(crate) fn overdue_timers_fire_at_the_next_advance<Q: TimerQueue<Value = u64>>(
    make: fn(u64) -> Q,
) {
    let mut queue = make(0);
    assert_eq!(fire(&mut queue, 1000), []);
    let early = queue.insert_at(50, 1);
    queue.insert_at(1000, 2);
    queue.insert_at(40, 3);
    queue.insert_at(1001, 4);
    assert_eq!(queue.deadline(early), Some(50));
    assert_eq!(queue.next_deadline(), Some(1000));
    assert_eq!(fire(&mut queue, 1000), [(50, 1), (1000, 2), (40, 3)]);
    assert_eq!(queue.next_deadline(), Some(1001));
    assert_eq!(fire(&mut queue, 5000), [(1001, 4)]);
}

pub(crate) fn firing_may_insert_cancel_and_reset<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    let mut queue = make(0);
    queue.insert_at(700, 0);
    let cancelled = queue.insert_at(700, 1);
    let postponed = queue.insert_at(700, 2);
    queue.insert_at(700, 3);
    queue.insert_at(800, 4);
    let mut budget = Budget::unlimited();
    let mut fired = Vec::new();
    while let Some((key, deadline, value)) = queue.pop(900, &mut budget) {
        queue.check_invariants();
        assert_eq!(queue.cancel(key), None, "a fired timer is gone");
        fired.push((deadline, value));
        if value == 0 {
            assert_eq!(queue.now(), 700);
            assert_eq!(queue.cancel(cancelled), Some(1));
            assert!(queue.reset(postponed, 750));
            queue.insert_at(100, 10); // overdue: after those of this tick
            queue.insert_at(700, 11);
            queue.insert_at(750, 12);
            queue.insert_at(901, 13);
        }
    }
    let expected = [(700, 0), (700, 3), (100, 10), (700, 11), (750, 2), (750, 12), (800, 4)];
    assert_eq!(fired, expected);
    assert_eq!(budget.fired(), expected.len());
    assert_eq!((queue.now(), queue.len()), (900, 1));
}

pub(crate) fn a_round_that_feeds_itself_ends_with_its_budget<Q: TimerQueue<Value = u64>>(
    make: fn(u64) -> Q,
) {
    let mut queue = make(10);
    queue.insert_at(10, 0);
    let mut budget = Budget::new(100);
    while let Some((_, deadline, n)) = queue.pop(10, &mut budget) {
        queue.insert_at(deadline, n + 1);
    }
    assert!(budget.ran_out());
    assert!(budget.fired() > 0);
    assert_eq!(queue.len(), 1);
    assert_eq!(queue.now(), 10);
}

pub(crate) fn a_budget_of_nothing_does_nothing<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    let mut queue = make(0);
    queue.insert_at(1000, 1);
    let done = queue.advance(999, 0, |_, _, _| unreachable!());
    assert_eq!((done.fired, done.moved), (0, 0));
    for _ in 0..3 {
        let done = queue.advance(2000, 0, |_, _, _| unreachable!());
        assert_eq!((done.fired, done.moved, done.finished), (0, 0, false));
        assert!(queue.now() <= 1000);
        queue.check_invariants();
    }
    assert_eq!(fire(&mut queue, 2000), [(1000, 1)]);
}

pub(crate) fn reset_goes_to_the_end_of_its_tick<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    let mut queue = make(0);
    let first = queue.insert_at(300, 1);
    queue.insert_at(300, 2);
    assert!(queue.reset(first, 300));
    queue.insert_at(300, 3);
    let far = queue.insert_at(u64::MAX, 4);
    assert!(queue.reset(far, 300));
    let near = queue.insert_at(300, 5);
    assert!(queue.reset(near, u64::MAX));
    *queue.get_mut(near).unwrap() += 10;
    assert_eq!(fire(&mut queue, 300), [(300, 2), (300, 1), (300, 3), (300, 4)]);
    assert_eq!(queue.peek(), Some((near, u64::MAX, &15)));
}

pub(crate) fn relative_insertion_saturates<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    let mut queue = make(0);
    fire(&mut queue, 1000);
    let key = queue.insert(5, 1);
    let end = queue.insert(u64::MAX, 2);
    assert_eq!(queue.deadline(key), Some(1005));
    assert_eq!(queue.deadline(end), Some(u64::MAX));
}

pub(crate) fn a_panicking_callback_leaves_the_queue_sound<Q: TimerQueue<Value = u64>>(
    make: fn(u64) -> Q,
) {
    let mut queue = make(0);
    for n in 0..3 {
        queue.insert_at(500, n);
    }
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        queue.advance(500, usize::MAX, |_, _, n| std::panic::resume_unwind(Box::new(n)))
    }));
    assert_eq!(*caught.unwrap_err().downcast::<u64>().unwrap(), 0);
    queue.check_invariants();
    assert_eq!(fire(&mut queue, 500), [(500, 1), (500, 2)]);
}

pub(crate) fn sleeping_until_the_bound_reaches_every_timer<Q: TimerQueue<Value = u64>>(
    make: fn(u64) -> Q,
) {
    let mut queue = make(0);
    let mut expected = Vec::new();
    for n in 0..60 {
        // Each timer has a twin, earlier by one, that is cancelled and leaves a stale bound.
        let deadline = 3u64 << n | 1;
        let twin = queue.insert_at(deadline - 1, 0);
        queue.insert_at(deadline, n);
        queue.cancel(twin);
        expected.push((deadline, n));
    }
    let mut fired = Vec::new();
    let mut wakes = 0;
    while let Some(next) = queue.next_deadline() {
        wakes += 1;
        assert!(wakes <= expected.len() * 10, "wake-ups that lead nowhere");
        let before = queue.now();
        fired.extend(fire(&mut queue, next));
        assert!(queue.now() >= before);
    }
    assert_eq!(fired, expected);
}

pub(crate) fn drain_gives_everything_back<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    let mut queue = make(0);
    fire(&mut queue, 77);
    let keys: Vec<_> = (0..1000).map(|n| queue.insert_at(n * n, n)).collect();
    let mut drained = Vec::new();
    queue.drain(|key, deadline, n| drained.push((n, key, deadline)));
    queue.check_invariants();
    drained.sort_unstable();
    let expected: Vec<_> = keys.iter().zip(0..).map(|(key, n)| (n, *key, n * n)).collect();
    assert_eq!(drained, expected);
    assert_eq!((queue.len(), queue.now(), queue.capacity()), (0, 77, 0));
    assert!(keys.iter().all(|key| queue.cancel(*key).is_none()));
    queue.insert_at(78, 1);
    assert!(keys.iter().all(|key| queue.cancel(*key).is_none()));
    assert_eq!(fire(&mut queue, 78), [(78, 1)]);
}

pub(crate) fn snapshot_counts<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    let mut queue = make(0);
    let keys: Vec<_> = (1..=1000).map(|n| queue.insert_at(n * 100, n)).collect();
    queue.cancel(keys[999]);
    let done = queue.advance(5000, usize::MAX, |_, _, _| {});
    let snapshot = queue.snapshot();
    assert_eq!(snapshot.now, 5000);
    assert_eq!(snapshot.len, 949);
    assert!(snapshot.capacity >= 949);
    assert_eq!(snapshot.next_deadline, Some(5100));
    assert_eq!(snapshot.totals.inserted, 1000);
    assert_eq!(snapshot.totals.fired, 50);
    assert_eq!(snapshot.totals.cancelled, 1);
    assert_eq!(snapshot.totals.moved, done.moved as u64);
    if !snapshot.levels.is_empty() {
        let len: usize = snapshot.levels.iter().map(|level| level.len).sum();
        assert_eq!(len, 949);
        for level in &snapshot.levels {
            let len: usize = level.occupied.iter().map(|slot| slot.len).sum();
            assert_eq!(len, level.len);
            assert!(level.occupied.iter().all(|slot| slot.slot < level.slots && slot.len > 0));
        }
    }
}
