//! Who holds which shard: the rules of leases, the one definition that stores share.
//!
//! Pure: time is in the question. A taken shard gets epoch `max(last + 1, unix seconds)`. A
//! lease that ran out but was not taken still fences correctly and is renewed at its epoch.
//! Persistence is the store's: [`Answer::taken`] lists the epochs that must not be forgotten.

use crate::id::{Epoch, SHARDS, Shard};
use crate::store::{Lease, LeaseAsk, LeaseRow};
use crate::time::{SECOND, Time};

/// The leases of all shards.
#[derive(Debug, Clone)]
pub(crate) struct Leases {
    rows: Vec<Option<LeaseRow>>,
}

impl Default for Leases {
    fn default() -> Self {
        Leases { rows: vec![None; SHARDS] }
    }
}

/// What became of a question.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// What is held now of what was asked.
    pub(crate) held: Vec<Lease>,
    /// The shards that got a new epoch.
    pub(crate) taken: Vec<(Shard, Epoch)>,
}

impl Leases {
    /// Puts back what an earlier process knew: the shard's latest epoch, held by nobody.
    pub(crate) fn restore(&mut self, shard: Shard, epoch: Epoch) {
        self.rows[shard.index()] = Some(LeaseRow { shard, epoch, owner: None, until: Time::MIN });
    }

    /// Puts a lease as it stands.
    #[cfg(feature = "postgres")]
    pub(crate) fn put(&mut self, row: LeaseRow) {
        let index = row.shard.index();
        self.rows[index] = Some(row);
    }

    /// Nobody holds anything any more.
    pub(crate) fn release_all(&mut self) {
        for row in self.rows.iter_mut().flatten() {
            row.owner = None;
        }
    }

    /// Whether the shard is held under this epoch.
    pub(crate) fn holds(&self, shard: Shard, epoch: Epoch) -> bool {
        self.rows[shard.index()].as_ref().is_some_and(|r| r.owner.is_some() && r.epoch == epoch)
    }

    /// Every lease there ever was, in order of shard.
    pub(crate) fn table(&self) -> Vec<LeaseRow> {
        self.rows.iter().flatten().cloned().collect()
    }

    /// Releases, renews, then acquires.
    pub(crate) fn ask(&mut self, ask: &LeaseAsk) -> Answer {
        let mut answer = Answer::default();
        let until = ask.now.plus(ask.period);
        for &(shard, epoch) in &ask.release {
            if let Some(row) = self.own(shard, epoch, &ask.node) {
                row.owner = None;
            }
        }
        for &(shard, epoch) in &ask.renew {
            if let Some(row) = self.own(shard, epoch, &ask.node) {
                row.until = until;
                answer.held.push(Lease { shard, epoch, until });
            }
        }
        for &shard in &ask.acquire {
            let row = self.rows[shard.index()].as_ref();
            let other = row.is_some_and(|r| {
                r.until > ask.now && r.owner.as_ref().is_some_and(|owner| *owner != ask.node)
            });
            if other {
                continue;
            }
            let seconds = u32::try_from(ask.now.0.div_euclid(SECOND).max(0)).unwrap_or(u32::MAX);
            let epoch = Epoch(row.map_or(1, |r| r.epoch.0.saturating_add(1)).max(seconds));
            let owner = Some(ask.node.clone());
            self.rows[shard.index()] = Some(LeaseRow { shard, epoch, owner, until });
            answer.held.push(Lease { shard, epoch, until });
            answer.taken.push((shard, epoch));
        }
        answer
    }

    fn own(&mut self, shard: Shard, epoch: Epoch, node: &str) -> Option<&mut LeaseRow> {
        let row = self.rows[shard.index()].as_mut()?;
        (row.epoch == epoch && row.owner.as_deref() == Some(node)).then_some(row)
    }
}
