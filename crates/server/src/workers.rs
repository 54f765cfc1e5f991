//! Remembers which workers call this node, for people to look at.
//!
//! What always holds: bounded; nothing depends on it. A worker is known by namespace and name.
//! When there are too many, the one that was silent for longest is forgotten.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use tourbillon_node::api::Claimed;
use tourbillon_store::{AttemptToken, Time};
use tourbillon_wire::Worker;

use crate::show::at;

/// Queues and kinds remembered of one worker.
const SEEN_MAX: usize = 100;
/// Attempts followed at a time.
const HELD_MAX: usize = 100_000;

/// See the module.
pub(crate) struct Workers {
    most: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    workers: HashMap<Name, Known>,
    held: HashMap<AttemptToken, Held>,
}

type Name = (String, String);

/// A claim that a worker holds.
struct Held {
    by: Name,
    /// When it runs out unless a sign of life comes.
    until: Time,
    /// How much longer a sign of life makes it, in microseconds.
    period: i64,
}

struct Known {
    queues: BTreeSet<String>,
    kinds: BTreeSet<String>,
    first: Time,
    last: Time,
    running: u64,
    completed: u64,
}

impl Workers {
    pub(crate) fn new(most: usize) -> Workers {
        Workers { most, inner: Mutex::default() }
    }

    /// A worker asks for tasks.
    pub(crate) fn asks(&self, name: &Name, queue: &str, kinds: &[String], now: Time) {
        let mut inner = self.lock();
        if !inner.workers.contains_key(name) && inner.workers.len() >= self.most {
            let oldest = inner.workers.iter().min_by_key(|(_, w)| w.last).map(|(n, _)| n.clone());
            if let Some(oldest) = oldest {
                inner.workers.remove(&oldest);
                inner.held.retain(|_, held| held.by != oldest);
            }
        }
        let known = inner.workers.entry(name.clone()).or_insert_with(|| Known {
            queues: BTreeSet::new(),
            kinds: BTreeSet::new(),
            first: now,
            last: now,
            running: 0,
            completed: 0,
        });
        known.last = now;
        if known.queues.len() < SEEN_MAX && !known.queues.contains(queue) {
            known.queues.insert(queue.to_owned());
        }
        for kind in kinds {
            if known.kinds.len() < SEEN_MAX && !known.kinds.contains(kind) {
                known.kinds.insert(kind.clone());
            }
        }
    }

    /// A worker was handed tasks.
    pub(crate) fn takes(&self, name: &Name, claimed: &[Claimed], now: Time) {
        let mut inner = self.lock();
        let room = HELD_MAX.saturating_sub(inner.held.len());
        let mut taken = 0;
        for claim in claimed.iter().take(room) {
            let until = claim.open.claim_until.unwrap_or(Time::MAX);
            let period = until.since(claim.open.started_at);
            inner.held.insert(claim.token, Held { by: name.clone(), until, period });
            taken += 1;
        }
        if let Some(known) = inner.workers.get_mut(name) {
            known.running += taken;
            known.last = now;
        }
    }

    /// The holder of an attempt gave a sign of life.
    pub(crate) fn beats(&self, token: AttemptToken, now: Time) {
        let mut inner = self.lock();
        let Inner { workers, held } = &mut *inner;
        if let Some(held) = held.get_mut(&token) {
            held.until = now.plus(held.period);
            if let Some(known) = workers.get_mut(&held.by) {
                known.last = now;
            }
        }
    }

    /// An attempt is over: completed by its holder, or no longer its own.
    pub(crate) fn ends(&self, token: AttemptToken, completed: bool, now: Time) {
        let mut inner = self.lock();
        let Inner { workers, held } = &mut *inner;
        if let Some(known) = held.remove(&token).and_then(|h| workers.get_mut(&h.by)) {
            known.running = known.running.saturating_sub(1);
            known.completed += u64::from(completed);
            known.last = now;
        }
    }

    /// The workers of a namespace, by name.
    pub(crate) fn list(&self, namespace: &str, now: Time) -> Vec<Worker> {
        let mut inner = self.lock();
        let Inner { workers, held } = &mut *inner;
        held.retain(|_, claim| {
            if claim.until < now
                && let Some(known) = workers.get_mut(&claim.by)
            {
                known.running = known.running.saturating_sub(1);
            }
            claim.until >= now
        });
        let mine = inner.workers.iter().filter(|((n, _), _)| n == namespace);
        let mut list: Vec<Worker> = mine
            .map(|((_, worker), known)| Worker {
                worker: worker.clone(),
                queues: known.queues.iter().cloned().collect(),
                kinds: known.kinds.iter().cloned().collect(),
                first_seen_at: at(known.first),
                last_seen_at: at(known.last),
                running: known.running,
                completed: known.completed,
            })
            .collect();
        list.sort_by(|a, b| a.worker.cmp(&b.worker));
        list
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
