//! Reports how attempts ended, many in one call.
//!
//! An end is reported until the source has acknowledged it or the claim is gone. Claims whose end
//! waits here are still extended.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tourbillon_wire::CompleteItem;

use super::holds::Holds;
use super::{Outcome, Source};

/// The most ends reported in one call.
const ENDS_MAX: usize = 500;

/// A handler has ended.
pub(super) struct Finished {
    pub(super) token: String,
    pub(super) outcome: Outcome,
}

/// Reports what comes through `finished` until that closes.
pub(super) async fn complete<S: Source>(
    source: Arc<S>,
    holds: Arc<Holds>,
    mut finished: mpsc::Receiver<Finished>,
) {
    let mut batch = Vec::new();
    while finished.recv_many(&mut batch, ENDS_MAX).await > 0 {
        let items: Vec<CompleteItem> =
            batch.drain(..).map(|end| end.outcome.into_item(end.token)).collect();
        let reports = holds.take_reports(items.iter().map(|item| item.token.clone()));
        if !reports.is_empty() {
            // The last words of a handler. Without them its end still counts.
            if let Err(error) = source.heartbeat(reports).await {
                tracing::debug!(%error, "the last output of an attempt was lost");
            }
        }
        report(&*source, &holds, items).await;
    }
}

async fn report<S: Source>(source: &S, holds: &Holds, mut items: Vec<CompleteItem>) {
    let mut backoff = Duration::from_millis(100);
    loop {
        // No result counts for a claim that is gone.
        items.retain(|item| holds.still_ours(&item.token));
        if items.is_empty() {
            return;
        }
        match source.complete(items.clone()).await {
            Ok(_) => {
                for item in &items {
                    holds.remove(&item.token);
                }
                return;
            }
            Err(error) if S::is_retryable(&error) => {
                tracing::debug!(%error, "complete failed, trying again");
                tokio::time::sleep(S::retry_after(&error).unwrap_or(backoff).max(backoff)).await;
                backoff = (backoff * 2).min(Duration::from_secs(5));
            }
            Err(error) if items.len() == 1 => {
                tracing::warn!(%error, "the end of an attempt was refused; its claim will run out");
                holds.remove(&items[0].token);
                return;
            }
            Err(_) => {
                // One bad end must not take the others along.
                for item in items {
                    Box::pin(report(source, holds, vec![item])).await;
                }
                return;
            }
        }
    }
}
