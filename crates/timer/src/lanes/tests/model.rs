//! Random operations on lanes and driver, checked step by step against ordered maps, one for each
//! lane. `PROPTEST_CASES` sets how many sequences are tried.
//!
//! The model keeps (tick that counts for the order in the lane, sequence of insertion). The tick at
//! which a lane's wheel stands is taken from the wheel, since only it knows where a budget
//! stopped it. A timer that the driver has in a batch is still in the model, until it fires; that is
//! felt only by callbacks, and there the model demands that what could not be cancelled does fire.

use super::ops::{Act, Op, Tick, op};
use crate::lanes::{Driver, Handle, Lanes, hint};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tourbillon_wheel::TimerQueue;

/// (tick that counts in the lane, sequence).
type Order = (u64, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    handle: Handle,
    deadline: u64,
    value: u64,
    /// How many timers had fired when it got its deadline.
    fired_before: u64,
}

struct Model {
    lanes: Lanes<u64>,
    pending: Vec<BTreeMap<Order, Entry>>,
    batch: u64,
    sequence: u64,
    fired: u64,
    /// The driver's tick.
    now: u64,
    stale: Vec<Handle>,
    /// Found to be in the driver's batch, so they must fire before the round ends.
    taken: BTreeSet<u64>,
    wakes: Arc<AtomicUsize>,
    /// What the driver sleeps until, unless it is awake.
    asleep_until: Option<u64>,
}

fn run(lanes: usize, batch: usize, max_pending: usize, start: u64, ops: &[Op]) {
    let wakes = Arc::new(AtomicUsize::new(0));
    let counter = wakes.clone();
    let (lanes, mut driver) = Lanes::builder()
        .lanes(lanes)
        .batch(batch)
        .max_pending(max_pending)
        .starting_at(start)
        .build(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
    let mut model = Model {
        pending: vec![BTreeMap::new(); lanes.shared.lanes.len()],
        lanes,
        batch: batch as u64,
        sequence: 0,
        fired: 0,
        now: start,
        stale: Vec::new(),
        taken: BTreeSet::new(),
        wakes,
        asleep_until: None,
    };
    for (step, op) in ops.iter().enumerate() {
        match op {
            Op::Act(act) => model.act(act),
            Op::Advance(tick, budget, acts) => {
                let target = model.resolve(tick);
                model.advance(&mut driver, target, *budget, acts);
            }
            Op::Sleep => model.sleep(&mut driver),
            Op::Compact => model.lanes.compact(),
            Op::Drain => model.drain(),
            Op::Clear => {
                model.lanes.clear();
                model.forget();
                let held = model.lanes.snapshot().iter().map(|lane| lane.capacity).sum::<usize>();
                assert_eq!(held, 0, "memory is held after clearing");
            }
        }
        model.compare(&driver);
        // Looks at every slot of every wheel, so not each time.
        if step % 16 == 15 {
            model.lanes.check_invariants();
        }
    }
    model.lanes.check_invariants();
    model.advance(&mut driver, u64::MAX, usize::MAX, &[]);
    model.compare(&driver);
    assert!(model.lanes.is_empty());
}

impl Model {
    fn resolve(&self, tick: &Tick) -> u64 {
        match *tick {
            Tick::After(delay) => self.now.saturating_add(delay),
            Tick::Before(delay) => self.now.saturating_sub(delay),
            Tick::Pending(n) => self.nth(n).map_or(self.now, |(.., entry)| entry.deadline),
            Tick::Next => self.lanes.next_deadline().unwrap_or(self.now),
            Tick::Absolute(tick) => tick,
        }
    }

    fn len(&self) -> usize {
        self.pending.iter().map(BTreeMap::len).sum()
    }

    fn nth(&self, n: usize) -> Option<(usize, Order, Entry)> {
        let n = n.checked_rem(self.len())?;
        let all = self.pending.iter().enumerate();
        let mut all = all.flat_map(|(lane, map)| map.iter().map(move |(o, e)| (lane, *o, *e)));
        all.nth(n)
    }

    fn order(&mut self, lane: usize, deadline: u64) -> Order {
        self.sequence += 1;
        (deadline.max(self.lanes.shared.lanes[lane].hold().wheel.now()), self.sequence)
    }

    /// The lane that an insertion takes, which is the first with room.
    fn expected_lane(&self, hint: usize) -> Option<usize> {
        let count = self.pending.len();
        let lanes = (0..count).map(|step| (hint + step) % count);
        let mut open = lanes.filter(|lane| self.lanes.shared.lanes[*lane].hold().has_room());
        open.next()
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Nothing => {}
            Act::Insert(lane, tick) => {
                let deadline = self.resolve(tick);
                let expected = self.expected_lane(*lane);
                hint::set(*lane);
                let value = self.sequence + 1;
                match self.lanes.insert_at(deadline, value) {
                    Ok(handle) => {
                        assert_eq!(Some(handle.lane()), expected);
                        let order = self.order(handle.lane(), deadline);
                        let entry = Entry { handle, deadline, value, fired_before: self.fired };
                        self.pending[handle.lane()].insert(order, entry);
                    }
                    Err(full) => {
                        assert_eq!(expected, None, "refused though there is room");
                        assert_eq!(full.into_value(), value);
                    }
                }
                self.expect_wake(expected.map(|_| deadline));
            }
            Act::Cancel(n) => {
                let Some((lane, order, entry)) = self.nth(*n) else { return };
                match self.lanes.cancel(entry.handle) {
                    Some(value) => {
                        assert_eq!(value, entry.value);
                        assert!(!self.taken.contains(&value), "cancelled out of a batch");
                        self.pending[lane].remove(&order);
                        self.stale.push(entry.handle);
                    }
                    None => {
                        self.taken.insert(entry.value);
                    }
                }
                self.expect_wake(None);
            }
            Act::Reset(n, tick) => {
                let Some((lane, order, mut entry)) = self.nth(*n) else { return };
                let deadline = self.resolve(tick);
                let done = self.lanes.reset(entry.handle, deadline);
                if done {
                    assert!(!self.taken.contains(&entry.value), "reset in a batch");
                    self.pending[lane].remove(&order);
                    entry.deadline = deadline;
                    entry.fired_before = self.fired;
                    let order = self.order(lane, deadline);
                    self.pending[lane].insert(order, entry);
                } else {
                    self.taken.insert(entry.value);
                }
                self.expect_wake(done.then_some(deadline));
            }
            Act::Stale(n) => {
                let Some(at) = n.checked_rem(self.stale.len()) else { return };
                let handle = self.stale[at];
                assert_eq!(self.lanes.cancel(handle), None);
                assert!(!self.lanes.reset(handle, 0));
                assert_eq!(self.lanes.deadline(handle), None);
                self.expect_wake(None);
            }
        }
    }

    /// The waker has been called exactly if the driver sleeps past the deadline just armed.
    fn expect_wake(&mut self, armed: Option<u64>) {
        let wakes = self.wakes.swap(0, Ordering::Relaxed);
        let due = armed.zip(self.asleep_until).is_some_and(|(armed, until)| armed < until);
        assert_eq!(wakes, usize::from(due), "armed {armed:?}, sleeping {:?}", self.asleep_until);
        if due {
            self.asleep_until = None;
        }
    }

    fn sleep(&mut self, driver: &mut Driver<u64>) {
        let until = driver.prepare_sleep();
        assert_eq!(until, self.lanes.next_deadline());
        self.asleep_until = Some(until.unwrap_or(u64::MAX));
        self.expect_wake(None);
    }

    fn forget(&mut self) {
        for map in &mut self.pending {
            self.stale.extend(map.values().map(|entry| entry.handle));
            map.clear();
        }
    }

    fn drain(&mut self) {
        let mut all = BTreeMap::new();
        self.lanes.drain(|handle, deadline, value| {
            assert!(all.insert(value, (handle, deadline)).is_none());
        });
        let expected = self.pending.iter().flat_map(BTreeMap::values);
        let expected: BTreeMap<_, _> =
            expected.map(|entry| (entry.value, (entry.handle, entry.deadline))).collect();
        assert_eq!(all, expected);
        self.forget();
    }

    fn advance(&mut self, driver: &mut Driver<u64>, target: u64, budget: usize, acts: &[Act]) {
        let before = self.now;
        self.asleep_until = None;
        let mut acts = acts.iter();
        let fired_before = self.fired;
        let done = driver.advance(target, budget, |handle, deadline, value| {
            self.check_fired(handle, deadline, value, target);
            if let Some(act) = acts.next() {
                self.act(act);
            }
        });
        assert_eq!(done.fired as u64, self.fired - fired_before);
        assert!(done.fired + done.moved <= budget);
        assert!(self.taken.is_empty(), "neither cancelled nor fired: {:?}", self.taken);
        let next = self.first_tick();
        let now = driver.now();
        if target < before {
            assert_eq!((done.fired, done.moved, done.finished, now), (0, 0, true, before));
        } else if done.finished {
            assert_eq!(now, target);
            assert!(next.is_none_or(|tick| tick > target), "left {next:?} behind at {target}");
            let bound = self.lanes.next_deadline();
            assert!(bound.is_none_or(|tick| tick > target), "bound {bound:?} at {target}");
        } else {
            assert_eq!(done.fired + done.moved, budget, "stopped with budget left");
            assert!(self.now <= now && now <= target);
            assert!(next.is_some_and(|tick| now <= tick), "now is {now}, past {next:?}");
        }
        self.now = now;
    }

    /// The tick at which the next timer fires.
    fn first_tick(&self) -> Option<u64> {
        let firsts = self.pending.iter().filter_map(|map| map.first_key_value());
        firsts.map(|((tick, _), _)| (*tick).max(self.now)).min()
    }

    fn check_fired(&mut self, handle: Handle, deadline: u64, value: u64, target: u64) {
        let lane = handle.lane();
        let ((tick, _), entry) = self.pending[lane].pop_first().expect("fired something unknown");
        let found = Entry { handle, deadline, value, ..entry };
        assert_eq!(found, entry, "out of turn in its lane");
        let tick = tick.max(self.now);
        assert!(tick <= target, "fired {found:?} at {target}, early");
        for (other, map) in self.pending.iter().enumerate() {
            let Some(((first, _), waiting)) = map.first_key_value() else { continue };
            let first = (*first).max(self.now);
            assert!(tick <= first, "fired {found:?} before {waiting:?}");
            // What a callback has put into a lane before this one waits for the batch to end.
            let in_time = waiting.fired_before + self.batch <= self.fired + 1;
            if first == tick && other < lane {
                assert!(!in_time, "fired {found:?} before {waiting:?} of a lane before");
            }
        }
        self.now = tick;
        self.fired += 1;
        self.taken.remove(&value);
        self.stale.push(handle);
    }

    fn compare(&self, driver: &Driver<u64>) {
        assert_eq!(driver.now(), self.now);
        assert_eq!(self.lanes.len(), self.len());
        assert_eq!(self.lanes.is_empty(), self.len() == 0);
        assert!(self.len() <= self.lanes.max_pending());
        for entry in self.pending.iter().flat_map(BTreeMap::values) {
            assert_eq!(self.lanes.deadline(entry.handle), Some(entry.deadline));
        }
        let bound = self.lanes.next_deadline();
        match self.first_tick() {
            None => assert_eq!(bound, None),
            Some(first) => assert!(bound.is_some_and(|b| b <= first), "{bound:?}, first {first}"),
        }
        let lens = self.lanes.shared.lanes.iter().map(|lane| lane.hold().wheel.len());
        assert!(lens.eq(self.pending.iter().map(BTreeMap::len)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A batch of one leaves no room for interpretation: callbacks see every effect at once.
    #[test]
    fn one_at_a_time_agrees_with_the_model(
        lanes in 1usize..6,
        start in prop_oneof![3 => 0u64..300, 1 => any::<u64>()],
        ops in proptest::collection::vec(op(), 1..100),
    ) {
        run(lanes, 1, usize::MAX, start, &ops);
    }

    #[test]
    fn batches_agree_with_the_model(
        lanes in 1usize..6,
        batch in 2usize..10,
        start in prop_oneof![3 => 0u64..300, 1 => any::<u64>()],
        ops in proptest::collection::vec(op(), 1..100),
    ) {
        run(lanes, batch, usize::MAX, start, &ops);
    }

    #[test]
    fn a_bound_agrees_with_the_model(
        lanes in 1usize..6,
        batch in 1usize..5,
        max_pending in 0usize..30,
        ops in proptest::collection::vec(op(), 1..100),
    ) {
        run(lanes, batch, max_pending, 0, &ops);
    }
}
