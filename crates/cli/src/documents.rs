//! Files of JSON documents, and of text, within a bound.

use std::io::Read;

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;

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
