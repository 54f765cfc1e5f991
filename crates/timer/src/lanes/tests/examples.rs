//! What lanes and driver promise, one promise a test.

use crate::lanes::{Driver, Full, Lanes, hint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Lanes that are never slept on.
fn lanes<T>(count: usize, batch: usize) -> (Lanes<T>, Driver<T>) {
    Lanes::builder().lanes(count).batch(batch).build(|| panic!("nobody sleeps"))
}

/// Inserts into a certain lane.
fn insert_in<T>(lanes: &Lanes<T>, lane: usize, deadline: u64, value: T) -> super::super::Handle {
    hint::set(lane);
    let handle = lanes.insert_at(deadline, value).expect("there is room");
    assert_eq!(handle.lane(), lane);
    handle
}

fn fire(driver: &mut Driver<&'static str>, now: u64) -> Vec<&'static str> {
    let mut fired = Vec::new();
    assert!(driver.advance(now, usize::MAX, |_, _, value| fired.push(value)).finished);
    fired
}

#[test]
fn ticks_go_before_lanes_and_lanes_before_turns() {
    let (lanes, mut driver) = lanes(4, 64);
    for (lane, deadline, value) in
        [(3, 5, "a"), (0, 9, "d"), (1, 5, "b"), (1, 5, "c"), (2, 7, "e"), (0, 5, "f"), (1, 8, "g")]
    {
        insert_in(&lanes, lane, deadline, value);
    }
    assert_eq!(fire(&mut driver, 8), ["f", "b", "c", "a", "e", "g"]);
    assert_eq!(fire(&mut driver, 9), ["d"]);
}

#[test]
fn what_a_callback_inserts_takes_its_place_in_the_order() {
    for batch in [1, 64] {
        let (lanes, mut driver) = lanes(2, batch);
        for (lane, deadline, value) in [(1, 5, "five"), (0, 6, "six"), (1, 7, "seven")] {
            insert_in(&lanes, lane, deadline, value);
        }
        let mut fired = Vec::new();
        driver.advance(10, usize::MAX, |_, _, value| {
            fired.push(value);
            if value == "five" {
                insert_in(&lanes, 1, 6, "also six");
                insert_in(&lanes, 0, 2, "overdue");
            }
        });
        assert_eq!(fired, ["five", "overdue", "six", "also six", "seven"]);
    }
}

#[test]
fn cancel_is_truthful_within_a_batch() {
    let (lanes, mut driver) = lanes(1, 2);
    let handles = ["a", "b", "c", "d"].map(|value| insert_in(&lanes, 0, 5, value));
    let mut fired = Vec::new();
    driver.advance(5, usize::MAX, |_, _, value| {
        fired.push(value);
        if value == "a" {
            // "b" is in the batch with "a"; "c" is not.
            assert_eq!(
                handles.map(|handle| lanes.cancel(handle)),
                [None, None, Some("c"), Some("d")]
            );
        }
    });
    assert_eq!(fired, ["a", "b"]);
    assert!(lanes.is_empty());
}

#[test]
fn one_wake_for_a_burst() {
    let wakes = Arc::new(AtomicUsize::new(0));
    let count = wakes.clone();
    let (lanes, mut driver) = Lanes::builder().lanes(2).build(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let handle = insert_in(&lanes, 0, 100, 0);
    assert_eq!(driver.prepare_sleep(), Some(100));
    insert_in(&lanes, 1, 100, 0);
    insert_in(&lanes, 0, 2_000, 0);
    assert_eq!(wakes.load(Ordering::Relaxed), 0, "nothing is earlier than the sleep");
    for deadline in (1..50).rev() {
        insert_in(&lanes, deadline as usize % 2, deadline, 0);
    }
    assert!(lanes.reset(handle, 0));
    assert_eq!(wakes.load(Ordering::Relaxed), 1);
    // Awake, it sees everything by itself.
    assert_eq!(driver.advance(49, usize::MAX, |_, _, _| {}).fired, 50);
    insert_in(&lanes, 0, 60, 0);
    assert_eq!(wakes.load(Ordering::Relaxed), 1);
    assert_eq!(driver.prepare_sleep(), Some(60));
    assert!(lanes.reset(insert_in(&lanes, 1, 70, 0), 59));
    assert_eq!(wakes.load(Ordering::Relaxed), 2);
}

#[test]
fn a_lone_timer_that_was_cancelled_or_put_off_wakes_nobody() {
    let (lanes, mut driver) = lanes(1, 64);
    let handle = insert_in(&lanes, 0, 100, "answer");
    assert!(lanes.reset(handle, 300));
    assert_eq!(driver.prepare_sleep(), Some(300));
    assert_eq!(lanes.cancel(handle), Some("answer"));
    assert_eq!(driver.prepare_sleep(), None);
}

#[test]
fn a_full_set_of_lanes_gives_the_value_back() {
    let (lanes, mut driver) = Lanes::builder().lanes(4).max_pending(10).build(|| {});
    let handles: Vec<_> =
        (0..10).map(|n| lanes.insert_at(5, n).expect("there is room for ten")).collect();
    let refused = lanes.insert_at(5, 10).expect_err("there is none for eleven");
    assert_eq!((refused.max_pending(), lanes.len()), (10, 10));
    assert_eq!(
        refused.to_string(),
        "no room for another timer: 10 are pending, which is the most allowed (max_pending)"
    );
    assert_eq!(refused.into_value(), 10);
    assert_eq!(lanes.cancel(handles[3]), Some(3));
    lanes.insert_at(5, 11).expect("there is room again");
    assert!(lanes.insert_at(5, 12).is_err());
    assert_eq!(driver.advance(5, 1, |_, _, _| {}).fired, 1);
}

#[test]
fn no_room_at_all_is_legal() {
    let (lanes, _driver) = Lanes::builder().max_pending(0).build(|| {});
    assert_eq!(lanes.insert_at(1, "x").map_err(Full::into_value), Err("x"));
}

#[test]
fn a_panicking_callback_loses_nothing_but_its_own_timer() {
    let (lanes, mut driver) = lanes(1, 64);
    for value in ["a", "boom", "b", "c"] {
        insert_in(&lanes, 0, 5, value);
    }
    let mut fired = Vec::new();
    let thrown = catch_unwind(AssertUnwindSafe(|| {
        driver.advance(5, usize::MAX, |_, _, value| {
            assert_ne!(value, "boom");
            fired.push(value);
        });
    }));
    assert!(thrown.is_err());
    assert_eq!(fired, ["a"]);
    assert_eq!(driver.prepare_sleep(), Some(5), "there is something left to do");
    let done = driver.advance(5, 1, |_, _, value| fired.push(value));
    assert_eq!((done.fired, done.finished), (1, false));
    assert!(driver.advance(5, 1, |_, _, value| fired.push(value)).finished);
    assert_eq!(fired, ["a", "b", "c"]);
}

/// Its destructor needs every lane.
struct Nosy(Lanes<Nosy>);

impl Drop for Nosy {
    fn drop(&mut self) {
        self.0.compact();
    }
}

#[test]
fn values_are_dropped_outside_of_the_locks() {
    let (lanes, mut driver) = Lanes::builder().lanes(1).build(|| {});
    let insert = || lanes.insert_at(5, Nosy(lanes.clone())).expect("there is room");
    lanes.cancel(insert());
    insert();
    lanes.clear();
    insert();
    lanes.drain(|_, _, _| {});
    insert();
    driver.advance(5, usize::MAX, |_, _, _| {});
    assert!(lanes.is_empty());
}

#[test]
fn a_round_that_feeds_itself_ends_with_its_budget() {
    let (lanes, mut driver) = lanes(2, 64);
    insert_in(&lanes, 0, 1, ());
    let done = driver.advance(1, 1_000, |_, _, ()| {
        insert_in(&lanes, 0, 0, ());
    });
    assert_eq!((done.fired, done.finished), (1_000, false));
    assert_eq!(lanes.len(), 1);
}

#[test]
fn the_end_of_time_is_a_legal_deadline() {
    let (lanes, mut driver) = lanes(2, 64);
    insert_in(&lanes, 1, u64::MAX, "end");
    insert_in(&lanes, 0, u64::MAX, "the");
    assert_eq!(driver.prepare_sleep(), Some(u64::MAX));
    assert_eq!(fire(&mut driver, u64::MAX - 1), [""; 0]);
    assert_eq!(fire(&mut driver, u64::MAX), ["the", "end"]);
    insert_in(&lanes, 0, 3, "afterwards");
    assert_eq!(fire(&mut driver, u64::MAX), ["afterwards"]);
}

#[test]
fn counts_of_lanes() {
    for (given, expected) in [(0, 1), (1, 1), (3, 4), (64, 64), (1_000, 64)] {
        assert_eq!(lanes::<()>(given, 1).0.snapshot().len(), expected);
    }
    let default = Lanes::<()>::builder().build(|| {}).0.snapshot().len();
    assert!(default.is_power_of_two() && default <= 64);
}

#[test]
fn a_handle_of_other_lanes_is_stale_at_worst() {
    let (many, _many_driver) = lanes(8, 1);
    let (one, _one_driver) = lanes::<&str>(1, 1);
    let handle = insert_in(&many, 7, 5, "x");
    assert_eq!(one.cancel(handle), None);
    assert!(!one.reset(handle, 1));
    assert_eq!(one.deadline(handle), None);
}

#[test]
fn both_sides_go_to_other_threads() {
    fn is_sent<T: Send>(_: &T) {}
    fn is_shared<T: Send + Sync>(_: &T) {}
    // A value needs to be sent only.
    let (lanes, driver) = lanes::<std::cell::Cell<u8>>(1, 1);
    is_shared(&lanes);
    is_sent(&driver);
}
