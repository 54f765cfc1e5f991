//! A store in memory, for tests, simulation and throw-away use.
//!
//! One mutex around plain maps: every call sees and leaves a consistent whole. Units are atomic
//! by an undo log. Nothing is durable. Faults can be injected, so that those who use a store can
//! be tested against one that fails; how long calls take is the caller's business.

mod fault;
mod inner;
mod queries;
mod writes;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::calendar::CalendarRecord;
use crate::error::StoreError;
use crate::id::{Partition, Seq, Shard};
use crate::queue::QueueRecord;
use crate::state::State;
use crate::store::{
    Edge, INBOX_MAX, Lease, LeaseAsk, LeaseRow, Reloaded, Span, Store, StoreGauges, StoreInfo,
};
use crate::task::{Rank, Stub, Task};
use crate::time::Time;
use crate::write::{Unit, UnitResult};

pub use fault::Fault;
use fault::Faults;
use inner::Inner;

/// Keeps everything in memory. Share it through an `Arc`; a "restart" of its user is a new user
/// of the same store, after [`MemoryStore::release_all`].
#[derive(Debug)]
pub struct MemoryStore {
    exclusive: bool,
    inner: Mutex<Inner>,
    faults: Mutex<Faults>,
}

impl MemoryStore {
    /// An empty store for one process.
    pub fn new() -> MemoryStore {
        MemoryStore::with(true)
    }

    /// An empty store that several simulated processes use: leases of others must run out.
    pub fn shared() -> MemoryStore {
        MemoryStore::with(false)
    }

    fn with(exclusive: bool) -> MemoryStore {
        MemoryStore {
            exclusive,
            inner: Mutex::new(Inner::default()),
            faults: Mutex::new(Faults::default()),
        }
    }

    /// Lets the next commit that no earlier fault waits for fail in this way. Faults wait in
    /// line, one per commit.
    pub fn inject(&self, fault: Fault) {
        lock(&self.faults).push(fault);
    }

    /// Commits that will still fail.
    pub fn faults_left(&self) -> usize {
        lock(&self.faults).len()
    }

    /// While set, every call fails with [`crate::StoreErrorKind::Unavailable`].
    pub fn set_unavailable(&self, unavailable: bool) {
        lock(&self.faults).unavailable = unavailable;
    }

    /// Gives up all leases, as the end of the process that held them would on an exclusive
    /// store.
    pub fn release_all(&self) {
        lock(&self.inner).leases.release_all();
    }

    /// Checks that every index agrees with the records. For tests.
    ///
    /// # Panics
    ///
    /// When one does not.
    pub fn check_invariants(&self) {
        lock(&self.inner).check_invariants();
    }

    fn read(&self) -> Result<MutexGuard<'_, Inner>, StoreError> {
        lock(&self.faults).available()?;
        Ok(lock(&self.inner))
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new()
    }
}

/// A panic inside a call is a test's failure already; the maps are consistent between writes.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for MemoryStore {
    fn info(&self) -> StoreInfo {
        StoreInfo {
            name: "memory",
            exclusive: self.exclusive,
            durable: false,
            detail: "memory: nothing survives the process".to_owned(),
        }
    }

    fn gauges(&self) -> StoreGauges {
        StoreGauges { commits: lock(&self.inner).commits, ..StoreGauges::default() }
    }

    fn time(&self) -> Result<Option<Time>, StoreError> {
        lock(&self.faults).available()?;
        Ok(None)
    }

    fn commit(&self, units: &[Unit]) -> Result<Vec<UnitResult>, StoreError> {
        let fault = {
            let mut faults = lock(&self.faults);
            faults.available()?;
            faults.take()
        };
        match fault {
            None => Ok(lock(&self.inner).commit(units)),
            Some(Fault::UnknownCommitted) => {
                lock(&self.inner).commit(units);
                Err(Fault::UnknownCommitted.error())
            }
            Some(fault) => Err(fault.error()),
        }
    }

    fn load(&self, from: &[(Shard, Edge)], until: Time, limit: usize) -> Result<Span, StoreError> {
        let inner = self.read()?;
        let end = Edge::before(until);
        // The shards' tasks are in order each; the shard whose next task is first goes on.
        let mut next = BinaryHeap::new();
        let mut rest = Vec::with_capacity(from.len());
        for &(shard, edge) in from.iter().filter(|(_, edge)| *edge < end) {
            let range = (Bound::Excluded((shard, edge)), Bound::Excluded((shard, end)));
            let mut due = inner.due.range(range);
            if let Some(&(_, first)) = due.next() {
                next.push(Reverse((first, rest.len())));
            }
            rest.push(due);
        }
        let limit = limit.max(1);
        let mut span = Span { stubs: Vec::new(), edge: end };
        while let Some(Reverse((at, of))) = next.pop() {
            if span.stubs.len() == limit {
                let last = span.stubs.last().map(|(_, stub)| Edge { due: stub.due, seq: stub.seq });
                span.edge = last.unwrap_or(end);
                break;
            }
            span.stubs.extend(inner.live.get(&at.seq).map(|r| (r.task.shard, r.task.stub())));
            if let Some(&(_, following)) = rest[of].next() {
                next.push(Reverse((following, of)));
            }
        }
        Ok(span)
    }

    fn load_overdue(
        &self,
        partition: Partition,
        after: Option<Rank>,
        limit: usize,
    ) -> Result<Vec<Stub>, StoreError> {
        let inner = self.read()?;
        Ok(inner
            .overdue_after(partition, after)
            .take(limit)
            .filter_map(|rank| inner.live.get(&rank.seq))
            .map(|row| row.task.stub())
            .collect())
    }

    fn reload(&self, shard: Shard, probe: &[Seq]) -> Result<Reloaded, StoreError> {
        let inner = self.read()?;
        let without_payload = |seq: &Seq| inner.live.get(seq).map(|r| stripped(&r.task));
        let schedules = inner
            .schedules
            .values()
            .filter(|s| s.shard == shard)
            .map(|s| (s.clone(), inner.live_occurrences(s.uid)))
            .collect();
        let mut spilled: Vec<(Partition, Rank)> = Vec::new();
        for &(partition, rank) in &inner.overdue {
            let first = spilled.last().is_none_or(|s| s.0 != partition);
            if first && inner.live.get(&rank.seq).is_some_and(|r| r.task.shard == shard) {
                spilled.push((partition, rank));
            }
        }
        Ok(Reloaded {
            running: inner
                .live
                .values()
                .filter(|r| r.task.shard == shard && r.task.state == State::Running)
                .map(|r| stripped(&r.task))
                .collect(),
            probed: probe.iter().map(without_payload).collect(),
            schedules,
            spilled,
        })
    }

    fn fetch(&self, seqs: &[Seq]) -> Result<Vec<Option<Task>>, StoreError> {
        let inner = self.read()?;
        Ok(seqs.iter().map(|seq| inner.live.get(seq).map(|r| r.task.clone())).collect())
    }

    fn inbox(&self, shards: &[Shard]) -> Result<Vec<(Shard, Stub)>, StoreError> {
        let inner = self.read()?;
        Ok(shards
            .iter()
            .flat_map(|&shard| {
                inner.inbox.range((shard, Seq(i64::MIN))..=(shard, Seq(i64::MAX))).take(INBOX_MAX)
            })
            .filter_map(|&(shard, seq)| Some((shard, inner.live.get(&seq)?.task.stub())))
            .collect())
    }

    fn leases(&self, ask: &LeaseAsk) -> Result<Vec<Lease>, StoreError> {
        Ok(self.read()?.leases.ask(ask).held)
    }

    fn lease_table(&self) -> Result<Vec<LeaseRow>, StoreError> {
        Ok(self.read()?.leases.table())
    }

    fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        Ok(self.read()?.queues.values().cloned().collect())
    }

    fn all_calendars(&self) -> Result<Vec<CalendarRecord>, StoreError> {
        Ok(self.read()?.calendars.values().cloned().collect())
    }
}

/// A task without its payload.
fn stripped(task: &Task) -> Task {
    let mut task = task.clone();
    task.spec.payload = None;
    task
}

#[cfg(test)]
mod tests;
