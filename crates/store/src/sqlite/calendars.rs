//! Exclusion calendars, and which schedules name them.
//!
//! What always holds: every calendar that a stored schedule names is there, because naming and
//! removing are judged by the one writer, in the transaction that does them.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::calendar::{CalendarDoc, CalendarRecord};
use crate::error::StoreError;
use crate::id::NamespaceId;
use crate::schedule::ScheduleRecord;
use crate::time::Time;
use crate::write::{Done, Refusal};

use super::row::{json, parse, text};
use super::writer::{Stop, Tx};

/// The names of a calendar's users.
pub(super) const USERS: &str = "SELECT schedule FROM schedule_calendars
     WHERE namespace = ?1 AND calendar = ?2 ORDER BY schedule LIMIT ?3";

/// The calendars (`c`) for which a condition holds.
pub(super) fn read(
    conn: &Connection,
    condition: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<CalendarRecord>, StoreError> {
    let sql = format!(
        "SELECT c.namespace, n.name, c.name, c.version, c.created_at, c.updated_at, c.doc
         FROM calendars c JOIN namespaces n ON n.id = c.namespace WHERE {condition}"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let mut rows = select.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(calendar(row)?);
    }
    Ok(found)
}

fn calendar(row: &Row<'_>) -> Result<CalendarRecord, StoreError> {
    Ok(CalendarRecord {
        namespace: NamespaceId(row.get(0)?),
        namespace_name: row.get(1)?,
        name: row.get(2)?,
        version: row.get::<_, i64>(3)?.unsigned_abs(),
        created_at: Time(row.get(4)?),
        updated_at: Time(row.get(5)?),
        doc: parse(text(row, 6)?)?,
    })
}

impl Tx<'_> {
    pub(super) fn put_calendar(
        &mut self,
        namespace: &str,
        name: &str,
        version: u64,
        at: Time,
        doc: &CalendarDoc,
    ) -> Result<Done, Stop> {
        let known = match self.known.catalog.namespaces.get(namespace) {
            Some(id) => self.calendar_version(*id, name)?,
            None => None,
        };
        if known.unwrap_or(0) != version {
            return Err(Refusal::Conflict.into());
        }
        self.changes.catalog = true;
        let id = self.known.catalog.namespace(self.conn, namespace)?;
        let next: i64 = self
            .conn
            .prepare_cached(
                "UPDATE meta SET value = value + 1 WHERE name = 'calendar_version'
                 RETURNING value",
            )?
            .query_row([], |row| row.get(0))?;
        self.conn
            .prepare_cached(
                "INSERT INTO calendars (namespace, name, version, created_at, updated_at, doc)
                 VALUES (?1, ?2, ?3, ?4, ?4, ?5)
                 ON CONFLICT (namespace, name) DO UPDATE SET
                     version = excluded.version, updated_at = excluded.updated_at,
                     doc = excluded.doc",
            )?
            .execute((id.0, name, next, at.0, json(doc)?))?;
        let condition = "c.namespace = ?1 AND c.name = ?2";
        let stored = read(self.conn, condition, (id.0, name))?.into_iter().next();
        let stored = stored.ok_or(Refusal::Conflict)?;
        Ok(Done::Calendar(Box::new(stored)))
    }

    pub(super) fn delete_calendar(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        version: u64,
    ) -> Result<Done, Stop> {
        if self.calendar_version(namespace, name)? != Some(version) {
            return Err(Refusal::Conflict.into());
        }
        if self.conn.prepare_cached(USERS)?.exists((namespace.0, name, 1))? {
            return Err(Refusal::InUse.into());
        }
        self.conn
            .prepare_cached("DELETE FROM calendars WHERE namespace = ?1 AND name = ?2")?
            .execute((namespace.0, name))?;
        Ok(Done::Ok)
    }

    fn calendar_version(
        &self,
        namespace: NamespaceId,
        name: &str,
    ) -> Result<Option<u64>, StoreError> {
        let version: Option<i64> = self
            .conn
            .prepare_cached("SELECT version FROM calendars WHERE namespace = ?1 AND name = ?2")?
            .query_row((namespace.0, name), |row| row.get(0))
            .optional()?;
        Ok(version.map(i64::unsigned_abs))
    }

    /// Whether every calendar that a schedule names is there.
    pub(super) fn has_calendars(&self, record: &ScheduleRecord) -> Result<bool, StoreError> {
        for name in &record.doc.exclude {
            if self.calendar_version(record.namespace, name)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Notes which calendars a schedule names from now on.
    pub(super) fn link_calendars(&self, record: &ScheduleRecord) -> Result<(), StoreError> {
        self.unlink_calendars(record.uid)?;
        for name in &record.doc.exclude {
            self.conn
                .prepare_cached(
                    "INSERT OR REPLACE INTO schedule_calendars
                         (namespace, calendar, schedule, uid) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute((record.namespace.0, name, &record.name, record.uid.to_be_bytes()))?;
        }
        Ok(())
    }

    /// A schedule names no calendar any more.
    pub(super) fn unlink_calendars(&self, uid: u128) -> Result<(), StoreError> {
        self.conn
            .prepare_cached("DELETE FROM schedule_calendars WHERE uid = ?1")?
            .execute([uid.to_be_bytes()])?;
        Ok(())
    }
}
