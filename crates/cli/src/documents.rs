//! Files of documents (JSON, and YAML for schedules and calendars), and of text, within a bound.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tourbillon_import::yaml;
use tourbillon_wire::{NewCalendar, NewSchedule};

/// Endings of the files that are read of a folder.
const ENDINGS: [&str; 4] = ["yaml", "yml", "json", "ndjson"];

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A file's text; `-` is standard input.
pub(crate) fn read(file: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    let source: Box<dyn Read> = match file {
        "-" => Box::new(std::io::stdin()),
        file => Box::new(std::fs::File::open(file).with_context(|| format!("cannot read {file}"))?),
    };
    let length = source
        .take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {file}"))?;
    if length as u64 > FILE_BYTES_MAX {
        bail!("{file} has more than {FILE_BYTES_MAX} bytes");
    }
    Ok(text)
}

/// One document, an array of them, or several one after the other.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> anyhow::Result<Vec<T>> {
    if text.trim_start().starts_with('[') {
        return Ok(tourbillon_wire::from_slice(text.as_bytes())?);
    }
    let documents = serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>();
    documents.map_err(|error: serde_json::Error| {
        let field = tourbillon_wire::path_at(text.as_bytes(), error.line(), error.column());
        tourbillon_wire::Problem::malformed(&error, field).into()
    })
}

/// A schedule or a calendar.
pub(crate) enum Document {
    Schedule(Box<NewSchedule>),
    Calendar(NewCalendar),
}

/// A document and where it stands.
pub(crate) struct Placed {
    pub(crate) place: String,
    pub(crate) document: Document,
}

/// The files that paths name: of a folder those that may hold documents, in the order of their names, and not
/// those of folders in it.
pub(crate) fn files(paths: &[String]) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for path in paths {
        if path == "-" || !Path::new(path).is_dir() {
            files.push(path.clone());
            continue;
        }
        let cannot = || format!("cannot read {path}");
        let mut of: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(path).with_context(cannot)? {
            let file = entry.with_context(cannot)?.path();
            let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            if ENDINGS.contains(&ending) && file.is_file() {
                of.push(file);
            }
        }
        of.sort();
        for file in of {
            let name = file.to_str().with_context(|| format!("{}: no text", file.display()))?;
            files.push(name.to_owned());
        }
    }
    Ok(files)
}

/// The schedules and calendars of a file: YAML, or JSON one after the other or in arrays.
pub(crate) fn rules(file: &str) -> anyhow::Result<Vec<Placed>> {
    let text = read(file)?;
    // JSON documents one after the other are no YAML; everything else of JSON is.
    let lines = text.trim_start().starts_with('{') || file.ends_with(".ndjson");
    let mut found = Vec::new();
    if lines {
        for (index, value) in
            parse::<Value>(&text).with_context(|| file.to_owned())?.into_iter().enumerate()
        {
            found.push((format!("{file}: document {}", index + 1), value));
        }
    } else {
        for document in yaml::read(&text).with_context(|| file.to_owned())? {
            found.push((format!("{file}:{}", document.line), document.value));
        }
    }
    let mut placed = Vec::new();
    for (place, value) in found {
        match value {
            Value::Array(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    placed.push(rule(format!("{place}, [{index}]"), &item)?);
                }
            }
            value => placed.push(rule(place, &value)?),
        }
    }
    Ok(placed)
}

/// A calendar says which days; what does not is a schedule.
fn rule(place: String, value: &Value) -> anyhow::Result<Placed> {
    let has = |names: &[&str]| names.iter().any(|name| value.get(name).is_some());
    let calendar = has(&["dates", "ranges", "weekdays", "ics"])
        && !has(&["task", "cron", "every", "after", "calendar"]);
    let body = serde_json::to_vec(value)?;
    let document = match calendar {
        true => tourbillon_wire::from_slice(&body).map(Document::Calendar),
        false => tourbillon_wire::from_slice(&body).map(Document::Schedule),
    };
    let document = document.with_context(|| place.clone())?;
    Ok(Placed { place, document })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, text: &str) -> (PathBuf, String) {
        let folder = std::env::temp_dir()
            .join(format!("tourbillon-documents-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        (folder, file.to_str().unwrap().to_owned())
    }

    const TASK: &str = "{\"target\": {\"worker\": {}}}";

    #[test]
    fn every_form_of_file_is_read() {
        for (name, text, count) in [
            (
                "a.yaml",
                format!(
                    "name: a\ncron: '@daily'\ntask: {TASK}\n---\nname: b\ndates: [2026-01-01]\n"
                ),
                2,
            ),
            ("a.json", format!("[{{\"name\": \"a\", \"every\": \"1m\", \"task\": {TASK}}}]"), 1),
            ("b.json", format!("{{\"name\": \"a\", \"every\": \"1m\",\n \"task\": {TASK}}}"), 1),
            ("a.ndjson", format!("{{\"task\": {TASK}}}\n{{\"weekdays\": [\"sat\"]}}\n"), 2),
            ("c.yaml", format!("- {{task: {TASK}}}\n- {{task: {TASK}}}\n"), 2),
        ] {
            let (folder, file) = written(name, &text);
            let read = rules(&file).unwrap_or_else(|e| panic!("{name}: {e:#}"));
            assert_eq!(read.len(), count, "{name}");
            std::fs::remove_dir_all(folder).unwrap();
        }
    }

    #[test]
    fn a_fault_names_file_line_and_field() {
        let (folder, file) =
            written("f.yaml", &format!("---\n---\nname: a\ntask: {TASK}\ncorn: x\n"));
        let error = format!("{:#}", rules(&file).err().unwrap());
        assert!(error.contains("f.yaml:3") && error.contains("corn"), "{error}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
