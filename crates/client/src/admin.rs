//! How the server is doing, and looking after it.

use tourbillon_wire::{
    Node, Page, PruneReply, PruneRequest, Series, SeriesQuery, Stats, StatsQuery, Wheels, Worker,
};

use crate::transport::Repeat;
use crate::{Client, ClientError};

impl Client {
    /// Counts and percentiles.
    pub async fn stats(&self, query: &StatsQuery) -> Result<Stats, ClientError> {
        self.get(&["v1", "stats"]).query(query)?.read().await
    }

    /// Figures over time.
    pub async fn series(&self, query: &SeriesQuery) -> Result<Series, ClientError> {
        self.get(&["v1", "stats", "series"]).query(query)?.read().await
    }

    /// What the timing wheels hold.
    pub async fn wheels(&self) -> Result<Wheels, ClientError> {
        self.get(&["v1", "wheel"]).read().await
    }

    /// All nodes.
    pub async fn nodes(&self) -> Result<Page<Node>, ClientError> {
        self.get(&["v1", "nodes"]).read().await
    }

    /// All workers that claimed lately.
    pub async fn workers(&self) -> Result<Page<Worker>, ClientError> {
        self.get(&["v1", "workers"]).read().await
    }

    /// Deletes history that was kept long enough; one call deletes a bounded number, see `more`.
    pub async fn prune(&self, request: &PruneRequest) -> Result<PruneReply, ClientError> {
        self.post(&["v1", "prune"], Repeat::Safe).json(request)?.read().await
    }

    /// Whether the server takes requests.
    pub async fn ready(&self) -> Result<(), ClientError> {
        self.get(&["readyz"]).done().await
    }
}
