//! Where a worker's tasks come from: over HTTP, or from a scheduler in the same process.

use std::future::Future;
use std::time::Duration;

use tourbillon_wire::{ClaimRequest, ClaimedTask, CompleteItem, HeartbeatItem, HoldReply};

use crate::{Client, ClientError};

/// Hands out tasks and hears what became of them.
///
/// Replies to `complete` and `heartbeat` may come in any order; each names its token.
pub trait Source: Send + Sync + 'static {
    /// Why a call failed.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Ready tasks of `queue`, at most `request.max`; waits up to `request.wait` for the first.
    fn claim(
        &self,
        queue: &str,
        request: ClaimRequest,
    ) -> impl Future<Output = Result<Vec<ClaimedTask>, Self::Error>> + Send;

    /// Attempts have ended. May be called again with the same items when the answer was lost.
    fn complete(
        &self,
        items: Vec<CompleteItem>,
    ) -> impl Future<Output = Result<Vec<HoldReply>, Self::Error>> + Send;

    /// Attempts go on.
    fn heartbeat(
        &self,
        items: Vec<HeartbeatItem>,
    ) -> impl Future<Output = Result<Vec<HoldReply>, Self::Error>> + Send;

    /// Whether the same call may succeed later.
    fn is_retryable(error: &Self::Error) -> bool;

    /// How long the source asked to wait before trying again. Default: it did not.
    fn retry_after(_error: &Self::Error) -> Option<Duration> {
        None
    }
}

impl Source for Client {
    type Error = ClientError;

    async fn claim(
        &self,
        queue: &str,
        request: ClaimRequest,
    ) -> Result<Vec<ClaimedTask>, ClientError> {
        Client::claim(self, queue, &request).await.map(|reply| reply.tasks)
    }

    async fn complete(&self, items: Vec<CompleteItem>) -> Result<Vec<HoldReply>, ClientError> {
        Client::complete(self, &items).await
    }

    async fn heartbeat(&self, items: Vec<HeartbeatItem>) -> Result<Vec<HoldReply>, ClientError> {
        Client::heartbeat(self, &items).await
    }

    fn is_retryable(error: &ClientError) -> bool {
        error.is_retryable()
    }

    fn retry_after(error: &ClientError) -> Option<Duration> {
        error.retry_after()
    }
}
