//! Where in a JSON text an error is, as a path of fields.
//!
//! serde_json gives a line and a column. Errors should name the field, so the text is walked once
//! more, on the error path only, up to that position. The walk trusts nothing: on malformed text
//! it gives the path as far as it understood it.

use serde::de::DeserializeOwned;

use crate::Problem;

/// Reads a document; what is wrong with it comes back as a problem that names the field.
///
/// Linear in the length of `body`; a second walk only when there is an error.
#[allow(clippy::result_large_err)] // once per request, and it goes straight to the reply
pub fn from_slice<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::malformed(&error, path_at(body, error.line(), error.column())))
}

/// The path to the value or key that a position lies in or just after, such as
/// `retry.backoff.fixed` or `[3].due_at`; empty for the document as a whole.
///
/// `line` counts from 1 and `column` is a number of bytes, as [`serde_json::Error`] gives them.
pub fn path_at(json: &[u8], line: usize, column: usize) -> String {
    if line == 0 {
        return String::new();
    }
    let line_start =
        json.split_inclusive(|b| *b == b'\n').take(line - 1).map(<[u8]>::len).sum::<usize>();
    let end = line_start.saturating_add(column).min(json.len());
    walk(&json[..end])
}

enum Step {
    /// In an object; the key read last, if any, and whether its value is the next thing.
    Object { key: Option<String>, at_value: bool },
    /// In an array, at this index.
    Array(usize),
}

fn walk(text: &[u8]) -> String {
    let mut steps: Vec<Step> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        at += 1;
        match byte {
            b'{' => steps.push(Step::Object { key: None, at_value: false }),
            b'[' => steps.push(Step::Array(0)),
            b'}' | b']' => {
                steps.pop();
            }
            b',' => match steps.last_mut() {
                Some(Step::Object { key, at_value }) => {
                    *key = None;
                    *at_value = false;
                }
                Some(Step::Array(index)) => *index += 1,
                None => {}
            },
            b':' => {
                if let Some(Step::Object { at_value, .. }) = steps.last_mut() {
                    *at_value = true;
                }
            }
            b'"' => {
                let start = at;
                while at < text.len() && text[at] != b'"' {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
                let string = &text[start..at.min(text.len())];
                at += 1;
                if let Some(Step::Object { key, at_value: false }) = steps.last_mut() {
                    *key = Some(String::from_utf8_lossy(string).into_owned());
                }
            }
            _ => {}
        }
    }
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Object { key: Some(key), .. } => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&key);
            }
            Step::Object { key: None, .. } => {}
            Step::Array(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

/// Splits `[3].due_at` into the index 3 and the field `due_at`.
pub(crate) fn split_index(path: &str) -> (Option<usize>, String) {
    let parts = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match parts.and_then(|(index, field)| Some((index.parse().ok()?, field))) {
        Some((index, field)) => (Some(index), field.trim_start_matches('.').to_owned()),
        None => (None, path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewTask, Problem};
    use proptest::prelude::*;

    #[track_caller]
    fn field(json: &str, expected: &str, detail: &str) {
        let problem: Problem = from_slice::<NewTask>(json.as_bytes()).unwrap_err();
        assert_eq!(problem.field.as_deref().unwrap_or(""), expected, "{problem}");
        assert!(problem.to_string().contains(detail), "{problem}");
        assert_eq!((problem.status, problem.code.as_str()), (400, crate::code::MALFORMED));
    }

    #[test]
    fn the_field_is_named() {
        field(r#"{"target":{"worker":{}},"delay":"5 min"}"#, "delay", "`5 min` is not a duration");
        field(r#"{"target":{"worker":{}},"colour":1}"#, "colour", "unknown field `colour`");
        field(r#"{"target":{"worker":{"x":1}}}"#, "target.worker.x", "unknown field `x`");
        field(r#"{"target":{"http":{"method":"GET"}}}"#, "target.http", "missing field `url`");
        field(r#"{"target":{"ftp":{}}}"#, "target.ftp", "unknown variant `ftp`");
        field(
            r#"{"target":{"command":{"argv":["a",5]}}}"#,
            "target.command.argv[1]",
            "expected a string",
        );
        field(r#"{"kind":"x"}"#, "", "missing field `target`");
        field(
            "{\n \"target\": {\"worker\": {}},\n \"retry\": {\"backoff\": {\"fixed\": {\"delay\": \"soon\"}}}\n}",
            "retry.backoff.fixed.delay",
            "`soon` is not a duration",
        );
        field(
            r#"{"target":{"worker":{}},"tags":{"a":"1","b":"2","a":"3"}}"#,
            "tags",
            "given twice",
        );
        field(r#"{"target":{"worker":{}},"priority":"high"}"#, "priority", "expected i32");
        field(
            r#"{"target":{"worker":{}},"due_at":"2026-13-01T00:00:00Z"}"#,
            "due_at",
            "month is 01 to 12",
        );
        field(r#"{"key":"a\"}{","id":"no"}"#, "id", "UUID");
    }

    #[test]
    fn an_index_is_split_off() {
        assert_eq!(split_index("[3].retry.backoff"), (Some(3), "retry.backoff".to_owned()));
        assert_eq!(split_index("[0]"), (Some(0), String::new()));
        assert_eq!(split_index("tags.[x]"), (None, "tags.[x]".to_owned()));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[\\[\\]{}:,\"\\\\a1\n ]{0,40}", line in 0usize..5, column in 0usize..50) {
            path_at(text.as_bytes(), line, column);
        }
    }
}
