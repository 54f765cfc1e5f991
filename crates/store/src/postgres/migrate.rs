//! Numbered schema changes, forward only, each in a transaction of its own with its version row.
//!
//! As in the SQLite store: each migration names the oldest schema a binary must know to use a
//! database that has it, so two adjacent versions run together and a too old one refuses. Nodes
//! that start at once wait for each other at the table of versions.

use crate::error::{StoreError, StoreErrorKind};

use super::connection::Connection;
use super::error::{Failure, corrupt};

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
    sql: include_str!("../../migrations/postgres/0001_initial.sql"),
}];

const TABLES: &str = "SELECT count(*), count(*) FILTER (WHERE table_name = 'schema_versions')
     FROM information_schema.tables WHERE table_schema = $1::text";

const VERSION: &str =
    "SELECT coalesce(max(version), 0), coalesce(max(min_binary), 0) FROM schema_versions";

/// Brings the schema up to the newest of `migrations`; answers its version.
pub(super) fn run(
    conn: &mut Connection,
    schema: &str,
    migrations: &[Migration],
) -> Result<i64, StoreError> {
    let mut tries = 0;
    loop {
        match attempt(conn, schema, migrations) {
            // Two nodes that create the same thing at once: one fails, then finds it.
            Err(failure) if failure.is_passing() && tries < 5 => {
                conn.batch("ROLLBACK")?;
                tries += 1;
            }
            result => return Ok(result?),
        }
    }
}

fn attempt(conn: &mut Connection, schema: &str, migrations: &[Migration]) -> Result<i64, Failure> {
    let known = migrations.last().map_or(0, |m| m.version);
    let found = conn.rows(TABLES, &[&schema])?;
    let (tables, ours): (i64, i64) = (found[0].try_get(0)?, found[0].try_get(1)?);
    if tables > 0 && ours == 0 {
        let what =
            format!("tables in the schema \"{schema}\" that are not Tourbillon's; give another");
        return Err(corrupt(what).into());
    }
    if ours == 0 {
        conn.batch(&format!(
            "BEGIN;
             CREATE SCHEMA IF NOT EXISTS \"{schema}\";
             CREATE TABLE IF NOT EXISTS schema_versions (
                 version    bigint PRIMARY KEY,
                 min_binary bigint NOT NULL
             );
             COMMIT"
        ))?;
    }
    let (mut version, needed) = versions(conn)?;
    if needed > known {
        let text = format!(
            "the database has schema {version}, which needs a binary that knows schema {needed}; \
             this one knows {known}: use a newer binary"
        );
        return Err(StoreError::new(StoreErrorKind::TooNew, text).into());
    }
    for migration in migrations.iter().filter(|m| m.version > version) {
        conn.batch("BEGIN; LOCK TABLE schema_versions IN EXCLUSIVE MODE")?;
        if versions(conn)?.0 < migration.version {
            conn.batch(migration.sql)?;
            let insert = "INSERT INTO schema_versions (version, min_binary) VALUES ($1, $2)";
            conn.run(insert, &[&migration.version, &migration.min_binary])?;
        }
        conn.batch("COMMIT")?;
    }
    version = versions(conn)?.0;
    Ok(version)
}

fn versions(conn: &mut Connection) -> Result<(i64, i64), Failure> {
    let rows = conn.rows(VERSION, &[])?;
    Ok((rows[0].try_get(0)?, rows[0].try_get(1)?))
}
