//! The timer that people write by hand: a heap under a lock, and a thread that sleeps until its head.
//!
//! The strongest form of it: cancelled entries stay and are dropped when the dead outnumber the living
//! (nothing is searched), a generation tells the dead, and the thread is woken only for a new head.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

type Closure = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Inner {
    heap: BinaryHeap<Reverse<(Instant, u32, u32)>>,
    slots: Vec<(u32, Option<Closure>)>,
    free: Vec<u32>,
    live: usize,
    ended: bool,
}

#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    earlier: Condvar,
}

pub(super) struct HeapTimer {
    shared: Arc<Shared>,
}

#[derive(Clone, Copy)]
pub(super) struct Key {
    slot: u32,
    generation: u32,
}

impl HeapTimer {
    pub(super) fn new() -> Self {
        let shared = Arc::new(Shared::default());
        let driven = Arc::clone(&shared);
        thread::spawn(move || driven.drive());
        Self { shared }
    }

    pub(super) fn after(&self, delay: Duration, f: impl FnOnce() + Send + 'static) -> Key {
        let deadline = Instant::now() + delay;
        let f: Closure = Box::new(f);
        let mut inner = self.shared.lock();
        let slot = inner.free.pop().unwrap_or_else(|| {
            inner.slots.push((0, None));
            inner.slots.len() as u32 - 1
        });
        let (generation, place) = &mut inner.slots[slot as usize];
        *place = Some(f);
        let generation = *generation;
        inner.live += 1;
        let first = inner.heap.peek().is_none_or(|Reverse((head, ..))| deadline < *head);
        inner.heap.push(Reverse((deadline, slot, generation)));
        drop(inner);
        if first {
            self.shared.earlier.notify_one();
        }
        Key { slot, generation }
    }

    pub(super) fn cancel(&self, key: Key) -> bool {
        let mut inner = self.shared.lock();
        let closure = inner.take(key.slot, key.generation);
        if inner.heap.len() > 64 && inner.heap.len() > 2 * inner.live {
            let Inner { heap, slots, .. } = &mut *inner;
            heap.retain(|Reverse((_, slot, generation))| slots[*slot as usize].0 == *generation);
        }
        drop(inner);
        closure.is_some()
    }
}

impl Inner {
    fn take(&mut self, slot: u32, generation: u32) -> Option<Closure> {
        let (present, place) = &mut self.slots[slot as usize];
        if *present != generation {
            return None;
        }
        *present = present.wrapping_add(1);
        let closure = place.take();
        self.free.push(slot);
        self.live -= 1;
        closure
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drive(&self) {
        let mut inner = self.lock();
        while !inner.ended {
            let now = Instant::now();
            match inner.heap.peek() {
                None => inner = self.earlier.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(Reverse((deadline, ..))) if *deadline > now => {
                    let left = *deadline - now;
                    let waited = self.earlier.wait_timeout(inner, left);
                    inner = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => {
                    if let Some(Reverse((_, slot, generation))) = inner.heap.pop()
                        && let Some(closure) = inner.take(slot, generation)
                    {
                        drop(inner);
                        closure();
                        inner = self.lock();
                    }
                }
            }
        }
    }
}

impl Drop for HeapTimer {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.earlier.notify_one();
    }
}
