//! Reading the parts that the dialects share: fields, lists, ranges, steps, names.
//!
//! Every piece of text remembers its column, so an error can say where. What the dialects do not share
//! is in their own files; differences here are in [`Grammar`].

use crate::error::{Error, Kind};

/// A part of an expression and where it begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub(crate) text: &'a str,
    /// Byte offset in the expression.
    pub(crate) at: usize,
}

impl<'a> Piece<'a> {
    pub(crate) fn split_once(self, separator: char) -> Option<(Piece<'a>, Piece<'a>)> {
        let (left, right) = self.text.split_once(separator)?;
        let right_at = self.at + left.len() + separator.len_utf8();
        Some((Piece { text: left, at: self.at }, Piece { text: right, at: right_at }))
    }

    pub(crate) fn items(self) -> impl Iterator<Item = Piece<'a>> {
        let mut at = self.at;
        self.text.split(',').map(move |text| {
            let piece = Piece { text, at };
            at += text.len() + 1;
            piece
        })
    }

    /// The piece without a suffix of one of the letters, whatever its case.
    pub(crate) fn strip_suffix(self, letter: char) -> Option<Piece<'a>> {
        let last = self.text.chars().next_back()?;
        last.eq_ignore_ascii_case(&letter)
            .then(|| Piece { text: &self.text[..self.text.len() - last.len_utf8()], at: self.at })
    }

    pub(crate) fn is(self, text: &str) -> bool {
        self.text.eq_ignore_ascii_case(text)
    }

    pub(crate) fn starts_with_star(self) -> bool {
        self.text.starts_with('*')
    }
}

/// The fields of an expression, parted by blanks.
pub(crate) fn fields(text: &str) -> Vec<Piece<'_>> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return fields;
        }
        let len = rest.find(char::is_whitespace).unwrap_or(rest.len());
        fields.push(Piece { text: &rest[..len], at: text.len() - rest.len() });
        rest = &rest[len..];
    }
}

/// What one field of one dialect allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grammar {
    pub(crate) name: &'static str,
    pub(crate) low: i64,
    pub(crate) high: i64,
    /// Names of `name_base`, `name_base + 1`, …
    pub(crate) names: &'static [&'static str],
    pub(crate) name_base: i64,
    /// What would be right, for errors.
    pub(crate) expected: &'static str,
    /// Whether a range may begin after it ends and go round.
    pub(crate) wraps: bool,
    /// Whether `a/n` means from a to the end.
    pub(crate) open_step: bool,
    /// The greatest step.
    pub(crate) step_max: i64,
    /// Where Sunday is both 0 and 7: which of them it is at the ends of a range.
    pub(crate) sunday: Sunday,
}

/// Sunday at the ends of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sunday {
    /// As written.
    Plain,
    /// 7 at the end of a range that began later than Sunday.
    LateAtEnd,
    /// 0 at the beginning of a range.
    EarlyAtStart,
}

pub(crate) const MONTHS: &[&str] =
    &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
pub(crate) const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Grammar {
    pub(crate) const MINUTE: Grammar = Grammar {
        name: "minute",
        low: 0,
        high: 59,
        names: &[],
        name_base: 0,
        expected: "0-59",
        wraps: false,
        open_step: false,
        step_max: i64::MAX,
        sunday: Sunday::Plain,
    };
    pub(crate) const SECOND: Grammar = Grammar { name: "second", ..Grammar::MINUTE };
    pub(crate) const HOUR: Grammar =
        Grammar { name: "hour", high: 23, expected: "0-23", ..Grammar::MINUTE };
    pub(crate) const DAY_OF_MONTH: Grammar =
        Grammar { name: "day of month", low: 1, high: 31, expected: "1-31", ..Grammar::MINUTE };
    pub(crate) const MONTH: Grammar = Grammar {
        name: "month",
        low: 1,
        high: 12,
        names: MONTHS,
        name_base: 1,
        expected: "1-12 or jan-dec",
        ..Grammar::MINUTE
    };
    pub(crate) const DAY_OF_WEEK: Grammar = Grammar {
        name: "day of week",
        low: 0,
        high: 7,
        names: WEEKDAYS,
        expected: "0-7 or sun-sat",
        ..Grammar::MINUTE
    };

    pub(crate) fn refuse(&self, piece: Piece<'_>, expected: impl Into<String>) -> Error {
        Error::new(Kind::Cron, self.name, Some(piece.at + 1), piece.text, expected.into())
    }

    /// A number or a name.
    pub(crate) fn value(&self, piece: Piece<'_>) -> Result<i64, Error> {
        let named = self
            .names
            .iter()
            .position(|name| piece.is(name))
            .map(|index| self.name_base + index as i64);
        let value = named.or_else(|| digits(piece.text));
        match value {
            Some(value) if (self.low..=self.high).contains(&value) => Ok(value),
            _ => Err(self.refuse(piece, self.expected)),
        }
    }

    /// The number after a slash.
    fn step(&self, piece: Piece<'_>) -> Result<i64, Error> {
        match digits(piece.text) {
            Some(step) if step >= 1 && step <= self.step_max => Ok(step),
            _ if self.step_max == i64::MAX => Err(self.refuse(piece, "a step of 1 or more")),
            _ => Err(self.refuse(piece, format!("a step from 1 to {}", self.step_max))),
        }
    }

    /// One item of a list: `*`, `a`, `a-b`, each perhaps with `/n`. Calls `set` for each value.
    pub(crate) fn item(&self, item: Piece<'_>, set: &mut impl FnMut(i64)) -> Result<(), Error> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (item, None),
        };
        // Sunday twice in a full round would let steps drift.
        let full = self.high - i64::from(self.low == 0 && self.high == 7);
        let (first, last) = if range.text == "*"
            || (range.text.is_empty() && step.is_some() && self.open_step)
        {
            (self.low, full)
        } else if let Some((first, last)) = range.split_once('-') {
            self.range(range, first, last)?
        } else {
            let value = self.value(range)?;
            match step {
                Some(_) if self.open_step => (value, full.max(value)),
                Some(step) => {
                    return Err(self.refuse(
                        item,
                        format!("a step after * or a range, such as {value}-{}/{step}", self.high),
                    ));
                }
                None => (value, value),
            }
        };
        let step = step.unwrap_or(1);
        if first <= last {
            let mut value = first;
            while value <= last {
                set(value);
                // A step may be as large as an i64.
                value = value.saturating_add(step);
            }
        } else {
            let round = self.high - self.low + 1;
            let mut value = first;
            while value <= last + round {
                set((value - self.low) % round + self.low);
                value = value.saturating_add(step);
            }
        }
        Ok(())
    }

    fn range(
        &self,
        range: Piece<'_>,
        first: Piece<'_>,
        last: Piece<'_>,
    ) -> Result<(i64, i64), Error> {
        let mut from = self.value(first)?;
        let mut to = self.value(last)?;
        match self.sunday {
            Sunday::LateAtEnd if to == 0 && from > 0 => to = 7,
            Sunday::EarlyAtStart if from == 7 => from = 0,
            _ => {}
        }
        if from > to && !self.wraps {
            return Err(self.refuse(range, "a range that begins before it ends"));
        }
        Ok((from, to))
    }

    /// A list of items as bits.
    pub(crate) fn list(&self, field: Piece<'_>) -> Result<u64, Error> {
        let mut bits = 0;
        for item in field.items() {
            self.item(item, &mut |value| bits |= 1_u64 << value)?;
        }
        Ok(bits)
    }
}

/// A number of digits only; `None` also when it is too long.
pub(crate) fn digits(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Weekday bits 0 to 7 (Sunday both) as bits 0 to 6.
pub(crate) fn fold_sunday(bits: u64) -> u8 {
    (bits & 0x7f | bits >> 7 & 1) as u8
}
