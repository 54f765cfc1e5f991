//! What users of Kafka's `DelayedOperationPurgatory` rely on, and what is different here.
//!
//! The same: an operation that is satisfied already is completed at once; others are watched under
//! several keys and completed by the first check that finds them satisfied, or expire; each exactly once
//! however many threads check; checks under the operation's own lock cannot deadlock, and none is lost;
//! cancelling by key.
//!
//! Different, on purpose: what completed is out of the lists and of the timer at once, so there is no
//! reaper and no purge interval, and the counts are exact. An operation does not complete itself: it says
//! whether it is satisfied.

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use common::{Log, SOON, manual, ms, pass};
use tourbillon::purgatory::{Completion, Operation, Purgatory, Watch};
use tourbillon::{Refused, Timer};

/// Satisfied when its flag is set; writes down how it was completed.
struct Flagged {
    name: u32,
    flag: Arc<AtomicBool>,
    done: Log<(u32, Completion)>,
}

impl Operation for Flagged {
    fn is_satisfied(&mut self) -> bool {
        self.flag.load(Ordering::SeqCst)
    }

    fn complete(self, how: Completion) {
        self.done.add((self.name, how));
    }
}

fn flagged(name: u32, done: &Log<(u32, Completion)>) -> (Flagged, Arc<AtomicBool>) {
    let flag = Arc::new(AtomicBool::new(false));
    (Flagged { name, flag: Arc::clone(&flag), done: done.clone() }, flag)
}

#[test]
fn what_is_satisfied_is_completed_at_once_and_the_rest_when_checked() {
    let (timer, _clock) = manual();
    let purgatory = Purgatory::new(timer.clone());
    let done = Log::default();
    let (first, flag) = flagged(1, &done);
    flag.store(true, Ordering::SeqCst);
    assert_eq!(purgatory.watch(first, ["a"], ms(100)).expect("room"), Watch::Completed);
    assert_eq!(done.take(), [(1, Completion::Satisfied)]);
    assert_eq!((purgatory.len(), purgatory.keys(), timer.len()), (0, 0, 0));

    let (second, flag_2) = flagged(2, &done);
    let (third, flag_3) = flagged(3, &done);
    assert_eq!(purgatory.watch(second, ["a", "b"], ms(100)).expect("room"), Watch::Waiting);
    assert_eq!(purgatory.watch(third, ["a", "a"], ms(100)).expect("room"), Watch::Waiting);
    assert_eq!((purgatory.watched("a"), purgatory.watched("b"), purgatory.len()), (2, 1, 2));
    assert_eq!(purgatory.check("a"), 0);
    flag_3.store(true, Ordering::SeqCst);
    assert_eq!((purgatory.check("b"), purgatory.check("c"), purgatory.check("a")), (0, 0, 1));
    flag_2.store(true, Ordering::SeqCst);
    assert_eq!((purgatory.check("b"), purgatory.check("a")), (1, 0));
    assert_eq!(done.take(), [(3, Completion::Satisfied), (2, Completion::Satisfied)]);
    assert_eq!((purgatory.len(), purgatory.keys(), timer.len()), (0, 0, 0), "nothing stays");
}

#[test]
fn what_is_not_satisfied_expires_in_order() {
    let (timer, clock) = manual();
    let purgatory = Purgatory::new(timer.clone());
    let done = Log::default();
    for (name, limit) in [(1, 20), (2, 10), (3, 10)] {
        let (operation, _) = flagged(name, &done);
        assert_eq!(
            purgatory.watch(operation, [name % 2], ms(limit)).expect("room"),
            Watch::Waiting
        );
    }
    pass(&timer, &clock, ms(9));
    assert_eq!(done.len(), 0);
    pass(&timer, &clock, ms(1));
    assert_eq!(done.take(), [(2, Completion::Expired), (3, Completion::Expired)]);
    assert_eq!((purgatory.len(), purgatory.keys()), (1, 1));
    pass(&timer, &clock, ms(10));
    assert_eq!(done.take(), [(1, Completion::Expired)]);
    assert_eq!((purgatory.len(), purgatory.keys(), timer.len()), (0, 0, 0));
}

#[test]
fn operations_of_one_key_are_asked_in_the_order_in_which_they_came() {
    let purgatory = Purgatory::new(manual().0);
    let (done, all) = (Log::default(), Arc::new(AtomicBool::new(false)));
    for name in 0..100 {
        let operation = Flagged { name, flag: Arc::clone(&all), done: done.clone() };
        purgatory.watch(operation, ["key"], SOON).expect("room");
    }
    all.store(true, Ordering::SeqCst);
    assert_eq!(purgatory.check("key"), 100);
    let names: Vec<u32> = done.take().into_iter().map(|(name, _)| name).collect();
    assert!(names.is_sorted());
}

#[test]
fn cancelling_gives_operations_back() {
    let (timer, clock) = manual();
    let purgatory = Purgatory::new(timer.clone());
    let done = Log::default();
    for name in 0..3 {
        let (operation, _) = flagged(name, &done);
        purgatory.watch(operation, [name % 2, 10 + name], ms(10)).expect("room");
    }
    let back: Vec<u32> = purgatory.cancel(&0).into_iter().map(|operation| operation.name).collect();
    assert_eq!(back, [0, 2]);
    assert_eq!((purgatory.len(), purgatory.watched(&10), purgatory.watched(&11)), (1, 0, 1));
    pass(&timer, &clock, ms(10));
    assert_eq!(done.take(), [(1, Completion::Expired)]);
}

#[test]
fn a_limit_that_the_timer_refuses_is_told() {
    let timer = Timer::builder().max_pending(1).build().expect("a thread");
    let purgatory = Purgatory::new(timer.clone());
    let done = Log::default();
    purgatory.watch(flagged(1, &done).0, ["a"], SOON).expect("room for one");
    let refused = purgatory.watch(flagged(2, &done).0, ["a"], SOON).expect_err("no room");
    assert_eq!((refused.why, refused.operation.name), (Refused::Full { max_pending: 1 }, 2));
    assert_eq!((purgatory.len(), purgatory.watched("a")), (1, 1));
}

/// Calls back into the purgatory while it is asked.
struct Nested {
    purgatory: Purgatory<&'static str, Nested>,
    asked: usize,
    done: Log<usize>,
}

impl Operation for Nested {
    fn is_satisfied(&mut self) -> bool {
        self.asked += 1;
        if self.asked < 4 {
            self.purgatory.check("key");
        }
        self.asked >= 6
    }

    fn complete(self, _: Completion) {
        self.purgatory.check("key");
        self.done.add(self.asked);
    }
}

/// Kafka's operations deadlocked when a check under one's lock led to a check of the same one.
#[test]
fn checking_while_being_asked_neither_deadlocks_nor_is_lost() {
    let purgatory = Purgatory::new(manual().0);
    let done = Log::default();
    let nested = Nested { purgatory: purgatory.clone(), asked: 0, done: done.clone() };
    purgatory.watch(nested, ["key"], SOON).expect("room");
    // Asked at first, again when watched, and once more for each check that it made meanwhile.
    while done.len() == 0 {
        purgatory.check("key");
    }
    assert_eq!(done.take(), [6]);
    assert!(purgatory.is_empty());
}

/// Counts down with each check that finds a token, as replicas that acknowledge do.
struct Counted {
    tokens: Arc<AtomicUsize>,
    completed: Arc<AtomicUsize>,
}

impl Operation for Counted {
    fn is_satisfied(&mut self) -> bool {
        self.tokens.load(Ordering::SeqCst) == 0
    }

    fn complete(self, _: Completion) {
        self.completed.fetch_add(1, Ordering::SeqCst);
    }
}

/// Whatever threads watch, check and let expire at the same time, each operation is completed exactly
/// once, and the check after the last change is not lost. (It was once in some thousand rounds: who looked
/// under an operation's lock whether it was over kept a check out that then relied on being made up for.)
#[test]
fn exactly_once_among_threads() {
    let timer = Timer::new();
    let purgatory: Purgatory<usize, Counted> = Purgatory::new(timer.clone());
    let completed = Arc::new(AtomicUsize::new(0));
    let rounds = 500;
    for round in 0..rounds {
        let threads = 3;
        let tokens = Arc::new(AtomicUsize::new(threads));
        let barrier = Barrier::new(threads + 1);
        thread::scope(|scope| {
            for _ in 0..threads {
                let (purgatory, tokens, barrier) = (&purgatory, &tokens, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    tokens.fetch_sub(1, Ordering::SeqCst);
                    purgatory.check(&(round % 7));
                });
            }
            let operation =
                Counted { tokens: Arc::clone(&tokens), completed: Arc::clone(&completed) };
            barrier.wait();
            // Every third may expire at any moment of this.
            let limit = if round % 3 == 0 { Duration::from_micros(20) } else { SOON };
            purgatory.watch(operation, [round % 7, 100], limit).expect("room");
        });
        assert!(timer.wait_idle(SOON));
        if round % 3 != 0 {
            assert!(purgatory.is_empty(), "round {round}: a change was missed");
        }
    }
    let end = std::time::Instant::now() + SOON;
    while completed.load(Ordering::SeqCst) < rounds {
        assert!(std::time::Instant::now() < end, "some were never completed");
        thread::yield_now();
    }
    assert_eq!(completed.load(Ordering::SeqCst), rounds);
    assert_eq!((purgatory.keys(), purgatory.len()), (0, 0));
}
