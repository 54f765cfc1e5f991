//! Calendar documents: from files, and the days they leave out.

use std::path::Path;

use anyhow::Context;
use tourbillon_schedule::{Error, Exclusion};
use tourbillon_wire::NewCalendar;

use crate::documents;

/// A calendar from a file: a JSON document, or an iCalendar text. Without a name in the document it is
/// called as the file is.
pub(crate) fn from_file(file: &str) -> anyhow::Result<NewCalendar> {
    let text = documents::read(file)?;
    let mut calendar = if text.trim_start().starts_with('{') {
        tourbillon_wire::from_slice(text.as_bytes()).with_context(|| file.to_owned())?
    } else {
        NewCalendar { ics: Some(text), ..NewCalendar::default() }
    };
    if calendar.name.is_none() {
        let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
        calendar.name = stem.filter(|stem| *stem != "-").map(str::to_owned);
    }
    Ok(calendar)
}

/// The days that a document leaves out.
pub(crate) fn days(calendar: &NewCalendar) -> Result<Exclusion, Error> {
    Exclusion::of(
        calendar.dates.iter().map(String::as_str),
        calendar.ranges.iter().map(|range| (range.from.as_str(), range.to.as_str())),
        calendar.weekdays.iter().map(String::as_str),
        calendar.ics.as_deref(),
    )
}
