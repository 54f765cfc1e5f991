//! Exclusion calendars, and the names by which schedules have them.

use std::sync::Arc;

use tourbillon_engine::calendars::days_of;
use tourbillon_node::api::CalendarDraft;
use tourbillon_store::CalendarDoc;
use tourbillon_wire as wire;

use super::Judge;
use super::name::name;
use super::queue::same_name;
use crate::failure::{Failure, Result};

impl Judge<'_> {
    /// The calendar called `path_name`, its days worked out.
    pub(crate) fn calendar(
        &self,
        path_name: &str,
        given: wire::NewCalendar,
    ) -> Result<CalendarDraft> {
        same_name(path_name, given.name.as_deref())?;
        name(path_name, "name", self.limits)?;
        let most = self.limits.calendar_dates;
        if given.dates.len() + given.ranges.len() > most {
            let field = if given.dates.len() > most { "dates" } else { "ranges" };
            return Err(Failure::invalid(
                field,
                format!("there are {} dates and ranges", given.dates.len() + given.ranges.len()),
                format!("at most {most} of both together"),
            ));
        }
        if given.weekdays.len() > 7 {
            let detail = format!("there are {}", given.weekdays.len());
            return Err(Failure::invalid("weekdays", detail, "at most 7, mon to sun"));
        }
        let doc = CalendarDoc {
            dates: given.dates,
            ranges: given.ranges.into_iter().map(|r| (r.from, r.to)).collect(),
            weekdays: given.weekdays,
            ics: given.ics,
        };
        let days = days_of(&doc).map_err(|error| {
            // The line of an iCalendar text is not a field of the document.
            let line = error.field().strip_prefix("ics ");
            let given = match error.given() {
                "" => "nothing is given".to_owned(),
                given => format!("given {given:?}"),
            };
            let detail = match line {
                Some(line) => format!("{line}: {given}"),
                None => given,
            };
            let field = if line.is_some() { "ics" } else { error.field() };
            Failure::invalid(field, detail, error.expected())
        })?;
        Ok(CalendarDraft {
            namespace: self.namespace.to_owned(),
            name: path_name.to_owned(),
            doc,
            days: Arc::new(days),
        })
    }

    /// The names of the calendars that a schedule has its days left out by, each once.
    pub(super) fn exclude(&self, given: Vec<String>) -> Result<Vec<String>> {
        let most = self.limits.excludes;
        if given.len() > most {
            let detail = format!("there are {}", given.len());
            return Err(Failure::invalid("exclude", detail, format!("at most {most} calendars")));
        }
        for (index, calendar) in given.iter().enumerate() {
            let field = format!("exclude[{index}]");
            name(calendar, &field, self.limits)?;
            if given[..index].contains(calendar) {
                return Err(Failure::invalid(
                    field,
                    format!("`{}` is named twice", super::name::short(calendar)),
                    "each calendar once",
                ));
            }
        }
        Ok(given)
    }
}
