//! SQLite's errors as the store's.

use rusqlite::ErrorCode;

use crate::error::{StoreError, StoreErrorKind};

/// What kind of trouble an error of SQLite is.
pub(super) fn kind_of(error: &rusqlite::Error) -> StoreErrorKind {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull => StoreErrorKind::Full,
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::OperationInterrupted => StoreErrorKind::Busy,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreErrorKind::Corrupt,
            _ => StoreErrorKind::Io,
        },
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..) => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Io,
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        let kind = kind_of(&error);
        let hint = match kind {
            StoreErrorKind::Full => ": no room for the database; make room on its disk",
            StoreErrorKind::Busy => ": the database is busy, or the question took too long",
            _ => "",
        };
        StoreError::new(kind, format!("sqlite: {error}{hint}"))
    }
}

/// Something in the database that this code never writes.
pub(super) fn corrupt(what: impl std::fmt::Display) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, format!("sqlite: the database holds {what}"))
}
