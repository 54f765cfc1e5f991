//! `tourbillon task cancel …`: cancel tasks by id or by filter.

use clap::Args;
use tourbillon_wire::CancelState;

use super::many::{self, ManyArgs};
use crate::commands::App;
use crate::exit::Status;

/// Cancel tasks, by id or by filter.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    #[command(flatten)]
    many: ManyArgs,
}

impl Cancel {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let request = self.many.request()?;
        let client = app.client()?;
        if let Some(request) = request {
            return many::all(app, "cancelled", &request, || client.cancel_many(&request)).await;
        }
        for id in self.many.ids {
            let reply = client.cancel(id).await?;
            let text = match reply.state {
                CancelState::Cancelled => format!("task {id} cancelled: it will not start"),
                CancelState::Cancelling => {
                    format!("task {id} cancelling: its attempt is being stopped")
                }
            };
            app.out.either(&reply, text)?;
        }
        Ok(Status::Done)
    }
}
