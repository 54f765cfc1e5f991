//! Results on standard output: lines, JSON lines, tables that fit the terminal.
//!
//! Writing returns errors instead of panicking, so that a closed pipe ends the command quietly.
//! No colours unless a terminal reads along and `NO_COLOR` is not set.

use std::io::{self, IsTerminal, Write};

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use serde::Serialize;
use tourbillon_wire::{Percentiles, TaskState, Timestamp};

/// How results are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out {
    json: bool,
    terminal: bool,
    colour: bool,
}

impl Out {
    /// JSON lines or tables, for whatever standard output is.
    pub(crate) fn new(json: bool) -> Out {
        let terminal = io::stdout().is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Out { json, terminal, colour: terminal && !no_colour }
    }

    /// Whether machine-readable lines are asked for.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Whether a terminal reads along.
    pub(crate) fn is_terminal(self) -> bool {
        self.terminal
    }

    /// Writes one line.
    pub(crate) fn line(self, text: impl std::fmt::Display) -> anyhow::Result<()> {
        Ok(writeln!(io::stdout().lock(), "{text}")?)
    }

    /// Writes text as it is and lets it be seen at once.
    pub(crate) fn raw(self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }

    /// Writes one object as one line.
    pub(crate) fn object<T: Serialize>(self, value: &T) -> anyhow::Result<()> {
        self.line(serde_json::to_string(value)?)
    }

    /// Writes the object as a line of JSON, or else the text.
    pub(crate) fn either<T: Serialize>(
        self,
        value: &T,
        text: impl std::fmt::Display,
    ) -> anyhow::Result<()> {
        if self.json { self.object(value) } else { self.line(text) }
    }

    /// Writes the items as lines of JSON, or else as a table.
    pub(crate) fn list<T: Serialize, const N: usize>(
        self,
        items: &[T],
        header: [&str; N],
        row: impl Fn(&T) -> [Cell; N],
    ) -> anyhow::Result<()> {
        if self.json {
            return items.iter().try_for_each(|item| self.object(item));
        }
        if items.is_empty() {
            return Ok(());
        }
        let mut table = self.table(header);
        for item in items {
            table.add_row(row(item));
        }
        self.line(trimmed(table))
    }

    /// An empty table with that header.
    pub(crate) fn table<const N: usize>(self, header: [&str; N]) -> Table {
        let mut table = self.bare_table();
        table.set_header(header.map(|name| Cell::new(name).add_attribute(Attribute::Bold)));
        table
    }

    /// An empty table without a header.
    pub(crate) fn bare_table(self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        if self.terminal {
            table.set_content_arrangement(ContentArrangement::Dynamic);
        } else {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
        if self.colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        if self.terminal
            && !self.colour
            && let Some(width) = width()
        {
            table.set_width(width);
        }
        table
    }
}

/// The table's text: columns two blanks apart, no blanks at line ends.
pub(crate) fn trimmed(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// The terminal's width.
fn width() -> Option<u16> {
    // A second table that may ask the terminal knows it.
    Table::new().width()
}

/// A cell of text.
pub(crate) fn text(value: impl ToString) -> Cell {
    Cell::new(printable(&value.to_string()))
}

/// Text from elsewhere without what would drive the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A cell of text, or `-` when there is none.
pub(crate) fn opt<T: ToString>(value: Option<T>) -> Cell {
    value.map_or_else(|| Cell::new("-"), text)
}

/// A cell for a state, in its colour.
pub(crate) fn state(state: TaskState) -> Cell {
    let cell = Cell::new(state);
    match state {
        TaskState::Scheduled => cell,
        TaskState::Ready => cell.fg(Color::Cyan),
        TaskState::Running => cell.fg(Color::Blue),
        TaskState::Succeeded => cell.fg(Color::Green),
        TaskState::Failed => cell.fg(Color::Red),
        TaskState::Cancelled | TaskState::Expired | TaskState::Skipped => cell.fg(Color::Yellow),
    }
}

/// A cell for a truth.
pub(crate) fn yes(value: bool) -> Cell {
    Cell::new(if value { "yes" } else { "-" })
}

/// An instant to the second.
pub(crate) fn instant(at: Timestamp) -> Cell {
    let seconds = at.as_micros().div_euclid(1_000_000) * 1_000_000;
    text(Timestamp::from_micros(seconds))
}

/// A cell for the median and the 99th percentile, in milliseconds.
pub(crate) fn percentiles(p: &Percentiles) -> Cell {
    if p.count == 0 {
        return Cell::new("-");
    }
    text(format!("{} / {}", millis(p.p50), millis(p.p99)))
}

fn millis(ms: f64) -> String {
    if ms < 10.0 {
        format!("{ms:.1}ms")
    } else if ms < 10_000.0 {
        format!("{ms:.0}ms")
    } else {
        format!("{:.1}s", ms / 1000.0)
    }
}
