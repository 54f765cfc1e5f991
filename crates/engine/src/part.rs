//! One partition: its ready tasks in order, and the limits that are counted here.
//!
//! A ready task is in exactly one of three places: `push` (started by this node), `pull` (waits
//! for a worker's claim), or `blocked` (its concurrency key is at its limit). Tasks that are
//! being fetched or run are in none; they are counted in `running` and `per_key`.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};
use tourbillon_store::queue::Rate;
use tourbillon_store::{QueueRecord, Rank, Seq, Shard, Stub, StubFlags, Time};
use tourbillon_wheel::Key;

/// See the module.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) shard: Shard,
    push: BTreeSet<Rank>,
    pull: BTreeMap<u64, BTreeSet<Rank>>,
    blocked: FxHashMap<u64, BTreeSet<Rank>>,
    ready: usize,
    pub(crate) running: u32,
    per_key: FxHashMap<u64, u32>,
    /// Theoretical arrival time of the rate limit (GCRA), in microseconds times
    /// [`RATE_SCALE`], so that it keeps its meaning when the rate changes.
    arrival: i128,
    pub(crate) spill: Option<Spill>,
    /// Whether it is in the list of partitions to look at.
    pub(crate) flagged: bool,
    /// The timer for the rate limit, if one is set.
    pub(crate) rate_timer: Option<Key>,
}

/// Rows marked overdue that are not all in memory.
#[derive(Debug)]
pub(crate) struct Spill {
    /// Everything marked up to here is in memory; nothing that ranks after may start.
    pub(crate) after: Option<Rank>,
    pub(crate) loading: Option<u64>,
    /// Rows that changed while a load was under way.
    pub(crate) changed: FxHashSet<Seq>,
    /// The first rank of each write that marks rows and is not committed yet.
    pub(crate) marking: Vec<Rank>,
    /// The first rank that the load under way may have missed, because it was marked beside it.
    pub(crate) missed: Option<Rank>,
}

impl Spill {
    /// Nothing of what is marked is known to be in memory.
    pub(crate) fn unknown() -> Spill {
        Spill {
            after: None,
            loading: None,
            changed: FxHashSet::default(),
            marking: Vec::new(),
            missed: None,
        }
    }

    /// Rows from `first` on are being marked: they are not in memory.
    pub(crate) fn mark(&mut self, first: Rank) {
        self.marking.push(first);
        let before = just_before(first);
        self.after = self.after.map(|after| after.min(before));
        self.missed = Some(self.missed.map_or(first, |m| m.min(first)));
    }
}

/// Parts of a microsecond in which the rate limit is counted.
const RATE_SCALE: i128 = 1 << 20;

/// The rank just before, as an exclusive lower bound.
pub(crate) fn just_before(rank: Rank) -> Rank {
    Rank { seq: Seq(rank.seq.0.saturating_sub(1)), ..rank }
}

impl Part {
    pub(crate) fn new(shard: Shard) -> Part {
        Part {
            shard,
            push: BTreeSet::new(),
            pull: BTreeMap::new(),
            blocked: FxHashMap::default(),
            ready: 0,
            running: 0,
            per_key: FxHashMap::default(),
            arrival: i128::from(i64::MIN) * RATE_SCALE,
            spill: None,
            flagged: false,
            rate_timer: None,
        }
    }

    pub(crate) fn ready(&self) -> usize {
        self.ready
    }

    /// Ready tasks that the order allows to start.
    pub(crate) fn ready_in_order(&self) -> usize {
        match self.spill.as_ref().map(|s| s.after) {
            None => self.ready,
            Some(None) => 0,
            Some(Some(after)) => {
                let blocked = self.blocked.values();
                let sets = self.pull.values().chain(blocked).chain([&self.push]);
                sets.map(|set| set.range(..=after).count()).sum()
            }
        }
    }

    pub(crate) fn has_pull(&self) -> bool {
        !self.pull.is_empty()
    }

    /// Puts a task among the ready ones.
    pub(crate) fn insert(&mut self, stub: &Stub) {
        let fresh = if stub.flags.has(StubFlags::WORKER) {
            self.pull.entry(stub.kind_hash).or_default().insert(stub.rank())
        } else {
            self.push.insert(stub.rank())
        };
        self.ready += usize::from(fresh);
    }

    /// Takes a task out, wherever among the ready ones it is.
    pub(crate) fn remove(&mut self, stub: &Stub) {
        let rank = stub.rank();
        let mut found = false;
        if stub.flags.has(StubFlags::WORKER) {
            if let Some(set) = self.pull.get_mut(&stub.kind_hash) {
                found = set.remove(&rank);
                if set.is_empty() {
                    self.pull.remove(&stub.kind_hash);
                }
            }
        } else {
            found = self.push.remove(&rank);
        }
        if !found && let Some(set) = self.blocked.get_mut(&stub.concurrency_hash) {
            found = set.remove(&rank);
            if set.is_empty() {
                self.blocked.remove(&stub.concurrency_hash);
            }
        }
        self.ready -= usize::from(found);
    }

    /// Moves a ready task aside until its concurrency key has room.
    pub(crate) fn block(&mut self, stub: &Stub) {
        self.remove(stub);
        self.blocked.entry(stub.concurrency_hash).or_default().insert(stub.rank());
        self.ready += 1;
    }

    /// The first task that this node starts itself.
    pub(crate) fn first_push(&self) -> Option<Rank> {
        self.push.first().copied()
    }

    /// The first task that a worker of these kinds (all, when empty) may claim.
    pub(crate) fn first_pull(&self, kinds: &[u64]) -> Option<Rank> {
        if kinds.is_empty() {
            self.pull.values().filter_map(|set| set.first()).min().copied()
        } else {
            kinds.iter().filter_map(|k| self.pull.get(k)?.first()).min().copied()
        }
    }

    /// Whether the order allows `rank` to start: everything that ranks before it is in memory.
    pub(crate) fn in_order(&self, rank: Rank) -> bool {
        match &self.spill {
            None => true,
            Some(spill) => spill.after.is_some_and(|after| rank <= after),
        }
    }

    pub(crate) fn key_has_room(&self, hash: u64, limit: Option<u32>) -> bool {
        match limit {
            Some(limit) if hash != 0 => self.per_key.get(&hash).copied().unwrap_or(0) < limit,
            _ => true,
        }
    }

    /// Counts a start.
    pub(crate) fn take_slot(&mut self, hash: u64) {
        self.running += 1;
        if hash != 0 {
            *self.per_key.entry(hash).or_default() += 1;
        }
    }

    /// Counts an end. Answers the task that may go on with the same concurrency key.
    pub(crate) fn free_slot(&mut self, hash: u64) -> Option<Rank> {
        self.running = self.running.saturating_sub(1);
        if hash == 0 {
            return None;
        }
        if let Some(n) = self.per_key.get_mut(&hash) {
            *n -= 1;
            if *n == 0 {
                self.per_key.remove(&hash);
            }
        }
        self.unblock_first(hash)
    }

    /// The first task that is blocked by a concurrency key, taken out: it may be its turn.
    pub(crate) fn unblock_first(&mut self, hash: u64) -> Option<Rank> {
        let set = self.blocked.get_mut(&hash)?;
        let rank = set.pop_first();
        if set.is_empty() {
            self.blocked.remove(&hash);
        }
        self.ready -= usize::from(rank.is_some());
        rank
    }

    /// Forgets the ready tasks, not the running ones.
    pub(crate) fn forget(&mut self) {
        self.push.clear();
        self.pull.clear();
        self.blocked.clear();
        self.ready = 0;
        self.spill = None;
    }

    /// Every blocked task, taken out: the limit per key has changed.
    pub(crate) fn unblock_all(&mut self) -> Vec<Rank> {
        let ranks: Vec<Rank> = self.blocked.drain().flat_map(|(_, set)| set).collect();
        self.ready -= ranks.len();
        ranks
    }

    /// `Ok` when the rate allows a start now, else when it will.
    pub(crate) fn rate_allows(&self, rate: &Share, now: Time) -> Result<(), Time> {
        let Some((step, allowed)) = rate.steps() else { return Ok(()) };
        let ahead = self.arrival - i128::from(now.0) * RATE_SCALE;
        if ahead <= allowed {
            return Ok(());
        }
        debug_assert!(ahead <= allowed + step, "clamped when rate or clock changed");
        let wait = (ahead - allowed + RATE_SCALE - 1) / RATE_SCALE;
        Err(now.plus(i64::try_from(wait).unwrap_or(i64::MAX)))
    }

    /// After a change of the rate or a step of the clock: nothing waits longer than for one
    /// start under the rate that holds now.
    pub(crate) fn clamp_rate(&mut self, rate: &Share, now: Time) {
        if let Some((step, allowed)) = rate.steps() {
            self.arrival = self.arrival.min(i128::from(now.0) * RATE_SCALE + allowed + step);
        }
    }

    /// Counts a start against the rate.
    pub(crate) fn take_rate(&mut self, rate: &Share, now: Time) {
        let Some((step, _)) = rate.steps() else { return };
        self.arrival = self.arrival.max(i128::from(now.0) * RATE_SCALE) + step;
    }
}

/// A partition's part of its queue's limits. The parts of all partitions sum to the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) concurrency: u32,
    pub(crate) per_key: Option<u32>,
    /// Period in microseconds, starts in it, starts that may be saved up.
    pub(crate) rate: Option<(i64, u32, u32)>,
    pub(crate) paused: bool,
}

impl Share {
    pub(crate) fn of(queue: &QueueRecord, index: u16) -> Share {
        let n = u32::from(queue.config.partitions.max(1));
        let i = u32::from(index) % n;
        let part = |total: u32| total / n + u32::from(i < total % n);
        Share {
            concurrency: part(queue.config.concurrency),
            per_key: queue.config.per_key_concurrency,
            rate: queue
                .config
                .rate
                .as_ref()
                .map(|Rate { per, count, burst }| (*per, part(*count).max(1), part(*burst).max(1))),
            paused: queue.config.paused,
        }
    }

    /// Time from one start to the next, and how far starts may run ahead, both scaled.
    fn steps(&self) -> Option<(i128, i128)> {
        let (per, count, burst) = self.rate?;
        let count = i128::from(count);
        let step = (i128::from(per) * RATE_SCALE + count - 1) / count;
        Some((step, step * i128::from(burst - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tourbillon_store::{NamespaceId, QueueConfig, QueueId};

    fn queue(config: QueueConfig) -> QueueRecord {
        QueueRecord {
            id: QueueId(1),
            namespace: NamespaceId(1),
            namespace_name: "default".into(),
            name: "q".into(),
            version: 1,
            partitions_ever: config.partitions,
            config,
        }
    }

    #[test]
    fn shares_sum_to_the_limit() {
        for partitions in 1..9u16 {
            for concurrency in u32::from(partitions)..40 {
                let q = queue(QueueConfig { partitions, concurrency, ..QueueConfig::default() });
                let sum: u32 = (0..partitions).map(|i| Share::of(&q, i).concurrency).sum();
                assert_eq!(sum, concurrency);
            }
        }
    }

    #[test]
    fn a_rate_lets_the_burst_and_then_the_count_through() {
        let q = queue(QueueConfig {
            rate: Some(Rate { per: 1_000_000, count: 10, burst: 5 }),
            ..QueueConfig::default()
        });
        let share = Share::of(&q, 0);
        let mut part = Part::new(Shard(0));
        let mut started = 0;
        let mut now = Time(1_000_000_000);
        let end = now.plus(3_000_000);
        while now < end {
            match part.rate_allows(&share, now) {
                Ok(()) => {
                    part.take_rate(&share, now);
                    started += 1;
                }
                Err(at) => {
                    assert!(at > now);
                    now = at;
                }
            }
        }
        assert_eq!(started, 5 + 29, "the burst, then one each 100 ms");
    }
}
