//! What a node does with exclusion calendars: stored first, then told to the engine, one change at a
//! time.
//!
//! What always holds: a calendar that this node knows, its engine knows too, because the engine is told
//! first and takes messages in order. An answer of success means that every schedule held here has
//! its next occurrence by the calendar as it is now. A change that was begun is told also when who
//! asked for it has left. When it is not known what a write came to, the calendar is read again; a
//! request that is repeated makes up for everything that an earlier one left undone.

use std::sync::Arc;
use std::time::Duration;

use tourbillon_engine::api::{Event, Request};
use tourbillon_engine::calendars::{Calendar, Calendars};
use tourbillon_store::{CalendarRecord, Done, Refusal, Write};

use crate::api::{CalendarDraft, NodeError, PutCalendar};
use crate::node::{Node, STALE_MAX};
use crate::tasks::pause;

/// Schedules named in the refusal to remove a calendar.
const USERS_MAX: usize = 20;
/// How long a request waits for the schedules, which need a store that takes their plans.
const PLANS_WITHIN: Duration = Duration::from_secs(20);

impl Node {
    /// All calendars that this node knows, as they are now.
    pub fn calendars(&self) -> Arc<Calendars> {
        Arc::clone(&self.inner.calendars.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Creates a calendar or gives it other days. The same document twice changes nothing.
    ///
    /// # Errors
    ///
    /// That it cannot be done now.
    pub async fn put_calendar(&self, draft: CalendarDraft) -> Result<PutCalendar, NodeError> {
        let node = self.clone();
        let put = to_its_end(async move { node.store_calendar(draft).await }).await?;
        self.await_plans().await?;
        Ok(put)
    }

    async fn store_calendar(&self, draft: CalendarDraft) -> Result<PutCalendar, NodeError> {
        let _turn = self.inner.calendar_turn.lock().await;
        for round in 0..STALE_MAX {
            pause(round).await;
            let known = self.calendar_of(&draft.namespace, &draft.name).await?;
            if let Some(record) = known.clone().filter(|known| known.doc == draft.doc) {
                self.plan_by(&record, &draft);
                return Ok(PutCalendar { record, created: false, changed: false });
            }
            let write = Write::PutCalendar {
                namespace: draft.namespace.clone(),
                name: draft.name.clone(),
                version: known.as_ref().map_or(0, |known| known.version),
                at: self.now(),
                doc: Box::new(draft.doc.clone()),
            };
            match self.write_or_refusal(write).await {
                Ok(Ok(Done::Calendar(record))) => {
                    self.plan_by(&record, &draft);
                    return Ok(PutCalendar {
                        record: *record,
                        created: known.is_none(),
                        changed: true,
                    });
                }
                // Somebody else changed it meanwhile.
                Ok(_) => {}
                Err(error) => {
                    self.read_again(&draft.namespace, &draft.name, known.as_ref()).await;
                    return Err(error);
                }
            }
        }
        Err(NodeError::Changed)
    }

    /// Removes a calendar that no schedule names.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotFound`], [`NodeError::InUse`] with the schedules that name it, or that it cannot be
    /// done now.
    pub async fn delete_calendar(&self, namespace: &str, name: &str) -> Result<(), NodeError> {
        let (node, namespace, name) = (self.clone(), namespace.to_owned(), name.to_owned());
        to_its_end(async move { node.remove_calendar(&namespace, &name).await }).await
    }

    async fn remove_calendar(&self, namespace: &str, name: &str) -> Result<(), NodeError> {
        let _turn = self.inner.calendar_turn.lock().await;
        for round in 0..STALE_MAX {
            pause(round).await;
            let known = self.calendar_of(namespace, name).await?;
            let record = known.ok_or(NodeError::NotFound("calendar"))?;
            let write = Write::DeleteCalendar {
                namespace: record.namespace,
                name: record.name.clone(),
                version: record.version,
            };
            match self.write_or_refusal(write).await {
                Ok(Ok(_)) => {
                    self.forget_calendar(&record);
                    return Ok(());
                }
                Ok(Err(Refusal::InUse)) => {
                    let (id, name) = (record.namespace, record.name);
                    let users = self.query(move |q| q.calendar_users(id, &name, USERS_MAX + 1));
                    let mut by = users.await?;
                    let more = by.len() > USERS_MAX;
                    by.truncate(USERS_MAX);
                    // The last one may have let go of it meanwhile.
                    if !by.is_empty() {
                        return Err(NodeError::InUse { what: "calendar", by, more });
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    self.read_again(namespace, name, Some(&record)).await;
                    return Err(error);
                }
            }
        }
        Err(NodeError::Changed)
    }

    async fn calendar_of(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<CalendarRecord>, NodeError> {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        self.query(move |q| match q.namespace(&namespace)? {
            Some(id) => q.calendar(id, &name),
            None => Ok(None),
        })
        .await
    }

    /// Tells of a calendar that is stored.
    fn plan_by(&self, record: &CalendarRecord, draft: &CalendarDraft) {
        self.remember_calendar(Calendar {
            namespace: record.namespace,
            name: record.name.clone(),
            version: record.version,
            days: Arc::clone(&draft.days),
        });
        self.remember_namespace(&record.namespace_name, record.namespace);
    }

    /// Waits until the schedules are planned by what was told.
    async fn await_plans(&self) -> Result<(), NodeError> {
        let request = Request::AwaitCalendars;
        let planned = self.ask(|reply| Event::Request { reply, request });
        match tokio::time::timeout(PLANS_WITHIN, planned).await {
            Ok(answer) => answer.map(|_| ()),
            Err(_) => Err(NodeError::Busy {
                retry_after_ms: 1_000,
                why: "the calendar is stored, and its schedules are still being planned".to_owned(),
            }),
        }
    }

    fn remember_calendar(&self, calendar: Calendar) {
        self.tell(Event::Calendars(vec![calendar.clone()]));
        self.change_calendars(|all| {
            all.put(calendar);
        });
    }

    fn forget_calendar(&self, record: &CalendarRecord) {
        let (namespace, version) = (record.namespace, record.version);
        self.change_calendars(|all| all.remove(namespace, &record.name, version));
        self.tell(Event::CalendarRemoved { namespace, name: record.name.clone(), version });
    }

    fn change_calendars(&self, change: impl FnOnce(&mut Calendars)) {
        let lock = self.inner.calendars.write();
        let mut shared = lock.unwrap_or_else(std::sync::PoisonError::into_inner);
        change(Arc::make_mut(&mut shared));
    }

    /// What a write came to is not known: looks, as far as that is possible now. What stays unknown
    /// the next request about the calendar finds out, or the next start.
    async fn read_again(&self, namespace: &str, name: &str, known: Option<&CalendarRecord>) {
        match (self.calendar_of(namespace, name).await, known) {
            (Ok(Some(record)), _) => {
                if let Ok(calendar) = Calendar::of(&record) {
                    self.remember_calendar(calendar);
                }
            }
            (Ok(None), Some(known)) => self.forget_calendar(known),
            _ => {}
        }
    }
}

/// Runs a change to its end, also when who waits for it leaves.
async fn to_its_end<T: Send + 'static>(
    change: impl Future<Output = Result<T, NodeError>> + Send + 'static,
) -> Result<T, NodeError> {
    let done = tokio::spawn(change).await;
    done.unwrap_or_else(|error| Err(NodeError::Store(error.to_string())))
}
