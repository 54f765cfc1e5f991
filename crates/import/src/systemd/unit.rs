//! Unit files: sections, settings, comments, lines that go on.
//!
//! What always holds: a setting knows its line; an empty value takes back the ones before it, as for
//! systemd's lists.

/// Most settings in a file.
const SETTINGS_MAX: usize = 10_000;

/// One `Name=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) section: String,
    pub(super) name: String,
    pub(super) value: String,
    /// From 1.
    pub(super) line: usize,
}

impl Setting {
    pub(super) fn place(&self) -> String {
        format!("line {}", self.line)
    }

    /// Whether it is a truth that is not.
    pub(super) fn is_false(&self) -> bool {
        matches!(self.value.to_ascii_lowercase().as_str(), "0" | "no" | "false" | "off" | "n" | "f")
    }
}

/// A unit file.
#[derive(Debug, Default)]
pub(super) struct Unit(Vec<Setting>);

impl Unit {
    /// Reads a file; an error is a line and what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Unit, (usize, String)> {
        let mut unit = Unit::default();
        let mut section = String::new();
        let mut lines = text.lines().enumerate();
        while let Some((index, first)) = lines.next() {
            let number = index + 1;
            let mut line = first.trim().to_owned();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            while line.ends_with('\\') {
                line.pop();
                line.push(' ');
                // Comments between the parts of a line are passed over.
                match lines.by_ref().map(|(_, l)| l.trim()).find(|l| !l.starts_with(['#', ';'])) {
                    Some(next) => line.push_str(next),
                    None => break,
                }
            }
            if let Some(name) = line.strip_prefix('[') {
                let Some(name) = name.strip_suffix(']') else {
                    return Err((number, format!("given {line:?}; expected [Section]")));
                };
                name.clone_into(&mut section);
                continue;
            }
            let Some((name, value)) = line.split_once('=') else {
                return Err((number, format!("given {line:?}; expected Name=value")));
            };
            if section.is_empty() {
                return Err((number, "a setting before the first [Section]".to_owned()));
            }
            let setting = Setting {
                section: section.clone(),
                name: name.trim().to_owned(),
                value: value.trim().to_owned(),
                line: number,
            };
            if setting.value.is_empty() {
                unit.0.retain(|s| s.section != setting.section || s.name != setting.name);
            } else if unit.0.len() < SETTINGS_MAX {
                unit.0.push(setting);
            } else {
                return Err((number, format!("more than {SETTINGS_MAX} settings")));
            }
        }
        Ok(unit)
    }

    /// The settings of a section, in order.
    pub(super) fn all(&self, section: &'static str) -> impl Iterator<Item = &Setting> {
        self.0.iter().filter(move |setting| setting.section == section)
    }

    /// The last of a name, which is the one that holds.
    pub(super) fn last(&self, section: &'static str, name: &str) -> Option<&Setting> {
        self.0.iter().rev().find(|setting| setting.section == section && setting.name == name)
    }

    /// A truth, false when it is not given.
    pub(super) fn truth(&self, section: &'static str, name: &str) -> Result<bool, (usize, String)> {
        let Some(setting) = self.last(section, name) else { return Ok(false) };
        match setting.value.to_ascii_lowercase().as_str() {
            "1" | "yes" | "true" | "on" | "y" | "t" => Ok(true),
            _ if setting.is_false() => Ok(false),
            other => Err((setting.line, format!("{name}: given {other:?}; expected yes or no"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_comments_and_lines_that_go_on() {
        let text = "# c\n[Unit]\nDescription=a \\\n# between\n  b\n\n[Timer]\nOnCalendar=daily\nOnCalendar=\nOnCalendar = hourly\n; c\nPersistent=yes\n";
        let unit = Unit::parse(text).unwrap();
        assert_eq!(unit.last("Unit", "Description").unwrap().value, "a  b");
        let all: Vec<(&str, usize)> =
            unit.all("Timer").map(|s| (s.value.as_str(), s.line)).collect();
        assert_eq!(all, [("hourly", 10), ("yes", 12)]);
        assert_eq!(unit.truth("Timer", "Persistent"), Ok(true));
        assert_eq!(unit.truth("Timer", "WakeSystem"), Ok(false));
    }

    #[test]
    fn faults_have_their_line() {
        for (text, line) in [("A=b", 1), ("[A\n", 1), ("[A]\nb\n", 2)] {
            assert_eq!(Unit::parse(text).unwrap_err().0, line, "{text}");
        }
        let unit = Unit::parse("[Timer]\nPersistent=maybe").unwrap();
        assert_eq!(unit.truth("Timer", "Persistent").unwrap_err().0, 2);
    }
}
