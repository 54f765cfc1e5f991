//! Numbered schema changes, forward only, each in a transaction of its own with its version row.
//!
//! Each migration names the oldest schema a binary must know to use a database that has it. So a
//! binary may open a database that is newer than itself as long as what came later only added;
//! otherwise it refuses ([`StoreErrorKind::TooNew`]).

use rusqlite::{Connection, TransactionBehavior};

use crate::error::{StoreError, StoreErrorKind};

use super::error::corrupt;

/// Marks the file as a Tourbillon database (`tbln`).
const APPLICATION_ID: i64 = 0x7462_6c6e;

/// One step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Migration {
    /// Its number; the newest is the schema's version.
    pub(super) version: i64,
    /// The newest migration that a binary must know, at least, to use the schema after this one.
    pub(super) min_binary: i64,
    /// Its file.
    pub(super) sql: &'static str,
}

/// All steps, in order.
pub(super) const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    min_binary: 1,
    sql: include_str!("../../migrations/sqlite/0001_initial.sql"),
}];

/// Brings the schema up to the newest of `migrations`; answers its version.
pub(super) fn run(conn: &mut Connection, migrations: &[Migration]) -> Result<i64, StoreError> {
    let known = migrations.last().map_or(0, |m| m.version);
    let application: i64 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 && application != APPLICATION_ID {
        return Err(corrupt("tables that are not Tourbillon's; give another data folder"));
    }
    if tables == 0 {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID};
             CREATE TABLE schema_versions (
                 version    INTEGER PRIMARY KEY,
                 min_binary INTEGER NOT NULL
             ) STRICT;"
        ))?;
        tx.commit()?;
    }
    let (version, needed): (i64, i64) = conn.query_row(
        "SELECT coalesce(max(version), 0), coalesce(max(min_binary), 0) FROM schema_versions",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if needed > known {
        return Err(StoreError::new(
            StoreErrorKind::TooNew,
            format!(
                "the database has schema {version}, which needs a binary that knows schema \
                 {needed}; this one knows {known}: use a newer binary"
            ),
        ));
    }
    for migration in migrations.iter().filter(|m| m.version > version) {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute_batch(migration.sql)?;
        tx.execute(
            "INSERT INTO schema_versions (version, min_binary) VALUES (?1, ?2)",
            [migration.version, migration.min_binary],
        )?;
        tx.commit()?;
    }
    Ok(version.max(known))
}
