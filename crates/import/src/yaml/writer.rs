//! From values to YAML text, as people write it: blocks, and quotes only where they are needed.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

use super::is_special;

/// Writes a document, beginning with `---`, with its fields in their order. [`super::read`] reads the
/// same back.
///
/// # Errors
///
/// What cannot be a JSON document.
///
/// ```
/// let text = tourbillon_import::yaml::write(&serde_json::json!({"a": ["0 9 * * *", "yes", 1]})).unwrap();
/// assert_eq!(text, "---\na:\n- \"0 9 * * *\"\n- \"yes\"\n- 1\n");
/// ```
pub fn write<T: Serialize>(document: &T) -> Result<String, serde_json::Error> {
    let ordered: Ordered = serde_json::from_str(&serde_json::to_string(document)?)?;
    let mut text = "---\n".to_owned();
    match &ordered {
        Ordered::List(items) if !items.is_empty() => list(items, 0, &mut text),
        Ordered::Map(fields) if !fields.is_empty() => map(fields, 0, &mut text),
        other => {
            scalar(other, &mut text);
            text.push('\n');
        }
    }
    Ok(text)
}

/// A value whose fields keep the order in which they were written.
enum Ordered {
    Map(Vec<(String, Ordered)>),
    List(Vec<Ordered>),
    Scalar(Value),
}

impl<'de> serde::Deserialize<'de> for Ordered {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OrderedVisitor)
    }
}

struct OrderedVisitor;

impl<'de> serde::de::Visitor<'de> for OrderedVisitor {
    type Value = Ordered;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Ordered, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Ordered::List(items))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Ordered::Map(fields))
    }
}

fn indent(depth: usize, text: &mut String) {
    text.extend(std::iter::repeat_n("  ", depth));
}

fn map(fields: &[(String, Ordered)], depth: usize, text: &mut String) {
    for (index, (name, value)) in fields.iter().enumerate() {
        // The first stands on the line of its `-`, when it has one.
        if index > 0 || !text.ends_with("- ") {
            indent(depth, text);
        }
        string(name, text);
        text.push(':');
        match value {
            Ordered::Map(fields) if !fields.is_empty() => {
                text.push('\n');
                map(fields, depth + 1, text);
            }
            Ordered::List(items) if !items.is_empty() => {
                text.push('\n');
                list(items, depth, text);
            }
            other => {
                text.push(' ');
                scalar(other, text);
                text.push('\n');
            }
        }
    }
}

fn list(items: &[Ordered], depth: usize, text: &mut String) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 || !text.ends_with("- ") {
            indent(depth, text);
        }
        text.push_str("- ");
        match item {
            Ordered::Map(fields) if !fields.is_empty() => map(fields, depth + 1, text),
            Ordered::List(items) if !items.is_empty() => list(items, depth + 1, text),
            other => {
                scalar(other, text);
                text.push('\n');
            }
        }
    }
}

fn scalar(value: &Ordered, text: &mut String) {
    match value {
        Ordered::Scalar(Value::String(value)) => string(value, text),
        Ordered::Scalar(value) => {
            let _ = write!(text, "{value}");
        }
        // Only empty ones come here.
        Ordered::Map(_) => text.push_str("{}"),
        Ordered::List(_) => text.push_str("[]"),
    }
}

/// A text as it is where nothing could take it for something else, here or in YAML 1.1; else in JSON's
/// quotes, which are YAML's too.
fn string(value: &str, text: &mut String) {
    let word = !value.is_empty()
        && value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"_/.-+@".contains(&b));
    let truth = matches!(
        value.to_ascii_lowercase().as_str(),
        "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null"
    );
    if word && !truth && !is_special(value) {
        text.push_str(value);
        return;
    }
    for c in Value::String(value.to_owned()).to_string().chars() {
        // YAML takes some of these for line ends, and has no others.
        match c {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::read;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn documents_look_as_people_write_them() {
        let document = json!({"name": "nightly", "cron": "0 2 * * *", "exclude": ["a", "on"],
            "task": {"target": {"command": {"argv": ["/bin/x", "-v", ""], "env": {}}}, "n": -1.5}});
        let text = write(&document).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.contains(&"name: nightly"), "{text}");
        assert!(lines.contains(&"cron: \"0 2 * * *\""), "{text}");
        assert!(lines.contains(&"      - /bin/x"), "{text}");
        assert!(lines.contains(&"      env: {}"), "{text}");
        assert_eq!(read(&text).unwrap()[0].value, document);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9_f64).prop_map(Value::from),
            "\\PC{0,12}|[a-z0-9:#~'\"\\\\ \n\t-]{0,8}|yes|null|1e3|0x1|-|~".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z ]{1,4}|\\PC{1,3}|1|no|~", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in value()) {
            let text = write(&value).unwrap();
            let read = read(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            match value {
                Value::Null => prop_assert!(read.is_empty()),
                value => prop_assert_eq!(&read[0].value, &value, "{}", text),
            }
        }
    }
}
