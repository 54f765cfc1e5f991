//! Word that another node inserted tasks into some shards' inboxes.
//!
//! A nudge only: it may come late, twice, for nothing, or never, since the server forgets what it could
//! not deliver. Whoever waits here looks into the inboxes from time to time all the same.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::error::{StoreError, StoreErrorKind};
use crate::id::Shard;

use super::PostgresStore;
use super::connection::Connection;

/// Nudges that wait to be heard; further ones are dropped.
const WAITING_MAX: usize = 1_024;

/// A connection that listens. See the module.
pub struct Nudges {
    heard: Receiver<String>,
    conn: Connection,
}

impl std::fmt::Debug for Nudges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nudges").finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Listens, on a connection of its own, from now on.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the server cannot be reached.
    pub fn nudges(&self) -> Result<Nudges, StoreError> {
        let (tell, heard): (SyncSender<String>, _) = sync_channel(WAITING_MAX);
        let notified = move |note: &tokio_postgres::Notification| {
            // Nobody hears as fast as others insert, or nobody hears any more.
            let _ = tell.try_send(note.payload().to_owned());
        };
        let mut conn = self.connector.connect_with("tourbillon nudges", notified)?;
        conn.batch(&format!("LISTEN \"{}\"", self.channel))?;
        Ok(Nudges { heard, conn })
    }
}

impl Nudges {
    /// Waits at most so long; the shards whose inboxes are worth a look, none when the time was up.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the connection broke: listen anew.
    pub fn wait(&self, max: Duration) -> Result<BTreeSet<Shard>, StoreError> {
        let broken = || {
            let text = "postgres: the connection that listens broke; listen anew";
            StoreError::new(StoreErrorKind::Unavailable, text)
        };
        let first = match self.heard.recv_timeout(max) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) if !self.conn.is_broken() => return Ok(BTreeSet::new()),
            Err(_) => return Err(broken()),
        };
        let all = [first].into_iter().chain(self.heard.try_iter());
        let shards = all.flat_map(|told| told.split(',').map(str::to_owned).collect::<Vec<_>>());
        Ok(shards.filter_map(|text| text.parse().ok()).map(Shard).collect())
    }
}
