//! What goes wrong between this process and the server, and what it means for the call.
//!
//! A [`Failure`] is the connection's view: it knows whether the same transaction may succeed when
//! it is tried again and whether the connection is of any use. [`StoreError`] is the caller's.

use tokio_postgres::error::SqlState;

use crate::error::{StoreError, StoreErrorKind};

/// A call that failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server refused, or the connection broke.
    Database(tokio_postgres::Error),
    /// No answer came in time.
    Late,
    /// A row changed between being read and being written: another connection was in the way.
    Stale,
    /// Something else.
    Store(StoreError),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Failure {
        Failure::Database(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Store(error)
    }
}

impl Failure {
    fn code(&self) -> Option<&SqlState> {
        match self {
            Failure::Database(error) => error.code(),
            _ => None,
        }
    }

    /// Whether the whole transaction may succeed when it is tried again at once.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Failure::Stale)
            || self.code().is_some_and(|code| {
                *code == SqlState::T_R_SERIALIZATION_FAILURE
                    || *code == SqlState::T_R_DEADLOCK_DETECTED
                    || *code == SqlState::UNIQUE_VIOLATION
            })
    }

    /// Whether, told in answer to a `COMMIT`, it means that nothing was committed: the server
    /// lives and says that it refused.
    pub(super) fn is_refusal(&self) -> bool {
        let Failure::Database(error) = self else { return false };
        error.as_db_error().is_some_and(|error| {
            let fatal = matches!(error.severity(), "FATAL" | "PANIC");
            let doubtful = ["08", "57", "58", "XX"].contains(&&error.code().code()[..2]);
            !fatal && !doubtful
        })
    }

    fn kind(&self) -> StoreErrorKind {
        let Some(code) = self.code() else {
            return match self {
                Failure::Store(error) => error.kind(),
                Failure::Stale => StoreErrorKind::Busy,
                _ => StoreErrorKind::Unavailable,
            };
        };
        if *code == SqlState::DISK_FULL {
            return StoreErrorKind::Full;
        }
        match &code.code()[..2] {
            // Out of memory or connections; serialization; locks; cancelled because of a timeout.
            "53" | "40" | "55" => StoreErrorKind::Busy,
            "57" if *code == SqlState::QUERY_CANCELED => StoreErrorKind::Busy,
            "23" if *code == SqlState::UNIQUE_VIOLATION => StoreErrorKind::Busy,
            // Connections, shutting down, starting up; idle in a transaction; a standby.
            "08" | "57" | "25" => StoreErrorKind::Unavailable,
            "XX" => StoreErrorKind::Corrupt,
            _ => StoreErrorKind::Io,
        }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> StoreError {
        let kind = failure.kind();
        let text = match failure {
            Failure::Store(error) => return error,
            Failure::Late => "no answer in time; the connection was given up".to_owned(),
            Failure::Stale => "other nodes were in the way at every attempt; try again".to_owned(),
            Failure::Database(error) => match error.as_db_error() {
                Some(told) => format!("{} (SQLSTATE {})", told.message(), told.code().code()),
                None => with_causes(&error),
            },
        };
        StoreError::new(kind, format!("postgres: {text}"))
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// Something in the database that this code never writes.
pub(super) fn corrupt(what: impl std::fmt::Display) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, format!("postgres: the database holds {what}"))
}
