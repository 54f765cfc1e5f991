//! What a node does with backfills: the occurrences of a past span, counted first, then handed to the
//! schedule's owner, which creates them a few at a time.

use tourbillon_engine::api::{Answer, BackfillChange, Request};
use tourbillon_engine::timing::compile_in;
use tourbillon_schedule::RuleKind;
use tourbillon_store::Time;
use tourbillon_store::schedule::Backfill;

use crate::api::{BackfillDraft, BackfillView, NodeError};
use crate::catalogue::bad_schedule;
use crate::node::Node;

impl Node {
    /// Begins a backfill of a schedule, or only counts its occurrences. One of the same id that is under way
    /// stays as it is; one that is through finds what it created, and creates nothing twice.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotFound`]; [`NodeError::Invalid`] for a fixed delay, a span that ends in the future
    /// or has more than `occurrences_max` occurrences, and too many backfills of one schedule;
    /// [`NodeError::IdReused`] when a backfill of that id is under way over another span; or that it
    /// cannot be done now.
    pub async fn backfill_schedule(
        &self,
        namespace: &str,
        name: &str,
        draft: BackfillDraft,
    ) -> Result<BackfillView, NodeError> {
        let record = self.schedule_of(namespace, name).await?;
        let record = record.ok_or(NodeError::NotFound("schedule"))?;
        let timing = compile_in(&record.doc, &record.name, record.namespace, &self.calendars())
            .map_err(bad_schedule)?;
        if timing.rule().kind() == RuleKind::After {
            let message = "a fixed delay has no times of its own to go back to";
            return Err(invalid("from", message.to_owned()));
        }
        let now = self.now();
        if draft.until > now {
            return Err(invalid("to", "expected an instant that is not after now".to_owned()));
        }
        let most = draft.occurrences_max;
        let tally = timing.tally(draft.from.0, draft.until.0 - 1, most + 1);
        if tally.count > most {
            let message =
                format!("the span has more than {most} occurrences; expected a shorter one");
            return Err(invalid("to", message));
        }
        let mut view = BackfillView {
            occurrences: tally.count,
            first: tally.first.map(|o| Time(o.logical)),
            last: tally.last.map(|o| Time(o.logical)),
            created: 0,
            in_flight: draft.in_flight,
        };
        if draft.dry_run || tally.count == 0 {
            return Ok(view);
        }
        let backfill = Backfill {
            id: draft.id.clone(),
            from: draft.from,
            until: draft.until,
            next: draft.from,
            in_flight: draft.in_flight,
            created: 0,
            occurrences: tally.count,
        };
        let make = |record: &tourbillon_store::ScheduleRecord| Request::Backfill {
            shard: record.shard,
            uid: record.uid,
            change: BackfillChange::Begin(Box::new(backfill.clone())),
        };
        let record = match self.ask_schedule(namespace, name, make).await? {
            Answer::Schedule(record) => record,
            Answer::BadSchedule(why) => return Err(bad_schedule(why)),
            _ => return Err(NodeError::Changed),
        };
        // It may be through already, when everything it creates was there.
        if let Some(found) = record.cursor.backfills.iter().find(|b| b.id == draft.id) {
            if (found.from, found.until) != (draft.from, draft.until) {
                return Err(NodeError::IdReused { index: 0 });
            }
            view.created = found.created;
            view.in_flight = found.in_flight;
        }
        Ok(view)
    }

    /// Ends a backfill before it is through. What it has created runs all the same.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotFound`], or that it cannot be done now.
    pub async fn end_backfill(
        &self,
        namespace: &str,
        name: &str,
        id: &str,
    ) -> Result<(), NodeError> {
        let make = |record: &tourbillon_store::ScheduleRecord| Request::Backfill {
            shard: record.shard,
            uid: record.uid,
            change: BackfillChange::End(id.to_owned()),
        };
        match self.ask_schedule(namespace, name, make).await? {
            Answer::Schedule(_) => Ok(()),
            Answer::NoBackfill => Err(NodeError::NotFound("backfill")),
            _ => Err(NodeError::Changed),
        }
    }
}

fn invalid(field: &str, message: String) -> NodeError {
    NodeError::Invalid { field: field.to_owned(), message }
}
