//! When next? Cron dialects, intervals, calendars and daylight saving, as pure functions.
//!
//! A [`Timing`] answers [`Timing::next_after`]: the first [`Occurrence`] strictly after an
//! instant. It is a rule ([`Rule`]), a [`Zone`], what to do at a gap or a fold, and bounds.
//!
//! What always holds:
//!
//! - An instant is an `i64` of microseconds since 1970-01-01T00:00:00Z ([`Micros`]); so is a
//!   duration. Callers need no date library.
//! - The same inputs give the same answers. Only the zone data comes from outside, and
//!   [`tzdata`] says which data that is.
//! - Occurrences strictly increase, a search ends in bounded time, and nothing panics on input.
//! - Instants lie between [`MIN_INSTANT`] and [`MAX_INSTANT`]; past the latter there are no
//!   occurrences.
//!
//! What it deliberately lacks: a clock, threads, storage, and any use of the host's own zone.
//!
//! ```
//! use tourbillon_schedule::{CronExpr, Dialect, Rule, Timing, Zone, format_instant, parse_instant};
//!
//! let expr = CronExpr::parse(Dialect::Vixie, "30 2 * * *", "nightly")?;
//! let timing = Timing::new(Rule::cron(expr), Zone::get("America/New_York")?);
//! let after = parse_instant("2026-03-08T05:00:00Z", None)?;
//! let next = timing.next_after(after).unwrap();
//! assert_eq!(format_instant(next.logical), "2026-03-08T07:00:00Z");
//! assert_eq!(next.why.to_string(), "shifted by a DST gap");
//! # Ok::<(), tourbillon_schedule::Error>(())
//! ```

mod calendar;
mod civil;
mod cron;
mod crontab;
mod duration;
mod error;
mod exclusion;
mod foreign;
mod hash;
mod instant;
mod occurrence;
mod policy;
mod preview;
mod rule;
mod span;
mod timing;
mod walk;
mod zone;

pub use calendar::{Calendar, On, Unit};
pub use cron::{CronExpr, Dialect};
pub use crontab::{Crontab, CrontabEntry, CrontabError, CrontabFormat, CrontabNote, Environment};
pub use duration::{format_duration, parse_duration};
pub use error::{CronError, Error};
pub use exclusion::{Exclusion, Reason};
pub use foreign::{KubernetesCron, OnCalendar, OnCalendarRule, Reading, parse_timespan};
pub use instant::{format_instant, parse_instant};
pub use occurrence::{Occurrence, Why};
pub use policy::{Fold, Gap, MonthEnd};
pub use preview::{LeftOut, Preview, Previewed};
pub use rule::{Rule, RuleKind};
pub use span::Tally;
pub use timing::Timing;
pub use zone::{TzData, TzSource, Zone, refresh_tzdata, tzdata};

/// Microseconds: an instant counted from the Unix epoch, or a duration.
pub type Micros = i64;

/// The earliest instant a search starts from: 0001-01-01T00:00:00Z. Anything before it counts
/// as this instant.
pub const MIN_INSTANT: Micros = -62_135_596_800_000_000;

/// The latest instant of an occurrence: 9999-12-30T00:00:00Z.
pub const MAX_INSTANT: Micros = 253_402_128_000_000_000;
