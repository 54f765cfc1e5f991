//! Names of schedules from names elsewhere.
//!
//! What always holds: the same name gives the same, and what comes out is a name that the server takes.

use std::collections::BTreeMap;

/// Longest name, in characters.
const NAME_MAX: usize = 200;

/// A name of parts, joined by dots; empty parts are left out.
pub(crate) fn of(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.trim()).filter(|p| !p.is_empty()).collect();
    let joined = parts.join(".");
    let clean = joined.chars().map(|c| if c == '/' || c.is_control() { '-' } else { c });
    let name: String = clean.take(NAME_MAX).collect();
    match name.as_str() {
        "" | "." | ".." => "schedule".to_owned(),
        _ => name,
    }
}

/// Names that were given, so that none is given twice.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<String, usize>);

impl Names {
    /// The name, with `-2`, `-3`, … when it was given before.
    pub(crate) fn unique(&mut self, name: String) -> String {
        let given = self.0.entry(name.clone()).or_default();
        *given += 1;
        match *given {
            1 => name,
            n => {
                let suffix = format!("-{n}");
                let kept: String = name.chars().take(NAME_MAX - suffix.len()).collect();
                kept + &suffix
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_of_ours() {
        assert_eq!(of(&["", "nightly"]), "nightly");
        assert_eq!(of(&["reports", "a/b\n"]), "reports.a-b");
        assert_eq!(of(&["a\tb"]), "a-b");
        assert_eq!(of(&[".."]), "schedule");
        assert_eq!(of(&["é".repeat(300).as_str()]).chars().count(), 200);
        let mut names = Names::default();
        assert_eq!(names.unique("a".into()), "a");
        assert_eq!(names.unique("a".into()), "a-2");
        assert_eq!(names.unique("x".repeat(200)).len(), 200);
        assert!(names.unique("x".repeat(200)).ends_with("x-2"));
    }
}
