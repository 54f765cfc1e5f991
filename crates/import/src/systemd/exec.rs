//! Command lines of systemd: quotes, escapes, prefixes, specifiers.
//!
//! What always holds: a word is what systemd would give the program, or the line is refused.
//! Variables (`$NAME`) stay as they are and are told: only a shell would put their values in.

/// Longest word or line, in bytes.
const WORDS_MAX: usize = 10_000;

/// How command lines of a unit are read.
pub(super) struct Exec<'a> {
    /// The unit's name, with its suffix.
    pub(super) unit: &'a str,
}

impl Exec<'_> {
    /// The program and its arguments.
    pub(super) fn command(
        &self,
        line: &str,
        notes: &mut Vec<String>,
    ) -> Result<Vec<String>, String> {
        let mut line = line;
        while let Some(prefix) = line.chars().next().filter(|c| "@-:+!|".contains(*c)) {
            line = &line[1..];
            let told = match prefix {
                '@' => {
                    return Err(
                        "ExecStart: @ gives the program another name; expected a plain path"
                            .to_owned(),
                    );
                }
                '-' => "a failure, which ExecStart=- passes over, counts as one",
                '+' | '!' => "it runs with the server's rights (ExecStart=+ or !)",
                '|' => {
                    return Err(
                        "ExecStart: | runs it by a login shell; expected a plain path".to_owned()
                    );
                }
                _ => continue,
            };
            notes.push(told.to_owned());
        }
        let words = self.words(line)?;
        if words.is_empty() {
            return Err("ExecStart: nothing given; expected a program".to_owned());
        }
        if words.iter().any(|word| word == ";") {
            return Err(
                "ExecStart: several commands on a line; expected a line for each".to_owned()
            );
        }
        if words.iter().any(|word| word.contains('$')) {
            notes.push("variables in ExecStart are not put in: no shell runs it".to_owned());
        }
        Ok(words)
    }

    /// Words parted by blanks, without quotes, specifiers resolved.
    pub(super) fn words(&self, line: &str) -> Result<Vec<String>, String> {
        let mut words = Vec::new();
        let mut chars = line.chars().peekable();
        loop {
            while chars.next_if(|c| c.is_whitespace()).is_some() {}
            if chars.peek().is_none() {
                return Ok(words);
            }
            if words.len() >= WORDS_MAX {
                return Err(format!("more than {WORDS_MAX} words"));
            }
            let mut word = String::new();
            let mut quote = None;
            while let Some(c) = chars.next() {
                match (c, quote) {
                    (c, Some(open)) if c == open => quote = None,
                    ('"' | '\'', None) => quote = Some(c),
                    ('\\', _) => escape(&mut chars, &mut word)?,
                    (c, None) if c.is_whitespace() => break,
                    (c, _) => word.push(c),
                }
            }
            if let Some(quote) = quote {
                return Err(format!("a quote is not closed; expected another {quote}"));
            }
            words.push(self.resolve(&word)?);
        }
    }

    /// A text with its specifiers resolved, those that depend on the unit's name alone.
    pub(super) fn resolve(&self, text: &str) -> Result<String, String> {
        let mut resolved = String::new();
        let mut chars = text.chars();
        let stem = self.unit.rsplit_once('.').map_or(self.unit, |(stem, _)| stem);
        let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
        while let Some(c) = chars.next() {
            if c != '%' {
                resolved.push(c);
                continue;
            }
            match chars.next() {
                Some('%') => resolved.push('%'),
                Some('n') => resolved.push_str(self.unit),
                Some('N') => resolved.push_str(stem),
                Some('p') => resolved.push_str(prefix),
                Some('i') => resolved.push_str(instance),
                Some(other) => {
                    return Err(format!(
                        "the specifier %{other} is not known here; expected its value in its place"
                    ));
                }
                None => return Err("a % at the end; expected %%".to_owned()),
            }
        }
        Ok(resolved)
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// What stands after a backslash.
fn escape(chars: &mut Chars<'_>, word: &mut String) -> Result<(), String> {
    if chars.peek().is_some_and(|c| ('0'..='7').contains(c)) {
        word.push(code(chars, 3, 8)?);
        return Ok(());
    }
    let Some(letter) = chars.next() else { return Err("a backslash at the end".to_owned()) };
    let read = match letter {
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        's' => ' ',
        '\\' | '"' | '\'' | ';' => letter,
        'x' => code(chars, 2, 16)?,
        'u' => code(chars, 4, 16)?,
        'U' => code(chars, 8, 16)?,
        // As there: not an escape, and kept.
        other => {
            word.push('\\');
            other
        }
    };
    word.push(read);
    Ok(())
}

/// A character by its number.
fn code(chars: &mut Chars<'_>, digits: usize, radix: u32) -> Result<char, String> {
    let mut value = 0;
    for _ in 0..digits {
        let digit = chars.next().and_then(|c| c.to_digit(radix));
        value = value * radix + digit.ok_or("an escape without its digits")?;
    }
    let found = char::from_u32(value).filter(|c| *c != '\0');
    found.ok_or_else(|| "an escape that is no character".to_owned())
}

/// A command line for a shell that runs exactly these words.
pub(super) fn shell(argv: &[String]) -> String {
    let quoted = argv.iter().map(|word| {
        let plain = !word.is_empty()
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_/.,:=@%+-".contains(&b));
        if plain { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<String>, String> {
        Exec { unit: "backup@home.service" }.words(line)
    }

    #[test]
    fn words_as_systemd_reads_them() {
        for (line, expected) in [
            ("/bin/a b  c", vec!["/bin/a", "b", "c"]),
            (r#"/bin/a "b c" 'd "e'"#, vec!["/bin/a", "b c", "d \"e"]),
            (r#"a b"c d"e ''"#, vec!["a", "bc de", ""]),
            (r"a\sb \x41\101\u00e9 \q", vec!["a b", "AAé", r"\q"]),
            (
                "%n %N %p %i 100%%",
                vec!["backup@home.service", "backup@home", "backup", "home", "100%"],
            ),
        ] {
            assert_eq!(words(line).unwrap(), expected, "{line}");
        }
        for line in ["a 'b", "a \\", "%h", "a %", r"\x4", r"\000"] {
            assert!(words(line).is_err(), "{line}");
        }
    }

    #[test]
    fn prefixes_are_told_or_refused() {
        let exec = Exec { unit: "a.service" };
        let mut notes = Vec::new();
        assert_eq!(exec.command("-/bin/a $X", &mut notes).unwrap(), ["/bin/a", "$X"]);
        assert_eq!(notes.len(), 2);
        for line in ["@/bin/a b", "|/bin/a", "", "/bin/a ; /bin/b"] {
            assert!(exec.command(line, &mut notes).is_err(), "{line}");
        }
    }

    #[test]
    fn shell_words_are_quoted() {
        let argv = ["/bin/a", "b c", "it's", ""].map(str::to_owned);
        assert_eq!(shell(&argv), r"/bin/a 'b c' 'it'\''s' ''");
    }
}
