//! Every interleaving that matters, tried by loom: `cargo xtask loom`.
//!
//! Each model has as few threads and steps as show the race. What the wheel does under its lock is one
//! step for loom, so models of two lanes and three threads end within seconds. A lost wake-up
//! shows as a deadlock, which loom reports.
#![cfg(loom)]

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use tourbillon::lanes::{Driver, Lanes};

/// Lanes whose waker must not be called.
fn awake(lanes: usize) -> (Lanes<u32>, Driver<u32>) {
    Lanes::builder().lanes(lanes).build(|| panic!("nobody sleeps"))
}

fn fire(driver: &mut Driver<u32>, now: u64) -> Vec<(u64, u32)> {
    let mut fired = Vec::new();
    let done = driver.advance(now, usize::MAX, |_, deadline, value| fired.push((deadline, value)));
    assert!(done.finished);
    fired
}

/// What a thread's token is to `park`: rung before somebody waits, it is heard all the same. It never
/// rings by itself, so that a model can demand a reason for each waking.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.changed.wait(rung).unwrap();
        }
        *rung = false;
    }
}

/// Lanes whose driver can wait for the waker, and how often it was called.
struct Sleepy {
    lanes: Lanes<u32>,
    driver: Driver<u32>,
    bell: Arc<Bell>,
    wakes: Arc<AtomicUsize>,
}

fn sleepy(lanes: usize) -> Sleepy {
    let bell = Arc::new(Bell::default());
    let wakes = Arc::new(AtomicUsize::new(0));
    let (ring, count) = (bell.clone(), wakes.clone());
    let (lanes, driver) = Lanes::builder().lanes(lanes).build(move || {
        count.fetch_add(1, Ordering::Relaxed);
        ring.ring();
    });
    Sleepy { lanes, driver, bell, wakes }
}

/// For models too large to try everything: at most three switches that no thread asked for. Faults
/// that need more are rare (Musuvathi and Qadeer, "Iterative context bounding", PLDI 2007).
fn bounded(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// The value is the canceller's exactly when the timer does not fire.
#[test]
fn cancel_against_fire() {
    loom::model(|| {
        let (lanes, mut driver) = awake(1);
        let handle = lanes.insert_at(5, 7).unwrap();
        let canceller = thread::spawn(move || lanes.cancel(handle));
        let fired = fire(&mut driver, 5);
        match canceller.join().unwrap() {
            Some(value) => assert_eq!((value, fired), (7, vec![])),
            None => assert_eq!(fired, [(5, 7)]),
        }
        assert_eq!(fire(&mut driver, 5), []);
    });
}

/// Of two cancellers and the driver, exactly one gets the value.
#[test]
fn two_cancellers_against_fire() {
    loom::model(|| {
        let (lanes, mut driver) = awake(1);
        let handle = lanes.insert_at(5, 7).unwrap();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let lanes = lanes.clone();
                thread::spawn(move || usize::from(lanes.cancel(handle).is_some()))
            })
            .collect();
        let fired = fire(&mut driver, 5).len();
        let cancelled: usize = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert_eq!(fired + cancelled, 1);
        assert!(lanes.is_empty());
    });
}

/// A timer that was reset in time fires at its new deadline only, one that was not has fired.
#[test]
fn reset_against_fire() {
    loom::model(|| {
        let (lanes, mut driver) = awake(1);
        let handle = lanes.insert_at(5, 7).unwrap();
        let other = thread::spawn(move || lanes.reset(handle, 9));
        let first = fire(&mut driver, 5);
        let was_reset = other.join().unwrap();
        let second = fire(&mut driver, 9);
        if was_reset {
            assert_eq!((first, second), (vec![], vec![(9, 7)]));
        } else {
            assert_eq!((first, second), (vec![(5, 7)], vec![]));
        }
    });
}

/// The driver goes to sleep while somebody arms for an earlier time, in another lane than the timer it
/// knows of: it is told, or it has seen it.
#[test]
fn insert_against_going_to_sleep() {
    loom::model(|| {
        let Sleepy { lanes, mut driver, bell, wakes } = sleepy(2);
        lanes.insert_at(20, 1).unwrap();
        let inserter = thread::spawn(move || {
            lanes.insert_at(5, 2).unwrap();
        });
        if driver.prepare_sleep().is_none_or(|tick| tick > 5) {
            bell.wait();
        }
        assert_eq!(fire(&mut driver, 5), [(5, 2)]);
        inserter.join().unwrap();
        assert!(wakes.load(Ordering::Relaxed) <= 1);
        assert_eq!(driver.prepare_sleep(), Some(20));
    });
}

/// The same with nothing pending, and with a reset instead of an insertion.
#[test]
fn reset_against_going_to_sleep() {
    loom::model(|| {
        let Sleepy { lanes, mut driver, bell, wakes } = sleepy(1);
        let handle = lanes.insert_at(20, 1).unwrap();
        let other = thread::spawn(move || assert!(lanes.reset(handle, 5)));
        if driver.prepare_sleep().is_none_or(|tick| tick > 5) {
            bell.wait();
        }
        assert_eq!(fire(&mut driver, 5), [(5, 1)]);
        other.join().unwrap();
        assert!(wakes.load(Ordering::Relaxed) <= 1);
    });
}

/// Two threads arm while the driver sleeps. It is woken once, sees what was armed by then, and loses
/// neither, whichever of them woke it.
#[test]
fn two_inserters_wake_once() {
    loom::model(|| {
        let Sleepy { lanes, mut driver, bell, wakes } = sleepy(2);
        assert_eq!(driver.prepare_sleep(), None);
        let inserters: Vec<_> = (0..2)
            .map(|n| {
                let lanes = lanes.clone();
                thread::spawn(move || {
                    lanes.insert_at(5, n).unwrap();
                })
            })
            .collect();
        bell.wait();
        for inserter in inserters {
            inserter.join().unwrap();
        }
        assert_eq!(wakes.load(Ordering::Relaxed), 1);
        assert_eq!(fire(&mut driver, 5).len(), 2);
    });
}

/// One arms while the driver is awake and about to sleep again after the other woke it.
#[test]
fn an_inserter_after_the_wake_is_not_lost() {
    bounded(|| {
        let Sleepy { lanes, mut driver, bell, .. } = sleepy(1);
        assert_eq!(driver.prepare_sleep(), None);
        let inserters: Vec<_> = (0..2)
            .map(|n| {
                let lanes = lanes.clone();
                thread::spawn(move || {
                    lanes.insert_at(5, n).unwrap();
                })
            })
            .collect();
        let mut fired = 0;
        while fired < 2 {
            fired += fire(&mut driver, 5).len();
            if driver.prepare_sleep().is_none_or(|tick| tick > 5) && fired < 2 {
                bell.wait();
            }
        }
        for inserter in inserters {
            inserter.join().unwrap();
        }
    });
}

/// While the driver holds the lane that a thread would take, the thread takes the other.
#[test]
fn insert_against_fire() {
    loom::model(|| {
        let (lanes, mut driver) = awake(2);
        lanes.insert_at(5, 1).unwrap();
        let other = lanes.clone();
        let inserter = thread::spawn(move || other.insert_at(5, 2).unwrap());
        let mut fired = fire(&mut driver, 5);
        inserter.join().unwrap();
        fired.extend(fire(&mut driver, 5));
        fired.sort();
        assert_eq!(fired, [(5, 1), (5, 2)]);
        assert!(lanes.is_empty());
    });
}

/// Two insertions and room for one: one is refused and gets its value back.
#[test]
fn the_last_room_is_given_once() {
    loom::model(|| {
        let (lanes, _driver) = Lanes::builder().lanes(2).max_pending(1).build(|| {});
        let other = lanes.clone();
        let second = thread::spawn(move || other.insert_at(5, 2).map_err(|full| full.into_value()));
        let first = lanes.insert_at(5, 1).map_err(|full| full.into_value());
        let second = second.join().unwrap();
        match (first, second) {
            (Ok(_), Err(2)) | (Err(1), Ok(_)) => assert_eq!(lanes.len(), 1),
            both => panic!("one of two has room: {both:?}"),
        }
    });
}
