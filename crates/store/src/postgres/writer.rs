//! The one connection that writes: a batch of units is one transaction.
//!
//! Three round trips in the ordinary case: begin, lock the leases and read what the units name; write
//! what came of them; commit. Most units are worked out in memory together ([`super::work`]); a unit
//! that changes names and rules runs by itself in a savepoint ([`super::singly`]).
//!
//! Between two batches nothing is remembered but the queues there are, which are never removed. A batch
//! that met another node is done again from its beginning, a bounded number of times; then it fails as
//! busy. When the connection breaks before `COMMIT` was sent, nothing was committed; when it breaks
//! after, it is not known, and the caller is told so.

use std::collections::HashMap;

use crate::error::StoreError;
use crate::id::{NamespaceId, QueueId};
use crate::write::{Unit, UnitResult, Write};

use super::connection::{Connection, Connector};
use super::error::Failure;
use super::flush::{Own, flush};
use super::gather::gather;
use super::work::Work;

/// See the module.
pub(super) struct Writer {
    /// `None` until it is needed, and after it broke.
    conn: Option<Connection>,
    queues: HashMap<QueueId, NamespaceId>,
    slot: i16,
    channel: String,
    retries: u32,
}

/// A batch's transaction.
pub(super) struct Tx<'a> {
    pub(super) conn: &'a mut Connection,
    pub(super) queues: &'a mut HashMap<QueueId, NamespaceId>,
    pub(super) own: Own<'a>,
    pub(super) held: std::collections::HashSet<(crate::id::Shard, crate::id::Epoch)>,
    pub(super) careful: bool,
}

impl Writer {
    /// A writer whose counters are at `slot` and whose nudges go to `channel`.
    pub(super) fn new(conn: Connection, slot: i16, channel: String, retries: u32) -> Writer {
        Writer { conn: Some(conn), queues: HashMap::new(), slot, channel, retries }
    }

    /// The statements that its connection prepared.
    #[cfg(test)]
    pub(super) fn prepared(&self) -> Vec<(&'static str, usize)> {
        self.conn.as_ref().map(Connection::prepared).unwrap_or_default()
    }

    /// Commits the units as one transaction.
    pub(super) fn commit(
        &mut self,
        connector: &Connector,
        units: &[Unit],
    ) -> Result<Vec<UnitResult>, StoreError> {
        let mut shards: Vec<i16> =
            units.iter().flat_map(|unit| &unit.fences).map(|fence| i16::from(fence.0.0)).collect();
        shards.sort_unstable();
        shards.dedup();
        let mut tries = 0;
        loop {
            let mut conn = match self.conn.take().filter(|conn| !conn.is_broken()) {
                Some(conn) => conn,
                None => connector.connect("tourbillon writer")?,
            };
            let mut tx = Tx {
                conn: &mut conn,
                queues: &mut self.queues,
                own: Own { slot: self.slot, channel: &self.channel },
                held: Default::default(),
                careful: tries > 0,
            };
            let failure = match tx.batch(units, &shards) {
                Ok(results) => {
                    let end = conn.run("COMMIT", &[]);
                    match end {
                        Ok(_) => {
                            self.conn = Some(conn);
                            return Ok(results);
                        }
                        Err(failure) if failure.is_refusal() => failure,
                        Err(failure) => {
                            self.queues.clear();
                            return Err(StoreError::from(failure).outcome_unknown());
                        }
                    }
                }
                Err(failure) => failure,
            };
            self.queues.clear();
            if !conn.is_broken() && conn.batch("ROLLBACK").is_ok() {
                self.conn = Some(conn);
            }
            if !failure.is_passing() || tries >= self.retries {
                return Err(failure.into());
            }
            tries += 1;
        }
    }
}

impl Tx<'_> {
    fn batch(&mut self, units: &[Unit], shards: &[i16]) -> Result<Vec<UnitResult>, Failure> {
        let mut results = Vec::with_capacity(units.len());
        let mut lease = Some(shards);
        while results.len() < units.len() || lease.is_some() {
            let rest = &units[results.len()..];
            let alone = |unit: &Unit| unit.writes.iter().any(is_alone);
            let run = rest.iter().position(alone).unwrap_or(rest.len());
            if run == 0 && lease.is_none() {
                results.push(self.alone(&rest[0])?);
                continue;
            }
            let mut work = self.begin(&rest[..run], lease.take())?;
            let mut done = 0;
            for unit in &rest[..run] {
                let Some(result) = work.unit(unit) else { break };
                results.push(result);
                done += 1;
            }
            self.end(work)?;
            if done == 0 && run > 0 {
                // It depends on itself: one write at a time.
                results.push(self.alone(&rest[0])?);
            }
        }
        Ok(results)
    }

    /// Reads what units name.
    pub(super) fn begin<'w>(
        &mut self,
        units: &[Unit],
        lease: Option<&[i16]>,
    ) -> Result<Work<'w>, Failure> {
        let mut work = Work::default();
        work.held = std::mem::take(&mut self.held);
        work.queues = std::mem::take(self.queues);
        gather(self.conn, &mut work, units, lease, self.careful)?;
        Ok(work)
    }

    /// Writes what came of them.
    pub(super) fn end(&mut self, mut work: Work<'_>) -> Result<(), Failure> {
        flush(self.conn, &work, &self.own)?;
        self.held = std::mem::take(&mut work.held);
        *self.queues = std::mem::take(&mut work.queues);
        Ok(())
    }
}

/// Whether a write is done by itself.
pub(super) fn is_alone(write: &Write) -> bool {
    matches!(
        write,
        Write::EnsureQueue { .. }
            | Write::PutQueue { .. }
            | Write::PutSchedule(_)
            | Write::DeleteSchedule { .. }
            | Write::PutCalendar { .. }
            | Write::DeleteCalendar { .. }
            | Write::FoldStats { .. }
            | Write::PruneStats { .. }
            | Write::Prune { .. }
    )
}
