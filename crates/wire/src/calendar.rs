//! A named exclusion calendar: days on which schedules that name it do not run.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Days to exclude: the union of everything given. Dates are civil dates in the schedule's zone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Calendar {
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
    /// An iCalendar text whose events' days are excluded.
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
