//! What `cancel` and `retry` share: some tasks by id, or all that match.

use std::future::Future;

use clap::Args;
use tourbillon_client::ClientError;
use tourbillon_wire::{ManyReply, ManyRequest, TaskFilter};
use uuid::Uuid;

use super::filter::FilterArgs;
use crate::commands::App;
use crate::exit::{Status, usage};
use crate::progress;

/// Tasks by id, or by filter.
#[derive(Debug, Args)]
pub(super) struct ManyArgs {
    /// The tasks; without any, the options below select them.
    #[arg(value_name = "ID")]
    pub(super) ids: Vec<Uuid>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only say how many match.
    #[arg(long)]
    dry_run: bool,
}

impl ManyArgs {
    /// The request, when it is not a plain list of ids.
    pub(super) fn request(&self) -> anyhow::Result<Option<ManyRequest>> {
        let filter = self.filter.filter(self.ids.clone())?;
        let only_ids = filter == TaskFilter { ids: self.ids.clone(), ..TaskFilter::default() };
        match (self.ids.is_empty(), only_ids) {
            (true, true) => {
                Err(usage("which tasks? give ids, or options such as --queue and --state"))
            }
            (false, true) if !self.dry_run => Ok(None),
            _ => Ok(Some(ManyRequest { filter, dry_run: self.dry_run })),
        }
    }
}

/// Asks until no more match, and says how many there were.
pub(super) async fn all<F>(
    app: &App,
    verb: &str,
    request: &ManyRequest,
    call: impl Fn() -> F,
) -> anyhow::Result<Status>
where
    F: Future<Output = Result<ManyReply, ClientError>>,
{
    let bar = progress::bar(None, "tasks");
    let mut total = ManyReply { dry_run: request.dry_run, ..ManyReply::default() };
    loop {
        let reply = call().await?;
        total.matched += reply.matched;
        total.changed += reply.changed;
        total.cancelling += reply.cancelling;
        total.refused += reply.refused;
        bar.inc(reply.changed + reply.cancelling);
        // A request that changed nothing would change nothing the next time either.
        let stuck = reply.changed == 0 && reply.cancelling == 0;
        total.more = reply.more;
        if !reply.more || request.dry_run || stuck {
            break;
        }
    }
    bar.finish_and_clear();
    let text = if request.dry_run {
        let least = if total.more { "at least " } else { "" };
        format!("{least}{} tasks would be {verb}", total.matched)
    } else {
        let mut text = format!("{} tasks {verb}", total.changed);
        if total.cancelling > 0 {
            text.push_str(&format!(", {} being stopped", total.cancelling));
        }
        if total.refused > 0 {
            text.push_str(&format!(", {} refused", total.refused));
        }
        text
    };
    app.out.either(&total, text)?;
    Ok(Status::of(total.matched > 0 && total.refused == 0))
}
