//! The claims a worker holds, and their heartbeats.
//!
//! A claim is extended at a third of its period, from the moment it is handed out until its end is
//! acknowledged. When no extension has got through for a whole period the claim counts as gone,
//! whether or not the source can be asked: somebody else may have the task by then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tourbillon_wire::{ClaimedTask, HeartbeatItem, HoldReply, HoldStatus, Json};

use super::{Source, StopReason};

/// How long a report of a handler may wait for others to go along with it.
const REPORT_WAIT: Duration = Duration::from_secs(1);

/// How long to wait after a heartbeat that failed.
const AGAIN_WAIT: Duration = Duration::from_secs(1);

/// The most log text that waits to be sent, per claim.
const LOG_BYTES_MAX: usize = 64 << 10;

/// The most claims extended in one call.
const BEATS_MAX: usize = 500;

#[derive(Default)]
pub(super) struct Holds {
    all: Mutex<HashMap<String, Hold>>,
    /// A beat may be due earlier than it was.
    changed: Notify,
}

struct Hold {
    period: Duration,
    /// The claim is known to have been ours then.
    ours_at: Instant,
    next_beat: Instant,
    stop: watch::Sender<Option<StopReason>>,
    abort: Option<AbortHandle>,
    /// The claim is lost. The hold stays until the handler has ended: it still takes up room.
    gone: bool,
    report: Report,
    _permit: OwnedSemaphorePermit,
}

impl Hold {
    fn lose(&mut self) {
        self.gone = true;
        self.stop.send_replace(Some(StopReason::Gone));
    }
}

/// What a handler reported and the source has not heard yet.
#[derive(Default)]
pub(super) struct Report {
    pub(super) progress: Option<Json>,
    log: String,
    log_dropped: usize,
}

impl Report {
    pub(super) fn add_log(&mut self, text: &str) {
        if self.log.len() + text.len() > LOG_BYTES_MAX {
            self.log_dropped += text.len();
        } else {
            self.log.push_str(text);
        }
    }

    fn is_empty(&self) -> bool {
        self.progress.is_none() && self.log.is_empty() && self.log_dropped == 0
    }

    fn into_item(self, token: String) -> HeartbeatItem {
        let mut log = self.log;
        if self.log_dropped > 0 {
            log.push_str(&format!(
                "\n[{} bytes came too fast and were dropped]\n",
                self.log_dropped
            ));
        }
        HeartbeatItem { token, progress: self.progress, log: (!log.is_empty()).then_some(log) }
    }
}

impl Holds {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Hold>> {
        // Nothing panics while it is locked; if something did, the map would still be whole.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a task that was just handed out; gives what tells its handler to stop.
    pub(super) fn add(
        &self,
        task: &ClaimedTask,
        permit: OwnedSemaphorePermit,
    ) -> watch::Receiver<Option<StopReason>> {
        let now = Instant::now();
        let period = Duration::from(task.claim_period).max(Duration::from_millis(30));
        let (stop, stopped) = watch::channel(None);
        let hold = Hold {
            period,
            ours_at: now,
            next_beat: now + period / 3,
            stop,
            abort: None,
            gone: false,
            report: Report::default(),
            _permit: permit,
        };
        self.lock().insert(task.token.clone(), hold);
        self.changed.notify_one();
        stopped
    }

    pub(super) fn set_abort(&self, token: &str, abort: AbortHandle) {
        if let Some(hold) = self.lock().get_mut(token) {
            hold.abort = Some(abort);
        }
    }

    /// Changes what is to be reported with the next heartbeat, and brings that forward.
    pub(super) fn report(&self, token: &str, change: impl FnOnce(&mut Report)) {
        if let Some(hold) = self.lock().get_mut(token) {
            change(&mut hold.report);
            hold.next_beat = hold.next_beat.min(Instant::now() + REPORT_WAIT);
        }
        self.changed.notify_one();
    }

    /// Whether the end of an attempt is still to be reported; lets go of a claim that is gone.
    pub(super) fn still_ours(&self, token: &str) -> bool {
        let mut all = self.lock();
        match all.get(token) {
            Some(hold) if hold.gone => {
                all.remove(token);
                false
            }
            held => held.is_some(),
        }
    }

    /// Lets go of a claim whose end is acknowledged.
    pub(super) fn remove(&self, token: &str) {
        self.lock().remove(token);
    }

    pub(super) fn stop_all(&self, reason: StopReason) {
        for hold in self.lock().values() {
            hold.stop.send_if_modified(|old| old.is_none() && old.replace(reason).is_none());
        }
    }

    pub(super) fn abort_all(&self) {
        for abort in self.lock().values().filter_map(|hold| hold.abort.as_ref()) {
            abort.abort();
        }
    }

    /// Takes what these claims have to report and have not yet.
    pub(super) fn take_reports(&self, tokens: impl Iterator<Item = String>) -> Vec<HeartbeatItem> {
        let mut all = self.lock();
        tokens
            .filter_map(|token| {
                let report = std::mem::take(&mut all.get_mut(&token)?.report);
                (!report.is_empty()).then(|| report.into_item(token))
            })
            .collect()
    }

    fn next_beat(&self) -> Option<Instant> {
        self.lock().values().filter(|hold| !hold.gone).map(|hold| hold.next_beat).min()
    }

    /// The heartbeats that are due, and the shortest period among them.
    fn take_due(&self, now: Instant) -> (Vec<HeartbeatItem>, Duration) {
        let mut shortest = Duration::from_secs(60);
        let mut items = Vec::new();
        for (token, hold) in self.lock().iter_mut() {
            if hold.gone || hold.next_beat > now {
                continue;
            }
            shortest = shortest.min(hold.period);
            // Until the answer is there, which decides when the next one is due.
            hold.next_beat = now + hold.period / 3;
            items.push(std::mem::take(&mut hold.report).into_item(token.clone()));
            if items.len() == BEATS_MAX {
                break;
            }
        }
        (items, shortest)
    }

    fn answered(&self, replies: Vec<HoldReply>, sent_at: Instant) {
        let mut all = self.lock();
        for reply in replies {
            let Some(hold) = all.get_mut(&reply.token) else { continue };
            match reply.status {
                HoldStatus::Yours => hold.ours_at = sent_at,
                HoldStatus::Cancelled => {
                    hold.ours_at = sent_at;
                    hold.stop.send_replace(Some(StopReason::Cancelled));
                }
                HoldStatus::Gone => hold.lose(),
            }
        }
    }

    /// Nothing was heard: beat again soon, and give up what has not been ours for a whole period.
    fn unanswered(&self, items: Vec<HeartbeatItem>, now: Instant) {
        let mut all = self.lock();
        for item in items {
            let Some(hold) = all.get_mut(&item.token) else { continue };
            if now >= hold.ours_at + hold.period {
                hold.lose();
                continue;
            }
            hold.next_beat = now + AGAIN_WAIT.min(hold.period / 6);
            if hold.report.progress.is_none() {
                hold.report.progress = item.progress;
            }
            if let Some(log) = item.log {
                let later = std::mem::replace(&mut hold.report.log, log);
                hold.report.add_log(&later);
            }
        }
    }
}

/// Extends claims for ever.
pub(super) async fn beat<S: Source>(source: Arc<S>, holds: Arc<Holds>) {
    loop {
        let changed = holds.changed.notified();
        match holds.next_beat() {
            Some(at) => tokio::select! {
                () = tokio::time::sleep_until(at) => {}
                () = changed => continue,
            },
            None => {
                changed.await;
                continue;
            }
        }
        let sent_at = Instant::now();
        let (items, shortest) = holds.take_due(sent_at);
        if items.is_empty() {
            continue;
        }
        // A call that hangs must leave time for another one before the claim runs out.
        let call = tokio::time::timeout(shortest / 3, source.heartbeat(items.clone()));
        match call.await {
            Ok(Ok(replies)) => holds.answered(replies, sent_at),
            Ok(Err(error)) => {
                tracing::debug!(%error, "heartbeat failed, trying again");
                holds.unanswered(items, Instant::now());
            }
            Err(_) => holds.unanswered(items, Instant::now()),
        }
    }
}
