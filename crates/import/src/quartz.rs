//! Quartz job scheduling data (XML, the form of Quartz 2): each trigger becomes a schedule.
//!
//! A job is a Java class, which cannot run here: its triggers make tasks for a worker, with the class as
//! their kind and the job data as their payload. The one exception is Quartz's own `NativeJob`, which
//! runs a command. What always holds: the schedule's grid, bounds and misfire policy are those of the trigger; changes
//! of clocks are read by our policies nearest to Java's, and the times of both are there to be compared.

use std::collections::BTreeMap;

use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Map, Value};
use tourbillon_schedule::{CronExpr, Dialect, Error, Micros, Reading, Zone, parse_instant};
use tourbillon_wire::{
    CalendarRule, CommandTarget, Dialect as WireDialect, Fold, Gap, Json, Misfire, MisfirePolicy,
    NewSchedule, Overlap, Pairs, Target, TaskTemplate, Timestamp,
};

use crate::name::{self, Names};
use crate::{Elsewhere, Entry, Import, Options, duration};

/// Longest text, in bytes.
const TEXT_MAX: usize = 16 << 20;
/// Most elements and texts.
const NODES_MAX: u32 = 1_000_000;
/// How late Quartz runs something without calling it a misfire, unless it was told otherwise.
const THRESHOLD: Micros = 60_000_000;
/// Quartz's job that runs a command.
const NATIVE_JOB: &str = "org.quartz.jobs.NativeJob";

/// Reads job scheduling data.
///
/// ```
/// use tourbillon_import::{Options, quartz};
/// use tourbillon_schedule::Zone;
/// let xml = r#"<job-scheduling-data><schedule>
///   <job><name>report</name><job-class>com.example.Report</job-class></job>
///   <trigger><cron><name>nightly</name><job-name>report</job-name>
///     <cron-expression>0 30 2 * * ?</cron-expression></cron></trigger>
/// </schedule></job-scheduling-data>"#;
/// let import = quartz(xml, &Options { zone: &Zone::utc(), queue: None });
/// assert_eq!(import.entries[0].name(), "nightly");
/// assert_eq!(import.entries[0].schedule.cron.as_deref(), Some("0 30 2 * * ?"));
/// ```
#[must_use]
pub fn quartz(text: &str, options: &Options<'_>) -> Import {
    if text.len() > TEXT_MAX {
        return Import::refused("", format!("more than {TEXT_MAX} bytes"));
    }
    let parsing =
        ParsingOptions { allow_dtd: false, nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    let document = match Document::parse_with_options(text, parsing) {
        Ok(document) => document,
        Err(error) => {
            let at = error.pos();
            return Import::refused(
                format!("line {}, column {}", at.row, at.col),
                error.to_string(),
            );
        }
    };
    let root = document.root_element();
    if root.tag_name().name() != "job-scheduling-data" {
        let given = root.tag_name().name();
        let text = format!("the document is <{given}>; expected <job-scheduling-data> of Quartz 2");
        return Import::refused(place(root), text);
    }
    let mut reader = Reader {
        options,
        import: Import::default(),
        jobs: BTreeMap::new(),
        names: Names::default(),
    };
    for part in root.children().filter(Node::is_element) {
        match part.tag_name().name() {
            "schedule" => reader.schedule(part),
            "pre-processing-commands" => {
                reader.import.note(place(part), "deletions before the import are not carried over");
            }
            // They say how Quartz is to treat what it has already.
            "processing-directives" => {}
            other => reader.import.error(
                place(part),
                format!("<{other}> stands where <schedule> was expected, as Quartz 2 has it"),
            ),
        }
    }
    reader.import
}

/// Group and name.
type JobKey = (String, String);

struct Job {
    class: String,
    data: Map<String, Value>,
    description: Option<String>,
}

struct Reader<'a> {
    options: &'a Options<'a>,
    import: Import,
    jobs: BTreeMap<JobKey, Job>,
    names: Names,
}

impl Reader<'_> {
    fn schedule(&mut self, schedule: Node<'_, '_>) {
        let elements = |name: &'static str| {
            schedule
                .children()
                .filter(move |node| node.has_tag_name(name) || node.tag_name().name() == name)
        };
        for node in elements("job") {
            match job(node) {
                Ok((key, job)) => {
                    self.jobs.insert(key, job);
                }
                Err(text) => self.import.error(place(node), text),
            }
        }
        for node in elements("trigger") {
            let Some(trigger) = node.children().find(Node::is_element) else {
                self.import.error(place(node), "the trigger is empty; expected <cron> or <simple>");
                continue;
            };
            match self.trigger(trigger) {
                Ok(entry) => self.import.entries.push(entry),
                Err(text) => self.import.error(place(trigger), text),
            }
        }
        for node in schedule.children().filter(Node::is_element) {
            let name = node.tag_name().name();
            if !matches!(name, "job" | "trigger") {
                self.import.note(place(node), format!("<{name}> is not carried over"));
            }
        }
    }

    fn trigger(&mut self, node: Node<'_, '_>) -> Result<Entry, String> {
        let name = required(node, "name")?;
        let group = group(node, "group");
        let job_key = (group_of(node, "job-group"), required(node, "job-name")?);
        let job = self.jobs.get(&job_key).ok_or_else(|| {
            format!("trigger {name}: there is no job {:?} in group {:?}", job_key.1, job_key.0)
        })?;
        let mut notes = Vec::new();
        let mut data = job.data.clone();
        data.extend(job_data(node)?);
        let task = task(job, data, self.options.queue, node, &mut notes)?;
        let mut schedule = NewSchedule {
            gap: Some(Gap::Shift),
            fold: Some(Fold::Last),
            overlap: Some(Overlap::Allow),
            ..NewSchedule::new(task)
        };
        let zone = match text(node, "time-zone") {
            Some(name) => Zone::get(&name).map_err(|e| format!("time-zone: {e}"))?,
            None => self.options.zone.clone(),
        };
        let start = instant(node, "start-time", &zone)?;
        let end = instant(node, "end-time", &zone)?;
        let ahead = text(node, "start-time-seconds-in-future");
        if ahead.is_some() {
            notes.push("start-time-seconds-in-future is not carried over: it counts from when the data is loaded".to_owned());
        }
        let what = What { name: &name, start, end, zone: &zone };
        let (rule, elsewhere) = match node.tag_name().name() {
            "cron" => cron(node, &what, &mut schedule, &mut notes)?,
            "simple" => simple(node, &what, &mut schedule, &mut notes)?,
            "calendar-interval" => interval(node, &what, &mut schedule, &mut notes)?,
            other => {
                let expected = "expected <cron>, <simple> or <calendar-interval>";
                return Err(format!("trigger {name}: a trigger of the kind <{other}>; {expected}"));
            }
        };
        if let Some(calendar) = text(node, "calendar-name") {
            notes.push(format!(
                "the calendar {calendar} is not in the data: make one here and name it in exclude"
            ));
        }
        schedule.tz.get_or_insert_with(|| zone.name().to_owned());
        let name = self.names.unique(name::of(&[&group, &name]));
        schedule.name = Some(name);
        Ok(Entry { place: place(node), rule, schedule, notes, elsewhere })
    }
}

/// What every kind of trigger has.
struct What<'a> {
    name: &'a str,
    start: Option<Micros>,
    end: Option<Micros>,
    zone: &'a Zone,
}

fn cron(
    node: Node<'_, '_>,
    what: &What<'_>,
    schedule: &mut NewSchedule,
    notes: &mut Vec<String>,
) -> Result<(String, Elsewhere), String> {
    let written = required(node, "cron-expression")?;
    let expr = CronExpr::parse(Dialect::Quartz, &written, "")
        .map_err(|e| format!("trigger {}: cron-expression: {e}", what.name))?;
    schedule.cron = Some(written.clone());
    schedule.dialect = Some(WireDialect::Quartz);
    schedule.start = what.start.map(Timestamp::from_micros);
    schedule.end = what.end.map(Timestamp::from_micros);
    schedule.misfire = Some(match instruction(node, &["DO_NOTHING", "FIRE_ONCE_NOW"])?.as_str() {
        "IGNORE_MISFIRE_POLICY" => all(),
        "DO_NOTHING" => skip(),
        _ => once(),
    });
    if expr.is_elapsed() && what.zone != &Zone::utc() {
        notes.push(
            "where clocks go back it runs through both hours; Quartz leaves times of one of them out"
                .to_owned(),
        );
    }
    let elsewhere = Elsewhere::Cron {
        expr,
        zone: what.zone.clone(),
        reading: Reading::Quartz,
        from: what.start,
        until: what.end,
    };
    Ok((written, elsewhere))
}

fn simple(
    node: Node<'_, '_>,
    what: &What<'_>,
    schedule: &mut NewSchedule,
    notes: &mut Vec<String>,
) -> Result<(String, Elsewhere), String> {
    let count = number(node, "repeat-count")?.unwrap_or(0);
    let interval = number(node, "repeat-interval")?.unwrap_or(0);
    if count < -1 || interval < 0 || (count != 0 && interval == 0) {
        return Err(format!(
            "trigger {}: repeat-count {count} and repeat-interval {interval}; expected a count from -1 on and, to repeat, an interval in milliseconds",
            what.name
        ));
    }
    let misfire = instruction(
        node,
        &[
            "FIRE_NOW",
            "RESCHEDULE_NOW_WITH_EXISTING_REPEAT_COUNT",
            "RESCHEDULE_NOW_WITH_REMAINING_REPEAT_COUNT",
            "RESCHEDULE_NEXT_WITH_EXISTING_COUNT",
            "RESCHEDULE_NEXT_WITH_REMAINING_COUNT",
        ],
    )?;
    schedule.misfire = Some(match misfire.as_str() {
        "IGNORE_MISFIRE_POLICY" => all(),
        text if text.starts_with("RESCHEDULE_NEXT") => skip(),
        // What Quartz chooses by itself goes by the count.
        "SMART_POLICY" if count == -1 => skip(),
        text if text.starts_with("RESCHEDULE_NOW") || count > 0 => {
            notes.push(
                "after a misfire the times stay where they were; Quartz counts anew from then"
                    .to_owned(),
            );
            once()
        }
        _ => once(),
    });
    // Something that happens once has an interval all the same, and ends where it starts.
    let interval = if count == 0 { 86_400_000 } else { interval };
    let micros = interval
        .checked_mul(1_000)
        .filter(|micros| *micros <= 10_000 * 366 * 86_400_000_000)
        .ok_or_else(|| format!("trigger {}: repeat-interval: at most 10,000 years", what.name))?;
    schedule.every = Some(duration(micros));
    let times = match count {
        -1 => "for ever".to_owned(),
        0 => "once".to_owned(),
        n => format!("{} times", n.saturating_add(1)),
    };
    let rule = match count {
        0 => times,
        _ => format!("every {}, {times}", duration(micros)),
    };
    let Some(start) = what.start else {
        if count != -1 {
            return Err(format!(
                "trigger {}: it fires {rule} from when the data is loaded, which is no schedule; expected a start-time",
                what.name
            ));
        }
        notes.push(
            "without a start-time it counts from the Unix epoch; Quartz counts from when the data is loaded"
                .to_owned(),
        );
        schedule.end = what.end.map(Timestamp::from_micros);
        return Ok((rule, Elsewhere::Unknown));
    };
    let last = (count >= 0).then(|| start.saturating_add(micros.saturating_mul(count)));
    let end = match (last, what.end) {
        (Some(last), Some(end)) => Some(last.min(end)),
        (last, end) => last.or(end),
    };
    schedule.start = Some(Timestamp::from_micros(start));
    schedule.end = end.map(|end| Timestamp::from_micros(end.min(tourbillon_schedule::MAX_INSTANT)));
    Ok((rule, Elsewhere::Grid { from: start, interval: micros, last: end }))
}

fn interval(
    node: Node<'_, '_>,
    what: &What<'_>,
    schedule: &mut NewSchedule,
    notes: &mut Vec<String>,
) -> Result<(String, Elsewhere), String> {
    let every = number(node, "repeat-interval")?.unwrap_or(0);
    let unit = required(node, "repeat-interval-unit")?.to_ascii_uppercase();
    if !(1..=100_000).contains(&every) {
        return Err(format!("trigger {}: repeat-interval: expected 1 to 100000", what.name));
    }
    schedule.misfire = Some(match instruction(node, &["DO_NOTHING", "FIRE_ONCE_NOW"])?.as_str() {
        "IGNORE_MISFIRE_POLICY" => all(),
        "DO_NOTHING" => skip(),
        _ => once(),
    });
    let Some(start) = what.start else {
        return Err(format!(
            "trigger {}: it counts from when the data is loaded; expected a start-time",
            what.name
        ));
    };
    schedule.start = Some(Timestamp::from_micros(start));
    schedule.end = what.end.map(Timestamp::from_micros);
    let fixed = match unit.as_str() {
        "SECOND" => Some(1_000_000),
        "MINUTE" => Some(60_000_000),
        "HOUR" => Some(3_600_000_000),
        _ => None,
    };
    let rule = format!("every {every} {}", unit.to_ascii_lowercase());
    if let Some(unit) = fixed {
        let micros = every * unit;
        schedule.every = Some(duration(micros));
        return Ok((rule, Elsewhere::Grid { from: start, interval: micros, last: what.end }));
    }
    let unit = match unit.as_str() {
        "DAY" => "day",
        "WEEK" => "week",
        "MONTH" => "month",
        "YEAR" => "year",
        other => {
            return Err(format!(
                "trigger {}: repeat-interval-unit: given {other:?}; expected SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR",
                what.name
            ));
        }
    };
    let local = local_time(start, what.zone);
    schedule.calendar = Some(CalendarRule {
        every: format!("{every} {unit}{}", if every == 1 { "" } else { "s" }),
        on: None,
        at: Some(local),
        month_end: None,
    });
    notes.push("its times cannot be compared: Quartz's own reckoning is not worked out".to_owned());
    Ok((rule, Elsewhere::Unknown))
}

/// The civil time of day of an instant, to the second.
fn local_time(at: Micros, zone: &Zone) -> String {
    use tourbillon_schedule::{Rule, Timing};
    let Ok(rule) = Rule::every(1_000_000) else { return "00:00:00".to_owned() };
    let local = Timing::new(rule, zone.clone()).local(at);
    local.split('T').nth(1).and_then(|time| time.get(..8)).unwrap_or("00:00:00").to_owned()
}

fn once() -> Misfire {
    Misfire { policy: MisfirePolicy::Once, grace: None, limit: None }
}

fn skip() -> Misfire {
    Misfire { policy: MisfirePolicy::Skip, grace: Some(duration(THRESHOLD)), limit: None }
}

fn all() -> Misfire {
    Misfire { policy: MisfirePolicy::All, grace: None, limit: None }
}

/// The misfire instruction without its prefix; Quartz's own choice when there is none.
fn instruction(node: Node<'_, '_>, known: &[&str]) -> Result<String, String> {
    let given = text(node, "misfire-instruction").unwrap_or_else(|| "SMART_POLICY".to_owned());
    let short = given.strip_prefix("MISFIRE_INSTRUCTION_").unwrap_or(&given).to_owned();
    if matches!(short.as_str(), "SMART_POLICY" | "IGNORE_MISFIRE_POLICY")
        || known.contains(&short.as_str())
    {
        return Ok(short);
    }
    Err(format!(
        "misfire-instruction: given {given:?}; expected MISFIRE_INSTRUCTION_ and one of SMART_POLICY, IGNORE_MISFIRE_POLICY, {}",
        known.join(", ")
    ))
}

fn task(
    job: &Job,
    mut data: Map<String, Value>,
    queue: Option<&str>,
    trigger: Node<'_, '_>,
    notes: &mut Vec<String>,
) -> Result<TaskTemplate, String> {
    let mut task = TaskTemplate::new(Target::worker());
    task.queue = queue.map(str::to_owned);
    if let Some(priority) = number(trigger, "priority")? {
        // Quartz's middle is 5.
        task.priority = priority.saturating_sub(5).clamp(-8, 7) as i32;
    }
    if job.class == NATIVE_JOB {
        let mut taken = |name: &str| match data.remove(name) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let (command, parameters) = (taken("command"), taken("parameters"));
        if command.trim().is_empty() {
            return Err("a NativeJob without a command in its job-data-map".to_owned());
        }
        taken("waitForProcess");
        taken("consumeStreams");
        let line = format!("{command} {parameters}").trim().to_owned();
        task.kind = Some("quartz-native".to_owned());
        task.target = Target::Command(CommandTarget {
            argv: vec!["/bin/sh".to_owned(), "-c".to_owned(), line],
            env: Pairs::new(),
            cwd: None,
            stdin: None,
        });
        return Ok(task);
    }
    let kind = name::of(&[&job.class]);
    notes
        .push(format!("a worker must take tasks of the kind {kind}: a Java class cannot run here"));
    notes.push(
        "runs may overlap, which a class that disallows it would prevent: see overlap".to_owned(),
    );
    task.kind = Some(kind);
    if !data.is_empty() {
        let payload = Json::from_value(&Value::Object(data));
        task.payload = Some(payload.map_err(|e| format!("job-data-map: {e}"))?);
    }
    if let Some(description) = &job.description {
        let description: String =
            description.chars().filter(|c| !c.is_control()).take(60).collect();
        task.tags.insert("description".to_owned(), description);
    }
    Ok(task)
}

fn job(node: Node<'_, '_>) -> Result<(JobKey, Job), String> {
    let name = required(node, "name")?;
    let class = required(node, "job-class").map_err(|e| format!("job {name}: {e}"))?;
    let job = Job { class, data: job_data(node)?, description: text(node, "description") };
    Ok(((group_of(node, "group"), name), job))
}

fn job_data(node: Node<'_, '_>) -> Result<Map<String, Value>, String> {
    let mut data = Map::new();
    let maps = node.children().filter(|child| child.tag_name().name() == "job-data-map");
    for entry in maps.flat_map(|map| map.children()).filter(Node::is_element) {
        let key = required(entry, "key").map_err(|e| format!("job-data-map: {e}"))?;
        data.insert(key, Value::String(text(entry, "value").unwrap_or_default()));
    }
    Ok(data)
}

/// The text of a child element, without blanks around it; `None` when it is not there or empty.
fn text(node: Node<'_, '_>, name: &str) -> Option<String> {
    let child = node.children().find(|child| child.tag_name().name() == name)?;
    let text: String = child.children().filter_map(|part| part.text()).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn required(node: Node<'_, '_>, name: &str) -> Result<String, String> {
    text(node, name).ok_or_else(|| format!("<{name}> is missing or empty"))
}

fn number(node: Node<'_, '_>, name: &str) -> Result<Option<i64>, String> {
    let Some(text) = text(node, name) else { return Ok(None) };
    let named = match text.as_str() {
        "REPEAT_INDEFINITELY" => Some(-1),
        other => other.parse().ok(),
    };
    named.map(Some).ok_or_else(|| format!("{name}: given {text:?}; expected a number"))
}

/// An XML schema `dateTime`; one without an offset is in the zone.
fn instant(node: Node<'_, '_>, name: &str, zone: &Zone) -> Result<Option<Micros>, String> {
    let Some(text) = text(node, name) else { return Ok(None) };
    let read = parse_instant(&text, Some(zone));
    read.map(Some).map_err(|error: Error| format!("{name}: {error}"))
}

/// A group, empty for the default one.
fn group(node: Node<'_, '_>, name: &str) -> String {
    text(node, name).filter(|group| group != "DEFAULT").unwrap_or_default()
}

fn group_of(node: Node<'_, '_>, name: &str) -> String {
    text(node, name).unwrap_or_else(|| "DEFAULT".to_owned())
}

fn place(node: Node<'_, '_>) -> String {
    format!("line {}", node.document().text_pos_at(node.range().start).row)
}
