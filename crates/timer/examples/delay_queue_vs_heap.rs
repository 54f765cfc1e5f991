//! The delay queue against a binary heap under a mutex: millions of items a second that several
//! blocking consumers take together.
//!
//! `tourbillon` is [`DelayQueue`]; `mutex_heap` is the plain textbook one, `Mutex`, `BinaryHeap` and
//! `Condvar`, with what a careful author does: a sequence number for ties, notification of one waiter only
//! when the first deadline became earlier or something is left, and none when nobody waits.
//!
//! All items are there before the consumers start; then time is taken until the last one has been
//! taken. Each consumer checks that deadlines come in order, and afterwards every item is looked for, once.
//! Variants: `past_second`, deadlines at random within the second before; `one_instant`, all the same
//! one; `coming_second`, at random within the second that follows, where no more than the items
//! of a second can be taken in a second. Subjects take turns, so that both see the same machine.
//!
//! Prints one JSON object a line. Arguments: items, consumers, rounds; and a variant, to run only that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Barrier, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tourbillon::DelayQueue;

/// What both queues can do.
trait Queue: Sync {
    fn new() -> Self;
    fn insert(&self, value: u64, deadline: Instant);
    /// No more items come in.
    fn close(&self);
    /// Waits for the first item; `None` at the end.
    fn poll(&self) -> Option<(u64, Instant)>;
}

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    PastSecond,
    OneInstant,
    ComingSecond,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| {
        args.get(at).map_or(default, |arg| arg.parse().expect("a number"))
    };
    let (items, consumers, rounds) = (number(0, 1_000_000), number(1, 4), number(2, 5));
    for (name, variant) in [
        ("past_second", Variant::PastSecond),
        ("one_instant", Variant::OneInstant),
        ("coming_second", Variant::ComingSecond),
    ] {
        if args.get(3).is_some_and(|only| only != name) {
            continue;
        }
        let (mut ours, mut heap) = (Vec::new(), Vec::new());
        for round in 0..rounds as u64 {
            ours.push(measure::<DelayQueue<u64>>(items, consumers, variant, round));
            heap.push(measure::<HeapQueue>(items, consumers, variant, round));
        }
        report("tourbillon", name, items, consumers, ours);
        report("mutex_heap", name, items, consumers, heap);
    }
}

/// Items per microsecond.
fn measure<Q: Queue>(items: usize, consumers: usize, variant: Variant, seed: u64) -> f64 {
    let queue = Q::new();
    let mut random = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let base = Instant::now();
    for value in 0..items as u64 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let off = Duration::from_nanos(random % 1_000_000_000);
        let deadline = match variant {
            Variant::PastSecond => base - off,
            Variant::OneInstant => base,
            Variant::ComingSecond => base + Duration::from_secs(1) + off,
        };
        queue.insert(value, deadline);
    }
    queue.close();
    let ready = Barrier::new(consumers + 1);
    let mut taken = vec![false; items];
    let mut took = Duration::ZERO;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..consumers)
            .map(|_| {
                scope.spawn(|| {
                    let mut values = Vec::with_capacity(items);
                    let mut last = None;
                    ready.wait();
                    while let Some((value, deadline)) = queue.poll() {
                        assert!(last.is_none_or(|last| last <= deadline), "out of order");
                        last = Some(deadline);
                        values.push(value);
                    }
                    (values, Instant::now())
                })
            })
            .collect();
        if variant == Variant::ComingSecond {
            thread::sleep(
                (base + Duration::from_secs(1)).saturating_duration_since(Instant::now()),
            );
        }
        ready.wait();
        let begin = Instant::now();
        for worker in workers {
            let (values, end) = worker.join().expect("no panic");
            took = took.max(end.saturating_duration_since(begin));
            for value in values {
                let before = std::mem::replace(&mut taken[value as usize], true);
                assert!(!before, "item {value} came twice");
            }
        }
    });
    assert!(taken.into_iter().all(|taken| taken), "an item was lost");
    items as f64 / took.as_secs_f64() / 1e6
}

fn report(subject: &str, variant: &str, items: usize, consumers: usize, mut speeds: Vec<f64>) {
    speeds.sort_by(f64::total_cmp);
    let rounds = speeds.len();
    println!(
        r#"{{"bench":"delay_queue_vs_heap","subject":"{subject}","variant":"{variant}","items":{items},"consumers":{consumers},"mitems_s":{:.2},"rounds":{rounds},"min":{:.2},"max":{:.2}}}"#,
        speeds[rounds / 2],
        speeds[0],
        speeds[rounds - 1],
    );
}

impl Queue for DelayQueue<u64> {
    fn new() -> Self {
        DelayQueue::new()
    }

    fn insert(&self, value: u64, deadline: Instant) {
        self.insert_at(value, deadline).expect("there is room");
    }

    fn close(&self) {
        DelayQueue::close(self);
    }

    fn poll(&self) -> Option<(u64, Instant)> {
        let expired = DelayQueue::poll(self)?;
        Some((*expired.get_ref(), expired.deadline()))
    }
}

/// The textbook's delay queue.
struct HeapQueue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    heap: BinaryHeap<Reverse<(Instant, u64, u64)>>,
    inserted: u64,
    waiting: usize,
    closed: bool,
}

impl Queue for HeapQueue {
    fn new() -> Self {
        let state = State { heap: BinaryHeap::new(), inserted: 0, waiting: 0, closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn insert(&self, value: u64, deadline: Instant) {
        let mut state = self.state.lock().expect("no panic");
        let sequence = state.inserted;
        state.inserted += 1;
        let earlier = state.heap.peek().is_none_or(|Reverse(first)| deadline < first.0);
        state.heap.push(Reverse((deadline, sequence, value)));
        let wake = earlier && state.waiting > 0;
        drop(state);
        if wake {
            self.changed.notify_one();
        }
    }

    fn close(&self) {
        self.state.lock().expect("no panic").closed = true;
        self.changed.notify_all();
    }

    fn poll(&self) -> Option<(u64, Instant)> {
        let mut state = self.state.lock().expect("no panic");
        loop {
            let wait = match state.heap.peek() {
                None if state.closed => {
                    drop(state);
                    self.changed.notify_all();
                    return None;
                }
                None => None,
                Some(Reverse((deadline, _, _))) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        let Reverse((deadline, _, value)) = state.heap.pop().expect("it was seen");
                        let wake = state.waiting > 0 && !state.heap.is_empty();
                        drop(state);
                        if wake {
                            self.changed.notify_one();
                        }
                        return Some((value, deadline));
                    }
                    Some(left)
                }
            };
            state.waiting += 1;
            state = match wait {
                None => self.changed.wait(state).expect("no panic"),
                Some(left) => self.changed.wait_timeout(state, left).expect("no panic").0,
            };
            state.waiting -= 1;
        }
    }
}
