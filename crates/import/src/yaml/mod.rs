//! YAML documents as JSON values, and back.
//!
//! Read is YAML 1.2 with its core schema, several documents a text, anchors and aliases; a mapping's
//! keys are texts and each comes once. What always holds: depth and size are bounded, also when aliases multiply
//! what is written; what [`write`](fn@write) writes, [`read`] reads back as the same value. Deliberately absent:
//! tags other than the core schema's, merge keys, and numbers that JSON does not have.

mod reader;
mod writer;

pub use reader::{Document, YamlError, read};
pub use writer::write;

/// Whether a scalar without quotes is not a text; both directions go by it.
fn is_special(text: &str) -> bool {
    !reader::plain(text).is_string()
}
