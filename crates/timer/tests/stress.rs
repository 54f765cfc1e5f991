//! Real threads on shared lanes. What is asserted does not depend on how they interleave: every timer
//! is either cancelled or fired and that once, none fires early, none is lost, no wake-up is
//! lost, and no memory stays behind. Time is a counter that the tests own.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, Thread};
use tourbillon::lanes::{Handle, Lanes};

/// A timer's handle and number, as threads pass them to each other.
type Passed = (Handle, usize);

/// A small generator of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % n
    }
}

/// Counts itself while it lives, and says what became of it.
struct Timer {
    number: usize,
    alive: Arc<AtomicUsize>,
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

const PENDING: u8 = 0;
const CANCELLED: u8 = 1;
const FIRED: u8 = 2;

/// Writes down what became of a timer, which happens once.
fn ended(fates: &[AtomicU8], number: usize, how: u8) {
    let before = fates[number].swap(how, Ordering::Relaxed);
    assert_eq!(before, PENDING, "timer {number}: {how} after {before}");
}

/// Arms, resets and cancels at random, handing some handles to `others` and taking theirs. Gives
/// the handles that are left.
fn churn(
    lanes: &Lanes<Timer>,
    fates: &[AtomicU8],
    alive: &Arc<AtomicUsize>,
    clock: &AtomicU64,
    numbers: std::ops::Range<usize>,
    others: (&mpsc::Sender<Passed>, &mpsc::Receiver<Passed>),
) -> Vec<Passed> {
    let mut random = Numbers(numbers.start as u64 + 1);
    let mut held = Vec::new();
    for number in numbers {
        let deadline = clock.load(Ordering::Relaxed) + random.below(2_000);
        alive.fetch_add(1, Ordering::Relaxed);
        let timer = Timer { number, alive: alive.clone() };
        let handle = lanes.insert_at(deadline, timer).expect("there is room");
        match random.below(4) {
            0 => others.0.send((handle, number)).expect("the other thread waits for the end"),
            _ => held.push((handle, number)),
        }
        held.extend(others.1.try_iter());
        while held.len() > 500 {
            let at = random.below(held.len() as u64) as usize;
            match random.below(3) {
                0 => {
                    // A stale handle is fine: the timer has fired.
                    let deadline = clock.load(Ordering::Relaxed) + random.below(2_000);
                    lanes.reset(held[at].0, deadline);
                }
                _ => {
                    let (handle, number) = held.swap_remove(at);
                    cancel(lanes, fates, handle, number);
                }
            }
        }
    }
    held
}

/// Cancels, and holds the lanes to what they answer.
fn cancel(lanes: &Lanes<Timer>, fates: &[AtomicU8], handle: Handle, number: usize) {
    if let Some(timer) = lanes.cancel(handle) {
        assert_eq!(timer.number, number, "a stranger's timer was cancelled");
        ended(fates, number, CANCELLED);
        assert!(lanes.cancel(handle).is_none());
    }
}

fn each_timer_ends_once(lanes: usize, threads: usize, each: usize) {
    let (lanes, mut driver) = Lanes::builder().lanes(lanes).batch(7).build(|| {});
    let fates: Vec<AtomicU8> = (0..threads * each).map(|_| AtomicU8::new(PENDING)).collect();
    let alive = Arc::new(AtomicUsize::new(0));
    let clock = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| mpsc::channel()).unzip();

    thread::scope(|scope| {
        let driving = scope.spawn(|| {
            let mut fire = |now: u64, budget: usize| {
                driver.advance(now, budget, |handle, deadline, timer: Timer| {
                    assert!(deadline <= now, "fired {deadline} at {now}, early");
                    assert!(lanes.cancel(handle).is_none(), "its handle is stale");
                    ended(&fates, timer.number, FIRED);
                })
            };
            while !stop.load(Ordering::Acquire) {
                let now = clock.fetch_add(3, Ordering::Relaxed) + 3;
                while !fire(now, 50).finished {}
            }
            assert!(fire(clock.load(Ordering::Relaxed) + 2_000, usize::MAX).finished);
        });
        let workers: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(n, receiver)| {
                let others = senders[(n + 1) % threads].clone();
                let (lanes, fates, alive, clock) = (&lanes, &fates, &alive, &clock);
                scope.spawn(move || {
                    let numbers = n * each..(n + 1) * each;
                    let mut left = churn(lanes, fates, alive, clock, numbers, (&others, &receiver));
                    left.truncate(left.len() / 2);
                    for (handle, number) in left {
                        cancel(lanes, fates, handle, number);
                    }
                    // Kept open until all have ended, so that every send finds its receiver.
                    receiver
                })
            })
            .collect();
        drop(senders);
        let receivers: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        stop.store(true, Ordering::Release);
        driving.join().expect("the driver does not panic");
        assert!(receivers.iter().all(Result::is_ok), "a worker panicked");
    });

    for (number, fate) in fates.iter().enumerate() {
        assert_ne!(fate.load(Ordering::Relaxed), PENDING, "timer {number} was lost");
    }
    assert_eq!(alive.load(Ordering::Relaxed), 0, "values are still held");
    lanes.check_invariants();
    lanes.compact();
    let held: usize = lanes.snapshot().iter().map(|lane| lane.capacity).sum();
    assert_eq!((lanes.len(), held), (0, 0));
}

#[test]
fn each_timer_ends_once_on_one_lane() {
    each_timer_ends_once(1, 3, 20_000);
}

#[test]
fn each_timer_ends_once_on_four_lanes() {
    each_timer_ends_once(4, 4, 20_000);
}

#[test]
fn each_timer_ends_once_on_more_lanes_than_threads() {
    each_timer_ends_once(16, 2, 20_000);
}

/// The driver parks without a time limit whenever it is told that it may, so one lost wake-up hangs
/// the test.
#[test]
fn a_parked_driver_is_woken_for_every_earlier_deadline() {
    const THREADS: usize = 3;
    const ROUNDS: u64 = 5_000;
    let driving: Arc<OnceLock<Thread>> = Arc::default();
    let parked = driving.clone();
    let (lanes, mut driver) = Lanes::<mpsc::Sender<()>>::builder().lanes(2).build(move || {
        parked.get().expect("it sleeps, so it is known").unpark();
    });
    let rounds = THREADS as u64 * ROUNDS;
    thread::scope(|scope| {
        scope.spawn(move || {
            driving.get_or_init(thread::current);
            let (mut fired, mut now) = (0, 1);
            while fired < rounds {
                let done = driver.advance(now, 16, |_, _, answer| {
                    answer.send(()).expect("somebody waits for it");
                });
                fired += done.fired as u64;
                // It is always the tick after the one that the driver has seen, and timers are
                // armed for this tick or a past one, or for one that never comes.
                if driver.prepare_sleep().is_none_or(|tick| tick > now) && fired < rounds {
                    thread::park();
                    now += 1;
                }
            }
        });
        for n in 0..THREADS {
            let lanes = &lanes;
            scope.spawn(move || {
                let (answer, answers) = mpsc::channel();
                let mut random = Numbers(n as u64);
                for _ in 0..ROUNDS {
                    let far = u64::MAX - random.below(1_000);
                    let never = lanes.insert_at(far, answer.clone()).expect("there is room");
                    let deadline = random.below(2);
                    if random.below(2) == 0 {
                        lanes.insert_at(deadline, answer.clone()).expect("there is room");
                        answers.recv().expect("it fires");
                        assert!(lanes.cancel(never).is_some());
                    } else {
                        assert!(lanes.reset(never, deadline));
                        answers.recv().expect("it fires");
                        assert!(lanes.cancel(never).is_none());
                    }
                }
            });
        }
    });
    assert!(lanes.is_empty());
}

/// All threads insert at once into lanes with little room: never more than that is pending, and what
/// was accepted is all that fires.
#[test]
fn a_bound_holds_under_contention() {
    const ROOM: usize = 10;
    let (lanes, mut driver) = Lanes::builder().lanes(4).max_pending(ROOM).build(|| {});
    let accepted = AtomicU64::new(0);
    let fired = AtomicU64::new(0);
    let running = AtomicUsize::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..20_000 {
                    match lanes.insert_at(0, n) {
                        Ok(_) => drop(accepted.fetch_add(1, Ordering::Relaxed)),
                        Err(full) => assert_eq!(full.into_value(), n),
                    }
                }
                running.fetch_sub(1, Ordering::Release);
            });
        }
        scope.spawn(|| {
            let mut ends = false;
            while !ends {
                ends = running.load(Ordering::Acquire) == 0;
                assert!(lanes.len() <= ROOM);
                driver.advance(1, usize::MAX, |_, _, _| {
                    fired.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
    });
    assert_eq!(accepted.into_inner(), fired.into_inner());
    assert!(lanes.is_empty());
}
