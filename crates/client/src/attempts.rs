//! Attempts: claim, heartbeat, complete, and what they printed.

use tourbillon_wire::{
    ClaimReply, ClaimRequest, CompleteItem, HeartbeatItem, HoldReply, OutputQuery,
};
use uuid::Uuid;

use crate::transport::{Repeat, read_body};
use crate::{Client, ClientError};

/// What an attempt printed, from some byte on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// The position of the first byte here in all that was printed; later than asked for when the
    /// middle was dropped.
    pub from: u64,
    /// How much was printed in all.
    pub total: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Client {
    /// Claims ready tasks, waiting as long as the request says.
    pub async fn claim(
        &self,
        queue: &str,
        request: &ClaimRequest,
    ) -> Result<ClaimReply, ClientError> {
        let wait = request.wait.unwrap_or_default();
        self.post(&["v1", "queues", queue, "claim"], Repeat::Never)
            .wait(wait.into())
            .json(request)?
            .read()
            .await
    }

    /// Says how attempts ended; replies in order.
    pub async fn complete(&self, items: &[CompleteItem]) -> Result<Vec<HoldReply>, ClientError> {
        self.post(&["v1", "attempts", "complete"], Repeat::Safe).json(items)?.read().await
    }

    /// Extends claims; replies in order. Not repeated on its own: its log text would come twice.
    pub async fn heartbeat(&self, items: &[HeartbeatItem]) -> Result<Vec<HoldReply>, ClientError> {
        self.post(&["v1", "attempts", "heartbeat"], Repeat::Never).json(items)?.read().await
    }

    /// What attempt `n` of a task printed, from byte `from` of it on.
    pub async fn output(&self, id: Uuid, n: u32, from: u64) -> Result<Output, ClientError> {
        let query = OutputQuery { from: Some(from), ..OutputQuery::default() };
        let path = ["v1", "tasks", &id.to_string(), "attempts", &n.to_string(), "output"];
        let response = self.get(&path).query(&query)?.send().await?;
        let number = |name: &str| response.headers().get(name)?.to_str().ok()?.parse::<u64>().ok();
        let given_from = number(OutputQuery::FROM_HEADER);
        let total = number(OutputQuery::BYTES_HEADER);
        let bytes = read_body(response, self.config().reply_bytes_max).await?;
        let from = given_from.unwrap_or(from);
        let end = from.saturating_add(bytes.len() as u64);
        Ok(Output { from, total: total.unwrap_or(end), bytes })
    }
}
