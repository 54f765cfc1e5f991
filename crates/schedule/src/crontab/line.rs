//! The two small languages inside a crontab line: `NAME = value`, and `%` in commands.

use crate::crontab::fault;
use crate::error::Error;

/// A line that sets a variable.
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) value: String,
    /// Byte offset of the value.
    pub(super) value_at: usize,
}

/// Reads a line, without leading blanks, as `NAME = value`; `None` when it is not of that form.
///
/// Name and value may be quoted, which keeps blanks at their ends; blanks around `=` do not
/// count. Nothing is expanded.
pub(super) fn assignment(line: &str) -> Result<Option<Assignment>, Error> {
    let (name, after) = match line.as_bytes()[0] {
        quote @ (b'"' | b'\'') => match line[1..].find(char::from(quote)) {
            Some(len) => (&line[1..=len], len + 2),
            None => return Ok(None),
        },
        _ => {
            let len = line.find([' ', '\t', '=']).unwrap_or(line.len());
            (&line[..len], len)
        }
    };
    let Some(value) = line[after..].trim_start_matches([' ', '\t']).strip_prefix('=') else {
        return Ok(None);
    };
    let value = value.trim_matches([' ', '\t']);
    let value_at = line.trim_end_matches([' ', '\t']).len() - value.len();
    if name.is_empty() {
        return Err(fault("variable", 1, line, "a name before ="));
    }
    let mut assignment = Assignment { name: name.to_owned(), value: value.to_owned(), value_at };
    if let Some(quote @ ('"' | '\'')) = value.chars().next() {
        match value[1..].find(quote) {
            Some(len) if len + 2 == value.len() => {
                assignment.value = value[1..=len].to_owned();
                assignment.value_at += 1;
            }
            Some(len) => {
                let rest = &value[len + 2..];
                let column = value_at + len + 3;
                return Err(fault("variable", column, rest, "nothing after the closing quote"));
            }
            None => {
                return Err(fault("variable", value_at + 1, value, "a closing quote"));
            }
        }
    }
    Ok(Some(assignment))
}

/// Splits a command at its first bare `%`: what follows is standard input, in which further `%` are
/// line ends. `\%` is a plain `%` in either part. Input ends with a line end, as cron sees to.
///
/// As in Vixie cron, a backslash before another backslash escapes it as far as the command is concerned, so
/// `\\%` splits there; both backslashes stay.
pub(super) fn split_command(raw: &str) -> (String, Option<String>) {
    let mut command = String::new();
    let mut escaped = false;
    let mut input = None;
    for (at, c) in raw.char_indices() {
        if escaped {
            escaped = false;
            if c == '%' {
                command.pop();
            }
        } else if c == '%' {
            input = Some(&raw[at + 1..]);
            break;
        } else {
            escaped = c == '\\';
        }
        command.push(c);
    }
    (command, input.filter(|text| !text.is_empty()).map(standard_input))
}

fn standard_input(text: &str) -> String {
    let mut input = String::new();
    let mut escaped = false;
    for c in text.chars() {
        let was_escaped = std::mem::replace(&mut escaped, c == '\\');
        match c {
            '%' if was_escaped => {
                input.pop();
                input.push('%');
            }
            '%' => input.push('\n'),
            _ => input.push(c),
        }
    }
    if !input.ends_with('\n') {
        input.push('\n');
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs() {
        let split = |raw: &str| {
            let (command, stdin) = split_command(raw);
            (command, stdin.unwrap_or_default())
        };
        for (raw, command, stdin) in [
            ("date", "date", ""),
            (r"date +\%F", "date +%F", ""),
            (r"date +\%F-\%H", "date +%F-%H", ""),
            ("mail root%Hi%there", "mail root", "Hi\nthere\n"),
            ("mail root%Hi%there%", "mail root", "Hi\nthere\n"),
            (r"cat%100\% sure\n", "cat", "100% sure\\n\n"),
            (r"echo \\%in", r"echo \\", "in\n"),
            ("true%", "true", ""),
            (r"echo \a \", r"echo \a \", ""),
            ("é%ü", "é", "ü\n"),
        ] {
            assert_eq!(split(raw), (command.to_owned(), stdin.to_owned()), "{raw}");
        }
    }

    #[test]
    fn assignments() {
        for (line, expected) in [
            ("A=b", Some(("A", "b"))),
            ("A = b c ", Some(("A", "b c"))),
            ("A=", Some(("A", ""))),
            ("A=\"\"", Some(("A", ""))),
            ("A=' b '", Some(("A", " b "))),
            ("A = \"it's\"", Some(("A", "it's"))),
            ("\"A B\" = c", Some(("A B", "c"))),
            ("A=b'c'", Some(("A", "b'c'"))),
            ("A=b=c", Some(("A", "b=c"))),
            ("A=$HOME/x", Some(("A", "$HOME/x"))),
            ("* * * * * A=b true", None),
            ("@daily A=b true", None),
            ("'A", None),
            ("A", None),
        ] {
            let found = assignment(line).unwrap();
            let found = found.as_ref().map(|a| (a.name.as_str(), a.value.as_str()));
            assert_eq!(found, expected, "{line}");
        }
        for (line, column) in [("A='b", 3), ("A='b'c", 6), ("A = \"b\" c", 8), ("=b", 1)] {
            let error = assignment(line).err().unwrap();
            assert_eq!(error.column(), Some(column), "{line}: {error}");
        }
    }
}
