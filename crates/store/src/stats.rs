//! Statistics: what each batch appends, and how minutes are summed up.
//!
//! Values fall into log-bucketed histograms with four buckets per doubling, so a percentile read
//! from one is at most 25 % above the true value, at a few bytes a bucket.

use serde::{Deserialize, Serialize};

use crate::id::{QueueId, Shard};
use crate::state::State;

/// Counts in four buckets per power of two, sparse.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram(Vec<(u8, u32)>);

impl Histogram {
    /// Counts `value` (microseconds; negative counts as 0).
    pub fn record(&mut self, value: i64) {
        self.add(bucket_of(value), 1);
    }

    fn add(&mut self, bucket: u8, count: u32) {
        match self.0.binary_search_by_key(&bucket, |b| b.0) {
            Ok(i) => self.0[i].1 = self.0[i].1.saturating_add(count),
            Err(i) => self.0.insert(i, (bucket, count)),
        }
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        for &(bucket, count) in &other.0 {
            self.add(bucket, count);
        }
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|b| u64::from(b.1)).sum()
    }

    /// The upper end, in microseconds, of the bucket that holds the `q` quantile (0 to 1);
    /// `None` when nothing was counted.
    pub fn quantile(&self, q: f64) -> Option<i64> {
        let total = self.count();
        let rank = ((total as f64 * q).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        self.0.iter().find_map(|&(bucket, count)| {
            seen += u64::from(count);
            (seen >= rank).then(|| bucket_top(bucket))
        })
    }
}

/// Values 0 to 3 have a bucket each; from 4 on, four buckets per power of two.
fn bucket_of(value: i64) -> u8 {
    let v = value.max(0) as u64;
    if v < 4 {
        return v as u8;
    }
    let exponent = 63 - v.leading_zeros();
    let quarter = (v >> (exponent - 2)) & 3;
    ((exponent - 1) * 4 + quarter as u32) as u8
}

fn bucket_top(bucket: u8) -> i64 {
    if bucket < 4 {
        return i64::from(bucket);
    }
    let exponent = u32::from(bucket) / 4 + 1;
    let quarter = u64::from(bucket) % 4;
    let low = (4 + quarter) << (exponent - 2);
    let width = 1u64 << (exponent - 2);
    i64::try_from(low + (width - 1)).unwrap_or(i64::MAX)
}

/// What one minute saw of one queue and kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatsRow {
    /// The queue.
    pub queue: QueueId,
    /// The kind, or `other` beyond the bound of kinds a queue.
    pub kind: String,
    /// Tasks created.
    #[serde(default)]
    pub created: u32,
    /// Tasks finished, by final state, in order of state.
    #[serde(default)]
    pub finished: Vec<(State, u32)>,
    /// Attempts that ended without success.
    #[serde(default)]
    pub attempts_failed: u32,
    /// Attempt start minus due, in microseconds.
    #[serde(default)]
    pub lateness: Histogram,
    /// Attempt end minus start, in microseconds.
    #[serde(default)]
    pub duration: Histogram,
}

impl StatsRow {
    /// An empty row.
    pub fn new(queue: QueueId, kind: String) -> StatsRow {
        StatsRow {
            queue,
            kind,
            created: 0,
            finished: Vec::new(),
            attempts_failed: 0,
            lateness: Histogram::default(),
            duration: Histogram::default(),
        }
    }

    /// Counts `n` tasks that reached `state`.
    pub fn finish(&mut self, state: State, n: u32) {
        match self.finished.binary_search_by_key(&state, |f| f.0) {
            Ok(i) => self.finished[i].1 = self.finished[i].1.saturating_add(n),
            Err(i) => self.finished.insert(i, (state, n)),
        }
    }

    /// Adds `other`, of the same queue and kind.
    pub fn merge(&mut self, other: &StatsRow) {
        self.created = self.created.saturating_add(other.created);
        for &(state, n) in &other.finished {
            self.finish(state, n);
        }
        self.attempts_failed = self.attempts_failed.saturating_add(other.attempts_failed);
        self.lateness.merge(&other.lateness);
        self.duration.merge(&other.duration);
    }
}

/// What one batch adds to a minute of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsDelta {
    /// The shard.
    pub shard: Shard,
    /// The minute, since the Unix epoch, in store time.
    pub minute: i64,
    /// A row per queue and kind.
    pub rows: Vec<StatsRow>,
}

/// Sums rows that share queue and kind. `into` is kept in order of (queue, kind), so it must be
/// in that order, as an empty one is. O(rows × log).
pub fn merge_rows(into: &mut Vec<StatsRow>, from: &[StatsRow]) {
    for row in from {
        let place = |r: &StatsRow| (r.queue, &*r.kind).cmp(&(row.queue, &*row.kind));
        match into.binary_search_by(place) {
            Ok(i) => into[i].merge(row),
            Err(i) => into.insert(i, row.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_monotonic_and_tight() {
        let mut last = 0;
        for value in (0..4096).chain((12..62).flat_map(|e| [(1 << e) - 1, 1 << e, (1 << e) + 1])) {
            let bucket = bucket_of(value);
            assert!(bucket >= last, "{value}");
            last = bucket;
            let top = bucket_top(bucket);
            assert!(top >= value && top as f64 <= value as f64 * 1.25 + 1.0, "{value} {top}");
        }
        assert!(bucket_top(bucket_of(i64::MAX)) == i64::MAX);
    }

    #[test]
    fn quantiles_of_a_known_set() {
        let mut h = Histogram::default();
        (1..=1000).for_each(|v| h.record(v));
        let p50 = h.quantile(0.5).unwrap();
        assert!((500..=625).contains(&p50), "{p50}");
        assert!(h.quantile(1.0).unwrap() >= 1000);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
