//! Random operations, checked step by step against an ordered map. `PROPTEST_CASES` sets how
//! many sequences are tried.
//!
//! The model keeps (tick that counts for order, sequence of insertion). It takes `now` from the
//! queue, since only the queue knows where a budget stopped it, and checks that it is where it
//! may be.

use proptest::prelude::*;
use std::collections::BTreeMap;
use tourbillon_wheel::{Key, TimerQueue};

/// A tick that a test aims at, relative to the queue's state when it is used.
#[derive(Clone, Debug)]
pub(crate) enum Tick {
    /// So many ticks after now.
    After(u64),
    /// So many ticks before now.
    Before(u64),
    /// The start of the next span of 256^level ticks, plus or minus one or nothing.
    Edge {
        level: u32,
        spans: u64,
        offset: i64,
    },
    /// The deadline of some pending timer, so that equal deadlines are frequent.
    Pending(usize),
    /// What `next_deadline` says.
    Next,
    Absolute(u64),
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Insert(Tick),
    InsertRelative(u64),
    /// So many timers, spread over the 256 ticks from one on: some lie alone, some share a tick.
    Burst(Tick, u64),
    Cancel(usize),
    Reset(usize, Tick),
    Stale(usize, Tick),
    Advance(Tick, usize),
    Clear,
    Compact,
}

pub(crate) fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => Just(0),
        2 => any::<u64>(),
        3 => (0u32..64, -2i64..3).prop_map(|(bit, n)| (1u64 << bit).wrapping_add_signed(n)),
        1 => (0u64..1000).prop_map(|n| u64::MAX - n),
    ]
}

pub(crate) fn ops() -> impl Strategy<Value = Vec<Op>> {
    proptest::collection::vec(op(), 1..120)
}

fn op() -> impl Strategy<Value = Op> {
    let budget = prop_oneof![3 => 0usize..6, 1 => 6usize..60, 3 => Just(usize::MAX)];
    prop_oneof![
        10 => tick().prop_map(Op::Insert),
        1 => (0u64..700).prop_map(Op::InsertRelative),
        1 => (tick(), 2u64..90).prop_map(|(tick, n)| Op::Burst(tick, n)),
        4 => any::<usize>().prop_map(Op::Cancel),
        3 => (any::<usize>(), tick()).prop_map(|(n, tick)| Op::Reset(n, tick)),
        1 => (any::<usize>(), tick()).prop_map(|(n, tick)| Op::Stale(n, tick)),
        8 => (target(), budget).prop_map(|(tick, budget)| Op::Advance(tick, budget)),
        1 => prop_oneof![9 => Just(Op::Compact), 1 => Just(Op::Clear)],
    ]
}

fn tick() -> impl Strategy<Value = Tick> {
    prop_oneof![
        4 => (0u64..600).prop_map(Tick::After),
        1 => (0u64..600).prop_map(Tick::Before),
        4 => edge(),
        4 => any::<usize>().prop_map(Tick::Pending),
        1 => (any::<u64>(), 0u32..64).prop_map(|(delay, shift)| Tick::After(delay >> shift)),
        1 => prop::sample::select(vec![0, 1, 1 << 36, u64::MAX - 1, u64::MAX])
            .prop_map(Tick::Absolute),
        1 => any::<u64>().prop_map(Tick::Absolute),
    ]
}

fn target() -> impl Strategy<Value = Tick> {
    prop_oneof![
        30 => (0u64..600).prop_map(Tick::After),
        20 => Just(Tick::Next),
        20 => edge(),
        10 => any::<usize>().prop_map(Tick::Pending),
        4 => (0u64..600).prop_map(Tick::Before),
        4 => (any::<u64>(), 8u32..64).prop_map(|(delay, shift)| Tick::After(delay >> shift)),
        1 => prop_oneof![Just(0), Just(u64::MAX), Just(u64::MAX - 1)].prop_map(Tick::Absolute),
    ]
}

fn edge() -> impl Strategy<Value = Tick> {
    let level = prop_oneof![6 => 1u32..3, 1 => 3u32..8];
    (level, 0u64..3, -1i64..2).prop_map(|(level, spans, offset)| Tick::Edge {
        level,
        spans,
        offset,
    })
}

/// (tick that counts, sequence).
type Order = (u64, u64);
/// (key, deadline, value).
type Entry = (Key, u64, u64);

/// A queue and the model of it.
struct Pair<Q> {
    queue: Q,
    model: BTreeMap<Order, Entry>,
    sequence: u64,
    stale: Vec<Key>,
    /// Nothing was cancelled or reset since the queue was last empty, and the last advance
    /// finished.
    exact: bool,
}

/// Performs the operations on the queue and on the model, and compares after each.
pub(crate) fn run<Q: TimerQueue<Value = u64>>(queue: Q, ops: &[Op]) {
    let mut pair =
        Pair { queue, model: BTreeMap::new(), sequence: 0, stale: Vec::new(), exact: true };
    for op in ops {
        pair.step(op);
        pair.compare();
    }
    let now = pair.queue.now();
    pair.advance(now, 3);
    pair.advance(u64::MAX, usize::MAX);
    pair.compare();
    assert!(pair.queue.is_empty());
}

impl<Q: TimerQueue<Value = u64>> Pair<Q> {
    fn resolve(&self, tick: &Tick) -> u64 {
        let now = self.queue.now();
        match *tick {
            Tick::After(delay) => now.saturating_add(delay),
            Tick::Before(delay) => now.saturating_sub(delay),
            Tick::Edge { level, spans, offset } => {
                let span = 1u64 << (8 * level);
                let edge = (now - now % span).saturating_add(span.saturating_mul(spans));
                edge.saturating_add_signed(offset)
            }
            Tick::Pending(n) => self.nth(n).map_or(now, |(_, (_, deadline, _))| deadline),
            Tick::Next => self.queue.next_deadline().unwrap_or(now),
            Tick::Absolute(tick) => tick,
        }
    }

    fn nth(&self, n: usize) -> Option<(Order, Entry)> {
        let n = n.checked_rem(self.model.len())?;
        self.model.iter().nth(n).map(|(order, timer)| (*order, *timer))
    }

    /// The place in the order of a timer that gets this deadline now.
    fn order(&mut self, deadline: u64) -> Order {
        self.sequence += 1;
        (deadline.max(self.queue.now()), self.sequence)
    }

    fn insert(&mut self, deadline: u64) {
        let order = self.order(deadline);
        let key = self.queue.insert_at(deadline, order.1);
        self.model.insert(order, (key, deadline, order.1));
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Insert(tick) => self.insert(self.resolve(tick)),
            Op::Burst(tick, n) => {
                let first = self.resolve(tick);
                for i in 0..*n {
                    self.insert(first.saturating_add(i * i * 7 % 256));
                }
            }
            Op::InsertRelative(delay) => {
                let deadline = self.queue.now().saturating_add(*delay);
                let order = self.order(deadline);
                let key = self.queue.insert(*delay, order.1);
                self.model.insert(order, (key, deadline, order.1));
            }
            Op::Cancel(n) => {
                let Some((order, (key, _, value))) = self.nth(*n) else {
                    return;
                };
                self.model.remove(&order);
                assert_eq!(self.queue.cancel(key), Some(value));
                self.stale.push(key);
                self.exact = self.model.is_empty();
            }
            Op::Reset(n, tick) => {
                let Some((order, (key, _, value))) = self.nth(*n) else {
                    return;
                };
                let deadline = self.resolve(tick);
                self.model.remove(&order);
                let order = self.order(deadline);
                assert!(self.queue.reset(key, deadline));
                self.model.insert(order, (key, deadline, value));
                self.exact = false;
            }
            Op::Stale(n, tick) => {
                let Some(at) = n.checked_rem(self.stale.len()) else {
                    return;
                };
                let key = self.stale[at];
                let deadline = self.resolve(tick);
                assert_eq!(self.queue.cancel(key), None);
                assert!(!self.queue.reset(key, deadline));
                assert_eq!(self.queue.deadline(key), None);
                assert_eq!(self.queue.get(key), None);
                assert_eq!(self.queue.get_mut(key), None);
            }
            Op::Advance(tick, budget) => {
                let target = self.resolve(tick);
                self.advance(target, *budget);
            }
            Op::Clear => {
                self.queue.clear();
                self.stale.extend(self.model.values().map(|(key, ..)| *key));
                self.model.clear();
                self.exact = true;
            }
            Op::Compact => self.queue.compact(),
        }
    }

    fn advance(&mut self, target: u64, budget: usize) {
        let before = self.queue.now();
        let mut fired = Vec::new();
        let done = self.queue.advance(target, budget, |key, deadline, value| {
            fired.push((key, deadline, value));
        });
        let now = self.queue.now();
        assert_eq!(done.fired, fired.len());
        assert!(done.fired.saturating_add(done.moved) <= budget);
        for timer in fired {
            let ((tick, sequence), expected) =
                self.model.pop_first().expect("fired something unknown");
            assert_eq!(timer, expected, "fired {timer:?} out of turn: {sequence} was next");
            assert!(tick <= target, "fired {timer:?} at {target}, early");
            self.stale.push(timer.0);
        }
        let next = self.model.first_key_value().map(|((tick, _), _)| *tick);
        if target < before {
            assert_eq!((done.fired, done.moved, done.finished, now), (0, 0, true, before));
        } else if done.finished {
            assert_eq!(now, target);
            assert!(next.is_none_or(|tick| tick > target), "left {next:?} behind at {target}");
        } else {
            assert_eq!(done.fired + done.moved, budget, "stopped with budget left");
            assert!(before <= now && now <= target);
            assert!(next.is_some_and(|tick| now <= tick), "now is {now}, past {next:?}");
        }
        // What was cancelled earlier in a slot that is still there may be felt, so exactness,
        // once lost, comes back only with an empty queue.
        self.exact = self.model.is_empty() || (self.exact && done.finished);
    }

    fn compare(&self) {
        let queue = &self.queue;
        queue.check_invariants();
        assert_eq!(queue.len(), self.model.len());
        assert_eq!(queue.is_empty(), self.model.is_empty());
        assert!(queue.capacity() >= queue.len());
        for (key, deadline, value) in self.model.values() {
            assert_eq!(queue.deadline(*key), Some(*deadline));
            assert_eq!(queue.get(*key), Some(value));
        }
        let first = self
            .model
            .first_key_value()
            .map(|(_, (key, deadline, value))| (*key, *deadline, value));
        assert_eq!(queue.peek(), first);
        let bound = queue.next_deadline();
        match self.model.first_key_value() {
            None => assert_eq!(bound, None),
            Some(((tick, _), _)) => {
                let bound = bound.expect("a bound for a queue that is not empty");
                assert!(queue.now() <= bound && bound <= *tick, "bound {bound}, first {tick}");
                if self.exact {
                    assert_eq!(bound, *tick);
                }
            }
        }
    }
}

/// Long runs with thousands of pending timers, most of which are cancelled or reset: what a
/// structure leaves lying about and tidies up later comes to light here.
pub(crate) fn churn_agrees_with_the_model<Q: TimerQueue<Value = u64>>(make: fn(u64) -> Q) {
    for seed in 1..=6u64 {
        println!("seed {seed}");
        let start = [0, 0xffff_0000, u64::MAX - 3_000_000][seed as usize % 3];
        let mut pair = Pair {
            queue: make(start),
            model: BTreeMap::new(),
            sequence: 0,
            stale: Vec::new(),
            exact: true,
        };
        let mut state = seed;
        let mut below = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed);
            (state >> 33) % n
        };
        let mut orders: Vec<Order> = Vec::new();
        let far = [300, 70_000, 3_000_000][seed as usize % 3];
        let most = [300, 2_000, 6_000][seed as usize / 2 % 3];
        for step in 0..30_000u32 {
            let grows = (step / 6_000).is_multiple_of(2);
            match below(10) {
                0..=2 => pair.insert_after(below(far), &mut orders),
                3..=5 if grows && orders.len() < most => pair.insert_after(below(far), &mut orders),
                3..=6 => pair.take(below(1 << 20), &mut orders, |pair, order| {
                    let (key, _, value) = pair.model.remove(&order).expect("it is pending");
                    assert_eq!(pair.queue.cancel(key), Some(value));
                }),
                7 | 8 => {
                    let delay = below(far);
                    let mut again = None;
                    pair.take(below(1 << 20), &mut orders, |pair, order| {
                        let (key, _, value) = pair.model.remove(&order).expect("it is pending");
                        let deadline = pair.queue.now().saturating_add(delay);
                        let order = pair.order(deadline);
                        assert!(pair.queue.reset(key, deadline));
                        pair.model.insert(order, (key, deadline, value));
                        again = Some(order);
                    });
                    orders.extend(again);
                }
                _ => {
                    let target = pair.queue.now().saturating_add(below(far / 200 + 2));
                    let budget = if below(3) == 0 { below(40) as usize } else { usize::MAX };
                    pair.advance(target, budget);
                }
            }
            pair.exact = false;
            if step.is_multiple_of(500) {
                pair.compare();
            }
            if step.is_multiple_of(9_999) {
                pair.queue.compact();
                pair.compare();
            }
        }
        pair.advance(u64::MAX, usize::MAX);
        pair.compare();
        assert!(pair.queue.is_empty());
    }
}

impl<Q: TimerQueue<Value = u64>> Pair<Q> {
    fn insert_after(&mut self, delay: u64, orders: &mut Vec<Order>) {
        let deadline = self.queue.now().saturating_add(delay);
        let order = self.order(deadline);
        let key = self.queue.insert_at(deadline, order.1);
        self.model.insert(order, (key, deadline, order.1));
        orders.push(order);
    }

    /// Does something to some pending timer, if the one drawn still is.
    fn take(&mut self, n: u64, orders: &mut Vec<Order>, then: impl FnOnce(&mut Self, Order)) {
        if orders.is_empty() {
            return;
        }
        let order = orders.swap_remove(n as usize % orders.len());
        if self.model.contains_key(&order) {
            then(self, order);
        }
    }
}
