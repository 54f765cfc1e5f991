//! Exclusion calendars as shown.

use tourbillon_store::CalendarRecord;
use tourbillon_wire as wire;
use tourbillon_wire::DateRange;

use super::at;

/// A calendar; `used_by` are the schedules that name it.
pub(crate) fn calendar(r: &CalendarRecord, used_by: Vec<String>) -> wire::Calendar {
    let range = |(from, to): &(String, String)| DateRange { from: from.clone(), to: to.clone() };
    wire::Calendar {
        name: r.name.clone(),
        namespace: r.namespace_name.clone(),
        dates: r.doc.dates.clone(),
        ranges: r.doc.ranges.iter().map(range).collect(),
        weekdays: r.doc.weekdays.clone(),
        ics: r.doc.ics.clone(),
        used_by,
        created_at: at(r.created_at),
        updated_at: at(r.updated_at),
        version: r.version,
    }
}
