//! Exclusion calendars by name, as schedules are planned by them.
//!
//! What always holds: of one calendar the newest that was told is kept, whatever the order of telling;
//! versions are never given twice, so one that was removed and made anew is newer. Deliberately
//! absent: the calendars' documents, which only people read.

use std::collections::BTreeMap;
use std::sync::Arc;

use tourbillon_schedule::Exclusion;
use tourbillon_store::{CalendarDoc, CalendarRecord, NamespaceId};

/// Names that a message about a missing one lists at most.
const LISTED_MAX: usize = 20;

/// A calendar with its days worked out.
#[derive(Debug, Clone, PartialEq)]
pub struct Calendar {
    /// Its namespace.
    pub namespace: NamespaceId,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u64,
    /// The days that it leaves out.
    pub days: Arc<Exclusion>,
}

impl Calendar {
    /// A calendar as stored.
    ///
    /// # Errors
    ///
    /// What [`days_of`] says of its document.
    pub fn of(record: &CalendarRecord) -> Result<Calendar, tourbillon_schedule::Error> {
        Ok(Calendar {
            namespace: record.namespace,
            name: record.name.clone(),
            version: record.version,
            days: Arc::new(days_of(&record.doc)?),
        })
    }
}

/// The days that a document leaves out.
///
/// # Errors
///
/// What is wrong, naming the field (`dates[1]`, `ics line 4`) and what would be right.
pub fn days_of(doc: &CalendarDoc) -> Result<Exclusion, tourbillon_schedule::Error> {
    Exclusion::of(
        doc.dates.iter().map(String::as_str),
        doc.ranges.iter().map(|(from, to)| (from.as_str(), to.as_str())),
        doc.weekdays.iter().map(String::as_str),
        doc.ics.as_deref(),
    )
}

/// Every calendar that is known.
#[derive(Debug, Clone, Default)]
pub struct Calendars(BTreeMap<NamespaceId, BTreeMap<String, Calendar>>);

impl Calendars {
    /// Takes a calendar in, unless the same or a newer one is known. Answers whether it did.
    pub fn put(&mut self, calendar: Calendar) -> bool {
        let of = self.0.entry(calendar.namespace).or_default();
        let newer = of.get(&calendar.name).is_none_or(|known| known.version < calendar.version);
        if newer {
            of.insert(calendar.name.clone(), calendar);
        }
        newer
    }

    /// Forgets a calendar that was removed at this version, unless a newer one is known.
    pub fn remove(&mut self, namespace: NamespaceId, name: &str, version: u64) {
        if let Some(of) = self.0.get_mut(&namespace)
            && of.get(name).is_some_and(|known| known.version <= version)
        {
            of.remove(name);
        }
    }

    /// A calendar.
    pub fn get(&self, namespace: NamespaceId, name: &str) -> Option<&Calendar> {
        self.0.get(&namespace)?.get(name)
    }

    /// The calendars of a namespace, by name.
    pub fn of(&self, namespace: NamespaceId) -> impl Iterator<Item = &Calendar> {
        self.0.get(&namespace).into_iter().flat_map(BTreeMap::values)
    }

    /// The days of calendars, in the order of their names.
    ///
    /// # Errors
    ///
    /// The first name that is not known.
    pub fn days(
        &self,
        namespace: NamespaceId,
        names: &[String],
    ) -> Result<Vec<Arc<Exclusion>>, Missing> {
        let found = names.iter().enumerate().map(|(index, name)| {
            let found = self.get(namespace, name).map(|calendar| Arc::clone(&calendar.days));
            found.ok_or_else(|| self.missing(namespace, index, name))
        });
        found.collect()
    }

    fn missing(&self, namespace: NamespaceId, index: usize, name: &str) -> Missing {
        let known: Vec<&str> = self.of(namespace).map(|c| c.name.as_str()).collect();
        let expected = match known.len() {
            0 => "no name, since there is no calendar here; create it first".to_owned(),
            n if n <= LISTED_MAX => format!("one of: {}", known.join(", ")),
            n => format!("one of {n}: {}, …", known[..LISTED_MAX].join(", ")),
        };
        Missing { index, name: name.to_owned(), expected }
    }

    /// The sum of the calendars' versions, which grows with every change of one of them, in whatever
    /// order changes are told; 0 without any.
    pub(crate) fn stamp(&self, namespace: NamespaceId, names: &[String]) -> u64 {
        let versions = names.iter().filter_map(|name| Some(self.get(namespace, name)?.version));
        versions.fold(0, u64::wrapping_add)
    }
}

/// A calendar that is named and not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Which of the names, from 0.
    pub index: usize,
    /// The name.
    pub name: String,
    /// Which there are.
    pub expected: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(name: &str, version: u64) -> Calendar {
        let days = Arc::new(Exclusion::new());
        Calendar { namespace: NamespaceId(1), name: name.into(), version, days }
    }

    #[test]
    fn the_newest_stays_whatever_the_order_of_telling() {
        let mut all = Calendars::default();
        assert!(all.put(calendar("a", 3)));
        assert!(!all.put(calendar("a", 2)), "told late");
        assert!(!all.put(calendar("a", 3)), "told twice");
        all.remove(NamespaceId(1), "a", 2);
        assert_eq!(all.get(NamespaceId(1), "a").map(|c| c.version), Some(3));
        // Removed at 3 and made anew at 5; the removal is told last.
        assert!(all.put(calendar("a", 5)));
        all.remove(NamespaceId(1), "a", 3);
        all.put(calendar("b", 4));
        let names = ["a".to_owned(), "b".to_owned()];
        assert_eq!(all.stamp(NamespaceId(1), &names), 9);
        all.remove(NamespaceId(1), "a", 5);
        assert_eq!(all.stamp(NamespaceId(1), &names), 4);
    }

    #[test]
    fn a_missing_name_is_told_with_those_that_are_there() {
        let mut all = Calendars::default();
        let names = ["a".to_owned(), "b".to_owned()];
        let missing = all.days(NamespaceId(1), &names).unwrap_err();
        assert!((missing.index, missing.expected.contains("no calendar")) == (0, true));
        all.put(calendar("a", 1));
        let missing = all.days(NamespaceId(1), &names).unwrap_err();
        assert_eq!((missing.index, missing.name.as_str()), (1, "b"));
        assert_eq!(missing.expected, "one of: a");
        assert!(all.days(NamespaceId(2), &names).is_err(), "another namespace");
        all.put(calendar("b", 2));
        assert_eq!(all.days(NamespaceId(1), &names).unwrap().len(), 2);
        for n in 0..30 {
            assert!(all.put(calendar(&format!("c{n}"), 9)));
        }
        let missing = all.days(NamespaceId(1), &["x".to_owned()]).unwrap_err();
        assert!(missing.expected.starts_with("one of 32: a, b, c0, "), "{}", missing.expected);
    }
}
