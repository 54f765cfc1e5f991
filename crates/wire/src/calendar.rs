//! Named exclusion calendars: days on which schedules that name one have no occurrences.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Timestamp;

/// A calendar to create or replace: the union of everything given. Dates are civil dates in the
/// zone of each schedule.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCalendar {
    /// Its name; in a request it may be left to the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Single dates, such as `2026-10-01`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dates: Vec<String>,
    /// Ranges of dates, both ends included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<DateRange>,
    /// Days of the week: `mon` to `sun`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weekdays: Vec<String>,
    /// An iCalendar text whose events' days are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ics: Option<String>,
}

/// A range of dates, both ends included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DateRange {
    /// The first date, such as `2026-10-01`.
    pub from: String,
    /// The last date.
    pub to: String,
}

/// A calendar as shown: what was given, and who names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Calendar {
    /// Its name.
    pub name: String,
    /// The separate world of names it lives in.
    pub namespace: String,
    /// Single dates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dates: Vec<String>,
    /// Ranges of dates, both ends included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<DateRange>,
    /// Days of the week.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weekdays: Vec<String>,
    /// An iCalendar text whose events' days are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ics: Option<String>,
    /// The schedules that name it, by name; 100 of them at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Grows with every change, by one or more.
    pub version: u64,
}

impl From<Calendar> for NewCalendar {
    /// The document that would create the same calendar again.
    fn from(c: Calendar) -> NewCalendar {
        NewCalendar {
            name: Some(c.name),
            dates: c.dates,
            ranges: c.ranges,
            weekdays: c.weekdays,
            ics: c.ics,
        }
    }
}
