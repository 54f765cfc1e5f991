//! The choices a schedule makes where the calendar is uneven: gaps, folds, short months.
//!
//! Each has the name that documents use, and reads it back.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Kind};

/// What becomes of civil times that a gap leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Gap {
    /// They happen at the first instant after the gap; several there are one occurrence.
    #[default]
    Shift,
    /// They do not happen.
    Skip,
}

/// Which instant a civil time means that a fold has twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fold {
    /// The first.
    #[default]
    First,
    /// The last.
    Last,
    /// Both, as two occurrences.
    Both,
}

/// What becomes of a day that a month lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MonthEnd {
    /// The month's last day takes its place.
    #[default]
    Clamp,
    /// The month is left out.
    Skip,
}

/// Names for a policy: `as_str`, `Display` and `FromStr`.
macro_rules! named {
    ($type:ident, $field:literal, $expected:literal, $($variant:ident => $name:literal),+) => {
        impl $type {
            /// The name that documents use.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $($type::$variant => $name),+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                match text {
                    $($name => Ok($type::$variant),)+
                    _ => Err(Error::new(Kind::Timing, $field, None, text, $expected)),
                }
            }
        }
    };
}

named!(Gap, "gap", "shift or skip", Shift => "shift", Skip => "skip");
named!(Fold, "fold", "first, last or both", First => "first", Last => "last", Both => "both");
named!(MonthEnd, "month_end", "clamp or skip", Clamp => "clamp", Skip => "skip");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for gap in [Gap::Shift, Gap::Skip] {
            assert_eq!(gap.as_str().parse::<Gap>().unwrap(), gap);
        }
        for fold in [Fold::First, Fold::Last, Fold::Both] {
            assert_eq!(fold.to_string().parse::<Fold>().unwrap(), fold);
        }
        for end in [MonthEnd::Clamp, MonthEnd::Skip] {
            assert_eq!(end.as_str().parse::<MonthEnd>().unwrap(), end);
        }
        let error = "Shift".parse::<Gap>().unwrap_err();
        assert_eq!((error.field(), error.expected()), ("gap", "shift or skip"));
    }
}
