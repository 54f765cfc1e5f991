//! Names of things inside a store: ids, sequences, shards, partitions, epochs, fences.
//!
//! Three fences are kept apart on purpose. The shard [`Epoch`] fences a node's writes; the
//! [`AttemptToken`] entitles a worker to complete its claim; the [`Fence`] number is sent to
//! targets so that a receiver can refuse a stale attempt.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::hash::stable_hash;

/// Number of shards of a store, fixed when it is created.
pub const SHARDS: usize = 256;

/// A task's public id: a UUID, version 7 when the server makes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u128);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_u128(self.0).hyphenated().fmt(f)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TaskId {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        uuid::Uuid::parse_str(text).map(|id| TaskId(id.as_u128()))
    }
}

/// Creation sequence of a task, given by the store when the creation commits. It is the row of
/// the live table, orders ties, and orders lists. Never reused while the task is remembered.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub i64);

/// One of the 256 slices of a store, owned by one node at a time under a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shard(pub u8);

impl Shard {
    /// Every shard, in order.
    pub fn all() -> impl Iterator<Item = Shard> {
        (0..=u8::MAX).map(Shard)
    }

    /// The shard's place in a table of [`SHARDS`] entries.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Fences a node's writes to a shard. Grows with every change of owner and every process start:
/// `max(last + 1, unix seconds)`, so that a restored backup never goes back.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u32);

/// A namespace, interned by the store.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct NamespaceId(pub u32);

/// A queue of one namespace, interned by the store.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct QueueId(pub u32);

/// One partition of a queue: where tasks wait and where limits are counted.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Partition {
    /// The queue.
    pub queue: QueueId,
    /// Its partition, from 0.
    pub index: u16,
}

/// The shard in which a partition lives. Depends on names only, so that every node agrees.
pub fn shard_of(namespace: &str, queue: &str, index: u16) -> Shard {
    let h = stable_hash(&[namespace.as_bytes(), queue.as_bytes(), &index.to_be_bytes()]);
    Shard((h & 0xff) as u8)
}

/// The partition of a task: hash of its concurrency key, else its key, else its schedule's uid,
/// else its id, over the queue's partition count (1 or more).
pub fn partition_index(affinity: &[u8], partitions: u16) -> u16 {
    (stable_hash(&[affinity]) % u64::from(partitions.max(1))) as u16
}

/// The number sent to targets: epoch high, attempt low. It grows with every attempt of a task,
/// so a receiver that remembers the highest can refuse a stale attempt.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Fence(pub u64);

impl Fence {
    /// The fence of attempt `n` made under `epoch`.
    pub fn new(epoch: Epoch, n: u32) -> Fence {
        Fence(u64::from(epoch.0) << 32 | u64::from(n))
    }
}

/// Entitles the holder of one attempt to heartbeat and complete it. It outlives a change of the
/// shard's owner. Shown to workers as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptToken {
    /// The shard of the task, so that any node can pass the token on without a lookup.
    pub shard: Shard,
    /// The task.
    pub seq: Seq,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// Random; told only to whoever runs the attempt.
    pub nonce: u64,
}

impl fmt::Display for AttemptToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}-{:x}-{:x}-{:016x}", self.shard.0, self.seq.0, self.attempt, self.nonce)
    }
}

/// A text that is not an attempt token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadToken;

impl fmt::Display for BadToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an attempt token; give the `token` that the claim answered")
    }
}

impl std::error::Error for BadToken {}

impl FromStr for AttemptToken {
    type Err = BadToken;
    fn from_str(text: &str) -> Result<Self, BadToken> {
        let mut parts = text.split('-');
        let mut next = || parts.next().filter(|p| !p.is_empty() && !p.starts_with('+'));
        let token = (|| {
            Some(AttemptToken {
                shard: Shard(u8::from_str_radix(next()?, 16).ok()?),
                seq: Seq(i64::from_str_radix(next()?, 16).ok()?),
                attempt: u32::from_str_radix(next()?, 16).ok()?,
                nonce: u64::from_str_radix(next()?, 16).ok()?,
            })
        })();
        token.filter(|_| parts.next().is_none()).ok_or(BadToken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_round_trip_and_strangers_are_refused() {
        let token = AttemptToken { shard: Shard(7), seq: Seq(123), attempt: 2, nonce: 0xfeed };
        assert_eq!(token.to_string().parse(), Ok(token));
        for bad in ["", "-", "7-7b-2", "07-7b-2-+1", "07-7b-2-1-1", "zz-1-1-1", "é"] {
            assert_eq!(bad.parse::<AttemptToken>(), Err(BadToken), "{bad}");
        }
    }

    #[test]
    fn fences_grow_with_attempt_and_more_with_epoch() {
        assert!(Fence::new(Epoch(5), 2) > Fence::new(Epoch(5), 1));
        assert!(Fence::new(Epoch(6), 1) > Fence::new(Epoch(5), u32::MAX));
    }

    #[test]
    fn partitions_spread_evenly() {
        let mut seen = [0usize; 8];
        for i in 0..8_000 {
            seen[usize::from(partition_index(format!("order-{i}").as_bytes(), 8))] += 1;
        }
        assert!(seen.iter().all(|n| (800..1200).contains(n)), "{seen:?}");
    }
}
