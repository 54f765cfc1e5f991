//! One queue and the model of it: an ordered map from (tick that counts for the order, sequence of
//! insertion) to what was inserted.
//!
//! What the queue answers is compared at each step, its innards now and then. Values live on the heap,
//! so that one that is lost or freed twice is noticed. The model takes `now` from the queue, since
//! only the queue knows where a budget stopped it, and checks that it is where it may be.

use crate::input::Input;
use std::collections::BTreeMap;
use tourbillon_wheel::{Budget, Key, TimerQueue};

/// More are not inserted: it is the shape of a queue that finds faults, not its size.
const PENDING_MAX: usize = 3_000;

/// (tick that counts, sequence).
type Order = (u64, u64);
type Value = Box<u64>;

struct Pair<Q> {
    queue: Q,
    /// Key, deadline, number.
    model: BTreeMap<Order, (Key, u64, u64)>,
    /// To choose from at random; some have fired since.
    orders: Vec<Order>,
    stale: Vec<Key>,
    sequence: u64,
}

/// Performs what the input says on the queue and on the model.
pub(crate) fn run<Q: TimerQueue<Value = Value>>(queue: Q, mut input: Input<'_>) {
    let mut pair =
        Pair { queue, model: BTreeMap::new(), orders: Vec::new(), stale: Vec::new(), sequence: 0 };
    let mut step = 0_u32;
    while !input.is_empty() {
        pair.operate(&mut input);
        pair.compare();
        step += 1;
        if step.is_multiple_of(8) {
            pair.queue.check_invariants();
        }
    }
    pair.queue.check_invariants();
    let now = pair.queue.now();
    pair.advance(now, 3);
    pair.advance(u64::MAX, usize::MAX);
    pair.compare();
    pair.queue.check_invariants();
    assert!(pair.queue.is_empty());
    pair.queue.compact();
    assert_eq!(pair.queue.capacity(), 0, "memory is held by an empty queue");
}

impl<Q: TimerQueue<Value = Value>> Pair<Q> {
    fn operate(&mut self, input: &mut Input<'_>) {
        match input.byte() % 32 {
            code @ 0..=15 => self.change(code, input),
            16..=19 => {
                let (target, budget) = (self.tick(input), input.budget());
                self.advance(target, budget);
            }
            20 | 21 => {
                let target = self.queue.next_deadline().unwrap_or(self.queue.now());
                self.advance(target, input.budget());
            }
            22..=24 => {
                let (target, budget) = (self.tick(input), input.budget());
                self.pop(target, budget, input);
            }
            25 => self.burst(input),
            26 => self.thin_out(input),
            27 | 28 => self.queue.compact(),
            29 => {
                let snapshot = self.queue.snapshot();
                assert_eq!((snapshot.len, snapshot.now), (self.model.len(), self.queue.now()));
                let levels = snapshot.levels.iter().map(|level| level.len).sum::<usize>();
                assert!(snapshot.levels.is_empty() || levels == snapshot.len);
            }
            30 => self.drain(),
            _ => {
                self.queue.clear();
                self.forget();
                assert_eq!(self.queue.capacity(), 0, "memory is held after clearing");
            }
        }
    }

    /// What may also be done between two pops.
    fn change(&mut self, code: u8, input: &mut Input<'_>) {
        match code {
            0..=5 => {
                let deadline = self.tick(input);
                self.insert(deadline);
            }
            6 => {
                let delay = u64::from(input.short());
                if self.model.len() < PENDING_MAX {
                    let deadline = self.queue.now().saturating_add(delay);
                    let order = self.order(deadline);
                    let key = self.queue.insert(delay, Box::new(order.1));
                    self.note(order, key, deadline, order.1);
                }
            }
            7..=10 => {
                let Some(order) = self.choose(input) else { return };
                self.cancel(order);
            }
            11..=13 => {
                let Some(order) = self.choose(input) else { return };
                let deadline = self.tick(input);
                self.reset(order, deadline);
            }
            14 => {
                // To the deadline that it has: to the end of its tick.
                let Some(order) = self.choose(input) else { return };
                let deadline = self.model[&order].1;
                self.reset(order, deadline);
            }
            _ => {
                let at = usize::from(input.short());
                let Some(at) = at.checked_rem(self.stale.len()) else { return };
                let (key, deadline) = (self.stale[at], self.tick(input));
                assert_eq!(self.queue.cancel(key), None);
                assert!(!self.queue.reset(key, deadline));
                assert_eq!(self.queue.deadline(key), None);
                assert_eq!(self.queue.get(key), None);
                assert_eq!(self.queue.get_mut(key), None);
            }
        }
    }

    /// A tick, often that of a pending timer.
    fn tick(&mut self, input: &mut Input<'_>) -> u64 {
        if input.byte().is_multiple_of(4)
            && let Some(order) = self.choose(input)
        {
            self.orders.push(order);
            return self.model[&order].1;
        }
        input.tick_after(self.queue.now())
    }

    /// Some pending timer, which is no longer among those to choose from.
    fn choose(&mut self, input: &mut Input<'_>) -> Option<Order> {
        let at = usize::from(input.short()).checked_rem(self.orders.len())?;
        let order = self.orders.swap_remove(at);
        self.model.contains_key(&order).then_some(order)
    }

    /// The place in the order of a timer that gets this deadline now.
    fn order(&mut self, deadline: u64) -> Order {
        self.sequence += 1;
        (deadline.max(self.queue.now()), self.sequence)
    }

    fn note(&mut self, order: Order, key: Key, deadline: u64, number: u64) {
        assert_eq!(self.queue.deadline(key), Some(deadline));
        assert_eq!(self.queue.get(key).map(|value| **value), Some(number));
        self.model.insert(order, (key, deadline, number));
        self.orders.push(order);
    }

    fn insert(&mut self, deadline: u64) {
        if self.model.len() < PENDING_MAX {
            let order = self.order(deadline);
            let key = self.queue.insert_at(deadline, Box::new(order.1));
            self.note(order, key, deadline, order.1);
        }
    }

    fn cancel(&mut self, order: Order) {
        let Some((key, _, number)) = self.model.remove(&order) else { return };
        assert_eq!(self.queue.cancel(key).as_deref(), Some(&number));
        self.stale.push(key);
    }

    fn reset(&mut self, order: Order, deadline: u64) {
        let Some((key, _, number)) = self.model.remove(&order) else { return };
        let order = self.order(deadline);
        assert!(self.queue.reset(key, deadline));
        self.note(order, key, deadline, number);
    }

    /// Many timers at once: of one tick, or a few ticks apart.
    fn burst(&mut self, input: &mut Input<'_>) {
        let (first, count, apart) = (self.tick(input), input.byte(), input.byte() % 8);
        for n in 0..u64::from(count) {
            self.insert(first.saturating_add(n * u64::from(apart)));
        }
    }

    /// Cancels many at once: all but every so manieth.
    fn thin_out(&mut self, input: &mut Input<'_>) {
        let kept = usize::from(input.byte() % 16) + 1;
        let orders: Vec<Order> = self.model.keys().copied().collect();
        for (n, order) in orders.into_iter().enumerate() {
            if n % kept != 0 {
                self.cancel(order);
            }
        }
    }

    fn advance(&mut self, target: u64, budget: usize) {
        let before = self.queue.now();
        let mut fired = Vec::new();
        let done = self.queue.advance(target, budget, |key, deadline, value| {
            fired.push((key, deadline, *value));
        });
        assert_eq!(done.fired, fired.len());
        for timer in fired {
            self.check_fired(timer, target);
        }
        self.check_round(before, target, budget, (done.fired, done.moved, done.finished));
    }

    /// Fires one by one, changing things in between.
    fn pop(&mut self, target: u64, units: usize, input: &mut Input<'_>) {
        let before = self.queue.now();
        // What feeds itself must end: a round without bound would go on as long as there is input.
        let units = units.min(512);
        let mut budget = Budget::new(units);
        while let Some((key, deadline, value)) = self.queue.pop(target, &mut budget) {
            self.check_fired((key, deadline, *value), target);
            for _ in 0..input.byte() % 4 {
                let code = input.byte() % 16;
                self.change(code, input);
            }
        }
        let done = (budget.fired(), budget.moved(), !budget.ran_out());
        self.check_round(before, target, units, done);
    }

    fn check_fired(&mut self, fired: (Key, u64, u64), target: u64) {
        let ((tick, _), expected) = self.model.pop_first().expect("fired something unknown");
        assert_eq!(fired, expected, "fired out of turn");
        assert!(tick <= target, "fired {fired:?} at {target}, early");
        assert_eq!(self.queue.deadline(fired.0), None, "its key is not stale");
        self.stale.push(fired.0);
    }

    fn check_round(&self, before: u64, target: u64, budget: usize, done: (usize, usize, bool)) {
        let (fired, moved, finished) = done;
        let now = self.queue.now();
        let next = self.model.first_key_value().map(|((tick, _), _)| *tick);
        assert!(fired.saturating_add(moved) <= budget);
        if target < before {
            assert_eq!((done, now), ((0, 0, true), before));
        } else if finished {
            assert_eq!(now, target);
            assert!(next.is_none_or(|tick| tick > target), "left {next:?} behind at {target}");
        } else {
            assert_eq!(fired + moved, budget, "stopped with budget left");
            assert!(before <= now && now <= target);
            assert!(next.is_some_and(|tick| now <= tick), "now is {now}, past {next:?}");
        }
        if finished && target >= before && target < u64::MAX {
            let bound = self.queue.next_deadline();
            assert!(bound.is_none_or(|tick| tick > target), "bound {bound:?} after {target}");
        }
    }

    fn drain(&mut self) {
        let mut drained = BTreeMap::new();
        self.queue.drain(|key, deadline, value| {
            assert!(drained.insert(*value, (key, deadline)).is_none());
        });
        let expected = self.model.values().map(|(key, deadline, n)| (*n, (*key, *deadline)));
        assert_eq!(drained, expected.collect());
        self.forget();
    }

    fn forget(&mut self) {
        self.stale.extend(self.model.values().map(|(key, ..)| *key));
        self.model.clear();
        self.orders.clear();
    }

    fn compare(&self) {
        let queue = &self.queue;
        assert_eq!(queue.len(), self.model.len());
        assert_eq!(queue.is_empty(), self.model.is_empty());
        assert!(queue.capacity() >= queue.len());
        let bound = queue.next_deadline();
        let Some(((tick, _), (key, deadline, number))) = self.model.first_key_value() else {
            assert_eq!(bound, None);
            assert!(queue.peek().is_none());
            return;
        };
        let bound = bound.expect("a bound for a queue that is not empty");
        assert!(queue.now() <= bound && bound <= *tick, "bound {bound}, first {tick}");
        let first = queue.peek().map(|(key, deadline, value)| (key, deadline, **value));
        assert_eq!(first, Some((*key, *deadline, *number)));
    }
}
