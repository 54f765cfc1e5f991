//! What differs between a document and what is stored, field by field.
//!
//! What always holds: a document that was stored and is given again differs in nothing, whatever it left to
//! defaults. It is for showing only: what is stored the server decides.

use serde::Serialize;
use serde_json::{Map, Value};
use tourbillon_wire::{
    Backoff, Dialect, Duration, Fold, Gap, Jitter, Misfire, MonthEnd, NewSchedule, Overlap, Target,
};

/// Longest value that is shown, in characters.
const SHOWN_MAX: usize = 40;

/// The fields that differ, each as `path: old -> new`.
pub(crate) fn of<T: Serialize>(old: &T, new: &T) -> anyhow::Result<Vec<String>> {
    let (old, new) = (serde_json::to_value(old)?, serde_json::to_value(new)?);
    let mut found = Vec::new();
    walk("", &old, &new, &mut found);
    Ok(found)
}

fn walk(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    if old == new {
        return;
    }
    if let (Value::Object(a), Value::Object(b)) = (old, new) {
        let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let dot = if path.is_empty() { "" } else { "." };
            let part = |map: &Map<String, Value>| map.get(name).cloned().unwrap_or(Value::Null);
            walk(&format!("{path}{dot}{name}"), &part(a), &part(b), found);
        }
        return;
    }
    found.push(format!("{path}: {} -> {}", shown(old), shown(new)));
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    };
    match text.chars().count() > SHOWN_MAX {
        true => text.chars().take(SHOWN_MAX).chain(['…']).collect(),
        false => text,
    }
}

/// The document with the server's defaults, as a stored one comes back; what only the server knows is
/// taken from the stored one.
pub(crate) fn filled(mut new: NewSchedule, old: &NewSchedule) -> NewSchedule {
    new.name.clone_from(&old.name);
    if new.cron.is_some() {
        new.dialect.get_or_insert(Dialect::Vixie);
    } else {
        new.dialect = None;
    }
    if let Some(rule) = &mut new.calendar {
        rule.at.get_or_insert_with(|| "00:00".to_owned());
        rule.month_end.get_or_insert(MonthEnd::Clamp);
    }
    new.tz.get_or_insert_with(|| "UTC".to_owned());
    new.gap.get_or_insert(Gap::Shift);
    new.fold.get_or_insert(Fold::First);
    new.jitter.get_or_insert(Duration::ZERO);
    let misfire = new.misfire.get_or_insert_with(Misfire::default);
    misfire.limit = misfire.limit.or(old.misfire.and_then(|m| m.limit));
    new.overlap.get_or_insert(Overlap::Skip);
    new.paused = new.paused.or(old.paused);
    let task = &mut new.task;
    task.queue.get_or_insert_with(|| "default".to_owned());
    task.kind.get_or_insert_with(|| task.target.name().to_owned());
    if let (Target::Http(http), Target::Http(stored)) = (&mut task.target, &old.task.target) {
        http.method = http.method.take().or_else(|| stored.method.clone());
    }
    if let Some(backoff) = task.retry.as_mut().and_then(|retry| retry.backoff.as_mut()) {
        fill_backoff(backoff);
    }
    new
}

fn fill_backoff(backoff: &mut Backoff) {
    let (second, hour) = (Duration::from_micros(1_000_000), Duration::from_micros(3_600_000_000));
    match backoff {
        Backoff::Fixed(fixed) => {
            fixed.jitter.get_or_insert(Jitter::None);
        }
        Backoff::Linear(linear) => {
            let initial = *linear.initial.get_or_insert(second);
            linear.step.get_or_insert(initial);
            linear.max.get_or_insert(hour);
            linear.jitter.get_or_insert(Jitter::None);
        }
        Backoff::Exponential(exponential) => {
            exponential.initial.get_or_insert(second);
            exponential.factor.get_or_insert(2.0);
            exponential.max.get_or_insert(hour);
            exponential.jitter.get_or_insert(Jitter::Full);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tourbillon_wire::TaskTemplate;

    #[test]
    fn differences_name_their_field() {
        let mut old = NewSchedule::new(TaskTemplate::new(Target::worker()));
        old.cron = Some("0 9 * * *".to_owned());
        let mut new = old.clone();
        assert_eq!(of(&old, &new).unwrap(), [""; 0]);
        new.cron = Some("0 10 * * *".to_owned());
        new.task.queue = Some("q".to_owned());
        let found = of(&old, &new).unwrap();
        assert_eq!(found, ["cron: \"0 9 * * *\" -> \"0 10 * * *\"", "task.queue: none -> \"q\""]);
    }
}
