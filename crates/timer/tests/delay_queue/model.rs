//! Every operation of one thread against an ordered map, under a manual clock, with everything
//! visible compared after each.

use super::support::manual;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tourbillon::DelayQueue;
use tourbillon::delay_queue::{Key, ManualClock};

/// When an item is due, in nanoseconds after the present.
#[derive(Clone, Debug)]
enum When {
    Delay(Duration),
    /// An instant after the present one.
    Ahead(u64),
    /// An instant before it.
    Ago(u64),
}

#[derive(Clone, Debug)]
enum Op {
    Insert(When),
    Remove(prop::sample::Index),
    Reset(prop::sample::Index, When),
    Poll,
    PollTimeout,
    DrainExpired(usize),
    Advance(u64),
    Snapshot,
    Compact,
    Drain,
    Clear,
}

/// Distances of all magnitudes, many of them equal.
fn distance_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0..20_u64).prop_map(|us| us * 1_000),
        0..5_000_u64,
        (0..200_u64).prop_map(|ms| ms * 1_000_000),
        (0..40_u32, 0..3_u64).prop_map(|(bits, off)| ((1_u64 << bits) + off - 1) * 1_000),
        0..3_600_000_000_000_u64,
    ]
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        4 => distance_ns().prop_map(|ns| When::Delay(Duration::from_nanos(ns))),
        1 => Just(When::Delay(Duration::MAX)),
        2 => distance_ns().prop_map(When::Ahead),
        3 => (0..2_000_000_000_u64).prop_map(When::Ago),
        2 => (0..10_u64).prop_map(|us| When::Ago(us * 1_000)),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => when().prop_map(Op::Insert),
        3 => any::<prop::sample::Index>().prop_map(Op::Remove),
        3 => (any::<prop::sample::Index>(), when()).prop_map(|(which, when)| Op::Reset(which, when)),
        5 => Just(Op::Poll),
        1 => Just(Op::PollTimeout),
        2 => (0..9_usize).prop_map(Op::DrainExpired),
        6 => distance_ns().prop_map(Op::Advance),
        1 => Just(Op::Snapshot),
        1 => Just(Op::Compact),
        1 => Just(Op::Drain),
        1 => Just(Op::Clear),
    ]
}

struct Model {
    queue: DelayQueue<usize>,
    clock: ManualClock,
    start: Instant,
    now_us: i128,
    /// By deadline in microseconds after the start, then by insertion or reset: the item's number.
    items: BTreeMap<(i128, usize), usize>,
    changes: usize,
    /// All keys that were ever given, by the item's number, and where the item is in the model.
    keys: Vec<(Key, Option<(i128, usize)>)>,
}

impl Model {
    fn new() -> Self {
        let (queue, clock) = manual();
        let start = queue.now();
        let (items, keys) = Default::default();
        Self { queue, clock, start, now_us: 0, items, changes: 0, keys }
    }

    /// The deadline in microseconds, rounded up, and as an instant where it was given as one.
    fn deadline(&self, when: &When) -> (i128, Option<Instant>) {
        let up = |ns: i128| -((-ns).div_euclid(1_000));
        let now = self.queue.now();
        match *when {
            When::Delay(Duration::MAX) => (i128::MAX, None),
            When::Delay(delay) => (self.now_us + up(delay.as_nanos() as i128), None),
            When::Ahead(ns) => (self.now_us + up(ns.into()), Some(now + Duration::from_nanos(ns))),
            When::Ago(ns) => {
                (self.now_us + up(-i128::from(ns)), Some(now - Duration::from_nanos(ns)))
            }
        }
    }

    fn place(&mut self, number: usize, deadline: i128) {
        self.changes += 1;
        self.items.insert((deadline, self.changes), number);
        self.keys[number].1 = Some((deadline, self.changes));
    }

    fn instant(&self, deadline: i128) -> Option<Instant> {
        match u64::try_from(deadline) {
            Ok(us) => Some(self.start + Duration::from_micros(us)),
            Err(_) if deadline < 0 => Some(self.start - Duration::from_micros((-deadline) as u64)),
            Err(_) => None,
        }
    }

    /// What is to be taken now, taken out of the model.
    fn pop(&mut self) -> Option<(usize, i128)> {
        let (&(deadline, change), &number) = self.items.first_key_value()?;
        if deadline > self.now_us {
            return None;
        }
        self.items.remove(&(deadline, change));
        self.keys[number].1 = None;
        Some((number, deadline))
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Insert(when) => {
                let number = self.keys.len();
                let (deadline, instant) = self.deadline(when);
                let key = match (when, instant) {
                    (_, Some(instant)) => self.queue.insert_at(number, instant),
                    (When::Delay(delay), _) => self.queue.insert(number, *delay),
                    _ => unreachable!("an instant or a delay"),
                };
                self.keys.push((key.expect("there is room"), None));
                self.place(number, deadline);
            }
            Op::Remove(which) if !self.keys.is_empty() => {
                let number = which.index(self.keys.len());
                let (key, place) = self.keys[number];
                let removed = self.queue.remove(key);
                assert_eq!(removed, place.map(|_| number), "removing item {number}");
                if let Some(place) = place {
                    self.items.remove(&place);
                    self.keys[number].1 = None;
                }
            }
            Op::Reset(which, when) if !self.keys.is_empty() => {
                let number = which.index(self.keys.len());
                let (key, place) = self.keys[number];
                let (deadline, instant) = self.deadline(when);
                let done = match (when, instant) {
                    (_, Some(instant)) => self.queue.reset_at(key, instant),
                    (When::Delay(delay), _) => self.queue.reset(key, *delay),
                    _ => unreachable!("an instant or a delay"),
                };
                assert_eq!(done, place.is_some(), "resetting item {number}");
                if let Some(place) = place {
                    self.items.remove(&place);
                    self.place(number, deadline);
                }
            }
            Op::Remove(_) | Op::Reset(..) => {}
            Op::Poll | Op::PollTimeout => {
                let taken = match op {
                    Op::Poll => self.queue.try_poll(),
                    _ => self.queue.poll_timeout(Duration::ZERO),
                };
                let expected = self.pop();
                assert_eq!(taken.as_ref().map(|it| *it.get_ref()), expected.map(|it| it.0));
                if let (Some(taken), Some((number, deadline))) = (taken, expected) {
                    assert_eq!(taken.key(), self.keys[number].0);
                    assert_eq!(Some(taken.deadline()), self.instant(deadline));
                }
            }
            Op::DrainExpired(max) => {
                let mut taken = Vec::new();
                let count = self.queue.drain_expired(*max, &mut taken);
                assert_eq!(count, taken.len());
                let expected: Vec<_> = (0..*max).map_while(|_| self.pop()).map(|it| it.0).collect();
                assert_eq!(taken.iter().map(|it| *it.get_ref()).collect::<Vec<_>>(), expected);
            }
            Op::Advance(ns) => {
                let by = Duration::from_nanos(*ns);
                self.clock.advance(by);
                self.now_us += by.as_nanos().div_ceil(1_000) as i128;
            }
            Op::Snapshot => self.compare_all(),
            Op::Compact => self.queue.compact(),
            Op::Drain => {
                let drained = self.queue.drain();
                assert!(drained.is_sorted_by_key(|(deadline, _)| *deadline));
                let mut numbers: Vec<_> = drained.into_iter().map(|(_, number)| number).collect();
                numbers.sort_unstable();
                let mut expected: Vec<_> = self.items.values().copied().collect();
                expected.sort_unstable();
                assert_eq!(numbers, expected);
                self.forget();
            }
            Op::Clear => {
                self.queue.clear();
                self.forget();
            }
        }
        self.compare();
    }

    fn forget(&mut self) {
        self.items.clear();
        self.keys.iter_mut().for_each(|(_, place)| *place = None);
    }

    fn compare(&self) {
        assert_eq!(self.queue.len(), self.items.len());
        let first =
            self.items.first_key_value().map(|((deadline, _), number)| (*deadline, *number));
        let peeked = self.queue.peek_with(|key, deadline, number| (key, deadline, *number));
        assert_eq!(peeked.map(|it| it.2), first.map(|it| it.1), "the first item");
        if let (Some((key, deadline, number)), Some((expected, _))) = (peeked, first) {
            assert_eq!(key, self.keys[number].0);
            assert_eq!(Some(deadline), self.instant(expected).or(Some(deadline)));
        }
        self.queue.check_invariants();
    }

    fn compare_all(&self) {
        let mut seen = self.queue.snapshot();
        seen.sort();
        let living = self.keys.iter().filter_map(|(key, place)| Some((*key, place.as_ref()?.0)));
        let mut expected: Vec<_> = living.collect();
        expected.sort();
        assert_eq!(seen.len(), expected.len());
        for ((key, deadline), (expected_key, expected)) in seen.into_iter().zip(expected) {
            assert_eq!(key, expected_key);
            assert_eq!(self.queue.deadline(key), Some(deadline));
            assert_eq!(Some(deadline), self.instant(expected).or(Some(deadline)));
        }
        for (key, place) in &self.keys {
            assert_eq!(self.queue.deadline(*key).is_some(), place.is_some());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn a_queue_does_what_an_ordered_map_does(ops in prop::collection::vec(op(), 1..120)) {
        let mut model = Model::new();
        for op in &ops {
            model.step(op);
        }
        model.compare_all();
    }
}
