//! The engine in a hostile world: node, targets, workers, clients and clocks are played from a
//! seed around the real engine and the memory store, with late answers, failed and unknown
//! commits, crashes, lost shards and clock steps; what is promised is checked all along.
//!
//! One seed alone, with a trace:
//! `WORLD_SEED=7 cargo test -p tourbillon-engine --test world one_seed -- --nocapture`. Many:
//! `WORLD_SEEDS=20000 WORLD_FROM=1000 cargo test --release -p tourbillon-engine --test world`.

mod calendars;
mod check;
mod clients;
mod plant;
mod rng;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plant::Plant;
use world::{Counters, World};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Plays seeds on two threads and sums their counters; the first failure ends it.
fn play(from: u64, seeds: u64) -> Counters {
    let next = AtomicU64::new(from);
    let failed = AtomicBool::new(false);
    let all = Mutex::new(Counters::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + seeds {
                        break;
                    }
                    let run = std::panic::AssertUnwindSafe(|| World::new(seed, None, false).run());
                    match std::panic::catch_unwind(run) {
                        Ok(counters) => {
                            let mut all = all.lock().expect("no panic inside");
                            for (what, n) in counters {
                                *all.entry(what).or_default() += n;
                            }
                        }
                        Err(why) => {
                            failed.store(true, Ordering::Relaxed);
                            println!("seed {seed} failed");
                            std::panic::resume_unwind(why);
                        }
                    }
                }
            });
        }
    });
    all.into_inner().expect("no panic inside")
}

/// What must have happened for the suite to mean anything.
const RARE: [&str; 30] = [
    "adopted worker attempts",
    "backfills begun or ended",
    "backfills under way",
    "calendars changed",
    "calendars in use",
    "calendars removed",
    "cancelled",
    "cancelling",
    "cancels during a load",
    "completions that came too late",
    "crashes",
    "deferred schedule requests",
    "drains",
    "edited",
    "inbox rows",
    "late batches of an earlier life",
    "leases that ran out for a while",
    "loads of several shards",
    "memory full",
    "overdue loads",
    "planned anew by calendars",
    "pull-backs",
    "redriven",
    "reloads with running attempts",
    "replaced",
    "shards lost",
    "spills",
    "steps back",
    "steps forward",
    "unknown commits",
];

#[test]
fn everything_promised_holds_in_a_hostile_world() {
    let usual = if cfg!(debug_assertions) { 50 } else { 500 };
    let seeds = number("WORLD_SEEDS").unwrap_or(usual);
    let counters = play(number("WORLD_FROM").unwrap_or(0), seeds);
    for (what, n) in &counters {
        println!("{n:>10} {what}");
    }
    for what in RARE {
        assert!(counters.get(what).is_some_and(|n| *n > 0), "never seen: {what}");
    }
}

#[test]
fn one_seed() {
    let seed = number("WORLD_SEED");
    World::new(seed.unwrap_or(0), None, seed.is_some() && number("WORLD_QUIET").is_none()).run();
}

#[test]
fn planted_faults_are_caught() {
    for plant in Plant::ALL {
        let caught = (0..300).find(|seed| {
            let world = || World::new(*seed, Some(plant), false).run();
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(world)).is_err()
        });
        assert!(caught.is_some(), "{plant:?} is not seen within 300 seeds");
        println!("{plant:?} is seen at seed {}", caught.unwrap_or(0));
    }
}
