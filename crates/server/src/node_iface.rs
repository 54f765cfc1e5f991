//! Local substitute, never landed.
#![allow(missing_docs, unused_variables, clippy::unimplemented)]
use std::sync::Arc;
use std::time::Duration;
use tourbillon_engine::api::{Notice, TokenState};
use tourbillon_node::api::*;
use tourbillon_store::*;

#[derive(Clone)]
pub struct Node {
    q: Arc<dyn Queries>,
}
pub struct PruneReport {
    pub succeeded: u64,
    pub others: u64,
}
pub struct WheelView;
impl Node {
    pub fn queries(&self) -> &Arc<dyn Queries> {
        &self.q
    }
    pub async fn query<T: Send + 'static>(
        &self,
        f: impl FnOnce(&dyn Queries) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, NodeError> {
        unimplemented!()
    }
    pub fn now(&self) -> Time {
        unimplemented!()
    }
    pub async fn create(&self, drafts: Vec<Draft>) -> Result<Vec<Created>, NodeError> {
        unimplemented!()
    }
    pub async fn cancel(&self, namespace: &str, id: TaskId) -> Result<Cancelled, NodeError> {
        unimplemented!()
    }
    pub async fn edit(
        &self,
        namespace: &str,
        id: TaskId,
        patch: TaskPatch,
    ) -> Result<(), NodeError> {
        unimplemented!()
    }
    pub async fn run_now(&self, namespace: &str, id: TaskId) -> Result<(), NodeError> {
        unimplemented!()
    }
    pub async fn retry(&self, namespace: &str, id: TaskId) -> Result<(), NodeError> {
        unimplemented!()
    }
    pub async fn queue(&self, namespace: &str, name: &str) -> Result<Option<QueueView>, NodeError> {
        unimplemented!()
    }
    pub async fn queues(&self, namespace: &str) -> Result<Vec<QueueView>, NodeError> {
        unimplemented!()
    }
    pub async fn put_queue(&self, draft: QueueDraft) -> Result<QueueRecord, NodeError> {
        unimplemented!()
    }
    pub async fn pause_queue(
        &self,
        namespace: &str,
        name: &str,
        paused: bool,
    ) -> Result<QueueRecord, NodeError> {
        unimplemented!()
    }
    pub async fn put_schedule(&self, draft: ScheduleDraft) -> Result<PutSchedule, NodeError> {
        unimplemented!()
    }
    pub async fn pause_schedule(
        &self,
        namespace: &str,
        name: &str,
        paused: bool,
    ) -> Result<ScheduleRecord, NodeError> {
        unimplemented!()
    }
    pub async fn delete_schedule(&self, namespace: &str, name: &str) -> Result<(), NodeError> {
        unimplemented!()
    }
    pub async fn trigger_schedule(&self, namespace: &str, name: &str) -> Result<TaskId, NodeError> {
        unimplemented!()
    }
    pub async fn claim(&self, ask: ClaimAsk) -> Result<Vec<Claimed>, NodeError> {
        unimplemented!()
    }
    pub async fn complete(&self, items: Vec<CompleteAsk>) -> Result<Vec<TokenState>, NodeError> {
        unimplemented!()
    }
    pub async fn heartbeat(&self, items: Vec<BeatAsk>) -> Result<Vec<TokenState>, NodeError> {
        unimplemented!()
    }
    pub fn live_output(&self, seq: Seq, attempt: u32) -> Option<LiveOutput> {
        unimplemented!()
    }
    pub async fn output_changed(&self, seq: Seq, attempt: u32, seen_total: u64) {
        unimplemented!()
    }
    pub fn status(&self) -> Status {
        unimplemented!()
    }
    pub fn wheel(&self) -> WheelView {
        unimplemented!()
    }
    pub fn subscribe(&self) -> tokio::sync::broadcast::Receiver<Notice> {
        unimplemented!()
    }
    pub async fn prune(&self, dry_run: bool) -> Result<PruneReport, NodeError> {
        unimplemented!()
    }
    pub async fn leases(&self) -> Result<Vec<LeaseRow>, NodeError> {
        unimplemented!()
    }
    pub async fn shutdown(&self, grace: Duration) {
        unimplemented!()
    }
}
