//! `tourbillon schedule backfill NAME --from … --to …`: the tasks of a past span.

use clap::Args;
use tourbillon_wire::{BackfillReply, BackfillRequest};
use uuid::Uuid;

use crate::commands::App;
use crate::exit::Status;
use crate::{progress, when};

/// Create the tasks of a past span of a schedule.
#[derive(Debug, Args)]
pub(crate) struct Backfill {
    /// The schedule's name.
    name: String,
    /// The first instant.
    #[arg(long, value_name = "INSTANT")]
    from: String,
    /// The end, itself not included.
    #[arg(long, value_name = "INSTANT")]
    to: String,
    /// The zone of civil times, by IANA name.
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// The backfill's id: the same one again creates nothing twice [default: a new one].
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Only count the occurrences.
    #[arg(long)]
    dry_run: bool,
}

impl Backfill {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let tz = self.tz.as_deref();
        let from = when::instant("--from", &self.from, tz)?;
        let to = when::instant("--to", &self.to, tz)?;
        let id = self.id.unwrap_or_else(|| Uuid::now_v7().to_string());
        let mut request = BackfillRequest { id: Some(id.clone()), from, to, dry_run: self.dry_run };
        let mut total = BackfillReply {
            id,
            occurrences: 0,
            created: 0,
            next_from: None,
            dry_run: self.dry_run,
        };
        let client = app.client()?;
        let bar = progress::bar(None, "tasks");
        loop {
            let reply = client.backfill_schedule(&self.name, &request).await?;
            total.occurrences += reply.occurrences;
            total.created += reply.created;
            bar.inc(reply.created);
            // Each request goes on later than the one before, else it would never end.
            match reply.next_from.filter(|next| *next > request.from) {
                Some(next) => request.from = next,
                None => break,
            }
        }
        bar.finish_and_clear();
        let text = match self.dry_run {
            true => format!("{} occurrences", total.occurrences),
            false => format!(
                "backfill {}: {} of {} occurrences created",
                total.id, total.created, total.occurrences
            ),
        };
        app.out.either(&total, text)?;
        Ok(Status::of(total.occurrences > 0))
    }
}
