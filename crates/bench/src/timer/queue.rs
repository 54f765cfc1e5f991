//! Four threads that take a million items out of a delay queue.
//!
//! - `delay_queue_mitems_s`: millions of items a second; deadlines at random within the second before
//! - `delay_queue_one_instant_mitems_s`: the same, all due at one instant
//!
//! All items are there before the consumers start; then time is taken until the last one has been taken.
//! Each consumer checks that deadlines come in order, and afterwards every item is looked for, once.
//!
//! `mutex_heap` is the plain textbook one, `Mutex`, `BinaryHeap` and `Condvar`, with what a careful author
//! does: a sequence number for ties, notification of one waiter only when the first deadline became earlier
//! or something is left, and none when nobody waits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Barrier, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tourbillon::DelayQueue;

use super::{Figure, Numbers};

pub(super) const SUBJECTS: &[&str] = &["tourbillon", "mutex_heap"];

const CONSUMERS: usize = 4;

/// What both queues can do.
trait Queue: Sync {
    fn new() -> Self;
    fn insert(&self, value: u64, deadline: Instant);
    /// No more items come in.
    fn close(&self);
    /// Waits for the first item; `None` at the end.
    fn poll(&self) -> Option<(u64, Instant)>;
}

pub(super) fn measure(subject: &str, quick: bool) -> Result<Vec<Figure>> {
    let items = if quick { 200_000 } else { 1_000_000 };
    let (spread, one) = match subject {
        "tourbillon" => {
            (take::<DelayQueue<u64>>(items, true), take::<DelayQueue<u64>>(items, false))
        }
        "mutex_heap" => (take::<HeapQueue>(items, true), take::<HeapQueue>(items, false)),
        other => bail!("no such subject: {other}"),
    };
    Ok(vec![
        ("delay_queue_mitems_s", "M/s", spread),
        ("delay_queue_one_instant_mitems_s", "M/s", one),
    ])
}

/// Millions of items a second.
fn take<Q: Queue>(items: usize, spread: bool) -> f64 {
    let queue = Q::new();
    let mut numbers = Numbers::new(11);
    let base = Instant::now();
    for value in 0..items as u64 {
        let off = Duration::from_nanos(if spread { numbers.below(1_000_000_000) } else { 0 });
        queue.insert(value, base.checked_sub(off).unwrap_or(base));
    }
    queue.close();
    let ready = Barrier::new(CONSUMERS + 1);
    let mut taken = vec![false; items];
    let mut took = Duration::ZERO;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..CONSUMERS)
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
