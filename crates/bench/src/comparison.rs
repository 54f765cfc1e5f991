//! Tables of subjects side by side: one row a subject, one column a metric, ratios to one of them.
//!
//! Subjects and metrics stand in the order in which they were first reported. A cell without a
//! measurement is a dash; a ratio is absent where the base was not measured.

use std::fmt::Write;

use crate::report::{Row, rounded};

/// Columns in one table; the next metrics follow in another below.
const COLUMNS_MAX: usize = 6;
const COLUMN_WIDTH: usize = 22;

/// All tables, each `n` by itself.
pub(crate) fn tables(rows: &[Row], base: &str) -> String {
    let mut out = String::new();
    for n in distinct(rows.iter().map(|row| row.n)) {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.n == n).collect();
        let metrics = distinct(rows.iter().map(|row| row.metric));
        for columns in metrics.chunks(COLUMNS_MAX) {
            table(&mut out, n, &rows, columns, base);
        }
    }
    out
}

fn table(out: &mut String, n: u64, rows: &[&Row], columns: &[&str], base: &str) {
    let title = if n == 0 { "empty".to_owned() } else { format!("n = {n}") };
    let width = rows.iter().map(|row| row.subject.len()).max().unwrap_or(0).max(title.len());
    let mut line = format!("{title:<width$}");
    for metric in columns {
        let _ = write!(line, " {metric:>COLUMN_WIDTH$}");
    }
    let _ = writeln!(out, "{line}");
    for subject in distinct(rows.iter().map(|row| row.subject.as_str())) {
        let mut line = format!("{subject:<width$}");
        for metric in columns {
            let value = |subject: &str| {
                rows.iter().find(|r| r.subject == subject && r.metric == *metric).map(|r| r.median)
            };
            let cell = cell(value(subject), value(base));
            let _ = write!(line, " {cell:>COLUMN_WIDTH$}");
        }
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(out);
}

fn cell(value: Option<f64>, base: Option<f64>) -> String {
    match (value, base) {
        (Some(value), Some(base)) if base > 0.0 => {
            format!("{} x{:.2}", rounded(value), value / base)
        }
        (Some(value), _) => rounded(value).to_string(),
        (None, _) => "-".to_owned(),
    }
}

/// Each once, in order of first appearance.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(subject: &str, n: u64, metric: &'static str, value: f64) -> Row {
        Row {
            subject: subject.to_owned(),
            n,
            metric,
            unit: "ns",
            rounds: 1,
            median: value,
            min: value,
            max: value,
        }
    }

    #[test]
    fn a_row_a_subject_with_ratios_and_dashes() {
        let rows = [
            row("ours", 10, "insert_ns", 8.0),
            row("theirs", 10, "insert_ns", 20.0),
            row("theirs", 10, "fire_ns", 5.0),
            row("ours", 0, "idle_ns", 2.0),
        ];
        let text = tables(&rows, "ours");
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["n", "=", "10", "insert_ns", "fire_ns"]);
        assert_eq!(lines[1], ["ours", "8", "x1.00", "-"]);
        assert_eq!(lines[2], ["theirs", "20", "x2.50", "5"]);
        assert_eq!(lines[4], ["empty", "idle_ns"]);
    }
}
