//! What can go wrong at a store's boundary.

use std::fmt;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// No room on the disk.
    Full,
    /// Locked or overloaded; the same call may succeed later.
    Busy,
    /// The database cannot be reached.
    Unavailable,
    /// The data folder is in use by another process.
    InUse,
    /// The schema is newer than this binary may use.
    TooNew,
    /// What was read makes no sense.
    Corrupt,
    /// Any other failure of the database or disk.
    Io,
}

/// A store could not do what it was asked as a whole. Refusals of single units are not errors:
/// see [`crate::Refused`].
#[derive(Debug, Clone)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    unknown: bool,
}

impl StoreError {
    /// An error after which nothing of the call was committed.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> StoreError {
        StoreError { kind, message: message.into(), unknown: false }
    }

    /// The same, when it cannot be told whether the call was committed.
    #[must_use]
    pub fn outcome_unknown(mut self) -> StoreError {
        self.unknown = true;
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether the disk is full.
    pub fn is_full(&self) -> bool {
        self.kind == StoreErrorKind::Full
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            StoreErrorKind::Full | StoreErrorKind::Busy | StoreErrorKind::Unavailable
        )
    }

    /// Whether it cannot be told if the call was committed.
    pub fn is_outcome_unknown(&self) -> bool {
        self.unknown
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.unknown {
            f.write_str(" (it is not known whether the batch was committed)")?;
        }
        Ok(())
    }
}

impl std::error::Error for StoreError {}
