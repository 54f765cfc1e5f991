//! The cron expressions of Kubernetes' `CronJob`, as expressions of the vixie dialect.
//!
//! They look like Vixie cron's and differ in corners: Sunday is only 0, `?` is `*`, `5/15` means from 5
//! on, and `*/2` as a day is not `*` when the day fields are joined. What always holds: the expression
//! made of one fires at the same times, given the zone, [`Gap::Skip`](crate::Gap::Skip) and
//! [`Fold::Both`](crate::Fold::Both).

use crate::cron::{Grammar, Piece, digits, fields};
use crate::error::{Error, Kind};
use crate::{CronExpr, Dialect, Zone};

/// Longest expression that is read, in bytes.
const TEXT_MAX: usize = 1_000;

const fn grammar(grammar: Grammar) -> Grammar {
    Grammar { open_step: true, ..grammar }
}

const FIELDS: [Grammar; 5] = [
    grammar(Grammar::MINUTE),
    grammar(Grammar::HOUR),
    grammar(Grammar::DAY_OF_MONTH),
    grammar(Grammar::MONTH),
    grammar(Grammar { high: 6, expected: "0-6 (Sunday is 0) or sun-sat", ..Grammar::DAY_OF_WEEK }),
];

/// A cron expression of Kubernetes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KubernetesCron {
    /// The same in the vixie dialect.
    pub expr: CronExpr,
    /// The zone of a `TZ=` or `CRON_TZ=` in front of it.
    pub zone: Option<Zone>,
}

impl KubernetesCron {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// The first fault from the left, with field and column (bytes from 1).
    ///
    /// ```
    /// use tourbillon_schedule::KubernetesCron;
    /// let cron = KubernetesCron::parse("CRON_TZ=Asia/Tokyo 0 9 */2 * mon")?;
    /// assert_eq!(cron.expr.as_str(), "0 9 1-31/2 * mon");
    /// assert_eq!(cron.zone.unwrap().name(), "Asia/Tokyo");
    /// # Ok::<(), tourbillon_schedule::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > TEXT_MAX {
            let expected = format!("at most {TEXT_MAX} bytes");
            return Err(Error::new(Kind::Cron, "expression", Some(1), text, expected));
        }
        let mut parts = fields(text);
        let mut zone = None;
        if let Some(first) = parts.first()
            && let Some(name) =
                first.text.strip_prefix("CRON_TZ=").or_else(|| first.text.strip_prefix("TZ="))
        {
            let column = first.at + first.text.len() - name.len() + 1;
            let found = Zone::get(name).map_err(|e| e.within(Kind::Cron).placed(column))?;
            zone = Some(found);
            parts.remove(0);
        }
        let at = parts.first().map_or(text.len(), |first| first.at);
        let nickname = parts.first().is_some_and(|first| first.text.starts_with('@'));
        if nickname || parts.len() != 5 {
            let expr = CronExpr::parse(Dialect::Vixie, &text[at..], "").map_err(|e| e.moved(at))?;
            return Ok(Self { expr, zone });
        }
        let mut texts = Vec::with_capacity(5);
        for (grammar, part) in FIELDS.iter().zip(&parts) {
            texts.push(field(grammar, *part)?);
        }
        let expr = CronExpr::parse(Dialect::Vixie, &texts.join(" "), "")?;
        Ok(Self { expr, zone })
    }
}

/// A field with its items as Vixie cron writes them.
fn field(grammar: &Grammar, part: Piece<'_>) -> Result<String, Error> {
    let mut texts = Vec::new();
    let mut whole = false;
    for item in part.items() {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, digits(step.text)),
            None => (item, None),
        };
        if range.text.is_empty() {
            return Err(grammar.refuse(item, grammar.expected));
        }
        let star = range.is("*") || range.is("?");
        let plain = match (star, range.is("?")) {
            (true, true) => format!("*{}", &item.text[1..]),
            _ => item.text.to_owned(),
        };
        // For its faults, which are told at their place in the text as given.
        let same_place = Piece { text: &plain, at: item.at };
        grammar.item(same_place, &mut |_| {})?;
        let (low, high) = (grammar.low, grammar.high);
        texts.push(match step {
            None | Some(1) if star => {
                whole = true;
                "*".to_owned()
            }
            Some(step) if star && grammar.is_day() => format!("{low}-{high}/{step}"),
            Some(step) if !star && !range.text.contains('-') => {
                format!("{}-{high}/{step}", range.text)
            }
            _ => plain,
        });
    }
    Ok(if whole { "*".to_owned() } else { texts.join(",") })
}

impl Grammar {
    /// Whether it is one of the two day fields, whose `*` decides how they are joined.
    fn is_day(&self) -> bool {
        self.name.starts_with("day")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn expressions_in_the_vixie_dialect() {
        for (given, expected) in [
            ("*/5 * * * *", "*/5 * * * *"),
            ("0 9 * * mon-fri", "0 9 * * mon-fri"),
            ("5/15 0 * * *", "5-59/15 0 * * *"),
            ("0 0 ? * 1", "0 0 * * 1"),
            ("0 0 */2 * 1", "0 0 1-31/2 * 1"),
            ("0 0 */1 * 1", "0 0 * * 1"),
            ("0 0 1,* * 1", "0 0 * * 1"),
            ("0 0 1 * */2", "0 0 1 * 0-6/2"),
            ("0 0 mon * *", ""),
            ("@daily", "@daily"),
            ("@every 1h30m", "@every 1h30m"),
            ("  0  0 * * sun ", "0 0 * * sun"),
        ] {
            let read = KubernetesCron::parse(given).map(|cron| cron.expr.as_str().to_owned());
            assert_eq!(read.unwrap_or_default(), expected, "{given}");
        }
    }

    #[test]
    fn faults_are_told_where_they_are() {
        for (text, field, column) in [
            ("0 24 * * *", "hour", 3),
            ("0 0 * * 7", "day of week", 9),
            ("TZ=UTC 61 * * * *", "minute", 8),
            ("TZ=Mars 1 * * * *", "zone", 4),
            ("0 0 * *", "expression", 8),
            ("0 0 * * * *", "expression", 1),
            ("0 0 L * *", "day of month", 5),
            ("/5 0 * * *", "minute", 1),
            ("@reboot", "expression", 1),
            ("TZ=UTC @reboot", "expression", 8),
        ] {
            let error = KubernetesCron::parse(text).unwrap_err();
            assert_eq!((error.field(), error.column()), (field, Some(column)), "{text}: {error}");
        }
    }

    /// The rule of its day fields, written down once more: AND when one of them is a bare star.
    #[test]
    fn days_are_joined_as_there() {
        for (given, join_and) in [
            ("0 0 */2 * 1", false),
            ("0 0 * * 1", true),
            ("0 0 1 * *", true),
            ("0 0 1 * */2", false),
            ("0 0 1-5 * 1", false),
            ("0 0 ?/1 * 1", true),
        ] {
            let read = KubernetesCron::parse(given).unwrap();
            let crate::cron::Form::Fields(fields) = read.expr.form() else { panic!("{given}") };
            assert_eq!(fields.days.join == crate::cron::Join::And, join_and, "{given}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,30}|[A-Za-z0-9=,/*?@ -]{0,40}") {
            let _ = KubernetesCron::parse(&text);
        }
    }
}
