//! Queues.

use tourbillon_wire::{NewQueue, Page, PurgeReply, Queue};

use crate::transport::Repeat;
use crate::{Client, ClientError};

impl Client {
    /// All queues, with counts.
    pub async fn queues(&self) -> Result<Page<Queue>, ClientError> {
        self.get(&["v1", "queues"]).read().await
    }

    /// A queue by name.
    pub async fn queue(&self, name: &str) -> Result<Queue, ClientError> {
        self.get(&["v1", "queues", name]).read().await
    }

    /// Sets all of a queue's limits and defaults and gives it as stored.
    pub async fn put_queue(&self, name: &str, queue: &NewQueue) -> Result<Queue, ClientError> {
        self.put(&["v1", "queues", name]).json(queue)?.read().await
    }

    /// Lets nothing of the queue start until it is resumed.
    pub async fn pause_queue(&self, name: &str) -> Result<Queue, ClientError> {
        self.post(&["v1", "queues", name, "pause"], Repeat::Safe).read().await
    }

    /// Lets a paused queue go on.
    pub async fn resume_queue(&self, name: &str) -> Result<Queue, ClientError> {
        self.post(&["v1", "queues", name, "resume"], Repeat::Safe).read().await
    }

    /// Cancels what waits in the queue; one call changes a bounded number, see `more`.
    pub async fn purge_queue(&self, name: &str) -> Result<PurgeReply, ClientError> {
        self.post(&["v1", "queues", name, "purge"], Repeat::Safe).read().await
    }
}
