//! Keeping house: retention of history and statistics, folding of statistics. One thread, one wait.
//!
//! Retention deletes in small chunks between the engine's batches, oldest first, so that it
//! never holds writers up.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use tokio::sync::oneshot;
use tourbillon_clock::StoreClock;
use tourbillon_store::{Done, Shard, Time, Unit, Write};

use crate::options::{NodeOptions, kept_from};
use crate::runner::now_of;
use crate::threads::WriteJob;

/// Between two looks at history.
const PRUNE_EVERY: Duration = Duration::from_secs(10);
/// Between two chunks while there is more to delete.
const PRUNE_PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Housekeeper {
    pub(crate) options: NodeOptions,
    pub(crate) clock: Arc<StoreClock>,
    pub(crate) writer: Sender<WriteJob>,
    /// Disconnects when the node stops.
    pub(crate) stop: Receiver<()>,
}

impl Housekeeper {
    pub(crate) fn run(self) {
        let mut folded = 0;
        let mut wait = PRUNE_EVERY;
        while let Err(RecvTimeoutError::Timeout) = self.stop.recv_timeout(wait) {
            let now = now_of(&self.clock).store;
            let more = self.prune(now);
            wait = if more { PRUNE_PAUSE } else { PRUNE_EVERY };
            if now.minute() != folded {
                folded = now.minute();
                self.fold(folded - 1);
            }
        }
    }

    /// Deletes one chunk of each part of history and of the statistics; whether there may be more.
    fn prune(&self, now: Time) -> bool {
        let chunk = self.options.prune_chunk;
        let before = |keep| kept_from(now, keep);
        let options = &self.options;
        let writes = [
            Write::Prune { succeeded: true, before: before(options.keep_succeeded), limit: chunk },
            Write::Prune { succeeded: false, before: before(options.keep_others), limit: chunk },
            Write::PruneStats {
                before_minute: before(options.keep_statistics).minute(),
                limit: chunk,
            },
        ];
        let units = writes.map(|w| Unit { fences: Vec::new(), writes: vec![w] }).into();
        let Some(results) = write_aside(&self.writer, units) else { return false };
        results.into_iter().flatten().flatten().any(|d| matches!(d, Done::Pruned(n) if n >= chunk))
    }

    fn fold(&self, before_minute: i64) {
        let writes = Shard::all().map(|shard| Write::FoldStats { shard, before_minute }).collect();
        write_aside(&self.writer, vec![Unit { fences: Vec::new(), writes }]);
    }
}

/// Writes and waits; `None` when that failed or the writer is gone. Must not be called on a
/// thread of the runtime.
fn write_aside(
    writer: &Sender<WriteJob>,
    units: Vec<Unit>,
) -> Option<Vec<tourbillon_store::UnitResult>> {
    let (reply, answer) = oneshot::channel();
    writer.send(WriteJob::Aside { units, reply }).ok()?;
    match answer.blocking_recv().ok()? {
        Ok(results) => Some(results),
        Err(error) => {
            tracing::warn!(%error, "housekeeping could not write; it is tried again later");
            None
        }
    }
}
