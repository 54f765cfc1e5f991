//! How a PostgreSQL store is opened. Every bound is a field with its default.

use std::time::Duration;

use crate::error::{StoreError, StoreErrorKind};

/// Whose clock is store time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeSource {
    /// The database's: leases run by it whatever a node believes.
    #[default]
    Database,
    /// The caller's, as it stands in each question. For tests and simulations, which decide what
    /// time it is.
    Caller,
}

/// Options of a PostgreSQL store; the defaults are right for use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// The database schema that holds the tables; created when it is missing. A lower-case
    /// letter or `_`, then lower-case letters, digits or `_`, at most 40 in all. Default
    /// `tourbillon`.
    pub schema: String,
    /// Connections for reading. Default 4, at least 1. One more writes and one more keeps leases.
    pub readers: usize,
    /// Longest wait for a new connection. Default 5 s.
    pub connect_max: Duration,
    /// Longest wait for one answer of the server, and for a free reader; a connection that takes
    /// longer is given up. More than `statement_max`. Default 10 s.
    pub answer_max: Duration,
    /// Longest statement, kept by the server. Default 5 s.
    pub statement_max: Duration,
    /// Longest wait for a lock, kept by the server. Default 2 s.
    pub lock_max: Duration,
    /// Longest pause of a node inside a transaction, kept by the server, which then ends the
    /// connection: a node that was stopped holds up a takeover no longer than this. Less than the
    /// period of leases. Default 2 s.
    pub idle_in_transaction_max: Duration,
    /// Memory that the server may take to sort the rows of a batch, for each connection, in bytes. A
    /// batch of 8,000 ends needs about 10 MiB; with less it sorts on disk. Default 32 MiB.
    pub sort_bytes: u64,
    /// How often a batch is tried again from its beginning when another node was in its way
    /// (a deadlock, a serialization failure, a row that changed meanwhile). Default 5.
    pub retries: u32,
    /// Whose clock is store time. Default the database's.
    pub time: TimeSource,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        PostgresOptions {
            schema: "tourbillon".to_owned(),
            readers: 4,
            connect_max: Duration::from_secs(5),
            answer_max: Duration::from_secs(10),
            statement_max: Duration::from_secs(5),
            lock_max: Duration::from_secs(2),
            idle_in_transaction_max: Duration::from_secs(2),
            sort_bytes: 32 << 20,
            retries: 5,
            time: TimeSource::default(),
        }
    }
}

/// Longest name of a schema: channels for notifications are named after it, within 63 bytes.
const SCHEMA_MAX: usize = 40;

impl PostgresOptions {
    /// Whether every field is within its bounds.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let wrong = |what: String| Err(StoreError::new(StoreErrorKind::Io, what));
        let letter = |b: u8| b.is_ascii_lowercase() || b == b'_';
        let mut bytes = self.schema.bytes();
        let good = bytes.next().is_some_and(letter)
            && bytes.all(|b| letter(b) || b.is_ascii_digit())
            && self.schema.len() <= SCHEMA_MAX
            && !self.schema.starts_with("pg_");
        if !good {
            return wrong(format!(
                "schema: {:?} cannot name a schema; give 1 to {SCHEMA_MAX} of a-z, 0-9 and _, not a \
                 digit first, not pg_ first",
                self.schema
            ));
        }
        let bounds = [
            ("connect_max", self.connect_max),
            ("answer_max", self.answer_max),
            ("statement_max", self.statement_max),
            ("lock_max", self.lock_max),
            ("idle_in_transaction_max", self.idle_in_transaction_max),
        ];
        for (name, bound) in bounds {
            if bound < Duration::from_millis(1) || bound > Duration::from_secs(86_400) {
                return wrong(format!("{name}: {bound:?} is out of range; give 1 ms to 1 day"));
            }
        }
        if self.answer_max <= self.statement_max {
            return wrong(format!(
                "answer_max: {:?} is not more than statement_max ({:?})",
                self.answer_max, self.statement_max
            ));
        }
        if !(64 << 10..=1 << 40).contains(&self.sort_bytes) {
            return wrong(format!(
                "sort_bytes: {} is out of range; give 64 KiB to 1 TiB",
                self.sort_bytes
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_bounds_is_named() {
        assert!(PostgresOptions::default().check().is_ok());
        let schemas = ["", "A", "1a", "a-b", "a;drop", "a\"", "pg_x", &"x".repeat(41), "é"];
        for schema in schemas {
            let options = PostgresOptions { schema: schema.into(), ..PostgresOptions::default() };
            let told = options.check().unwrap_err().to_string();
            assert!(told.starts_with("schema: "), "{told}");
        }
        let never = PostgresOptions { lock_max: Duration::ZERO, ..PostgresOptions::default() };
        assert!(never.check().unwrap_err().to_string().starts_with("lock_max: "));
        let late =
            PostgresOptions { answer_max: Duration::from_secs(5), ..PostgresOptions::default() };
        assert!(late.check().unwrap_err().to_string().starts_with("answer_max: "));
    }
}
