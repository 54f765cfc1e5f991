//! `tourbillon task retry …`: run final tasks again, by id or by filter.

use clap::Args;

use super::many::{self, ManyArgs};
use crate::commands::App;
use crate::exit::Status;

/// Run final tasks again, by id or by filter.
#[derive(Debug, Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    many: ManyArgs,
}

impl Retry {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let request = self.many.request()?;
        let client = app.client()?;
        if let Some(request) = request {
            return many::all(app, "retried", &request, || client.retry_many(&request)).await;
        }
        for id in self.many.ids {
            let task = client.retry(id).await?;
            app.out.either(&task, format!("task {id} runs again, {}", task.state))?;
        }
        Ok(Status::Done)
    }
}
