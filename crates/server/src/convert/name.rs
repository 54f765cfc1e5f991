//! Judges names and keys.

use crate::Limits;
use crate::failure::{Failure, Result};

/// A name of a namespace, queue, kind, schedule or worker: 1 to 200 characters, none of them a
/// control character or `/`, and not `.` or `..`.
pub(crate) fn name(text: &str, field: &str, limits: &Limits) -> Result<()> {
    key(text, field, limits)?;
    if text == "." || text == ".." || text.contains('/') {
        return Err(Failure::invalid(
            field,
            format!("`{}` is not a name", short(text)),
            "a name without `/` that is not `.` or `..`",
        ));
    }
    Ok(())
}

/// A key: 1 to 200 characters, none of them a control character.
pub(crate) fn key(text: &str, field: &str, limits: &Limits) -> Result<()> {
    // Bytes first: a text that is short in bytes is short in characters.
    let fits = text.len() <= limits.name_chars || text.chars().count() <= limits.name_chars;
    if text.is_empty() || !fits {
        return Err(Failure::invalid(
            field,
            format!("it has {} characters", text.chars().count()),
            format!("1 to {} characters", limits.name_chars),
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(Failure::invalid(
            field,
            "it has a control character",
            "characters other than control characters",
        ));
    }
    Ok(())
}

/// The beginning of a text, for quoting it.
pub(crate) fn short(text: &str) -> String {
    let mut cut: String = text.chars().take(60).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_keys() {
        let limits = Limits::default();
        let long = "x".repeat(201);
        let wide = "ü".repeat(200);
        for (text, is_name, is_key) in [
            ("orders", true, true),
            ("关单", true, true),
            (wide.as_str(), true, true),
            ("a b", true, true),
            ("...", true, true),
            ("", false, false),
            (".", false, true),
            ("..", false, true),
            ("a/b", false, true),
            ("a\nb", false, false),
            ("a\0", false, false),
            ("\u{85}", false, false),
            (long.as_str(), false, false),
        ] {
            assert_eq!(name(text, "queue", &limits).is_ok(), is_name, "{text}");
            assert_eq!(key(text, "key", &limits).is_ok(), is_key, "{text}");
        }
    }
}
