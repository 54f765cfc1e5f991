//! Tasks: create, find, change, cancel, retry.

use tourbillon_wire::{
    BatchReply, CancelReply, ManyReply, ManyRequest, NewTask, OnConflict, Page, Task,
    TaskListQuery, TaskPatch,
};
use uuid::Uuid;

use crate::transport::Repeat;
use crate::{Client, ClientError};

impl Client {
    /// Creates a task and gives it as stored; with `on_conflict: keep` it may be another one, which
    /// the id tells. The id is given here when the task has none, so repeating is safe.
    pub async fn create(&self, mut task: NewTask) -> Result<Task, ClientError> {
        task.id.get_or_insert_with(Uuid::now_v7);
        self.post(&["v1", "tasks"], Repeat::Safe).json(&task)?.read().await
    }

    /// Creates all of the tasks or none, and gives their ids in order. Ids are given here to those
    /// that have none, so repeating is safe. At most 10,000 by the server's default.
    pub async fn create_batch(&self, tasks: &mut [NewTask]) -> Result<Vec<Uuid>, ClientError> {
        for task in &mut *tasks {
            task.id.get_or_insert_with(Uuid::now_v7);
        }
        let repeat = match tasks.iter().any(|t| t.on_conflict == OnConflict::Replace) {
            true => Repeat::Never,
            false => Repeat::Safe,
        };
        let reply: BatchReply =
            self.post(&["v1", "tasks", "batch"], repeat).json(tasks)?.read().await?;
        Ok(reply.ids)
    }

    /// A page of tasks, newest first. The client's namespace is used, not the query's.
    pub async fn tasks(&self, query: &TaskListQuery) -> Result<Page<Task>, ClientError> {
        self.get(&["v1", "tasks"]).query(query)?.read().await
    }

    /// A task with its attempts.
    pub async fn task(&self, id: Uuid) -> Result<Task, ClientError> {
        self.get(&["v1", "tasks", &id.to_string()]).read().await
    }

    /// Changes a task before its first start and gives it as changed.
    pub async fn edit(&self, id: Uuid, patch: &TaskPatch) -> Result<Task, ClientError> {
        self.patch(&["v1", "tasks", &id.to_string()]).json(patch)?.read().await
    }

    /// Cancels a task, or starts to when an attempt is running.
    pub async fn cancel(&self, id: Uuid) -> Result<CancelReply, ClientError> {
        self.delete(&["v1", "tasks", &id.to_string()]).read().await
    }

    /// Makes a scheduled task due now.
    pub async fn run_now(&self, id: Uuid) -> Result<Task, ClientError> {
        self.post(&["v1", "tasks", &id.to_string(), "run"], Repeat::Safe).read().await
    }

    /// Runs a final task again.
    pub async fn retry(&self, id: Uuid) -> Result<Task, ClientError> {
        self.post(&["v1", "tasks", &id.to_string(), "retry"], Repeat::Never).read().await
    }

    /// Cancels the tasks that match; one call changes a bounded number, see `more`.
    pub async fn cancel_many(&self, request: &ManyRequest) -> Result<ManyReply, ClientError> {
        self.post(&["v1", "tasks", "cancel"], Repeat::Safe).json(request)?.read().await
    }

    /// Runs the final tasks that match again; one call changes a bounded number, see `more`.
    pub async fn retry_many(&self, request: &ManyRequest) -> Result<ManyReply, ClientError> {
        self.post(&["v1", "tasks", "retry"], Repeat::Never).json(request)?.read().await
    }
}
