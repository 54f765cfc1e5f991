//! From YAML text to values.

use std::collections::HashMap;
use std::fmt;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// Longest text, in bytes.
const TEXT_MAX: usize = 16 << 20;
/// Deepest nesting.
const DEPTH_MAX: usize = 64;
/// Most values in a text, those that aliases repeat counted each time.
const VALUES_MAX: usize = 2_000_000;

/// A document of a text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Document {
    /// The line it begins on, from 1.
    pub line: usize,
    /// What it holds.
    pub value: Value,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct YamlError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong, and what would be right.
    pub text: String,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.text)
    }
}

impl std::error::Error for YamlError {}

/// Reads the documents of a text. An empty document is left out.
///
/// # Errors
///
/// The first fault, with line and column.
///
/// ```
/// let documents = tourbillon_import::yaml::read("a: 1\n---\n- x\n- 'on'\n").unwrap();
/// assert_eq!(documents[0].value, serde_json::json!({"a": 1}));
/// assert_eq!(documents[1].value, serde_json::json!(["x", "on"]));
/// ```
pub fn read(text: &str) -> Result<Vec<Document>, YamlError> {
    if text.len() > TEXT_MAX {
        return Err(YamlError { line: 1, column: 1, text: format!("more than {TEXT_MAX} bytes") });
    }
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| YamlError {
            line: error.marker().line(),
            column: error.marker().col() + 1,
            text: error.info().to_owned(),
        })?;
        builder.at = (span.start.line(), span.start.col() + 1);
        builder.event(event)?;
    }
    Ok(builder.documents)
}

/// The value of a scalar without quotes, by the core schema.
pub(super) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    let radix = |digits: &str, radix| {
        let plain = digits.bytes().all(|b| b.is_ascii_alphanumeric());
        u64::from_str_radix(digits, radix).ok().filter(|_| plain).map(Number::from)
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let shape = unsigned.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    if !shape || !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if unsigned.bytes().all(|b| b.is_ascii_digit()) {
        let whole = text.strip_prefix('+').unwrap_or(text);
        let signed = whole.parse::<i64>().ok().map(Number::from);
        if let Some(number) = signed.or_else(|| whole.parse::<u64>().ok().map(Number::from)) {
            return Some(number);
        }
    }
    text.parse::<f64>().ok().and_then(Number::from_f64)
}

/// A collection that is being read.
enum Open {
    List(Vec<Value>, usize),
    Map { map: Map<String, Value>, key: Option<String>, anchor: usize },
}

#[derive(Default)]
struct Builder {
    documents: Vec<Document>,
    line: usize,
    open: Vec<Open>,
    /// Anchored values and how many values each is made of.
    anchors: HashMap<usize, (Value, usize)>,
    count: usize,
    at: (usize, usize),
}

impl Builder {
    fn fault(&self, text: impl Into<String>) -> YamlError {
        YamlError { line: self.at.0, column: self.at.1, text: text.into() }
    }

    fn event(&mut self, event: Event<'_>) -> Result<(), YamlError> {
        match event {
            Event::DocumentStart(_) => {
                self.line = 0;
                self.anchors.clear();
            }
            Event::Scalar(text, style, anchor, tag) => {
                let text_tag = tag.as_ref().is_some_and(|tag| tag.suffix == "str");
                let value = match style {
                    ScalarStyle::Plain if !text_tag => plain(&text),
                    _ => Value::String(text.into_owned()),
                };
                self.put(value, anchor)?;
            }
            Event::SequenceStart(anchor, _) => self.push(Open::List(Vec::new(), anchor))?,
            Event::MappingStart(anchor, _) => {
                self.push(Open::Map { map: Map::new(), key: None, anchor })?;
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(list, anchor)) => self.put(Value::Array(list), anchor)?,
                Some(Open::Map { map, anchor, .. }) => self.put(Value::Object(map), anchor)?,
                None => return Err(self.fault("nothing is open here")),
            },
            Event::Alias(anchor) => {
                let Some((value, count)) = self.anchors.get(&anchor) else {
                    return Err(self.fault("an alias of something that is not complete"));
                };
                let (value, count) = (value.clone(), *count);
                self.spend(count)?;
                self.put(value, 0)?;
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn spend(&mut self, count: usize) -> Result<(), YamlError> {
        self.count = self.count.saturating_add(count);
        if self.count > VALUES_MAX {
            return Err(self.fault(format!("more than {VALUES_MAX} values")));
        }
        Ok(())
    }

    fn push(&mut self, open: Open) -> Result<(), YamlError> {
        if self.open.len() >= DEPTH_MAX {
            return Err(self.fault(format!("nested more than {DEPTH_MAX} deep")));
        }
        if self.line == 0 {
            self.line = self.at.0;
        }
        self.open.push(open);
        Ok(())
    }

    fn put(&mut self, value: Value, anchor: usize) -> Result<(), YamlError> {
        self.spend(1)?;
        if anchor != 0 {
            let count = count(&value);
            self.spend(count)?;
            self.anchors.insert(anchor, (value.clone(), count));
        }
        match self.open.last_mut() {
            None => {
                let line = if self.line == 0 { self.at.0 } else { self.line };
                if value != Value::Null {
                    self.documents.push(Document { line, value });
                }
            }
            Some(Open::List(list, _)) => list.push(value),
            Some(Open::Map { map, key, .. }) => match key.take() {
                None => match text_of(value) {
                    Some(text) => *key = Some(text),
                    None => return Err(self.fault("a key that is no text; expected a word")),
                },
                Some(name) => {
                    if map.contains_key(&name) {
                        return Err(self.fault(format!("{name:?} is given twice")));
                    }
                    map.insert(name, value);
                }
            },
        }
        Ok(())
    }
}

/// A key: numbers and truths are taken by their text.
fn text_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// How many values a value is made of.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn one(text: &str) -> Value {
        let documents = read(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(documents.len(), 1, "{text}");
        documents[0].value.clone()
    }

    #[test]
    fn scalars_by_the_core_schema() {
        for (text, value) in [
            ("a: 1", json!(1)),
            ("a: -7", json!(-7)),
            ("a: 0x1F", json!(31)),
            ("a: 0o17", json!(15)),
            ("a: 1.5", json!(1.5)),
            ("a: 1e3", json!(1000.0)),
            ("a: 18446744073709551615", json!(u64::MAX)),
            ("a: true", json!(true)),
            ("a: ~", json!(null)),
            ("a:", json!(null)),
            ("a: on", json!("on")),
            ("a: no", json!("no")),
            ("a: '1'", json!("1")),
            ("a: \"true\"", json!("true")),
            ("a: !!str 12", json!("12")),
            ("a: 1.2.3", json!("1.2.3")),
            ("a: 2026-01-01", json!("2026-01-01")),
            ("a: 09:00", json!("09:00")),
            ("a: .inf", json!(".inf")),
            ("a: 5m", json!("5m")),
            ("a: |\n  x\n  y\n", json!("x\ny\n")),
            ("a: [1, {b: c}]", json!([1, {"b": "c"}])),
        ] {
            assert_eq!(one(text)["a"], value, "{text}");
        }
        assert_eq!(one("on: 31\n1: x"), json!({"on": 31, "1": "x"}));
    }

    #[test]
    fn several_documents_know_their_lines() {
        let read = read("# top\na: 1\n---\n---\nb: 2\n...\n---\n- c\n").unwrap();
        let lines: Vec<usize> = read.iter().map(|d| d.line).collect();
        assert_eq!(lines, [2, 5, 8]);
        assert_eq!(super::read("# nothing\n").unwrap(), []);
    }

    #[test]
    fn anchors_repeat_what_they_name() {
        assert_eq!(one("a: &x {k: [1]}\nb: *x"), json!({"a": {"k": [1]}, "b": {"k": [1]}}));
    }

    #[test]
    fn faults_say_where() {
        for (text, line, word) in [
            ("a: 1\na: 2", 2, "twice"),
            ("a: [1", 1, ""),
            ("a: *x", 1, ""),
            ("a: &x [*x]", 1, ""),
            ("? [1]\n: 2", 1, "key"),
            ("a:\n\t- b", 2, ""),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.line >= line && error.text.contains(word), "{text}: {error}");
        }
        assert!(read(&"[".repeat(1_000)).is_err());
        let deep = format!("{}x", "- ".repeat(DEPTH_MAX + 1));
        assert!(read(&deep).unwrap_err().text.contains("deep"));
    }

    /// A billion laughs: nine lines that would be a billion values.
    #[test]
    fn aliases_cannot_multiply_without_end() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..9 {
            let refs = vec![format!("*a{}", n - 1); 10].join(", ");
            text.push_str(&format!("a{n}: &a{n} [{refs}]\n"));
        }
        assert!(read(&text).unwrap_err().text.contains("values"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,60}|[a-c0-9:&*!|>?#\\[\\]{}\"'\n\t -]{0,60}") {
            let _ = read(&text);
        }
    }
}
