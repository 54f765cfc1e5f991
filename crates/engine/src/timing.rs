//! From a schedule's document to its timing, and the ids of its occurrences.

use tourbillon_schedule::{
    Calendar as Periods, CronExpr, Dialect, Error, Fold, Gap, Rule, Timing, Zone,
};
use tourbillon_store::hash::stable_hash;
use tourbillon_store::schedule::{CalendarRule, Rule as StoredRule};
use tourbillon_store::{NamespaceId, ScheduleDoc, TaskId, Time};

use crate::calendars::Calendars;

/// Compiles a document with the calendars it names.
///
/// # Errors
///
/// What is wrong, naming the field and what would be right.
pub fn compile_in(
    doc: &ScheduleDoc,
    name: &str,
    namespace: NamespaceId,
    calendars: &Calendars,
) -> Result<Timing, String> {
    let timing = compile(doc, name)?;
    let days = calendars.days(namespace, &doc.exclude).map_err(|missing| {
        let (index, name) = (missing.index, missing.name);
        format!("exclude[{index}]: there is no calendar {name:?}; expected {}", missing.expected)
    })?;
    Ok(timing.with_exclusions(days))
}

/// Compiles a document, leaving the calendars it names aside. The name seeds `~` and jitter.
///
/// # Errors
///
/// What is wrong, naming the field and what would be right.
pub fn compile(doc: &ScheduleDoc, name: &str) -> Result<Timing, String> {
    let text = |e: Error| e.to_string();
    let rule = match &doc.rule {
        StoredRule::Cron { expr, dialect } => {
            let dialect = match dialect.as_str() {
                "vixie" => Dialect::Vixie,
                "quartz" => Dialect::Quartz,
                "spring" => Dialect::Spring,
                other => {
                    return Err(format!(
                        "dialect: given {other:?}; expected vixie, quartz or spring"
                    ));
                }
            };
            Rule::cron(CronExpr::parse(dialect, expr, name).map_err(|e| format!("cron: {e}"))?)
        }
        StoredRule::Every(interval) => Rule::every(*interval).map_err(text)?,
        StoredRule::After(delay) => Rule::after(*delay).map_err(text)?,
        StoredRule::Calendar(rule) => periods(rule).map_err(|e| format!("calendar.{e}"))?,
    };
    let zone = Zone::get(&doc.tz).map_err(text)?;
    let gap = match doc.gap.as_str() {
        "shift" => Gap::Shift,
        "skip" => Gap::Skip,
        other => return Err(format!("gap: given {other:?}; expected shift or skip")),
    };
    let fold = match doc.fold.as_str() {
        "first" => Fold::First,
        "last" => Fold::Last,
        "both" => Fold::Both,
        other => return Err(format!("fold: given {other:?}; expected first, last or both")),
    };
    Timing::new(rule, zone)
        .with_gap(gap)
        .with_fold(fold)
        .with_bounds(doc.start.map(|t| t.0), doc.end.map(|t| t.0))
        .and_then(|timing| timing.with_jitter(doc.jitter, name))
        .map_err(text)
}

/// A calendar rule; errors name its field.
fn periods(rule: &CalendarRule) -> Result<Rule, Error> {
    let mut periods = Periods::parse(&rule.every)?;
    if let Some(on) = &rule.on {
        periods = periods.with_on(on.parse()?)?;
    }
    let periods = periods.with_at(&rule.at)?.with_month_end(rule.month_end.parse()?);
    Ok(Rule::calendar(periods))
}

/// The id of an occurrence: a function of schedule, origin and logical time, so that the same
/// occurrence cannot be created twice. Laid out as UUID version 7 of the logical time, so that
/// ids stay in order of time.
pub fn occurrence_id(uid: u128, origin: &str, logical: Time) -> TaskId {
    let parts: [&[u8]; 3] = [&uid.to_be_bytes(), origin.as_bytes(), &logical.0.to_be_bytes()];
    let high = stable_hash(&parts);
    let low = stable_hash(&[&high.to_be_bytes(), parts[0], parts[1], parts[2]]);
    let millis = u128::from((logical.0.max(0) / 1_000) as u64 & 0xffff_ffff_ffff);
    let a = u128::from(high & 0xfff);
    let b = u128::from(low & 0x3fff_ffff_ffff_ffff);
    TaskId(millis << 80 | 7 << 76 | a << 64 | 2 << 62 | b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrence_ids_are_version_7_and_differ_in_every_part() {
        let id = occurrence_id(1, "plan", Time(1_700_000_000_000_000));
        let text = id.to_string();
        assert_eq!(&text[14..15], "7");
        assert!(matches!(&text[19..20], "8" | "9" | "a" | "b"));
        assert_eq!(id, occurrence_id(1, "plan", Time(1_700_000_000_000_000)));
        assert_ne!(id, occurrence_id(2, "plan", Time(1_700_000_000_000_000)));
        assert_ne!(id, occurrence_id(1, "trigger:1", Time(1_700_000_000_000_000)));
        assert_ne!(id, occurrence_id(1, "plan", Time(1_700_000_000_001_000)));
    }
}
