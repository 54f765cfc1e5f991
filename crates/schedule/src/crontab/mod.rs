//! Crontabs: the text of a user's or the system's crontab as entries with their expression, zone,
//! command and environment.
//!
//! It reads what Vixie cron and its descendants read. What always holds: a faulty line is
//! reported with its column and the others are read all the same; what Tourbillon does not carry over
//! (`@reboot`, `MAILTO`) is a note, never dropped in silence. It deliberately lacks
//! files, users and the host's zone: the caller reads the text, says which format it is in and which
//! zone the host had.

mod line;

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Kind};
use crate::hash::stable;
use crate::{CronExpr, Dialect, Fold, Gap, Rule, Timing, Zone};

use line::{Assignment, assignment, split_command};

/// Longest crontab that is read, in bytes.
const TEXT_MAX: usize = 1 << 20;
/// Longest line, in bytes.
const LINE_MAX: usize = 128 << 10;
/// Most environment variables in force at once.
const VARIABLES_MAX: usize = 200;
/// Characters of the command in a suggested name.
const SLUG_MAX: usize = 40;

/// Settings that cron itself acts on and that have no counterpart here.
const NOT_CARRIED: [&str; 5] =
    ["MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING", "RANDOM_DELAY"];

/// Which of the two forms a crontab has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CrontabFormat {
    /// A user's: expression, command.
    User,
    /// The system's, as `/etc/crontab` and the files of `/etc/cron.d`: expression, user, command.
    System,
}

/// What a crontab holds.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Crontab {
    /// The entries, in the order of their lines.
    pub entries: Vec<CrontabEntry>,
    /// What is not carried over, or is carried over differently.
    pub notes: Vec<CrontabNote>,
    /// The lines that could not be read.
    pub errors: Vec<CrontabError>,
}

/// Names and values of variables; entries under the same settings share one.
pub type Environment = Arc<[(Arc<str>, Arc<str>)]>;

/// One line that runs a command.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CrontabEntry {
    /// Line number, from 1.
    pub line: usize,
    /// A name for its schedule: from the command and a hash of user and command, so that it stays when the time
    /// is edited or lines move. Further lines with the same command get `-2`, `-3`, ….
    pub name: String,
    /// The expression, in the vixie dialect; `~` resolved by `name`.
    pub expr: CronExpr,
    /// The zone in force.
    pub zone: Zone,
    /// The user it runs as, in the system's format.
    pub user: Option<String>,
    /// The shell that runs the command: `SHELL`, else `/bin/sh`.
    pub shell: String,
    /// The folder it runs in, when `HOME` is set.
    pub home: Option<String>,
    /// The environment set above the line, `SHELL`, `HOME`, `PATH` and `TZ` included, without what cron
    /// keeps for itself (`CRON_TZ`, `MAILTO`, …).
    pub env: Environment,
    /// The command, `\%` read as `%`.
    pub command: String,
    /// What it gets on standard input: what stood after the first `%`.
    pub stdin: Option<String>,
}

impl CrontabEntry {
    /// The entry's timing, with the gap and fold policies of Vixie cron: shift and first.
    #[must_use]
    pub fn timing(&self) -> Timing {
        Timing::new(Rule::cron(self.expr.clone()), self.zone.clone())
            .with_gap(Gap::Shift)
            .with_fold(Fold::First)
    }
}

/// Something that is not carried over, or differently.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrontabNote {
    /// Line number, from 1.
    pub line: usize,
    /// What, in one sentence.
    pub text: String,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrontabError {
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong; its column counts bytes of the line from 1.
    pub error: Error,
}

impl std::fmt::Display for CrontabError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.error)
    }
}

impl std::error::Error for CrontabError {}

impl Crontab {
    /// Reads a crontab. `zone` is in force until a `CRON_TZ` or `TZ` line; cron itself uses the
    /// host's.
    ///
    /// `CRON_TZ` sets the zone of the lines below it, and so does `TZ` while `CRON_TZ` is not set; an
    /// empty value goes back to `zone`. Lines below an unknown zone are errors, since their
    /// times are not known. Never fails as a whole, except that a text over 1 MiB is one error.
    ///
    /// ```
    /// use tourbillon_schedule::{Crontab, CrontabFormat, Zone};
    /// let text = "PATH=/usr/bin\n15 3 * * * tar cf /tmp/a.tar /etc\n61 * * * * true\n";
    /// let crontab = Crontab::parse(text, CrontabFormat::User, &Zone::utc());
    /// assert_eq!(crontab.entries[0].command, "tar cf /tmp/a.tar /etc");
    /// assert_eq!(crontab.errors[0].line, 3);
    /// ```
    #[must_use]
    pub fn parse(text: &str, format: CrontabFormat, zone: &Zone) -> Self {
        let mut reader = Reader {
            format,
            default_zone: zone,
            crontab: Crontab::default(),
            variables: Vec::new(),
            env: Arc::new([]),
            cron_tz: None,
            tz: None,
            names: HashMap::new(),
        };
        if text.len() > TEXT_MAX {
            let error = fault("crontab", 1, "", "at most 1 MiB of text");
            reader.crontab.errors.push(CrontabError { line: 1, error });
            return reader.crontab;
        }
        for (index, line) in text.split('\n').enumerate() {
            let line = line.strip_suffix('\r').unwrap_or(line);
            if let Err(error) = reader.line(index + 1, line) {
                let line = index + 1;
                reader.crontab.errors.push(CrontabError { line, error });
            }
        }
        reader.crontab
    }
}

/// A zone that a line set, or the number of the line that failed to.
type Setting = Result<Zone, usize>;

struct Reader<'a> {
    format: CrontabFormat,
    default_zone: &'a Zone,
    crontab: Crontab,
    variables: Vec<(Arc<str>, Arc<str>)>,
    env: Environment,
    cron_tz: Option<Setting>,
    tz: Option<Setting>,
    /// How often each suggested name was given.
    names: HashMap<String, usize>,
}

impl Reader<'_> {
    fn line(&mut self, number: usize, line: &str) -> Result<(), Error> {
        let start = line.len() - line.trim_start().len();
        let body = &line[start..];
        if body.is_empty() || body.starts_with('#') {
            return Ok(());
        }
        if line.len() > LINE_MAX {
            return Err(fault("line", 1, body, "at most 128 KiB"));
        }
        if let Some(at) = line.find('\0') {
            return Err(fault("line", at + 1, "\0", "text without NUL"));
        }
        match assignment(body).map_err(|error| error.moved(start))? {
            Some(assignment) => self.set(number, start, assignment),
            None => self.entry(number, line, start),
        }
    }

    fn set(&mut self, number: usize, start: usize, set: Assignment) -> Result<(), Error> {
        let Assignment { name, value, value_at } = set;
        if NOT_CARRIED.contains(&name.as_str()) {
            self.note(number, format!("{name} is not carried over"));
            return Ok(());
        }
        let mut outcome = Ok(());
        if name == "CRON_TZ" || name == "TZ" {
            let setting = match value.strip_prefix(':').unwrap_or(&value) {
                "" => None,
                zone => Some(Zone::get(zone).map_err(|error| {
                    let column = start + value_at + 1;
                    outcome = Err(error.within(Kind::Crontab).placed(column));
                    number
                })),
            };
            if name == "CRON_TZ" {
                self.cron_tz = setting;
                return outcome;
            }
            self.tz = setting;
            let text = "TZ is taken as the zone of the lines below, besides being set for commands";
            self.note(number, text.to_owned());
        }
        let known = self.variables.iter().position(|(known, _)| **known == *name);
        match known {
            Some(index) => self.variables[index].1 = value.into(),
            None if self.variables.len() >= VARIABLES_MAX => {
                return Err(fault("variable", start + 1, &name, "at most 200 variables"));
            }
            None => self.variables.push((name.into(), value.into())),
        }
        self.env = self.variables.clone().into();
        outcome
    }

    fn entry(&mut self, number: usize, line: &str, start: usize) -> Result<(), Error> {
        // A leading `-` asks some crons not to log the run.
        let start = match line[start..].strip_prefix('-') {
            Some(rest) if rest.starts_with(|c: char| c == '*' || c.is_ascii_digit()) => start + 1,
            _ => start,
        };
        let mut words = Words { line, at: start };
        let first = words.next().unwrap_or_default();
        if first.eq_ignore_ascii_case("@reboot") {
            let text = "@reboot is not carried over: it is no time".to_owned();
            self.note(number, text);
            return Ok(());
        }
        let further = match first.as_bytes().first() {
            Some(b'@') if first.eq_ignore_ascii_case("@every") => 1,
            Some(b'@') => 0,
            _ => 4,
        };
        for _ in 0..further {
            if words.next().is_none() {
                break;
            }
        }
        let expression = &line[start..words.at];
        let moved = |error: Error| error.within(Kind::Crontab).moved(start);
        // The expression comes first, so its faults do; the name is not known yet.
        CronExpr::parse(Dialect::Vixie, expression, "").map_err(moved)?;
        let user = match self.format {
            CrontabFormat::User => None,
            CrontabFormat::System => match words.next() {
                Some(user) => Some(user.to_owned()),
                None => return Err(fault("user", line.len() + 1, "", "a user name")),
            },
        };
        let raw = words.rest();
        if raw.is_empty() {
            return Err(fault("command", line.len() + 1, "", "a command"));
        }
        let (command, stdin) = split_command(raw);
        if command.trim().is_empty() {
            let at = line.len() - raw.len() + 1;
            return Err(fault("command", at, raw, "a command before the %"));
        }
        let zone = self.zone(start)?;
        let name = self.name(user.as_deref(), raw, &command);
        let expr = CronExpr::parse(Dialect::Vixie, expression, &name).map_err(moved)?;
        let variable = |name: &str| {
            let found = self.variables.iter().find(|(known, _)| **known == *name);
            found.map(|(_, value)| value.to_string())
        };
        self.crontab.entries.push(CrontabEntry {
            line: number,
            expr,
            zone,
            user,
            shell: variable("SHELL").unwrap_or_else(|| "/bin/sh".to_owned()),
            home: variable("HOME"),
            env: Arc::clone(&self.env),
            command,
            stdin,
            name,
        });
        Ok(())
    }

    fn zone(&self, start: usize) -> Result<Zone, Error> {
        match self.cron_tz.as_ref().or(self.tz.as_ref()) {
            None => Ok(self.default_zone.clone()),
            Some(Ok(zone)) => Ok(zone.clone()),
            Some(Err(line)) => Err(fault(
                "zone",
                start + 1,
                "an unknown zone",
                format!("a known zone on line {line}, under which this line stands"),
            )),
        }
    }

    fn name(&mut self, user: Option<&str>, raw: &str, command: &str) -> String {
        let identity = format!("{}\0{raw}", user.unwrap_or_default());
        let short = stable(&identity, 0) >> 32;
        let name = format!("cron-{}{short:08x}", slug(command));
        let given = self.names.entry(name.clone()).or_default();
        *given += 1;
        match *given {
            1 => name,
            n => format!("{name}-{n}"),
        }
    }

    fn note(&mut self, line: usize, text: String) {
        self.crontab.notes.push(CrontabNote { line, text });
    }
}

/// The start of a command in letters that fit any name, each run of others one `-`; with a
/// `-` at the end unless empty. Folders are left out.
fn slug(command: &str) -> String {
    let mut slug = String::new();
    for word in command.split_whitespace() {
        let word = word.trim_end_matches('/').rsplit('/').next().unwrap_or(word);
        for c in word.chars().chain(['-']) {
            let c = c.to_ascii_lowercase();
            if c.is_ascii_alphanumeric() {
                slug.push(c);
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
        if slug.len() >= SLUG_MAX {
            slug.truncate(SLUG_MAX);
            break;
        }
    }
    if !slug.is_empty() && !slug.ends_with('-') {
        slug.push('-');
    }
    slug
}

/// The words of a line, from a place on.
struct Words<'a> {
    line: &'a str,
    /// Just after the last word.
    at: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let len = rest.find([' ', '\t']).unwrap_or(rest.len());
        self.at = self.line.len() - rest.len() + len;
        Some(&rest[..len])
    }

    fn rest(&self) -> &'a str {
        self.line[self.at..].trim_start_matches([' ', '\t'])
    }
}

fn fault(
    field: &'static str,
    column: usize,
    given: &str,
    expected: impl Into<std::borrow::Cow<'static, str>>,
) -> Error {
    Error::new(Kind::Crontab, field, Some(column), given, expected)
}
