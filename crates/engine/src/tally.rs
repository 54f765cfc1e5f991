//! What the statistics count until they are written.
//!
//! Once in a while ([`EngineConfig::stats_every`](crate::EngineConfig::stats_every)) a batch
//! carries one delta per (shard, minute) that changed. The number of kinds told
//! apart per queue is bounded; further ones count as `other`.

use rustc_hash::{FxHashMap, FxHashSet};
use tourbillon_store::stats::{StatsDelta, StatsRow};
use tourbillon_store::task::kind_hash;
use tourbillon_store::{AttemptOutcome, AttemptRecord, QueueId, Shard, State, Time};

/// See the module.
#[derive(Debug)]
pub(crate) struct Tally {
    rows: FxHashMap<(Shard, i64, QueueId), FxHashMap<String, StatsRow>>,
    kinds: FxHashMap<QueueId, FxHashSet<String>>,
    names: FxHashMap<u64, String>,
    max_kinds: usize,
}

impl Tally {
    pub(crate) fn new(max_kinds: usize) -> Tally {
        Tally {
            rows: FxHashMap::default(),
            kinds: FxHashMap::default(),
            names: FxHashMap::default(),
            max_kinds,
        }
    }

    fn row(&mut self, shard: Shard, at: Time, queue: QueueId, kind: &str) -> &mut StatsRow {
        let kinds = self.kinds.entry(queue).or_default();
        let kind = if kinds.contains(kind) {
            kind
        } else if kinds.len() < self.max_kinds {
            kinds.insert(kind.to_owned());
            self.names.insert(kind_hash(kind), kind.to_owned());
            kind
        } else {
            "other"
        };
        let rows = self.rows.entry((shard, at.minute(), queue)).or_default();
        if !rows.contains_key(kind) {
            rows.insert(kind.to_owned(), StatsRow::new(queue, kind.to_owned()));
        }
        rows.get_mut(kind).expect("just inserted")
    }

    pub(crate) fn created(&mut self, shard: Shard, at: Time, queue: QueueId, kind: &str) {
        self.row(shard, at, queue, kind).created += 1;
    }

    pub(crate) fn attempt(
        &mut self,
        shard: Shard,
        queue: QueueId,
        kind: &str,
        attempt: &AttemptRecord,
    ) {
        let row = self.row(shard, attempt.ended_at, queue, kind);
        row.lateness.record(attempt.started_at.since(attempt.due));
        row.duration.record(attempt.ended_at.since(attempt.started_at));
        if attempt.outcome != AttemptOutcome::Succeeded {
            row.attempts_failed += 1;
        }
    }

    pub(crate) fn finished(
        &mut self,
        shard: Shard,
        at: Time,
        queue: QueueId,
        kind: &str,
        state: State,
    ) {
        self.row(shard, at, queue, kind).finish(state, 1);
    }

    /// The same for a task of which only the hash of its kind is at hand: a kind that was not
    /// seen since the start counts as `other`.
    pub(crate) fn closed(&mut self, shard: Shard, at: Time, queue: QueueId, kind: u64, to: State) {
        let kind = self.names.get(&kind).cloned().unwrap_or_else(|| "other".to_owned());
        self.finished(shard, at, queue, &kind, to);
    }

    /// Everything counted since the last call.
    pub(crate) fn take(&mut self) -> Vec<StatsDelta> {
        let mut deltas: Vec<StatsDelta> = Vec::new();
        for ((shard, minute, _), rows) in self.rows.drain() {
            let delta = match deltas.iter_mut().find(|d| d.shard == shard && d.minute == minute) {
                Some(delta) => delta,
                None => {
                    deltas.push(StatsDelta { shard, minute, rows: Vec::new() });
                    deltas.last_mut().expect("just pushed")
                }
            };
            delta.rows.extend(rows.into_values());
        }
        deltas.sort_by_key(|d| (d.shard, d.minute));
        for delta in &mut deltas {
            delta.rows.sort_by(|a, b| (a.queue, &a.kind).cmp(&(b.queue, &b.kind)));
        }
        deltas
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
