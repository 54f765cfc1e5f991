//! Schedules and the calendars they name.

use tourbillon_wire::{
    BackfillReply, BackfillRequest, Calendar, NewCalendar, NewSchedule, Page, Preview,
    PreviewQuery, PreviewRequest, Schedule, ScheduleListQuery, TriggerReply,
};

use crate::transport::Repeat;
use crate::{Client, ClientError};

impl Client {
    /// Creates or replaces a schedule and gives it as stored.
    pub async fn put_schedule(
        &self,
        name: &str,
        schedule: &NewSchedule,
    ) -> Result<Schedule, ClientError> {
        self.put(&["v1", "schedules", name]).json(schedule)?.read().await
    }

    /// A page of schedules. The client's namespace is used, not the query's.
    pub async fn schedules(
        &self,
        query: &ScheduleListQuery,
    ) -> Result<Page<Schedule>, ClientError> {
        self.get(&["v1", "schedules"]).query(query)?.read().await
    }

    /// A schedule by name.
    pub async fn schedule(&self, name: &str) -> Result<Schedule, ClientError> {
        self.get(&["v1", "schedules", name]).read().await
    }

    /// Removes a schedule and its waiting occurrence.
    pub async fn remove_schedule(&self, name: &str) -> Result<(), ClientError> {
        self.delete(&["v1", "schedules", name]).done().await
    }

    /// Makes a schedule plan nothing until it is resumed.
    pub async fn pause_schedule(&self, name: &str) -> Result<Schedule, ClientError> {
        self.post(&["v1", "schedules", name, "pause"], Repeat::Safe).read().await
    }

    /// Lets a paused schedule plan again.
    pub async fn resume_schedule(&self, name: &str) -> Result<Schedule, ClientError> {
        self.post(&["v1", "schedules", name, "resume"], Repeat::Safe).read().await
    }

    /// Creates a task of the schedule that is due now, besides its plan.
    pub async fn trigger_schedule(&self, name: &str) -> Result<TriggerReply, ClientError> {
        self.post(&["v1", "schedules", name, "trigger"], Repeat::Never).read().await
    }

    /// Begins a backfill: the tasks of a past span, which the server creates a few at a time.
    pub async fn backfill_schedule(
        &self,
        name: &str,
        request: &BackfillRequest,
    ) -> Result<BackfillReply, ClientError> {
        let repeat = match request.id {
            Some(_) => Repeat::Safe,
            None => Repeat::Never,
        };
        self.post(&["v1", "schedules", name, "backfill"], repeat).json(request)?.read().await
    }

    /// Ends a backfill before it is through.
    pub async fn end_backfill(&self, name: &str, id: &str) -> Result<(), ClientError> {
        self.delete(&["v1", "schedules", name, "backfills", id]).done().await
    }

    /// The next occurrences of a stored schedule. The client's namespace is used, not the query's.
    pub async fn preview_schedule(
        &self,
        name: &str,
        query: &PreviewQuery,
    ) -> Result<Preview, ClientError> {
        self.get(&["v1", "schedules", name, "preview"]).query(query)?.read().await
    }

    /// The next occurrences of a schedule that is not stored.
    pub async fn preview(&self, request: &PreviewRequest) -> Result<Preview, ClientError> {
        self.post(&["v1", "schedules", "preview"], Repeat::Safe).json(request)?.read().await
    }

    /// A page of calendars. The client's namespace is used, not the query's.
    pub async fn calendars(
        &self,
        query: &ScheduleListQuery,
    ) -> Result<Page<Calendar>, ClientError> {
        self.get(&["v1", "calendars"]).query(query)?.read().await
    }

    /// A calendar by name.
    pub async fn calendar(&self, name: &str) -> Result<Calendar, ClientError> {
        self.get(&["v1", "calendars", name]).read().await
    }

    /// Creates or replaces a calendar and gives it as stored.
    pub async fn put_calendar(
        &self,
        name: &str,
        calendar: &NewCalendar,
    ) -> Result<Calendar, ClientError> {
        self.put(&["v1", "calendars", name]).json(calendar)?.read().await
    }

    /// Removes a calendar that no schedule names.
    pub async fn remove_calendar(&self, name: &str) -> Result<(), ClientError> {
        self.delete(&["v1", "calendars", name]).done().await
    }
}
