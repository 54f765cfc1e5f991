//! systemd timers: each `OnCalendar=`, `OnUnitActiveSec=` and `OnUnitInactiveSec=` becomes a schedule.
//!
//! What runs is the `ExecStart=` of the service when its text is given, else `systemctl start` of the
//! unit, which leaves everything about it to systemd. What always holds: times are carried over
//! exactly or refused with the reason; specifiers are resolved or refused, never passed on as they are.
//! Deliberately absent: drop-ins and templates of other folders; the caller finds the files.

mod exec;
mod unit;

use tourbillon_schedule::{Dialect, Micros, OnCalendar, Zone, parse_timespan};
use tourbillon_wire::{
    CommandTarget, Dialect as WireDialect, Fold, Gap, Misfire, MisfirePolicy, NewSchedule, Overlap,
    Pairs, Retry, Target, TaskTemplate, Timestamp,
};

use crate::name::{self, Names};
use crate::{Elsewhere, Entry, Import, Options, duration};

use exec::Exec;
use unit::{Setting, Unit};

/// Longest text, in bytes.
const TEXT_MAX: usize = 1 << 20;
/// How late systemd starts something without being asked for more, `AccuracySec=`.
const ACCURACY: Micros = 60_000_000;

/// The service that a timer starts.
#[derive(Debug, Clone, Copy)]
pub struct Service<'a> {
    /// Its unit name, such as `backup.service`.
    pub name: &'a str,
    /// The text of its unit file, when there is one.
    pub text: Option<&'a str>,
}

/// The unit that a timer of that name starts, by its text: `Unit=`, else the service of the same name.
#[must_use]
pub fn service_of(timer: &str, text: &str) -> String {
    let named =
        Unit::parse(text).ok().and_then(|unit| Some(unit.last("Timer", "Unit")?.value.clone()));
    let stem = timer.strip_suffix(".timer").unwrap_or(timer);
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("{stem}.service"))
}

/// Reads a timer unit; `timer` is its name, such as `backup.timer`.
///
/// ```
/// use tourbillon_import::{Options, Service, systemd};
/// use tourbillon_schedule::Zone;
/// let timer = "[Timer]\nOnCalendar=Mon..Fri 22:30\nPersistent=true\n";
/// let service = Service { name: "backup.service", text: None };
/// let import = systemd("backup.timer", timer, service, &Options { zone: &Zone::utc(), queue: None });
/// assert_eq!(import.entries[0].schedule.cron.as_deref(), Some("0 30 22 * * MON-FRI"));
/// ```
#[must_use]
pub fn systemd(timer: &str, text: &str, service: Service<'_>, options: &Options<'_>) -> Import {
    if text.len() > TEXT_MAX || service.text.is_some_and(|text| text.len() > TEXT_MAX) {
        return Import::refused("", format!("more than {TEXT_MAX} bytes"));
    }
    let unit = match Unit::parse(text) {
        Ok(unit) => unit,
        Err((line, text)) => return Import::refused(format!("line {line}"), text),
    };
    let mut import = Import::default();
    let mut notes = Vec::new();
    let task = match task(service, options, &mut notes) {
        Ok(task) => task,
        Err(text) => return Import::refused("", format!("{}: {text}", service.name)),
    };
    let common = match common(&unit, &mut notes) {
        Ok(common) => common,
        Err((line, text)) => return Import::refused(format!("line {line}"), text),
    };
    let stem = timer.strip_suffix(".timer").unwrap_or(timer);
    let mut names = Names::default();
    for setting in unit.all("Timer") {
        let entry = match setting.name.as_str() {
            "OnCalendar" => on_calendar(setting, options.zone),
            "OnUnitActiveSec" => interval(setting, true),
            "OnUnitInactiveSec" => interval(setting, false),
            "OnActiveSec" | "OnBootSec" | "OnStartupSec" => {
                let text = format!(
                    "{} is not carried over: it counts from a start of the machine or of systemd",
                    setting.name
                );
                import.note(setting.place(), text);
                continue;
            }
            _ => continue,
        };
        match entry {
            Ok((schedule, rule, elsewhere)) => {
                let name = names.unique(name::of(&[stem]));
                let schedule = NewSchedule {
                    name: Some(name),
                    jitter: common.jitter.map(duration),
                    misfire: Some(common.misfire),
                    overlap: Some(Overlap::Skip),
                    task: task.clone(),
                    ..schedule
                };
                let notes = notes.clone();
                import.entries.push(Entry {
                    place: setting.place(),
                    rule,
                    schedule,
                    notes,
                    elsewhere,
                });
            }
            Err(text) => import.error(setting.place(), format!("{}: {text}", setting.name)),
        }
    }
    if import.entries.is_empty() && import.errors.is_empty() && import.notes.is_empty() {
        import.error("", "no OnCalendar= in a [Timer] section");
    }
    import
}

/// What holds for every schedule of a timer.
struct Common {
    jitter: Option<Micros>,
    misfire: Misfire,
}

fn common(unit: &Unit, notes: &mut Vec<String>) -> Result<Common, (usize, String)> {
    let span = |name: &str| match unit.last("Timer", name) {
        Some(setting) => parse_timespan(&setting.value)
            .map(Some)
            .map_err(|e| (setting.line, format!("{name}: {e}"))),
        None => Ok(None),
    };
    let jitter = span("RandomizedDelaySec")?;
    let accuracy = span("AccuracySec")?.unwrap_or(ACCURACY);
    let persistent = unit.truth("Timer", "Persistent")?;
    if unit.truth("Timer", "FixedRandomDelay")? {
        notes.push(
            "the delay is the same each time for the same occurrence, not for all of them (FixedRandomDelay)"
                .to_owned(),
        );
    }
    for name in ["WakeSystem", "OnClockChange", "OnTimezoneChange", "RandomizedOffsetSec"] {
        if unit.last("Timer", name).is_some_and(|setting| !setting.is_false()) {
            notes.push(format!("{name} is not carried over"));
        }
    }
    let misfire = match persistent {
        true => Misfire { policy: MisfirePolicy::Once, grace: None, limit: None },
        false => Misfire {
            policy: MisfirePolicy::Skip,
            grace: Some(duration(accuracy.max(1_000_000))),
            limit: None,
        },
    };
    Ok(Common { jitter: jitter.filter(|jitter| *jitter > 0), misfire })
}

/// A schedule with its rule and zone, the rule as written, and how systemd finds its times.
type Timed = (NewSchedule, String, Elsewhere);

fn on_calendar(setting: &Setting, zone: &Zone) -> Result<Timed, String> {
    let event = OnCalendar::parse(&setting.value).map_err(|e| e.to_string())?;
    let rule = event.rule(zone).map_err(|e| e.to_string())?;
    let dialect = match rule.expr.dialect() {
        Dialect::Quartz => WireDialect::Quartz,
        _ => WireDialect::Spring,
    };
    let zone = event.zone().unwrap_or(zone).clone();
    let schedule = NewSchedule {
        cron: Some(rule.expr.as_str().to_owned()),
        dialect: Some(dialect),
        tz: Some(zone.name().to_owned()),
        gap: Some(Gap::Skip),
        fold: Some(Fold::First),
        start: rule.start.map(Timestamp::from_micros),
        end: rule.end.map(Timestamp::from_micros),
        ..NewSchedule::new(TaskTemplate::new(Target::worker()))
    };
    let written = event.as_str().to_owned();
    Ok((schedule, written, Elsewhere::Event { event: Box::new(event), zone }))
}

fn interval(setting: &Setting, from_start: bool) -> Result<Timed, String> {
    let span = parse_timespan(&setting.value).map_err(|e| e.to_string())?;
    if span < 1_000 {
        return Err(format!("given {:?}; expected at least 1ms", setting.value));
    }
    let mut schedule = NewSchedule::new(TaskTemplate::new(Target::worker()));
    match from_start {
        true => schedule.every = Some(duration(span)),
        false => schedule.after = Some(duration(span)),
    }
    Ok((schedule, format!("{}={}", setting.name, setting.value), Elsewhere::Unknown))
}

fn task(
    service: Service<'_>,
    options: &Options<'_>,
    notes: &mut Vec<String>,
) -> Result<TaskTemplate, String> {
    let mut task = TaskTemplate::new(Target::worker());
    task.queue = options.queue.map(str::to_owned);
    task.kind = Some("systemd".to_owned());
    // A unit that failed is not started again before its next time, unless it says so.
    task.retry = Some(Retry { max_attempts: Some(1), ..Retry::default() });
    let mut command = CommandTarget { argv: Vec::new(), env: Pairs::new(), cwd: None, stdin: None };
    let Some(text) = service.text else {
        notes.push(format!(
            "{} is started by systemctl, which the server's user must be allowed to do",
            service.name
        ));
        command.argv = ["systemctl", "start", "--", service.name].map(str::to_owned).to_vec();
        task.target = Target::Command(command);
        return Ok(task);
    };
    let at = |(line, text): (usize, String)| format!("line {line}: {text}");
    let unit = Unit::parse(text).map_err(at)?;
    let exec = Exec { unit: service.name };
    let mut lines = Vec::new();
    for setting in unit.all("Service").filter(|s| s.name == "ExecStart") {
        lines.push(exec.command(&setting.value, notes).map_err(|e| at((setting.line, e)))?);
    }
    command.argv = match <[Vec<String>; 1]>::try_from(lines) {
        Ok([argv]) => argv,
        Err(lines) if lines.is_empty() => {
            return Err("no ExecStart= in a [Service] section".to_owned());
        }
        // They run one after the other, up to the first that fails.
        Err(lines) => {
            let line = lines.iter().map(|argv| exec::shell(argv)).collect::<Vec<_>>().join(" && ");
            vec!["/bin/sh".to_owned(), "-c".to_owned(), line]
        }
    };
    for setting in unit.all("Service").filter(|s| s.name == "Environment") {
        for word in exec.words(&setting.value).map_err(|e| at((setting.line, e)))? {
            match word.split_once('=') {
                Some((name, value)) => command.env.insert(name.to_owned(), value.to_owned()),
                None => {
                    let text = format!("Environment: given {word:?}; expected NAME=VALUE");
                    return Err(at((setting.line, text)));
                }
            };
        }
    }
    if let Some(setting) = unit.last("Service", "WorkingDirectory") {
        let folder = exec.resolve(&setting.value).map_err(|e| at((setting.line, e)))?;
        match folder.strip_prefix('-').unwrap_or(&folder) {
            "~" => notes
                .push("WorkingDirectory=~ is not carried over: it is the user's home".to_owned()),
            folder => command.cwd = Some(folder.to_owned()),
        }
    }
    let limit =
        unit.last("Service", "RuntimeMaxSec").or_else(|| unit.last("Service", "TimeoutStartSec"));
    if let Some(setting) = limit.filter(|s| !matches!(s.value.as_str(), "infinity" | "0" | "")) {
        let span = parse_timespan(&setting.value);
        task.timeout = Some(duration(span.map_err(|e| at((setting.line, e.to_string())))?));
    }
    if let Some(kind) = unit.last("Service", "Type").filter(|s| s.value != "oneshot") {
        notes.push(format!("Type={}: a run is over when the command ends", kind.value));
    }
    let handled = [
        "ExecStart",
        "Environment",
        "WorkingDirectory",
        "RuntimeMaxSec",
        "TimeoutStartSec",
        "Type",
    ];
    let mut left: Vec<&str> = unit
        .all("Service")
        .map(|setting| setting.name.as_str())
        .filter(|name| !handled.contains(name))
        .collect();
    left.dedup();
    if !left.is_empty() {
        notes.push(format!("not carried over: {}", left.join(", ")));
    }
    task.target = Target::Command(command);
    Ok(task)
}
