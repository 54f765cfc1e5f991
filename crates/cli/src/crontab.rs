//! A crontab's entries as schedules, and the zone that cron on this machine uses.

use tourbillon_schedule::CrontabEntry;
use tourbillon_wire::{CommandTarget, Fold, Gap, NewSchedule, Overlap, Target, TaskTemplate};

/// The schedule that does what the entry does: its command in its shell, with its environment, in
/// its zone, with cron's habits at a change of clocks and of starting a run whatever the last one
/// does.
pub(crate) fn schedule(entry: &CrontabEntry, queue: Option<&str>) -> NewSchedule {
    let command = CommandTarget {
        argv: vec![entry.shell.clone(), "-c".to_owned(), entry.command.clone()],
        env: entry.env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        cwd: entry.home.clone(),
        stdin: entry.stdin.clone(),
    };
    NewSchedule {
        name: Some(entry.name.clone()),
        cron: Some(entry.expr.as_str().to_owned()),
        tz: Some(entry.zone.name().to_owned()),
        gap: Some(Gap::Shift),
        fold: Some(Fold::First),
        overlap: Some(Overlap::Allow),
        ..NewSchedule::new(TaskTemplate {
            queue: queue.map(str::to_owned),
            kind: Some("crontab".to_owned()),
            ..TaskTemplate::new(Target::Command(command))
        })
    }
}

/// The zone of this machine, which cron goes by: `TZ`, else what `/etc/localtime` points to, else
/// `/etc/timezone`. Only importers ask for it; schedules themselves never depend on the machine.
pub(crate) fn host_zone() -> Option<String> {
    let from_variable = std::env::var("TZ").ok().map(|tz| tz.trim_start_matches(':').to_owned());
    from_variable
        .filter(|tz| !tz.is_empty() && !tz.starts_with('/'))
        .or_else(|| {
            let target = std::fs::canonicalize("/etc/localtime").ok()?;
            let (_, name) = target.to_str()?.split_once("/zoneinfo/")?;
            Some(name.to_owned())
        })
        .or_else(|| {
            let text = std::fs::read_to_string("/etc/timezone").ok()?;
            let name = text.trim();
            (!name.is_empty()).then(|| name.to_owned())
        })
}
