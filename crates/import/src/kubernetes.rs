//! Kubernetes `CronJob` manifests (YAML): each becomes a schedule with a command target where its container
//! says what it runs.
//!
//! What always holds: schedule, zone, suspension, concurrency policy, deadline and backoff are carried
//! over; the image and everything else of the pod are not, and are named. A container that leaves the command
//! to its image makes tasks for a worker. Deliberately absent: values that live in the cluster
//! (`valueFrom`), and other kinds of objects.

use serde_json::{Map, Value};
use tourbillon_schedule::{KubernetesCron, Reading, Zone};
use tourbillon_wire::{
    Backoff, CommandTarget, Exponential, Fold, Gap, Jitter, Json, Misfire, MisfirePolicy,
    NewSchedule, Overlap, Pairs, Retry, Target, TaskTemplate,
};

use crate::name::{self, Names};
use crate::{Elsewhere, Entry, Import, Options, duration, yaml};

/// Attempts after the first that Kubernetes makes unless it is told.
const BACKOFF_LIMIT: u64 = 6;
/// Its first and longest wait between attempts.
const BACKOFF_FIRST: i64 = 10_000_000;
const BACKOFF_MAX: i64 = 360_000_000;

/// Reads manifests, several documents a text, and lists of objects.
///
/// ```
/// use tourbillon_import::{Options, kubernetes};
/// use tourbillon_schedule::Zone;
/// let manifest = "
/// apiVersion: batch/v1
/// kind: CronJob
/// metadata: {name: hello}
/// spec:
///   schedule: '*/5 * * * *'
///   jobTemplate: {spec: {template: {spec: {containers: [{name: c, command: [date]}]}}}}
/// ";
/// let import = kubernetes(manifest, &Options { zone: &Zone::utc(), queue: None });
/// assert_eq!(import.entries[0].name(), "hello");
/// ```
#[must_use]
pub fn kubernetes(text: &str, options: &Options<'_>) -> Import {
    let documents = match yaml::read(text) {
        Ok(documents) => documents,
        Err(error) => {
            let place = format!("line {}, column {}", error.line, error.column);
            return Import::refused(place, error.text);
        }
    };
    let mut reader = Reader { options, import: Import::default(), names: Names::default() };
    for document in &documents {
        reader.object(&document.value, &format!("line {}", document.line), true);
    }
    if documents.is_empty() {
        reader.import.error("", "no document in the text");
    }
    reader.import
}

struct Reader<'a> {
    options: &'a Options<'a>,
    import: Import,
    names: Names,
}

impl Reader<'_> {
    /// An object; lists hold further ones, but no further lists.
    fn object(&mut self, value: &Value, place: &str, top: bool) {
        let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "CronJob" => match self.cron_job(value, place) {
                Ok(entry) => self.import.entries.push(entry),
                Err(text) => {
                    let name = Part { value, path: String::new() }.at("metadata").at("name");
                    let name = name.text().ok().flatten().unwrap_or_default();
                    self.import.error(place, format!("CronJob {name}: {text}"));
                }
            },
            "List" | "CronJobList" if top => {
                let items = value.get("items").and_then(Value::as_array);
                for (index, item) in items.into_iter().flatten().enumerate() {
                    self.object(item, &format!("{place}, items[{index}]"), false);
                }
            }
            "" => self.import.error(place, "kind: missing; expected CronJob"),
            other => {
                self.import.note(place, format!("a {other} is not a CronJob and is passed over"))
            }
        }
    }

    fn cron_job(&mut self, value: &Value, place: &str) -> Result<Entry, String> {
        let root = Part { value, path: String::new() };
        let meta = root.at("metadata");
        let Some(job_name) = meta.at("name").text()? else {
            return Err("metadata.name: missing".to_owned());
        };
        let namespace = meta.at("namespace").text()?.unwrap_or_default();
        let spec = root.at("spec");
        let mut notes = Vec::new();
        let Some(written) = spec.at("schedule").text()? else {
            return Err("spec.schedule: missing; expected a cron expression".to_owned());
        };
        let cron = KubernetesCron::parse(&written).map_err(|e| format!("spec.schedule: {e}"))?;
        let zone = match (spec.at("timeZone").text()?, cron.zone) {
            (Some(name), _) => Zone::get(&name).map_err(|e| format!("spec.timeZone: {e}"))?,
            (None, Some(zone)) => zone,
            (None, None) => {
                notes.push(format!(
                    "without a timeZone the cluster's own counts, which is taken to be {}",
                    self.options.zone
                ));
                self.options.zone.clone()
            }
        };
        let grace = spec.at("startingDeadlineSeconds").number()?;
        let overlap = match spec.at("concurrencyPolicy").text()?.as_deref() {
            None | Some("Allow") => Overlap::Allow,
            Some("Forbid") => Overlap::Skip,
            Some("Replace") => Overlap::CancelRunning,
            Some(other) => {
                return Err(format!(
                    "spec.concurrencyPolicy: given {other:?}; expected Allow, Forbid or Replace"
                ));
            }
        };
        let mut left = spec.others(&[
            "schedule",
            "timeZone",
            "startingDeadlineSeconds",
            "concurrencyPolicy",
            "suspend",
            "jobTemplate",
        ]);
        let task =
            self.task(&spec.at("jobTemplate").at("spec"), &job_name, &mut notes, &mut left)?;
        if !left.is_empty() {
            notes.push(format!("not carried over: {}", left.join(", ")));
        }
        if written.trim_start().starts_with("@every") {
            notes.push(
                "it counts from the Unix epoch, not from when the controller saw it".to_owned(),
            );
        }
        let namespace = if namespace == "default" { "" } else { namespace.as_str() };
        let schedule = NewSchedule {
            name: Some(self.names.unique(name::of(&[namespace, &job_name]))),
            cron: Some(cron.expr.as_str().to_owned()),
            tz: Some(zone.name().to_owned()),
            gap: Some(Gap::Skip),
            fold: Some(Fold::Both),
            overlap: Some(overlap),
            misfire: Some(Misfire {
                policy: MisfirePolicy::Once,
                grace: grace.map(|s| {
                    duration(i64::try_from(s).unwrap_or(i64::MAX).saturating_mul(1_000_000))
                }),
                limit: None,
            }),
            paused: spec.at("suspend").truth()?,
            ..NewSchedule::new(task)
        };
        let elsewhere = match cron.expr.is_elapsed() && written.trim_start().starts_with('@') {
            true => Elsewhere::Unknown,
            false => Elsewhere::Cron {
                expr: cron.expr,
                zone,
                reading: Reading::Kubernetes,
                from: None,
                until: None,
            },
        };
        Ok(Entry { place: place.to_owned(), rule: written, schedule, notes, elsewhere })
    }

    fn task(
        &self,
        job: &Part<'_>,
        name: &str,
        notes: &mut Vec<String>,
        left: &mut Vec<String>,
    ) -> Result<TaskTemplate, String> {
        let pod = job.at("template").at("spec");
        let containers = pod.at("containers");
        let Some(all) = containers.list()? else {
            return Err(format!("{}: missing; expected a container", containers.path));
        };
        let Some(first) = all.first() else {
            return Err(format!("{}: empty; expected a container", containers.path));
        };
        if all.len() > 1 {
            notes.push(format!("of {} containers only the first is carried over", all.len()));
        }
        left.extend(job.others(&["template", "backoffLimit", "activeDeadlineSeconds"]));
        left.extend(pod.others(&["containers", "restartPolicy"]));
        left.extend(first.others(&["name", "image", "command", "args", "env", "workingDir"]));
        let mut task = TaskTemplate::new(Target::worker());
        task.queue = self.options.queue.map(str::to_owned);
        task.kind = Some(name::of(&[name]));
        let retries = job.at("backoffLimit").number()?.unwrap_or(BACKOFF_LIMIT);
        task.retry = Some(Retry {
            max_attempts: Some(u32::try_from(retries.saturating_add(1)).unwrap_or(u32::MAX)),
            backoff: Some(Backoff::Exponential(Exponential {
                initial: Some(duration(BACKOFF_FIRST)),
                factor: Some(2.0),
                max: Some(duration(BACKOFF_MAX)),
                jitter: Some(Jitter::None),
            })),
            ..Retry::default()
        });
        match job.at("activeDeadlineSeconds").number()? {
            Some(seconds) => {
                let limit = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000);
                task.timeout = Some(duration(limit));
                if let Some(retry) = &mut task.retry {
                    retry.give_up_after = Some(duration(limit));
                }
            }
            None => notes.push(
                "a run has no limit there; here it has the queue's: see task.timeout".to_owned(),
            ),
        }
        let env = environment(&first.at("env"), notes)?;
        let image = first.at("image").text()?.unwrap_or_default();
        let command = first.at("command").texts()?;
        let args = first.at("args").texts()?.unwrap_or_default();
        let Some(command) = command.filter(|command| !command.is_empty()) else {
            notes.push(format!(
                "the image {image} says what runs, so tasks are for a worker of the kind {}",
                task.kind.as_deref().unwrap_or_default()
            ));
            let args: Vec<String> = args.iter().map(|arg| expand(arg, &env)).collect();
            let env: Map<String, Value> =
                env.iter().map(|(n, v)| (n.clone(), Value::String(v.clone()))).collect();
            let payload = serde_json::json!({"image": image, "args": args, "env": env});
            task.payload = Some(Json::from_value(&payload).map_err(|e| e.to_string())?);
            return Ok(task);
        };
        notes.push(format!("it runs on the server's machine, not in the image {image}"));
        task.target = Target::Command(CommandTarget {
            argv: command.iter().chain(&args).map(|word| expand(word, &env)).collect(),
            env: env.into_iter().collect::<Pairs>(),
            cwd: first.at("workingDir").text()?,
            stdin: None,
        });
        Ok(task)
    }
}

/// The variables of a container that have a value in the manifest.
fn environment(env: &Part<'_>, notes: &mut Vec<String>) -> Result<Vec<(String, String)>, String> {
    let mut found: Vec<(String, String)> = Vec::new();
    for variable in env.list()?.unwrap_or_default() {
        let Some(name) = variable.at("name").text()? else {
            return Err(format!("{}.name: missing", variable.path));
        };
        if variable.value.get("valueFrom").is_some() {
            notes.push(format!(
                "the variable {name} has its value from the cluster and is not carried over"
            ));
            continue;
        }
        let value = variable.at("value").text()?.unwrap_or_default();
        let value = expand(&value, &found);
        found.retain(|(known, _)| *known != name);
        found.push((name, value));
    }
    Ok(found)
}

/// Puts variables in for `$(NAME)`; `$$` is a `$`, and a name that is not known stays as it is.
fn expand(text: &str, env: &[(String, String)]) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("$$") {
            expanded.push('$');
            rest = &rest[2..];
            continue;
        }
        let name = rest.strip_prefix("$(").and_then(|inner| inner.split_once(')'));
        let known = name.and_then(|(name, after)| {
            env.iter().find(|(known, _)| known == name).map(|(_, value)| (value, after))
        });
        match known {
            Some((value, after)) => {
                expanded.push_str(value);
                rest = after;
            }
            None => {
                expanded.push('$');
                rest = &rest[1..];
            }
        }
    }
    expanded + rest
}

/// A part of a manifest and where it is, so that errors can say.
struct Part<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> Part<'a> {
    fn at(&self, name: &str) -> Part<'a> {
        let value = self.value.get(name).unwrap_or(&Value::Null);
        let dot = if self.path.is_empty() { "" } else { "." };
        Part { value, path: format!("{}{dot}{name}", self.path) }
    }

    fn wrong(&self, expected: &str) -> String {
        let given: String = self.value.to_string().chars().take(60).collect();
        format!("{}: given {given}; expected {expected}", self.path)
    }

    /// A text; numbers and truths are taken by their text, as in manifests that left the quotes out.
    fn text(&self) -> Result<Option<String>, String> {
        match self.value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            Value::Number(number) => Ok(Some(number.to_string())),
            Value::Bool(truth) => Ok(Some(truth.to_string())),
            Value::Array(_) | Value::Object(_) => Err(self.wrong("a text")),
        }
    }

    fn number(&self) -> Result<Option<u64>, String> {
        match self.value {
            Value::Null => Ok(None),
            value => value.as_u64().map(Some).ok_or_else(|| self.wrong("a number of 0 or more")),
        }
    }

    fn truth(&self) -> Result<Option<bool>, String> {
        match self.value {
            Value::Null => Ok(None),
            Value::Bool(truth) => Ok(Some(*truth)),
            // What Kubernetes takes for truths, of an older YAML.
            Value::String(text) => match text.to_ascii_lowercase().as_str() {
                "yes" | "on" | "y" => Ok(Some(true)),
                "no" | "off" | "n" => Ok(Some(false)),
                _ => Err(self.wrong("true or false")),
            },
            _ => Err(self.wrong("true or false")),
        }
    }

    fn list(&self) -> Result<Option<Vec<Part<'a>>>, String> {
        match self.value {
            Value::Null => Ok(None),
            Value::Array(items) => {
                let parts = items.iter().enumerate();
                let part = |(n, value)| Part { value, path: format!("{}[{n}]", self.path) };
                Ok(Some(parts.map(part).collect()))
            }
            _ => Err(self.wrong("a list")),
        }
    }

    fn texts(&self) -> Result<Option<Vec<String>>, String> {
        let Some(items) = self.list()? else { return Ok(None) };
        let texts = items.iter().map(|item| item.text().map(Option::unwrap_or_default));
        texts.collect::<Result<_, _>>().map(Some)
    }

    /// The names of fields other than these.
    fn others(&self, known: &[&str]) -> Vec<String> {
        let fields = self.value.as_object().into_iter().flat_map(Map::keys);
        fields.filter(|name| !known.contains(&name.as_str())).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_in_as_kubernetes_does() {
        let env = [("A".to_owned(), "1".to_owned()), ("B".to_owned(), String::new())];
        for (text, expected) in [
            ("$(A)-$(B)-$(C)", "1--$(C)"),
            ("$$(A)", "$(A)"),
            ("$A ${A} $", "$A ${A} $"),
            ("$(A", "$(A"),
            ("$$$(A)", "$1"),
        ] {
            assert_eq!(expand(text, &env), expected, "{text}");
        }
    }
}
