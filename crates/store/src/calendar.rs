//! A named exclusion calendar as stored: days on which the schedules that name it have no occurrences.
//!
//! The days are data here, as a user wrote them; what they mean is another crate's knowledge. A
//! version is never given twice, not even to another calendar: so a calendar that was removed and made
//! anew under its old name is newer than what anybody knew of it.

use serde::{Deserialize, Serialize};

use crate::id::NamespaceId;
use crate::time::Time;

/// What a user writes of a calendar: the union of everything given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CalendarDoc {
    /// Single dates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dates: Vec<String>,
    /// Ranges of dates: the first and the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<(String, String)>,
    /// Days of the week.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weekdays: Vec<String>,
    /// An iCalendar text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ics: Option<String>,
}

/// A calendar as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarRecord {
    /// Its namespace.
    pub namespace: NamespaceId,
    /// That namespace's name.
    pub namespace_name: String,
    /// Its name, unique in the namespace.
    pub name: String,
    /// Greater than any that a calendar had before it was written.
    pub version: u64,
    /// When it was first created.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
    /// What the user wrote.
    pub doc: CalendarDoc,
}
