//! Loads: spans of the store's tasks into the wheel, and overdue rows in rank order.
//!
//! The shards of which the edge has come near are read by one question, because the store keeps
//! what is due by time alone. One load is under way at a time, and none while shards are being
//! taken over, so that their windows are read together too.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use tourbillon_store::time::{MILLI, MINUTE};
use tourbillon_store::{
    BUCKET, Edge, Partition, Rank, Seq, Shard, Span, StoreError, Stub, StubFlags, Time, Unit, Write,
};

use super::{Loading, Status};
use crate::api::{CallId, Effect};
use crate::batch::Ticket;
use crate::engine::{Engine, Timer};
use crate::part::{Spill, just_before};

/// How long a full memory lets overdue tasks gather between two loads, in microseconds.
const FULL_PAUSE: i64 = 250 * MILLI;

/// Overdue tasks read at once while memory is full, in chunks of a partition.
const FULL_CHUNKS: usize = 4;

impl Engine {
    /// Asks for spans where the edge has come near and memory has room.
    pub(crate) fn load_windows(&mut self) {
        if self.must_not_load() {
            return;
        }
        let now = self.now.store;
        let full = self.resident.len() >= self.cfg.max_resident;
        let near = if full { now.plus(-FULL_PAUSE) } else { now.plus(self.window_lead()) };
        let from: Vec<(Shard, Edge)> = Shard::all()
            .map(|shard| (shard, &self.shards[shard.index()]))
            .filter(|(_, s)| s.is_active() && s.loading.is_none() && s.edge.due < near)
            .map(|(shard, state)| (shard, state.edge))
            .collect();
        if from.is_empty() {
            return;
        }
        let (until, limit) = if full {
            (now, self.cfg.overdue_chunk.saturating_mul(FULL_CHUNKS).min(self.cfg.load_chunk))
        } else {
            let room = self.cfg.max_resident - self.resident.len();
            let end = now.plus(self.cfg.window).0.div_euclid(BUCKET) + 1;
            (Time(end.saturating_mul(BUCKET)), room.min(self.cfg.load_chunk))
        };
        let call = self.call();
        self.load = Some(call);
        for (shard, _) in &from {
            let loading = Loading { call, until, changed: FxHashSet::default(), failed: false };
            self.shards[shard.index()].loading = Some(loading);
        }
        self.effects.push(Effect::Load { call, from, until, limit: limit.max(1) });
    }

    fn must_not_load(&self) -> bool {
        self.load.is_some()
            || self.shards.iter().any(|s| matches!(s.status, Status::Reloading(Some(_))))
    }

    /// How near an edge comes before it is moved on.
    fn window_lead(&self) -> i64 {
        self.cfg.window - MINUTE.min(self.cfg.window / 2)
    }

    /// When the next edge comes near.
    pub(crate) fn next_window_wake(&self) -> Option<Time> {
        if self.must_not_load() {
            return None;
        }
        let full = self.resident.len() >= self.cfg.max_resident;
        let ahead = if full { FULL_PAUSE + 1 } else { 1 - self.window_lead() };
        self.shards
            .iter()
            .filter(|s| s.is_active() && s.loading.is_none())
            .map(|s| s.edge.due.plus(ahead))
            .min()
            .map(|at| at.max(self.now.store))
    }

    pub(crate) fn loaded(
        &mut self,
        call: CallId,
        shards: &[Shard],
        result: Result<Span, StoreError>,
    ) {
        self.load.take_if(|load| *load == call);
        let retry_at = self.now.store.plus(100 * MILLI);
        let mut loads: FxHashMap<Shard, Loading> = FxHashMap::default();
        for &shard in shards {
            let state = &mut self.shards[shard.index()];
            let Some(loading) = state.loading.take_if(|l| l.call == call) else { continue };
            match &result {
                Ok(span) => {
                    // The edge may have been pulled back while the load was under way.
                    let edge = span.edge.min(Edge::before(loading.until));
                    state.edge = state.edge.max(edge);
                    loads.insert(shard, loading);
                }
                Err(_) => {
                    state.loading = Some(Loading { failed: true, ..loading });
                    self.set_timer(retry_at, Timer::RetryReads(shard));
                }
            }
        }
        let mut left_out: BTreeMap<Shard, Vec<Stub>> = BTreeMap::new();
        for (shard, stub) in result.map(|span| span.stubs).unwrap_or_default() {
            // Where memory got full on the way, the shard's edge is before the rest.
            let Some(loading) = loads.get(&shard) else { continue };
            if loading.changed.contains(&stub.seq)
                || !self.shards[shard.index()].edge.covers(stub.due, stub.seq)
            {
                continue;
            }
            let ready = self.part(stub.partition, shard).ready();
            let room = self.resident.len() < self.cfg.max_resident;
            if self.is_early(shard, &stub, false) {
                continue;
            }
            if room || (stub.due <= self.now.store && ready < self.cfg.overdue_chunk) {
                self.admit(stub);
            } else if self.resident.contains_key(&stub.seq) || self.running.contains_key(&stub.seq)
            {
                continue;
            } else if stub.due > self.now.store {
                self.pull_back(shard, &stub);
            } else {
                left_out.entry(shard).or_default().push(stub);
            }
        }
        for (shard, stubs) in left_out {
            self.spill(shard, stubs);
        }
    }

    /// Moves a shard's edge back to just before a task for which there is no room.
    pub(super) fn pull_back(&mut self, shard: Shard, stub: &Stub) {
        let state = &mut self.shards[shard.index()];
        let edge = Edge { due: stub.due, seq: Seq(stub.seq.0.saturating_sub(1)) };
        state.edge = state.edge.min(edge);
        if let Some(loading) = &mut state.loading {
            loading.until = loading.until.min(stub.due);
        }
    }

    /// Marks overdue tasks for which there is no room; they come back in rank order.
    pub(super) fn spill(&mut self, shard: Shard, stubs: Vec<Stub>) {
        let Some(fence) = self.fence(shard) else { return };
        let mut marked: Vec<(Partition, Rank)> = Vec::new();
        for stub in &stubs {
            match marked.iter_mut().find(|(partition, _)| *partition == stub.partition) {
                Some((_, first)) => *first = (*first).min(stub.rank()),
                None => marked.push((stub.partition, stub.rank())),
            }
        }
        for (partition, first) in &marked {
            let part = self.part(*partition, shard);
            let fresh = || Spill { after: Some(*first), ..Spill::unknown() };
            part.spill.get_or_insert_with(fresh).mark(*first);
            self.flag(*partition);
        }
        let seqs = stubs.iter().map(|s| s.seq).collect();
        let unit = Unit { fences: vec![fence], writes: vec![Write::Spill { seqs }] };
        self.write(unit, Ticket::Spill(marked));
    }

    /// Asks for the partition's overdue rows when what is in memory may not start before them,
    /// unless memory is full and the partition has its share of it.
    pub(crate) fn load_overdue(&mut self, partition: Partition) {
        let call = self.call();
        let limit = self.cfg.overdue_chunk;
        let room = self.resident.len() < self.cfg.max_resident;
        let Some(part) = self.parts.get_mut(&partition) else { return };
        let in_order = part.ready_in_order();
        let Some(spill) = part.spill.as_mut() else { return };
        if spill.loading.is_some() || !(room || in_order < limit) {
            return;
        }
        // The next rows are being marked: until that is committed there is nothing to find.
        let marking = spill.marking.iter().min().copied();
        if marking.is_some_and(|first| spill.after.is_some_and(|after| after >= just_before(first)))
        {
            return;
        }
        spill.loading = Some(call.0);
        spill.changed.clear();
        spill.missed = marking;
        let after = spill.after;
        self.effects.push(Effect::LoadOverdue { call, partition, after, limit });
    }

    pub(crate) fn loaded_overdue(
        &mut self,
        call: CallId,
        partition: Partition,
        result: Result<Vec<Stub>, StoreError>,
    ) {
        let limit = self.cfg.overdue_chunk;
        let Some(part) = self.parts.get_mut(&partition) else { return };
        let Some(spill) = part.spill.as_mut().filter(|s| s.loading == Some(call.0)) else {
            return;
        };
        spill.loading = None;
        let changed = std::mem::take(&mut spill.changed);
        let stubs = match result {
            Ok(stubs) => stubs,
            Err(_) => {
                let at = self.now.store.plus(100 * MILLI);
                self.set_timer(at, Timer::RetryOverdue(partition));
                return;
            }
        };
        let shard = part.shard;
        let cut = stubs.last().filter(|_| stubs.len() >= limit).map(Stub::rank);
        let missed = spill.missed.take().map(just_before);
        match (cut, missed) {
            (None, None) => part.spill = None,
            (Some(a), Some(b)) => spill.after = Some(a.min(b)),
            (a, b) => spill.after = a.or(b),
        }
        for stub in stubs {
            if !changed.contains(&stub.seq) && !self.is_early(shard, &stub, true) {
                self.admit(stub);
            }
        }
        self.flag(partition);
    }

    /// Whether a task that was loaded is an occurrence that its schedule does not know yet,
    /// because the batch that created it is not back. Then it is taken in after that.
    fn is_early(&mut self, shard: Shard, stub: &Stub, marked: bool) -> bool {
        stub.flags.has(StubFlags::OCCURRENCE)
            && self.schedules.of(stub.seq).is_none()
            && !self.resident.contains_key(&stub.seq)
            && !self.running.contains_key(&stub.seq)
            && self.batches.put_early_aside(shard, *stub, marked)
    }
}
