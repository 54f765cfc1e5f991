//! The crate's one error: what was wrong in which field, where, and what would be right.
//!
//! Every error comes from input; there are no other failures. The text given by the caller is
//! quoted shortened, so an error stays small whatever the input was.

use std::borrow::Cow;
use std::fmt;

/// The error of [`crate::CronExpr::parse`]; the same type as [`Error`].
pub type CronError = Error;

/// An input that could not be understood.
///
/// `Display` gives one sentence: field, column, what was given, what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    kind: Kind,
    field: Cow<'static, str>,
    column: Option<usize>,
    given: String,
    expected: Cow<'static, str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Cron,
    Crontab,
    Duration,
    Instant,
    Zone,
    Timing,
    Exclusion,
    Systemd,
}

/// Longest quotation of the caller's text in an error, in characters.
const QUOTE_MAX: usize = 60;

impl Error {
    pub(crate) fn new(
        kind: Kind,
        field: impl Into<Cow<'static, str>>,
        column: Option<usize>,
        given: &str,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        let mut quoted: String = given.chars().take(QUOTE_MAX).collect();
        if quoted.len() < given.len() {
            quoted.push('…');
        }
        Self { kind, field: field.into(), column, given: quoted, expected: expected.into() }
    }

    /// The same error, its column counted from `by` bytes further left, as when the text was a
    /// part of a longer line.
    pub(crate) fn moved(mut self, by: usize) -> Self {
        self.column = self.column.map(|column| column + by);
        self
    }

    /// The same error at a column.
    pub(crate) fn placed(mut self, column: usize) -> Self {
        self.column = Some(column);
        self
    }

    /// The same error of a field that lies at `path` in its document.
    pub(crate) fn at(mut self, path: String) -> Self {
        self.field = Cow::Owned(path);
        self
    }

    /// The same error as part of a document of another kind.
    pub(crate) fn within(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// The field that is wrong: `minute`, `day of week`, `duration`, `zone`, …
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Where in the given text the fault begins: a column, counted in bytes from 1.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.column
    }

    /// The offending text, shortened.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// What would be right in its place.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// Whether a cron expression was wrong.
    #[must_use]
    pub fn is_cron(&self) -> bool {
        self.kind == Kind::Cron
    }

    /// Whether a line of a crontab was wrong.
    #[must_use]
    pub fn is_crontab(&self) -> bool {
        self.kind == Kind::Crontab
    }

    /// Whether a duration was wrong.
    #[must_use]
    pub fn is_duration(&self) -> bool {
        self.kind == Kind::Duration
    }

    /// Whether an instant was wrong.
    #[must_use]
    pub fn is_instant(&self) -> bool {
        self.kind == Kind::Instant
    }

    /// Whether a zone is unknown.
    #[must_use]
    pub fn is_zone(&self) -> bool {
        self.kind == Kind::Zone
    }

    /// Whether an exclusion calendar was wrong.
    #[must_use]
    pub fn is_exclusion(&self) -> bool {
        self.kind == Kind::Exclusion
    }

    /// Whether a calendar event or a time span of systemd was wrong, or has no counterpart here.
    #[must_use]
    pub fn is_systemd(&self) -> bool {
        self.kind == Kind::Systemd
    }

    /// Whether parts that are right by themselves do not fit together (an interval of nothing,
    /// an end before the start).
    #[must_use]
    pub fn is_timing(&self) -> bool {
        self.kind == Kind::Timing
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.field)?;
        if let Some(column) = self.column {
            write!(f, " at column {column}")?;
        }
        if self.given.is_empty() {
            write!(f, ": nothing given")?;
        } else {
            write!(f, ": given {:?}", self.given)?;
        }
        write!(f, "; expected {}", self.expected)
    }
}

impl std::error::Error for Error {}
