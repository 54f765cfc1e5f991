//! `tourbillon schedule backfill NAME --from … --to …`: the tasks of a past span.

use std::time::Duration;

use clap::Args;
use tourbillon_client::Client;
use tourbillon_wire::{BackfillReply, BackfillRequest};
use uuid::Uuid;

use crate::commands::App;
use crate::exit::{Status, usage};
use crate::{progress, when};

/// Between two looks at how far it is.
const LOOK: Duration = Duration::from_millis(500);

/// Run the occurrences of a past span of a schedule, a few at a time, below everything else in priority.
/// The server goes on by itself; see `schedule show`.
#[derive(Debug, Args)]
pub(crate) struct Backfill {
    /// The schedule's name.
    name: String,
    /// The first instant.
    #[arg(long, value_name = "INSTANT", required_unless_present = "stop")]
    from: Option<String>,
    /// The end, itself not included; not after now.
    #[arg(long, value_name = "INSTANT", required_unless_present = "stop")]
    to: Option<String>,
    /// The zone of civil times, by IANA name.
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// The backfill's id: the same one again creates nothing twice [default: a new one].
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// How many of its tasks may be live at once [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    in_flight: Option<u32>,
    /// Only count the occurrences.
    #[arg(long)]
    dry_run: bool,
    /// Wait until every one of its tasks is over, and show how far it is.
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
    /// End the backfill of this id before it is through; what it has created runs all the same.
    #[arg(long, value_name = "ID", conflicts_with_all = ["from", "to", "id", "in_flight", "dry_run", "wait"])]
    stop: Option<String>,
}

impl Backfill {
    pub(crate) async fn run(self, app: &App) -> anyhow::Result<Status> {
        let client = app.client()?;
        if let Some(id) = &self.stop {
            client.end_backfill(&self.name, id).await?;
            eprintln!("backfill {id} creates no further task");
            return Ok(Status::Done);
        }
        let instant = |option: &str, given: &Option<String>| {
            let given = given.as_deref().ok_or_else(|| usage(format!("{option}: missing")))?;
            when::instant(option, given, self.tz.as_deref())
        };
        let request = BackfillRequest {
            id: Some(self.id.clone().unwrap_or_else(|| Uuid::now_v7().to_string())),
            from: instant("--from", &self.from)?,
            to: instant("--to", &self.to)?,
            in_flight: self.in_flight,
            dry_run: self.dry_run,
        };
        let mut reply = client.backfill_schedule(&self.name, &request).await?;
        if self.wait && reply.occurrences > 0 {
            self.see_through(&client, &mut reply).await?;
        }
        let span = match (reply.first, reply.last) {
            (Some(first), Some(last)) => format!(", {first} to {last}"),
            _ => String::new(),
        };
        let text = match (reply.dry_run, self.wait) {
            _ if reply.occurrences == 0 => "no occurrence in the span".to_owned(),
            (true, _) => format!("{} occurrences{span}", reply.occurrences),
            (false, true) => {
                format!("backfill {}: {} occurrences are over", reply.id, reply.created)
            }
            (false, false) => {
                format!(
                    "backfill {} of {} occurrences{span} is under way",
                    reply.id, reply.occurrences
                )
            }
        };
        app.out.either(&reply, text)?;
        Ok(Status::of(reply.occurrences > 0))
    }

    /// Looks now and then until the schedule shows the backfill no more.
    async fn see_through(&self, client: &Client, reply: &mut BackfillReply) -> anyhow::Result<()> {
        let bar = progress::bar(Some(reply.occurrences), "tasks");
        loop {
            let schedule = client.schedule(&self.name).await?;
            let Some(found) = schedule.backfills.iter().find(|b| b.id == reply.id) else { break };
            reply.created = found.created;
            bar.set_position(found.created);
            tokio::time::sleep(LOOK).await;
        }
        reply.created = reply.occurrences;
        bar.finish_and_clear();
        Ok(())
    }
}
