//! Arming and cancelling with a million timers pending: each thread replaces random ones of its own.
//!
//! - `arm_cancel_1t_mpairs_s`, `arm_cancel_2t_mpairs_s`: millions of pairs a second, of one thread and
//!   of two together. A pair cancels a timer and arms another with a closure (a sleep: drops one and
//!   polls another once), due at random within an hour from a minute on, so that none fires.
//! - `arm_ns`: nanoseconds for each of the first million, by one thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::heap::HeapTimer;
use super::{Figure, Numbers};

pub(super) const SUBJECTS: &[&str] =
    &["tourbillon", "tourbillon_sleep", "tokio_sleep", "tokio_util_delay_queue", "heap_thread"];

const PENDING: usize = 1_000_000;
const PAIRS: usize = 4_000_000;
const PAIRS_QUICK: usize = 1_000_000;

/// What closures of armed timers would do.
static FIRED: AtomicU64 = AtomicU64::new(0);

fn count() {
    FIRED.fetch_add(1, Ordering::Relaxed);
}

/// A timer that threads share.
trait Shared: Send + Sync + 'static {
    type Handle: Send;
    fn arm(&self, delay: Duration) -> Self::Handle;
    fn cancel(&self, handle: Self::Handle);
    /// Around the work of each thread.
    fn within(&self, work: impl FnOnce()) {
        work();
    }
}

struct Ours(tourbillon::Timer);

impl Shared for Ours {
    type Handle = tourbillon::JobHandle<()>;

    fn arm(&self, delay: Duration) -> Self::Handle {
        self.0.after(delay, count).expect("neither full nor shut down")
    }

    fn cancel(&self, handle: Self::Handle) {
        assert!(handle.cancel());
    }
}

struct OurSleep(tourbillon::Timer);

impl Shared for OurSleep {
    type Handle = Pin<Box<tourbillon::Sleep>>;

    fn arm(&self, delay: Duration) -> Self::Handle {
        polled(Box::pin(self.0.sleep(delay)))
    }

    fn cancel(&self, handle: Self::Handle) {
        drop(handle);
    }
}

struct Tokio(tokio::runtime::Runtime);

impl Shared for Tokio {
    type Handle = Pin<Box<tokio::time::Sleep>>;

    fn arm(&self, delay: Duration) -> Self::Handle {
        polled(Box::pin(tokio::time::sleep(delay)))
    }

    fn cancel(&self, handle: Self::Handle) {
        drop(handle);
    }

    fn within(&self, work: impl FnOnce()) {
        let _guard = self.0.enter();
        work();
    }
}

/// A sleep is armed when it is polled for the first time.
fn polled<S: Future>(mut sleep: Pin<Box<S>>) -> Pin<Box<S>> {
    assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    sleep
}

struct Queue {
    queue: Mutex<tokio_util::time::DelayQueue<Box<dyn FnOnce() + Send>>>,
    runtime: tokio::runtime::Runtime,
}

impl Shared for Queue {
    type Handle = tokio_util::time::delay_queue::Key;

    fn arm(&self, delay: Duration) -> Self::Handle {
        let count = Box::new(count);
        self.queue.lock().expect("no panic").insert(count, delay)
    }

    fn cancel(&self, handle: Self::Handle) {
        let removed = self.queue.lock().expect("no panic").remove(&handle);
        drop(removed);
    }

    fn within(&self, work: impl FnOnce()) {
        let _guard = self.runtime.enter();
        work();
    }
}

impl Shared for HeapTimer {
    type Handle = super::heap::Key;

    fn arm(&self, delay: Duration) -> Self::Handle {
        self.after(delay, count)
    }

    fn cancel(&self, handle: Self::Handle) {
        assert!(HeapTimer::cancel(self, handle));
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?)
}

pub(super) fn measure(subject: &str, quick: bool) -> Result<Vec<Figure>> {
    let pairs = if quick { PAIRS_QUICK } else { PAIRS };
    match subject {
        "tourbillon" => Ok(both(|| Ours(tourbillon::Timer::new()), pairs)),
        "tourbillon_sleep" => Ok(both(|| OurSleep(tourbillon::Timer::new()), pairs)),
        "tokio_sleep" => {
            let (one, two) = (runtime()?, runtime()?);
            let mut runtimes = [one, two].into_iter();
            Ok(both(move || Tokio(runtimes.next().expect("two are used")), pairs))
        }
        "tokio_util_delay_queue" => {
            let mut runtimes = [runtime()?, runtime()?].into_iter();
            let fresh = move || {
                let runtime = runtimes.next().expect("two are used");
                let queue = Mutex::new(tokio_util::time::DelayQueue::new());
                Queue { queue, runtime }
            };
            Ok(both(fresh, pairs))
        }
        "heap_thread" => Ok(both(HeapTimer::new, pairs)),
        other => bail!("no such subject: {other}"),
    }
}

fn both<S: Shared>(mut fresh: impl FnMut() -> S, pairs: usize) -> Vec<Figure> {
    let (arm, one) = threads(fresh(), 1, pairs);
    let (_, two) = threads(fresh(), 2, pairs);
    vec![
        ("arm_cancel_1t_mpairs_s", "M/s", one),
        ("arm_cancel_2t_mpairs_s", "M/s", two),
        ("arm_ns", "ns", arm),
    ]
}

/// Nanoseconds of arming, and millions of pairs a second.
fn threads<S: Shared>(shared: S, threads: usize, pairs: usize) -> (f64, f64) {
    let shared = Arc::new(shared);
    let barrier = Arc::new(Barrier::new(threads));
    let work = (0..threads as u64).map(|seed| {
        let (shared, barrier) = (Arc::clone(&shared), Arc::clone(&barrier));
        thread::spawn(move || {
            let mut taken = (0.0, Duration::ZERO);
            shared.within(|| taken = one_thread(&*shared, seed, &barrier, threads, pairs));
            taken
        })
    });
    let work: Vec<_> = work.collect();
    let taken: Vec<_> = work.into_iter().map(|w| w.join().expect("no panic")).collect();
    let slowest = taken.iter().map(|(_, time)| *time).max().unwrap_or_default();
    (taken[0].0, pairs as f64 / slowest.as_secs_f64() / 1e6)
}

fn one_thread<S: Shared>(
    shared: &S,
    seed: u64,
    barrier: &Barrier,
    threads: usize,
    pairs: usize,
) -> (f64, Duration) {
    let mut numbers = Numbers::new(seed);
    let mut delay = move || Duration::from_micros(60_000_000 + numbers.below(3_600_000_000));
    let (own, pairs) = (PENDING / threads, pairs / threads);
    let begun = Instant::now();
    let mut handles: Vec<Option<S::Handle>> = (0..own).map(|_| Some(shared.arm(delay()))).collect();
    let arm = begun.elapsed().as_nanos() as f64 / own as f64;
    let mut which = Numbers::new(seed + 1_000);
    barrier.wait();
    let begun = Instant::now();
    for _ in 0..pairs {
        let place = &mut handles[which.below(own as u64) as usize];
        if let Some(old) = place.take() {
            shared.cancel(old);
        }
        *place = Some(shared.arm(delay()));
    }
    let time = begun.elapsed();
    barrier.wait();
    (arm, time)
}
