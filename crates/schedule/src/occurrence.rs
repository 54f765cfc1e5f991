//! One planned time of a schedule, and why it is there.

use std::fmt;

use crate::Micros;

/// One planned time of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Occurrence {
    /// Its logical time: where the rule has it.
    pub logical: Micros,
    /// When it is due: the logical time plus its jitter.
    pub due: Micros,
    /// Why it is there.
    pub why: Why,
}

/// Why an occurrence is there.
///
/// `Display` gives `normal`, or what applies of `shifted by a DST gap`, `first of a fold`, `last of a
/// fold`, `clamped to the month's end` and `jittered`, joined by commas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Why {
    /// Its civil time does not exist; this is the first instant after the gap.
    pub shifted: bool,
    /// Its civil time exists twice; this is the first instant.
    pub fold_first: bool,
    /// Its civil time exists twice; this is the last instant.
    pub fold_last: bool,
    /// The month lacks the day; this is the month's last.
    pub clamped: bool,
    /// Due later than its logical time.
    pub jittered: bool,
}

impl Why {
    /// Whether nothing special applies.
    #[must_use]
    pub fn is_normal(&self) -> bool {
        *self == Why::default()
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (self.shifted, "shifted by a DST gap"),
            (self.fold_first, "first of a fold"),
            (self.fold_last, "last of a fold"),
            (self.clamped, "clamped to the month's end"),
            (self.jittered, "jittered"),
        ];
        let mut separator = "";
        for (applies, reason) in reasons {
            if applies {
                write!(f, "{separator}{reason}")?;
                separator = ", ";
            }
        }
        if separator.is_empty() {
            f.write_str("normal")?;
        }
        Ok(())
    }
}
